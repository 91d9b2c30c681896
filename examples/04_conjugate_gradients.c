/* Conjugate gradients for a tridiagonal system whose rows are spread over the ranks: once with the library's exact dot products and
   norms, whose residuals have the same bits on any number of ranks, and once with MPI_Allreduce of each rank's own sums, whose last
   bits change with it. Compare `mpirun -np 1` with `mpirun -np 3`. */
#include <allfold.h>

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

enum { ROWS = 10007, STEPS = 40 };

struct problem {
    allfold_context *context; /* NULL: sums by MPI_Allreduce */
    int rank, size;
    uint64_t first, count; /* rows of this rank */
    allfold_status status; /* of the first call that failed */
};

static double plain_dot(const struct problem *p, const double *x, const double *y)
{
    double sum = 0.0, all;
    for (uint64_t i = 0; i < p->count; i++)
        sum += x[i] * y[i];
    MPI_Allreduce(&sum, &all, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    return all;
}

static double end(struct problem *p, allfold_request request)
{
    allfold_result result = {.value = {.f64 = NAN}};
    allfold_results one = {.results = &result, .capacity = 1};
    const allfold_status status = allfold_reduce_end(p->context, request, &one);
    p->status = p->status == ALLFOLD_OK ? status : p->status;
    return result.value.f64;
}

/* x . y, and the norm of x: both in one exchange. */
static double dot_and_norm(struct problem *p, const double *x, const double *y, double *norm)
{
    if (p->context == NULL) {
        *norm = sqrt(plain_dot(p, x, x));
        return plain_dot(p, x, y);
    }
    const allfold_array a = {.data = x, .count = p->count, .type = ALLFOLD_F64}, b = {.data = y, .count = p->count, .type = ALLFOLD_F64};
    allfold_request dot = 0, root = 0;
    allfold_dot_begin(p->context, &a, &b, NULL, &dot); /* what is wrong is told by the end */
    allfold_reduce_begin(p->context, ALLFOLD_NORM2, &a, NULL, &root);
    const double product = end(p, dot);
    *norm = end(p, root);
    return product;
}

static double dot(struct problem *p, const double *x, const double *y)
{
    const allfold_array a = {.data = x, .count = p->count, .type = ALLFOLD_F64}, b = {.data = y, .count = p->count, .type = ALLFOLD_F64};
    allfold_result result = {.value = {.f64 = NAN}};
    if (p->context == NULL)
        return plain_dot(p, x, y);
    const allfold_status status = allfold_dot(p->context, &a, &b, NULL, &result);
    p->status = p->status == ALLFOLD_OK ? status : p->status;
    return result.value.f64;
}

/* y = A x. Row i of A is -1, 2 + i / ROWS, -1: what it takes of the neighbours' rows comes from them. Each y[i] is computed from the same
   numbers in the same order on any rank. */
static void multiply(const struct problem *p, const double *x, double *y)
{
    const int below = p->rank > 0 ? p->rank - 1 : MPI_PROC_NULL, above = p->rank + 1 < p->size ? p->rank + 1 : MPI_PROC_NULL;
    double before = 0.0, after = 0.0;
    MPI_Sendrecv(&x[p->count - 1], 1, MPI_DOUBLE, above, 0, &before, 1, MPI_DOUBLE, below, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Sendrecv(&x[0], 1, MPI_DOUBLE, below, 1, &after, 1, MPI_DOUBLE, above, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    for (uint64_t i = 0; i < p->count; i++) {
        const double diagonal = 2.0 + (double)(p->first + i) / ROWS;
        const double left = i > 0 ? x[i - 1] : before, right = i + 1 < p->count ? x[i + 1] : after;
        y[i] = diagonal * x[i] - (left + right);
    }
}

/* Solves A x = b from x = 0, b given in r, and writes the norm of each residual. */
static void solve(struct problem *p, double *work[4], double residuals[STEPS + 1])
{
    double *const x = work[0], *const r = work[1], *const d = work[2], *const q = work[3];
    double rho = dot_and_norm(p, r, r, &residuals[0]);
    for (uint64_t i = 0; i < p->count; i++) {
        x[i] = 0.0;
        d[i] = r[i];
    }
    for (int step = 1; step <= STEPS; step++) {
        multiply(p, d, q);
        const double alpha = rho / dot(p, d, q);
        for (uint64_t i = 0; i < p->count; i++) {
            x[i] = fma(alpha, d[i], x[i]);
            r[i] = fma(-alpha, q[i], r[i]);
        }
        const double next = dot_and_norm(p, r, r, &residuals[step]), beta = next / rho;
        rho = next;
        for (uint64_t i = 0; i < p->count; i++)
            d[i] = fma(beta, d[i], r[i]);
    }
}

static void start(const struct problem *p, double *b)
{
    for (uint64_t i = 0; i < p->count; i++)
        b[i] = 1.0 / (double)(p->first + i + 1) - 0.3 * (double)((p->first + i) % 7);
}

int main(int argc, char **argv)
{
    struct problem p = {0};
    double exact[STEPS + 1], plain[STEPS + 1], *work[4];
    char message[512];
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &p.rank);
    MPI_Comm_size(MPI_COMM_WORLD, &p.size);
    p.first = (uint64_t)ROWS * (uint64_t)p.rank / (uint64_t)p.size;
    p.count = (uint64_t)ROWS * (uint64_t)(p.rank + 1) / (uint64_t)p.size - p.first;
    bool ready = p.count > 0;
    for (int i = 0; i < 4; i++)
        ready = (work[i] = malloc((p.count + 1) * sizeof **work)) != NULL && ready;
    if (!ready)
        MPI_Abort(MPI_COMM_WORLD, 1); /* no memory, or more ranks than rows */

    start(&p, work[1]);
    solve(&p, work, plain);
    p.status = allfold_open(MPI_COMM_WORLD, NULL, &p.context, message, sizeof message);
    if (p.status == ALLFOLD_OK) {
        start(&p, work[1]);
        solve(&p, work, exact);
        snprintf(message, sizeof message, "%s", allfold_message(p.context));
    }
    if (p.rank == 0 && p.status != ALLFOLD_OK)
        fprintf(stderr, "%s\n", message);
    else if (p.rank == 0) {
        printf("%d rows on %d ranks: norms of residuals\nstep  exact sums              MPI_Allreduce\n", ROWS, p.size);
        for (int step = 0; step <= STEPS; step += 5)
            printf("%4d  %-22a  %a\n", step, exact[step], plain[step]);
    }
    allfold_close(p.context);
    for (int i = 0; i < 4; i++)
        free(work[i]);
    MPI_Finalize();
    return p.status != ALLFOLD_OK;
}
