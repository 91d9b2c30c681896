/* Opens what the pipelines run on: a rank's device and its queues. */
#include "core/core.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

void core_log(const struct allfold_context *ctx, const char *format, ...)
{
    char line[256];
    va_list args;
    if (ctx->log == NULL)
        return;
    va_start(args, format);
    vsnprintf(line, sizeof line, format, args);
    va_end(args);
    ctx->log(ctx->log_user, line);
}

static allfold_status open_local(struct allfold_context *ctx, const allfold_options *options, struct error *error)
{
    const struct backend *backend;
    if ((unsigned)options->level > ALLFOLD_LEVEL_EXACT)
        return error_set(error, ALLFOLD_BAD_ARGUMENT, "level %d: expected fast or exact", (int)options->level);
    if (backend_choose(options->backend, &backend, error) != ALLFOLD_OK
        || backend->open(ctx->comm.local_rank, ctx->comm.local_size, options, &ctx->device, error) != ALLFOLD_OK)
        return error->status;
    snprintf(ctx->comm.device, sizeof ctx->comm.device, "%s", ctx->device->label);
    const int queues = ctx->device->queue_count < CORE_QUEUES_MAX ? ctx->device->queue_count : CORE_QUEUES_MAX;
    /* a multiple of every element size, and of two halves that are */
    const size_t bytes = (ctx->device->staging_bytes + 127) / 128 * 128;
    for (int i = 0; i < queues; i++) {
        if (backend->queue_open(ctx->device, bytes, &ctx->queues[i], error) != ALLFOLD_OK)
            return error->status;
        ctx->queue_count++;
    }
    return ALLFOLD_OK;
}

allfold_status core_open(struct allfold_context *ctx, const allfold_options *options, struct error *error)
{
    ctx->level = options->level;
    ctx->comm.exact = options->level == ALLFOLD_LEVEL_EXACT;
    ctx->log = options->log;
    ctx->log_user = options->log_user;
    open_local(ctx, options, error);
    if (comm_agree(&ctx->comm, error) != ALLFOLD_OK) {
        core_close(ctx);
        return error->status;
    }
    core_log(ctx, "%s backend, %d threads, %d queues of %zu bytes, %" PRIu64 " bytes of device memory for elements",
             ctx->device->backend->name, ctx->device->threads, ctx->queue_count, ctx->queues[0]->bytes,
             ctx->device->memory);
    return ALLFOLD_OK;
}

void core_close(struct allfold_context *ctx)
{
    for (int i = 0; i < ctx->queue_count; i++)
        ctx->device->backend->queue_close(ctx->queues[i]);
    ctx->queue_count = 0;
    if (ctx->device != NULL)
        ctx->device->backend->close(ctx->device);
    ctx->device = NULL;
}
