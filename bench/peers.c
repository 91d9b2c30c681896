/* Who takes turns: the library, its parts one by one, its peers, and the ceilings. */
#include "bench/file.h"
#include "fold/exponential.h"

#include <math.h>
#include <stdio.h>

static enum bench_kind kind_of(const struct bench *b) { return b->task->subject->kind; }
static bool in_place(const struct bench *b) { return b->task->place == BENCH_ON_DEVICE; }
static bool is_softmax(const struct bench *b) { return in_place(b) && kind_of(b) == BENCH_SOFTMAX; }

/* ---- what a result must be */

static bool near(double found, long double expected, double tolerance)
{
    return fabsl((long double)found - expected) <= (long double)tolerance;
}

static allfold_status say_wrong(double found, double expected, char wrong[96])
{
    snprintf(wrong, 96, "found %.9g where %.9g is expected", found, expected);
    return ALLFOLD_OK;
}

/* allfold adds far more exactly than f32 does; no element can be missing from a sum this close. */
static double sum_tolerance(const struct bench_expected *expected) { return 0x1p-38 * (double)expected->count; }

static allfold_status check_value(const struct bench *b, const struct bench_expected *expected, double found, char wrong[96])
{
    switch (b->task->subject->fold) {
    case ALLFOLD_SUM:
        return near(found, expected->sum, sum_tolerance(expected)) ? ALLFOLD_OK
                                                                    : say_wrong(found, (double)expected->sum, wrong);
    case ALLFOLD_MAX:
        return found == expected->max ? ALLFOLD_OK : say_wrong(found, expected->max, wrong);
    default: { /* logsumexp */
        const double value = log(expected->sumexp);
        return near(found, value, 1e-9 * fabs(value)) ? ALLFOLD_OK : say_wrong(found, value, wrong);
    }
    }
}

static allfold_status check_partial(const struct bench *b, const struct bench_expected *expected,
                                    const struct partial *partial, char wrong[96], struct error *error)
{
    if (kind_of(b) == BENCH_FOLD) {
        struct fold_results result;
        const struct fold_call call = {.fold = b->task->subject->fold, .level = b->task->subject->level};
        if (fold_finish(&call, b->task->type, partial, expected->count, &result, error) != ALLFOLD_OK)
            return error->status;
        return check_value(b, expected, allfold_number(result.fields[0].value), wrong);
    }
    struct softmax_constants constants;
    softmax_constants_set(b->work.monoid, partial, &constants);
    const double found = exp(constants.max + constants.log_sum);
    return constants.max == expected->max && near(found, expected->sumexp, 1e-5 * expected->sumexp)
               ? ALLFOLD_OK
               : say_wrong(found, expected->sumexp, wrong);
}

/* tolerance: for f32; other types have their own. */
static allfold_status check_softmax(struct bench *b, const struct bench_expected *expected, double tolerance, char wrong[96],
                                    struct error *error)
{
    const bool in_file = b->task->place == BENCH_IN_FILE;
    const struct softmax_found given = {b->task->type, b->machine->x, b->machine->y, b->task->count, expected->sumexp};
    double found = NAN;
    if (b->task->type == ALLFOLD_F64)
        tolerance = 1e-10;
    else if (b->task->type != ALLFOLD_F32)
        tolerance = b->task->type == ALLFOLD_BF16 ? 0x1p-8 + 1e-4 : 0x1p-11 + 1e-4;
    if ((in_file ? bench_file_softmax_error(b, expected->sumexp, &found, error)
                 : b->machine->ops->softmax_error(b->machine, &given, &found, error))
            == ALLFOLD_OK
        && !(found <= tolerance))
        snprintf(wrong, 96, "an element is wrong by a part of %.3g", found);
    return error->status;
}

/* ---- allfold, part by part */

static allfold_status kernel_run(struct bench *b, struct error *error)
{
    const struct machine_ops *const ops = b->machine->ops;
    return kind_of(b) == BENCH_SOFTMAX
               ? ops->softmax(b->machine, &b->softmax_work, &b->partial, error)
               : ops->fold(b->machine, &b->work, error);
}

static allfold_status kernel_check(struct bench *b, char wrong[96], struct error *error)
{
    struct partial partial;
    if (kind_of(b) == BENCH_SOFTMAX)
        return check_softmax(b, &b->mine, 1e-5, wrong, error);
    if (b->machine->ops->fold_taken(b->machine, &b->work, &partial, error) != ALLFOLD_OK)
        return error->status;
    return check_partial(b, &b->mine, &partial, wrong, error);
}

/* As the pipelines do it (core/) on one rank. */
static allfold_status partial_run(struct bench *b, struct error *error)
{
    const struct backend *const backend = b->context->device->backend;
    struct queue *const queue = b->context->queue;
    if (backend->enter(queue, NULL, error) != ALLFOLD_OK)
        return error->status;
    if (kind_of(b) != BENCH_SOFTMAX)
        return backend->fold(queue, &b->work, error) != ALLFOLD_OK ? error->status : backend->wait(queue, error);
    if (backend->softmax_begin(queue, &b->softmax_work, true, error) == ALLFOLD_OK)
        backend->softmax_finish(queue, NULL, error);
    return error->status;
}

static allfold_status partial_check(struct bench *b, char wrong[96], struct error *error)
{
    return kind_of(b) == BENCH_SOFTMAX ? check_softmax(b, &b->mine, 1e-5, wrong, error)
                                       : check_partial(b, &b->mine, b->context->queue->partial, wrong, error);
}

static allfold_status exchange_run(struct bench *b, struct error *error)
{
    struct partial partial = b->partial;
    struct comm_part part = {.monoid = b->work.monoid, .type = b->task->type, .count = b->task->count, .partial = &partial};
    if (comm_combine(&b->context->comm, &part, error) == ALLFOLD_OK && kind_of(b) == BENCH_SOFTMAX)
        comm_agree(&b->context->comm, error);
    return error->status;
}

static bool fits_host(const struct bench *b)
{
    return b->task->place != BENCH_IN_FILE && (kind_of(b) == BENCH_FOLD || is_softmax(b));
}

static allfold_status host_run(struct bench *b, struct error *error)
{
    const allfold_array part = {b->task->place == BENCH_IN_HOST ? b->machine->host_x : b->machine->x, b->task->count, b->task->type};
    const allfold_status status =
        kind_of(b) == BENCH_SOFTMAX ? allfold_softmax(b->context, &part, b->machine->y, b->task->type, NULL)
                                    : allfold_reduce(b->context, b->task->subject->fold, &part, NULL, &b->result);
    return status == ALLFOLD_OK ? status : error_set(error, status, "%s", allfold_message(b->context));
}

static allfold_status host_check(struct bench *b, char wrong[96], struct error *error)
{
    return kind_of(b) == BENCH_SOFTMAX ? check_softmax(b, &b->all, 1e-5, wrong, error)
                                       : check_value(b, &b->all, allfold_number(b->result.value), wrong);
}

/* ---- CUB, and with it MPI or NCCL */

static enum cub_work cub_work_of(const struct bench *b)
{
    return kind_of(b) != BENCH_FOLD || b->task->subject->fold == ALLFOLD_LOGSUMEXP ? CUB_SUMEXP
           : b->task->subject->fold == ALLFOLD_SUM                                 ? CUB_SUM
                                                                                  : CUB_MAX;
}

static bool fits_cub(const struct bench *b) { return in_place(b) && b->machine->ops->cub != NULL; }
static bool fits_cub_value(const struct bench *b)
{
    return fits_cub(b) && kind_of(b) == BENCH_FOLD && cub_work_of(b) != CUB_SUMEXP;
}
/* CCCL 3.5's sums of 2^30 elements are wrong, those of 2^28 right. */
static bool fits_cub_gpu_to_gpu(const struct bench *b)
{
    return fits_cub_value(b) && cub_work_of(b) == CUB_SUM && (b->task->type == ALLFOLD_F32 || b->task->type == ALLFOLD_F64)
           && b->task->count < 1 << 30 && b->machine->ops->cub_has_gpu_to_gpu();
}
static bool fits_cub_copy(const struct bench *b) { return fits_cub_value(b) && b->size == 1; }
static bool fits_cub_mpi(const struct bench *b) { return fits_cub_value(b) && b->size > 1; }
static bool fits_cub_nccl(const struct bench *b) { return fits_cub_mpi(b) && b->nccl != NULL; }
static bool fits_three_pass(const struct bench *b) { return is_softmax(b) && b->machine->ops->cub != NULL; }

/* A step of CUB's: of sums of exponentials relative to max, and quotients by sum. */
static struct cub_call cub_call_of(const struct bench *b, enum cub_work work, double max, double sum)
{
    return (struct cub_call){.work = work, .type = b->task->type, .count = b->task->count, .max = max, .sum = sum};
}

static allfold_status cub_prepare_work(struct bench *b, enum cub_work work, struct error *error)
{
    const struct cub_call call = cub_call_of(b, work, 0.0, 1.0);
    return b->machine->ops->cub_prepare(b->machine, &call, error);
}

static allfold_status cub_prepare_all(struct bench *b, struct error *error)
{
    const enum cub_work work = cub_work_of(b);
    if (work == CUB_SUMEXP && cub_prepare_work(b, CUB_MAX, error) != ALLFOLD_OK)
        return error->status;
    return cub_prepare_work(b, work, error);
}

static allfold_status cub_step(struct bench *b, enum cub_work work, double max, double sum, struct error *error)
{
    const struct cub_call call = cub_call_of(b, work, max, sum);
    return b->machine->ops->cub(b->machine, &call, error);
}

/* The kernels alone: what a pass needs of the pass before is known beforehand. */
static allfold_status cub_run(struct bench *b, struct error *error)
{
    const enum cub_work work = cub_work_of(b);
    const double max = b->mine.max, sum = b->mine.sumexp / exp(max);
    if ((work != CUB_SUMEXP || cub_step(b, CUB_MAX, 0.0, 1.0, error) == ALLFOLD_OK)
        && cub_step(b, work, max, 1.0, error) == ALLFOLD_OK && kind_of(b) == BENCH_SOFTMAX)
        cub_step(b, CUB_NORMALISE, max, sum, error);
    return error->status;
}

static allfold_status cub_gpu_to_gpu_prepare(struct bench *b, struct error *error)
{
    return cub_prepare_work(b, CUB_SUM_GPU_TO_GPU, error);
}
static allfold_status cub_gpu_to_gpu_run(struct bench *b, struct error *error)
{
    return cub_step(b, CUB_SUM_GPU_TO_GPU, 0.0, 1.0, error);
}

static double cub_value(const struct bench *b, enum cub_work work)
{
    return b->machine->ops->cub_value(b->machine, work, b->task->type);
}

/* The result of what was started, copied to the host. */
static allfold_status cub_take(struct bench *b, struct error *error)
{
    if (b->machine->ops->cub_fetch(b->machine, error) == ALLFOLD_OK)
        b->machine->ops->wait(b->machine, error);
    return error->status;
}

static allfold_status cub_copy_run(struct bench *b, struct error *error)
{
    if (cub_run(b, error) == ALLFOLD_OK && cub_take(b, error) == ALLFOLD_OK)
        b->found = cub_value(b, cub_work_of(b));
    return error->status;
}

/* Called on every rank, whatever error it has: the others wait in it. */
static void combine(struct bench *b, bool max, double *value, struct error *error)
{
    const int code = MPI_Allreduce(MPI_IN_PLACE, value, 1, MPI_DOUBLE, max ? MPI_MAX : MPI_SUM, b->comm);
    if (code != MPI_SUCCESS)
        error_set(error, ALLFOLD_MPI_ERROR, "MPI_Allreduce failed with code %d", code);
}

static allfold_status cub_mpi_run(struct bench *b, struct error *error)
{
    cub_copy_run(b, error);
    combine(b, cub_work_of(b) == CUB_MAX, &b->found, error);
    return error->status;
}

static allfold_status cub_nccl_run(struct bench *b, struct error *error)
{
    cub_run(b, error);
    bench_nccl_combine(b, cub_work_of(b), error);
    if (error->status == ALLFOLD_OK && cub_take(b, error) == ALLFOLD_OK)
        b->found = cub_value(b, cub_work_of(b));
    return error->status;
}

/* CUB adds f32 in f32: the error of a sum grows with its terms, as that of a random walk. int32 wraps. */
static allfold_status check_cub_value(const struct bench *b, const struct bench_expected *expected, double found,
                                      char wrong[96])
{
    const enum cub_work work = cub_work_of(b);
    const double n = (double)expected->count;
    if (work == CUB_MAX)
        return found == expected->max ? ALLFOLD_OK : say_wrong(found, expected->max, wrong);
    if (work == CUB_SUMEXP) {
        const double sum = expected->sumexp / exp(expected->max);
        return near(found, sum, 1e-4 * sum) ? ALLFOLD_OK : say_wrong(found, sum, wrong);
    }
    if (b->task->type == ALLFOLD_INT32) {
        const uint32_t low = (uint32_t)(int64_t)expected->sum;
        return (uint32_t)(int64_t)found == low ? ALLFOLD_OK : say_wrong(found, low, wrong);
    }
    const double tolerance = b->task->type == ALLFOLD_F64 ? sum_tolerance(expected) : 2e-6 * pow(n, 0.75);
    return near(found, expected->sum, tolerance) ? ALLFOLD_OK : say_wrong(found, (double)expected->sum, wrong);
}

static allfold_status cub_check(struct bench *b, char wrong[96], struct error *error)
{
    if (kind_of(b) == BENCH_SOFTMAX)
        return check_softmax(b, &b->mine, 1e-4, wrong, error);
    if (cub_take(b, error) != ALLFOLD_OK)
        return error->status;
    return check_cub_value(b, &b->mine, cub_value(b, cub_work_of(b)), wrong);
}

static allfold_status cub_value_check(struct bench *b, char wrong[96], struct error *error)
{
    check_cub_value(b, &b->all, b->found, wrong);
    return error->status;
}

/* softmax as three passes, each with its own exchange: the maximum, the sum, the quotients. */
static allfold_status three_pass_run(struct bench *b, struct error *error)
{
    double max = 0.0, sum = 1.0;
    if (cub_step(b, CUB_MAX, 0.0, 1.0, error) == ALLFOLD_OK && cub_take(b, error) == ALLFOLD_OK)
        max = cub_value(b, CUB_MAX);
    combine(b, true, &max, error);
    if (error->status == ALLFOLD_OK && cub_step(b, CUB_SUMEXP, max, 1.0, error) == ALLFOLD_OK
        && cub_take(b, error) == ALLFOLD_OK)
        sum = cub_value(b, CUB_SUMEXP);
    combine(b, false, &sum, error);
    if (error->status == ALLFOLD_OK && cub_step(b, CUB_NORMALISE, max, sum, error) == ALLFOLD_OK)
        b->machine->ops->wait(b->machine, error);
    return error->status;
}

static allfold_status three_pass_check(struct bench *b, char wrong[96], struct error *error)
{
    return check_softmax(b, &b->all, 1e-4, wrong, error);
}

/* ---- the ceilings */

static bool fits_read(const struct bench *b) { return in_place(b) && bench_bytes(b) >= 16; }
static bool fits_copy(const struct bench *b) { return is_softmax(b) && bench_bytes(b) >= 16; }
static bool fits_link(const struct bench *b) { return b->task->place != BENCH_ON_DEVICE && kind_of(b) == BENCH_FOLD && b->machine->ops->link != NULL; }

static allfold_status read_prepare(struct bench *b, struct error *error)
{
    return b->machine->ops->read_prepare(b->machine, bench_bytes(b), error);
}
static allfold_status read_run(struct bench *b, struct error *error)
{
    return b->machine->ops->read(b->machine, bench_bytes(b), error);
}
static allfold_status copy_prepare(struct bench *b, struct error *error)
{
    return b->machine->ops->copy_prepare(b->machine, bench_bytes(b), error);
}
static allfold_status copy_run(struct bench *b, struct error *error)
{
    return b->machine->ops->copy(b->machine, bench_bytes(b), error);
}
static allfold_status link_run(struct bench *b, struct error *error)
{
    return b->machine->ops->link(b->machine, bench_bytes(b), true, error);
}

const struct bench_peer bench_peers[] = {
    {"allfold", BENCH_KERNEL, "its kernels; on the CPU its loops", in_place, NULL, kernel_run, kernel_check, false, false},
    {"cub", BENCH_KERNEL, "cub::DeviceReduce; for sumexp and softmax in passes", fits_cub, cub_prepare_all, cub_run,
     cub_check, false, false},
    {"cub-gpu-to-gpu", BENCH_KERNEL, "CUB's sums with the same bits on any GPU, where CUB has them (CCCL 3.1)", fits_cub_gpu_to_gpu,
     cub_gpu_to_gpu_prepare, cub_gpu_to_gpu_run, cub_check, false, false},
    {"read", BENCH_KERNEL, "the fastest plain read of the same bytes", fits_read, read_prepare, read_run, NULL, false, false},
    {"copy", BENCH_KERNEL, "the fastest plain copy of the same bytes", fits_copy, copy_prepare, copy_run, NULL, true, false},
    {"link", BENCH_KERNEL, "copying the data from pinned host memory", fits_link, NULL, link_run, NULL, false, true},
    {"allfold", BENCH_PARTIAL, "from the call to the rank's partial on its host", in_place, NULL, partial_run,
     partial_check, false, false},
    {"allfold", BENCH_EXCHANGE, "the exchange of ready partials", in_place, NULL, exchange_run, NULL, false, false},
    {"allfold", BENCH_HOST, "the library's call", fits_host, NULL, host_run, host_check, false, false},
    {"cub+copy", BENCH_HOST, "CUB, its result copied to the host (one rank)", fits_cub_copy, cub_prepare_all,
     cub_copy_run, cub_value_check, false, false},
    {"cub+copy+mpi", BENCH_HOST, "the same, then MPI_Allreduce", fits_cub_mpi, cub_prepare_all, cub_mpi_run,
     cub_value_check, false, false},
    {"cub+nccl+copy", BENCH_HOST, "CUB, ncclAllReduce, the result copied to the host", fits_cub_nccl, cub_prepare_all,
     cub_nccl_run, cub_value_check, false, false},
    {"three-pass", BENCH_HOST, "softmax of CUB's passes, two MPI_Allreduce between them", fits_three_pass,
     cub_prepare_all, three_pass_run, three_pass_check, false, false},
    {"allfold", BENCH_HOST, "a fold of a file", bench_file_fits_fold, NULL, bench_file_fold, host_check, false, false},
    {"allfold", BENCH_HOST, "softmax of a file, into a file that is made durable", bench_file_fits_softmax, NULL,
     bench_file_softmax, host_check, false, false},
    {"pread", BENCH_HOST, "pread of the file by as many threads, nothing folded", bench_file_fits_read, NULL, bench_file_pread, NULL,
     false, false},
    {"direct", BENCH_HOST, "direct reads of the file by as many threads", bench_file_fits_direct, NULL, bench_file_direct, NULL, false,
     false},
    {"dd", BENCH_HOST, "pread of the file by one thread", bench_file_fits_read, NULL, bench_file_dd, NULL, false, false},
    {"pread+copy", BENCH_HOST, "pread by as many threads, and copies to the device", bench_file_fits_device,
     bench_file_to_device_prepare, bench_file_to_device, NULL, false, false},
    {"pwrite", BENCH_HOST, "pwrite of as many bytes by as many threads, made durable", bench_file_fits_softmax, NULL,
     bench_file_pwrite, NULL, false, false},
};
const int bench_peer_count = sizeof bench_peers / sizeof *bench_peers;

void bench_peers_print(void (*line)(const char *peer, const char *timing_point, const char *text))
{
    for (int i = 0; i < bench_peer_count; i++)
        line(bench_peers[i].name, bench_timing_point_names[bench_peers[i].timing_point], bench_peers[i].text);
}
