/* Sum, mean and the place of the largest element of an array that is spread over ranks.

       mpicc 01_sum.c $(pkg-config --cflags --libs allfold) -o 01_sum && mpirun -np 4 ./01_sum */
#include <allfold.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

static void fail(const char *message)
{
    fprintf(stderr, "01_sum: %s\n", message);
    MPI_Abort(MPI_COMM_WORLD, 1);
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    int rank, size;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);

    /* The global array is 1/1, 1/2, 1/3, ...: a million elements a rank, one after another in rank order. */
    const uint64_t count = 1000000;
    float *x = malloc(count * sizeof *x);
    for (uint64_t i = 0; i < count; i++)
        x[i] = 1.0f / (float)((uint64_t)rank * count + i + 1);

    allfold_context *context;
    char message[512];
    if (allfold_open(MPI_COMM_WORLD, NULL, &context, message, sizeof message) != ALLFOLD_OK)
        fail(message);

    const allfold_array part = {.data = x, .count = count, .type = ALLFOLD_F32};
    allfold_result sum, mean, largest;
    if (allfold_reduce(context, ALLFOLD_SUM, &part, NULL, &sum) != ALLFOLD_OK
        || allfold_reduce(context, ALLFOLD_MEAN, &part, NULL, &mean) != ALLFOLD_OK
        || allfold_reduce(context, ALLFOLD_ARGMAX, &part, NULL, &largest) != ALLFOLD_OK)
        fail(allfold_message(context));

    /* Every rank has the same result; one prints it. */
    if (rank == 0)
        printf("sum of %" PRIu64 " elements on %d ranks: %.10f, mean %.6e, largest %g at %" PRIu64 "\n", sum.count, size,
               sum.value.f64, mean.value.f64, largest.value.f64, largest.index);

    allfold_close(context);
    free(x);
    MPI_Finalize();
    return 0;
}
