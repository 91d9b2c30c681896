/* Lists what takes turns: the library, its parts one by one, its peers, and the ceilings. */
#include "bench/file.h"
#include "fold/exponential.h"

#include <math.h>
#include <stdio.h>

static enum bench_kind kind_of(const struct bench *b) { return b->task->subject->kind; }
static bool in_place(const struct bench *b) { return b->task->place == BENCH_ON_DEVICE; }
static bool is_whole(const struct bench *b) { return in_place(b) && !bench_is_axis(b) && kind_of(b) != BENCH_ORDER; }
static bool is_softmax(const struct bench *b) { return is_whole(b) && kind_of(b) == BENCH_SOFTMAX; }

/* ---- what a result must be */

static const char *fold_name(const struct bench *b)
{
    return bench_is_dot(b) ? "dot" : bench_is_compare(b) ? "compare" : allfold_fold_name((allfold_fold)b->task->subject->fold);
}

static allfold_status check_partial(const struct bench *b, const struct bench_expected *expected,
                                    const struct partial *partial, char wrong[96], struct error *error)
{
    if (kind_of(b) == BENCH_FOLD) {
        struct fold_results found;
        const struct fold_call call = {.fold = (allfold_fold)b->task->subject->fold, .level = b->task->subject->level,
                                       .result_type = bench_result_type(b->task)};
        if (fold_finish(&call, &(struct folded){b->task->type, expected->count, partial}, &found, error) != ALLFOLD_OK)
            return error->status;
        for (int i = 0; i < found.field_count; i++)
            bench_check(expected, found.field_count == 1 || bench_is_compare(b) ? fold_name(b) : found.fields[i].name, allfold_number(found.fields[i].value),
                        bench_precision(b->task), wrong);
        return ALLFOLD_OK;
    }
    struct softmax_constants constants;
    softmax_constants_set(b->work.monoid, partial, &constants);
    if (bench_near(constants.max, expected->max, 0.0, wrong))
        bench_near(exp(constants.max + constants.log_sum), expected->sumexp, 1e-5 * expected->sumexp, wrong);
    return ALLFOLD_OK;
}

/* tolerance: for f32; other types have their own. */
static allfold_status check_softmax(struct bench *b, const struct bench_expected *expected, double tolerance, char wrong[96],
                                    struct error *error)
{
    const bool in_file = b->task->place == BENCH_IN_FILE;
    const struct softmax_found given = {b->task->type, b->machine->x, b->machine->y, b->task->count, 1, expected->sumexp};
    double found = NAN;
    tolerance = bench_softmax_tolerance(b->task->type, tolerance);
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
    return b->task->place != BENCH_IN_FILE && !bench_is_axis(b) && kind_of(b) != BENCH_PASS && kind_of(b) != BENCH_ORDER;
}

/* The operands in the caller's memory, and the library's options. */
struct operands {
    allfold_array x, y;
    allfold_call call;
};
static struct operands operands_of(const struct bench *b)
{
    const char *const x = b->task->place == BENCH_IN_HOST ? b->machine->host_x : b->machine->x;
    struct operands operands = {.x = {x, b->task->count, b->task->type}, .call = ALLFOLD_CALL_INIT};
    operands.y = operands.x;
    operands.y.data = x + bench_second_place(b->task->count) * allfold_type_bytes(b->task->type);
    operands.call.result_type = bench_result_type(b->task);
    return operands;
}

/* What the library says of its call. */
static allfold_status called(const struct bench *b, allfold_status status, struct error *error)
{
    return status == ALLFOLD_OK ? status : error_set(error, status, "%s", allfold_message(b->context));
}

/* What is found is the number of elements that differ. */
static allfold_status compare_run(struct bench *b, const struct operands *o, struct error *error)
{
    allfold_comparison found = ALLFOLD_COMPARISON_INIT;
    if (called(b, allfold_compare(b->context, &o->x, &o->y, NULL, &found), error) == ALLFOLD_OK)
        b->results[0].value = (allfold_value){.kind = ALLFOLD_VALUE_U64, .u64 = found.different};
    return error->status;
}

static allfold_status host_run(struct bench *b, struct error *error)
{
    const struct operands o = operands_of(b);
    const allfold_fold fold = (allfold_fold)b->task->subject->fold;
    allfold_results all = {.results = b->results, .capacity = FOLD_RESULTS_MAX};
    b->result_count = 1;
    if (kind_of(b) == BENCH_SOFTMAX)
        return called(b, allfold_softmax(b->context, &o.x, b->machine->y, b->task->type, NULL), error);
    if (bench_is_compare(b))
        return compare_run(b, &o, error);
    if (bench_is_dot(b))
        return called(b, allfold_dot(b->context, &o.x, &o.y, &o.call, b->results), error);
    if (allfold_result_count(fold) == 1)
        return called(b, allfold_reduce(b->context, fold, &o.x, &o.call, b->results), error);
    called(b, allfold_reduce_all(b->context, fold, &o.x, &o.call, &all), error);
    b->result_count = all.count;
    return error->status;
}

static allfold_status host_check(struct bench *b, char wrong[96], struct error *error)
{
    if (kind_of(b) == BENCH_SOFTMAX)
        return check_softmax(b, &b->all, 1e-5, wrong, error);
    for (size_t i = 0; i < b->result_count; i++)
        bench_check(&b->all, b->result_count == 1 ? fold_name(b) : b->results[i].name, allfold_number(b->results[i].value), bench_precision(b->task), wrong);
    return ALLFOLD_OK;
}

/* ---- folds that are begun and then ended */

static bool fits_begun(const struct bench *b) { return is_whole(b) && kind_of(b) == BENCH_FOLD && !bench_is_compare(b); }

static allfold_status begun_run(struct bench *b, int count, struct error *error)
{
    const struct operands o = operands_of(b);
    allfold_request requests[4];
    allfold_results all = {.results = b->results, .capacity = FOLD_RESULTS_MAX};
    for (int i = 0; i < count; i++)
        called(b, bench_is_dot(b) ? allfold_dot_begin(b->context, &o.x, &o.y, &o.call, &requests[i])
                                  : allfold_reduce_begin(b->context, (allfold_fold)b->task->subject->fold, &o.x, &o.call, &requests[i]),
               error);
    for (int i = 0; i < count; i++)
        called(b, allfold_reduce_end(b->context, requests[i], &all), error);
    b->result_count = all.count;
    return error->status;
}

static allfold_status begun_one_run(struct bench *b, struct error *error) { return begun_run(b, 1, error); }
static allfold_status begun_four_run(struct bench *b, struct error *error) { return begun_run(b, 4, error); }

/* ---- CUB, and with it MPI or NCCL */

static enum cub_work cub_work_of(const struct bench *b)
{
    return kind_of(b) != BENCH_FOLD || b->task->subject->fold == ALLFOLD_LOGSUMEXP ? CUB_SUMEXP
           : b->task->subject->fold == ALLFOLD_SUM                                 ? CUB_SUM
                                                                                  : CUB_MAX;
}

static bool fits_cub(const struct bench *b)
{
    const int fold = b->task->subject->fold;
    return is_whole(b) && b->machine->ops->cub != NULL
           && (kind_of(b) != BENCH_FOLD || fold == ALLFOLD_SUM || fold == ALLFOLD_MAX || fold == ALLFOLD_LOGSUMEXP);
}
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
    return b->machine->ops->cub_value(work, b->task->type, b->machine->taken);
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

static allfold_status cub_check(struct bench *b, char wrong[96], struct error *error)
{
    if (kind_of(b) == BENCH_SOFTMAX)
        return check_softmax(b, &b->mine, 1e-4, wrong, error);
    if (cub_take(b, error) != ALLFOLD_OK)
        return error->status;
    bench_check_cub(b->task->type, cub_work_of(b), &b->mine, cub_value(b, cub_work_of(b)), wrong);
    return ALLFOLD_OK;
}

static allfold_status cub_value_check(struct bench *b, char wrong[96], struct error *error)
{
    bench_check_cub(b->task->type, cub_work_of(b), &b->all, b->found, wrong);
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

/* ---- cuBLAS */

static bool fits_cublas(const struct bench *b)
{
    return is_whole(b) && bench_is_dot(b) && b->cublas != NULL && (b->task->type == ALLFOLD_F32 || b->task->type == ALLFOLD_F64);
}
static bool fits_cublas_copy(const struct bench *b) { return fits_cublas(b) && b->size == 1; }

static allfold_status cublas_copy_run(struct bench *b, struct error *error)
{
    return bench_cublas_dot(b, error) == ALLFOLD_OK ? cub_take(b, error) : error->status;
}

static allfold_status cublas_check(struct bench *b, char wrong[96], struct error *error)
{
    if (cub_take(b, error) != ALLFOLD_OK)
        return error->status;
    if (b->task->type == ALLFOLD_F64)
        bench_check(&b->mine, "dot", cub_value(b, CUB_SUM), 0.0, wrong);
    else
        bench_near(cub_value(b, CUB_SUM), b->mine.products, bench_f32_tolerance(b->task->count, 64.0 * b->mine.scale * b->mine.scale), wrong);
    return ALLFOLD_OK;
}

/* ---- the ceilings */

static bool fits_read(const struct bench *b) { return in_place(b) && bench_bytes(b) >= 16; }
static bool fits_copy(const struct bench *b) { return in_place(b) && kind_of(b) == BENCH_SOFTMAX && bench_bytes(b) >= 16; }
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
    {"allfold", BENCH_KERNEL, "its kernels; on the CPU its loops", is_whole, NULL, kernel_run, kernel_check, BENCH_MOVES_ALL},
    {"cub", BENCH_KERNEL, "cub::DeviceReduce; for sumexp and softmax in passes", fits_cub, cub_prepare_all, cub_run, cub_check,
     BENCH_MOVES_ALL},
    {"cub-gpu-to-gpu", BENCH_KERNEL, "CUB's sums with the same bits on any GPU, where CUB has them (CCCL 3.1)", fits_cub_gpu_to_gpu,
     cub_gpu_to_gpu_prepare, cub_gpu_to_gpu_run, cub_check, BENCH_MOVES_ALL},
    {"cub", BENCH_KERNEL, "rows: cub::DeviceSegmentedReduce of segments of one length (CCCL 3.4)", bench_axis_fits_cub,
     bench_axis_cub_prepare, bench_axis_cub_run, bench_axis_cub_check, BENCH_MOVES_ALL},
    {"cub", BENCH_KERNEL, "order statistics: cub::DeviceHistogram of even bins; else a whole cub::DeviceRadixSort", bench_order_fits_cub,
     bench_order_cub_prepare, bench_order_cub_run, bench_order_cub_check, BENCH_MOVES_ALL},
    {"cublas", BENCH_KERNEL, "dot products of f32 and f64 by cuBLAS, if it can be loaded", fits_cublas, NULL, bench_cublas_dot,
     cublas_check, BENCH_MOVES_ALL},
    {"read", BENCH_KERNEL, "the fastest plain read of the same bytes", fits_read, read_prepare, read_run, NULL, BENCH_MOVES_INPUT},
    {"copy", BENCH_KERNEL, "the fastest plain copy of the same bytes", fits_copy, copy_prepare, copy_run, NULL, BENCH_MOVES_COPY},
    {"link", BENCH_KERNEL, "copying the data from pinned host memory", fits_link, NULL, link_run, NULL, BENCH_MOVES_INPUT},
    {"allfold", BENCH_PARTIAL, "from the call to the rank's partial on its host", is_whole, NULL, partial_run, partial_check,
     BENCH_MOVES_ALL},
    {"allfold", BENCH_EXCHANGE, "the exchange of ready partials", is_whole, NULL, exchange_run, NULL, BENCH_MOVES_ALL},
    {"allfold", BENCH_HOST, "the library's call", fits_host, NULL, host_run, host_check, BENCH_MOVES_ALL},
    {"allfold", BENCH_HOST, "the library's call along an axis", bench_axis_fits, NULL, bench_axis_run, bench_axis_check,
     BENCH_MOVES_ALL},
    {"allfold", BENCH_HOST, "the library's order statistics", bench_order_fits, NULL, bench_order_run, bench_order_check, BENCH_MOVES_ALL},
    {"cub", BENCH_HOST, "order statistics: the same, and waiting for it", bench_order_fits_cub, bench_order_cub_prepare, bench_order_cub_whole,
     bench_order_cub_check, BENCH_MOVES_ALL},
    {"begun", BENCH_HOST, "the library's fold, begun and ended", fits_begun, NULL, begun_one_run, host_check, BENCH_MOVES_ALL},
    {"begun-4", BENCH_HOST, "four of the same fold, begun together and then ended", fits_begun, NULL, begun_four_run, host_check,
     BENCH_MOVES_FOUR},
    {"cub+copy", BENCH_HOST, "CUB, its result copied to the host (one rank)", fits_cub_copy, cub_prepare_all, cub_copy_run,
     cub_value_check, BENCH_MOVES_ALL},
    {"cub+copy+mpi", BENCH_HOST, "the same, then MPI_Allreduce", fits_cub_mpi, cub_prepare_all, cub_mpi_run, cub_value_check,
     BENCH_MOVES_ALL},
    {"cub+nccl+copy", BENCH_HOST, "CUB, ncclAllReduce, the result copied to the host", fits_cub_nccl, cub_prepare_all, cub_nccl_run,
     cub_value_check, BENCH_MOVES_ALL},
    {"cub", BENCH_HOST, "rows: the same, and waiting for it", bench_axis_fits_cub, bench_axis_cub_prepare, bench_axis_cub_whole,
     bench_axis_cub_check, BENCH_MOVES_ALL},
    {"cublas+copy", BENCH_HOST, "cuBLAS, its result copied to the host (one rank)", fits_cublas_copy, NULL, cublas_copy_run,
     cublas_check, BENCH_MOVES_ALL},
    {"three-pass", BENCH_HOST, "softmax of CUB's passes, two MPI_Allreduce between them", fits_three_pass, cub_prepare_all,
     three_pass_run, three_pass_check, BENCH_MOVES_ALL},
    {"allfold", BENCH_HOST, "a fold of a file", bench_file_fits_fold, NULL, bench_file_fold, host_check, BENCH_MOVES_ALL},
    {"allfold", BENCH_HOST, "softmax of a file, into a file that is made durable", bench_file_fits_softmax, NULL,
     bench_file_softmax, host_check, BENCH_MOVES_ALL},
    {"pread", BENCH_HOST, "pread of the file by as many threads, nothing folded", bench_file_fits_read, NULL, bench_file_pread, NULL,
     BENCH_MOVES_INPUT},
    {"direct", BENCH_HOST, "direct reads of the file by as many threads", bench_file_fits_direct, NULL, bench_file_direct, NULL,
     BENCH_MOVES_INPUT},
    {"dd", BENCH_HOST, "pread of the file by one thread", bench_file_fits_read, NULL, bench_file_dd, NULL, BENCH_MOVES_INPUT},
    {"pread+copy", BENCH_HOST, "pread by as many threads, and copies to the device", bench_file_fits_device,
     bench_file_to_device_prepare, bench_file_to_device, NULL, BENCH_MOVES_INPUT},
    {"pwrite", BENCH_HOST, "pwrite of as many bytes by as many threads, made durable", bench_file_fits_softmax, NULL,
     bench_file_pwrite, NULL, BENCH_MOVES_INPUT},
};
const int bench_peer_count = sizeof bench_peers / sizeof *bench_peers;

void bench_peers_print(void (*line)(const char *peer, const char *timing_point, const char *text))
{
    for (int i = 0; i < bench_peer_count; i++)
        line(bench_peers[i].name, bench_timing_point_names[bench_peers[i].timing_point], bench_peers[i].text);
}
