/* The CPU backend against the ceilings of the machine it runs on: reading memory, and folding and normalising the same
   memory through the library, in turn, medians. One rank: mpirun -np 1 --bind-to none cpu_bench [log2 of elements].
   tools/bench-numpy runs it beside NumPy and SciPy. */
#include "allfold.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifdef _OPENMP
#include <omp.h>
#endif

enum { RUNS = 15 };

static int compare(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double *seconds)
{
    qsort(seconds, RUNS, sizeof *seconds, compare);
    return seconds[RUNS / 2];
}

/* Reads all of x: integer maxima of 8 bytes in vectors, far less work than the memory allows. */
static uint64_t read_all(const float *x, size_t n)
{
    const uint64_t *const words = (const uint64_t *)x;
    uint64_t all = 0;
#pragma omp parallel for reduction(| : all) schedule(static)
    for (size_t block = 0; block < n / 2; block += 8192) {
        uint64_t lanes[32] = {0};
        for (size_t i = block; i < block + 8192 && i + 32 <= n / 2; i += 32)
            for (int lane = 0; lane < 32; lane++)
                lanes[lane] |= words[i + (size_t)lane];
        for (int lane = 0; lane < 32; lane++)
            all |= lanes[lane];
    }
    return all;
}

/* Uniform in [-1, 1), a little different for each seed. */
static void fill(float *x, size_t n)
{
#pragma omp parallel for schedule(static)
    for (size_t i = 0; i < n; i++) {
        uint64_t h = (i + 1) * 0x9e3779b97f4a7c15u;
        h = (h ^ (h >> 31)) * 0xbf58476d1ce4e5b9u;
        x[i] = (float)((double)(h >> 11) * 0x1p-52 - 1.0) * 8.0f;
    }
}

static void report(const char *what, size_t bytes, double seconds, double ceiling)
{
    printf("{\"what\": \"%s\", \"bytes\": %zu, \"seconds\": %.9g, \"gigabytes_per_second\": %.4g", what, bytes, seconds,
           (double)bytes / seconds * 1e-9);
    if (ceiling > 0.0)
        printf(", \"of_read_ceiling\": %.4g", (double)bytes / seconds / ceiling);
    printf("}\n");
}

static void check(allfold_status status, const allfold_context *context)
{
    if (status == ALLFOLD_OK)
        return;
    fprintf(stderr, "cpu_bench: %s\n", allfold_message(context));
    MPI_Abort(MPI_COMM_WORLD, 1);
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    const int log2_sum = argc > 1 ? atoi(argv[1]) : 28, log2_softmax = log2_sum - 2;
    const size_t n = (size_t)1 << log2_sum, m = (size_t)1 << log2_softmax, small = 1024;
    float *const x = malloc(n * sizeof *x), *const y = malloc(m * sizeof *y);
    allfold_context *context;
    char message[512];
    const allfold_options options = {.backend = ALLFOLD_BACKEND_CPU};
    if (x == NULL || y == NULL || allfold_open(MPI_COMM_WORLD, &options, &context, message, sizeof message) != ALLFOLD_OK)
        MPI_Abort(MPI_COMM_WORLD, 1);
    fill(x, n);
    memset(y, 1, m * sizeof *y);

    double reading[RUNS], summing[RUNS], maxing[RUNS], normalising[RUNS], little[RUNS];
    allfold_result result;
    uint64_t sink = 0;
    double total = 0.0;
    for (int run = -1; run < RUNS; run++) { /* run -1 warms up */
        const int slot = run < 0 ? 0 : run;
        double start = MPI_Wtime();
        sink |= read_all(x, n);
        reading[slot] = MPI_Wtime() - start;
        start = MPI_Wtime();
        check(allfold_reduce(context, ALLFOLD_SUM, &(allfold_array){x, n, ALLFOLD_F32}, NULL, &result), context);
        summing[slot] = MPI_Wtime() - start;
        total = result.fields[0].value.f64;
        start = MPI_Wtime();
        check(allfold_reduce(context, ALLFOLD_MAX, &(allfold_array){x, n, ALLFOLD_F32}, NULL, &result), context);
        maxing[slot] = MPI_Wtime() - start;
        start = MPI_Wtime();
        check(allfold_softmax(context, &(allfold_array){x, m, ALLFOLD_F32}, y, ALLFOLD_F32, NULL), context);
        normalising[slot] = MPI_Wtime() - start;
        start = MPI_Wtime();
        for (int i = 0; i < 1000; i++)
            check(allfold_reduce(context, ALLFOLD_SUM, &(allfold_array){x, small, ALLFOLD_F32}, NULL, &result), context);
        little[slot] = (MPI_Wtime() - start) / 1000;
    }
    const double seconds = median(reading), ceiling = (double)n * 4 / seconds;
    fprintf(stderr, "sum %.17g, softmax[0] %.9g, bits read %016llx\n", total, (double)y[0], (unsigned long long)sink);
    report("read", n * 4, seconds, 0.0);
    report("sum f32", n * 4, median(summing), ceiling);
    report("max f32", n * 4, median(maxing), ceiling);
    report("softmax f32", m * 12, median(normalising), 0.0);
    report("sum f32 of 2^10", small * 4, median(little), 0.0);
    allfold_close(context);
    free(x);
    free(y);
    MPI_Finalize();
    return 0;
}
