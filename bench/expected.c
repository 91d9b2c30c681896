/* Makes the data of a case, and computes what its results must be. */
#include "bench/run.h"

#include "bench/file.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static long double words(const uint64_t low[3], int64_t high)
{
    return (((long double)high * 0x1p32L + (long double)low[2]) * 0x1p32L + (long double)low[1]) * 0x1p32L + (long double)low[0];
}

static struct bench_expected expected_of(const struct bench_known *known, const struct bench_row_of *row, uint64_t count)
{
    const double unit = bench_unit_of(row->type, row->range);
    return (struct bench_expected){.count = count,
                                   .sum = ((long double)known->high * 4294967296.0L + (long double)known->low) * unit,
                                   .products = words(known->products, known->products_high) * unit * unit,
                                   .max = (double)known->max * unit,
                                   .sumexp = known->sumexp,
                                   .scale = row->type == ALLFOLD_INT32 ? 1.0 : row->range / 8.0};
}

/* Carries what is beyond 32 bits of each word, so that ranks can be added. */
static void carry(struct bench_known *known)
{
    known->high += (int64_t)(known->low >> 32);
    known->low &= UINT32_MAX;
    for (int i = 0; i < 3; i++) {
        const uint64_t more = known->products[i] >> 32;
        known->products[i] &= UINT32_MAX;
        if (i < 2)
            known->products[i + 1] += more;
        else
            known->products_high += (int64_t)more;
    }
}

static allfold_status combine_known(const struct bench *b, const struct bench_known *mine, struct bench_known *all, struct error *error)
{
    *all = *mine;
    if (MPI_Allreduce(&mine->high, &all->high, 1, MPI_INT64_T, MPI_SUM, b->comm) != MPI_SUCCESS
        || MPI_Allreduce(&mine->low, &all->low, 1, MPI_UINT64_T, MPI_SUM, b->comm) != MPI_SUCCESS
        || MPI_Allreduce(&mine->max, &all->max, 1, MPI_INT64_T, MPI_MAX, b->comm) != MPI_SUCCESS
        || MPI_Allreduce(mine->products, all->products, 3, MPI_UINT64_T, MPI_SUM, b->comm) != MPI_SUCCESS
        || MPI_Allreduce(&mine->products_high, &all->products_high, 1, MPI_INT64_T, MPI_SUM, b->comm) != MPI_SUCCESS
        || MPI_Allreduce(&mine->sumexp, &all->sumexp, 1, MPI_DOUBLE, MPI_SUM, b->comm) != MPI_SUCCESS)
        return error_set(error, ALLFOLD_MPI_ERROR, "MPI_Allreduce failed");
    return ALLFOLD_OK;
}

allfold_status bench_expect(struct bench *b, const struct bench_row_of *row, struct bench_expected *mine, struct bench_expected *all,
                            struct error *error)
{
    struct bench_known known = bench_known_of_none(), together;
    if (error->status == ALLFOLD_OK)
        b->machine->ops->known(b->machine, row, &known, error);
    carry(&known);
    if (comm_agree(&b->context->comm, error) != ALLFOLD_OK || combine_known(b, &known, &together, error) != ALLFOLD_OK)
        return error->status;
    *mine = expected_of(&known, row, row->count);
    *all = expected_of(&together, row, row->count * (uint64_t)b->size);
    return ALLFOLD_OK;
}

/* The data is kept for the next case, if that has the same. */
allfold_status bench_fill(struct bench *b, struct error *error)
{
    const struct bench_case *const task = b->task;
    const bool dot = bench_is_dot(b), two = bench_takes_two(task->subject);
    if (b->filled.count == task->count && b->filled.type == task->type && b->filled.range == task->range && b->filled.place == task->place
        && bench_takes_two(b->filled.subject) == two && (!two || b->filled.subject->fold == task->subject->fold))
        return ALLFOLD_OK;
    b->filled.count = 0;
    struct bench_data data = {task->type, task->range, (uint64_t)b->rank * task->count, task->count, 0, task->place != BENCH_ON_DEVICE};
    const struct bench_row_of all = {task->type, task->range, data.first, 1, task->count, dot ? BENCH_SECOND : 0};
    b->machine->ops->fill(b->machine, &data, error);
    data.first += dot ? BENCH_SECOND : 0; /* of a comparison both are equal */
    data.place = bench_second_place(task->count);
    if (two && error->status == ALLFOLD_OK)
        b->machine->ops->fill(b->machine, &data, error);
    if (task->place == BENCH_IN_FILE && error->status == ALLFOLD_OK)
        bench_file_fill(b, error);
    if (bench_expect(b, &all, &b->mine, &b->all, error) == ALLFOLD_OK)
        b->filled = *task;
    return error->status;
}

bool bench_near(double found, long double expected, double tolerance, char wrong[96])
{
    if (fabsl((long double)found - expected) <= (long double)tolerance || ((long double)found == expected))
        return true;
    snprintf(wrong, 96, "found %.9g where %.9g is expected", found, (double)expected);
    return false;
}

double bench_precision(const struct bench_case *task)
{
    const bool quick = task->subject->kind == BENCH_FOLD && task->subject->fold == ALLFOLD_LOGSUMEXP && task->subject->level == ALLFOLD_LEVEL_FAST && task->type != ALLFOLD_F64;
    return quick ? 0x1p-23 : 0.0;
}

double bench_f32_tolerance(uint64_t count, double largest) { return 2.5e-7 * largest * pow((double)count, 0.75); }

void bench_check(const struct bench_expected *expected, const char *name, double found, double precision, char wrong[96])
{
    const double n = (double)expected->count, scale = expected->scale;
    const long double mean = expected->sum / n, squares = expected->products / n;
    const struct {
        const char *name;
        long double value;
        double absolute, relative;
    } known[] = { /* no element can be missing from a sum this close */
        {"sum", expected->sum, 0x1p-38 * scale * n, 1e-15},
        {"mean", mean, 0x1p-38 * scale, 1e-15},
        {"max", expected->max, 0.0, 0.0},
        {"argmax", expected->max, 0.0, 0.0},
        {"norm2", sqrtl(expected->products), 0.0, 1e-12},
        {"variance", squares - mean * mean, 1e-12 * (double)squares, 1e-9},
        {"dot", expected->products, 0x1p-35 * scale * scale * n, 1e-15},
        {"compare", 0.0L, 0.0, 0.0},
        {"logsumexp", logl((long double)expected->sumexp), 1e-12, 1e-9},
        {"count", (long double)expected->count, 0.0, 0.0},
    };
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (strcmp(known[i].name, name) == 0) {
            const double size = fabs((double)known[i].value);
            bench_near(found, known[i].value, known[i].absolute + (known[i].relative + precision) * size, wrong);
        }
}

/* CUB adds f32 in f32; int32 wraps. */
void bench_check_cub(allfold_type type, enum cub_work work, const struct bench_expected *expected, double found, char wrong[96])
{
    const double sumexp = expected->sumexp / exp(expected->max);
    if (work == CUB_MAX)
        bench_near(found, expected->max, 0.0, wrong);
    else if (work == CUB_SUMEXP)
        bench_near(found, sumexp, 1e-4 * sumexp, wrong);
    else if (type == ALLFOLD_INT32)
        bench_near((double)(uint32_t)(int64_t)found, (uint32_t)(int64_t)expected->sum, 0.0, wrong);
    else if (type == ALLFOLD_F64)
        bench_check(expected, "sum", found, 0.0, wrong);
    else
        bench_near(found, expected->sum, bench_f32_tolerance(expected->count, 8.0 * expected->scale), wrong);
}

double bench_softmax_tolerance(allfold_type type, double of_f32)
{
    switch (type) {
    case ALLFOLD_F32: return of_f32;
    case ALLFOLD_F64: return 1e-10;
    default: return (type == ALLFOLD_BF16 ? 0x1p-8 : 0x1p-11) + 1e-4;
    }
}
