/* The calls of allfold.h: memory as source and sink of the pipelines. */
#include "allfold.h"
#include "core/core.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* memcpy by several threads: one cannot fill the link to a device. */
static void copy(void *to, const void *from, size_t bytes, int threads)
{
    const size_t piece = 1 << 20;
#pragma omp parallel for schedule(static) num_threads(threads) if (bytes > 4 * piece)
    for (size_t start = 0; start < bytes; start += piece)
        memcpy((char *)to + start, (const char *)from + start, bytes - start < piece ? bytes - start : piece);
    (void)threads;
}

static allfold_status memory_read(struct source *source, uint64_t first, uint64_t count, void *destination, int threads,
                                  struct error *error)
{
    const size_t bytes = allfold_type_bytes(source->type);
    (void)error;
    copy(destination, (const char *)source->resident + first * bytes, count * bytes, threads);
    return ALLFOLD_OK;
}

static allfold_status memory_write(struct sink *sink, uint64_t first, uint64_t count, const void *elements, int threads,
                                   struct error *error)
{
    const size_t bytes = allfold_type_bytes(sink->type);
    (void)error;
    copy((char *)sink->resident + first * bytes, elements, count * bytes, threads);
    return ALLFOLD_OK;
}

static void check_part(const allfold_array *part, struct error *error)
{
    if (part == NULL)
        error_set(error, ALLFOLD_BAD_ARGUMENT, "the array is NULL: pass a struct with count 0 for an empty part");
    else if (part->type >= ALLFOLD_TYPE_COUNT)
        error_set(error, ALLFOLD_BAD_ARGUMENT, "element type %d does not exist", (int)part->type);
    else if (part->count > 0 && part->data == NULL)
        error_set(error, ALLFOLD_BAD_ARGUMENT, "data is NULL though count is not 0");
    else if (part->count > (uint64_t)PTRDIFF_MAX / allfold_type_bytes(part->type))
        error_set(error, ALLFOLD_BAD_ARGUMENT, "count is larger than any memory");
    else if (part->count > 0 && (uintptr_t)part->data % allfold_type_bytes(part->type) != 0)
        error_set(error, ALLFOLD_BAD_ARGUMENT, "data is not aligned to its element size of %zu bytes",
                  allfold_type_bytes(part->type));
}

allfold_status allfold_open(MPI_Comm comm, const allfold_options *options, allfold_context **context, char *message,
                            size_t message_bytes)
{
    static const allfold_options defaults = {0};
    struct error error = {0};
    struct allfold_context *ctx = calloc(1, sizeof *ctx);
    options = options != NULL ? options : &defaults;
    *context = NULL;
    if (ctx == NULL)
        error_set(&error, ALLFOLD_NO_MEMORY, "no memory for a context");
    else if (comm_open(&comm, options->exchange, &ctx->comm, &error) == ALLFOLD_OK
             && core_open(ctx, options, &error) != ALLFOLD_OK)
        comm_close(&ctx->comm);
    if (error.status == ALLFOLD_OK)
        *context = ctx;
    else
        free(ctx);
    if (message != NULL && message_bytes > 0)
        snprintf(message, message_bytes, "%s", error.text);
    return error.status;
}

void allfold_close(allfold_context *context)
{
    if (context == NULL)
        return;
    core_close(context);
    comm_close(&context->comm);
    free(context);
}

const char *allfold_message(const allfold_context *context) { return context->error.text; }

/* A part of the caller's memory as a source; nothing where it cannot be used. */
static struct source part_source(const allfold_array *part, const struct error *error)
{
    const bool usable = error->status == ALLFOLD_OK;
    return (struct source){
        .read = memory_read, .type = usable ? part->type : ALLFOLD_F32, .resident = usable ? part->data : NULL};
}

allfold_status allfold_reduce(allfold_context *context, allfold_fold fold, const allfold_array *part,
                              const allfold_call *call, allfold_result *result)
{
    static const allfold_call defaults = {0};
    struct error *const error = &context->error;
    *error = (struct error){0};
    call = call != NULL ? call : &defaults;
    check_part(part, error);
    if (fold >= ALLFOLD_FOLD_COUNT) {
        error_set(error, ALLFOLD_BAD_ARGUMENT, "fold %d does not exist", (int)fold);
        fold = ALLFOLD_SUM; /* to fail together with the other ranks, whatever they called */
    } else if ((unsigned)call->nan > ALLFOLD_NAN_ERROR)
        error_set(error, ALLFOLD_BAD_ARGUMENT, "NaN policy %d does not exist", (int)call->nan);
    else if (call->nan != ALLFOLD_NAN_PROPAGATE && !fold_has_nan_choice(fold))
        error_set(error, ALLFOLD_BAD_ARGUMENT, "%s always propagates NaN: stats can leave it out or refuse it",
                  allfold_fold_name(fold));
    if (call->result_type != NULL && (*call->result_type >= ALLFOLD_TYPE_COUNT || type_kind(*call->result_type) != 'f'))
        error_set(error, ALLFOLD_BAD_ARGUMENT, "results are f16, bf16, f32 or f64, not %s",
                  allfold_type_name(*call->result_type));
    if (result == NULL)
        error_set(error, ALLFOLD_BAD_ARGUMENT, "the result is NULL");
    struct source source = part_source(part, error);
    const struct job job = {.source = &source,
                            .range = {0, error->status == ALLFOLD_OK ? part->count : 0},
                            .stream = call->stream,
                            .result_type = call->result_type};
    return core_reduce(context, fold, call->nan, source.type, &job, result, error);
}

allfold_status allfold_softmax(allfold_context *context, const allfold_array *part, void *y, allfold_type y_type,
                               const allfold_call *call)
{
    static const allfold_call defaults = {0};
    struct error *const error = &context->error;
    *error = (struct error){0};
    call = call != NULL ? call : &defaults;
    check_part(part, error);
    if (y_type >= ALLFOLD_TYPE_COUNT || type_kind(y_type) != 'f')
        error_set(error, ALLFOLD_BAD_ARGUMENT, "softmax gives f16, bf16, f32 or f64, not %s", allfold_type_name(y_type));
    else if (error->status == ALLFOLD_OK && part->count > 0
             && (y == NULL || (uintptr_t)y % allfold_type_bytes(y_type) != 0))
        error_set(error, ALLFOLD_BAD_ARGUMENT, "the output is NULL or not aligned to its element size");
    struct source source = part_source(part, error);
    struct sink sink = {.write = memory_write, .type = y_type, .resident = y};
    const struct job job = {
        .source = &source, .range = {0, error->status == ALLFOLD_OK ? part->count : 0}, .stream = call->stream};
    return core_softmax(context, call->logarithm != 0, source.type, &job, &sink, error);
}
