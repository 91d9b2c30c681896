/* Opens a rank's device and its queues, on which the pipelines run. */
#include "core/pieces.h"

#include "base/host.h"
#include "comm/vectors.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

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

/* auto means one backend for all ranks: a rank that lost its GPU must not slow down the others unnoticed. Collective. */
static const struct backend *choose(struct allfold_context *ctx, allfold_backend choice, struct error *error)
{
    const struct backend *backend = NULL;
    int count = 0, first = 0; /* the first backend that some rank has, and how many ranks have it */
    backend_choose(choice, &backend, error);
    while (count == 0 && first < backend_count)
        if (comm_count(&ctx->comm, backend != NULL && backend->id == backends[first]->id, &count, error) != ALLFOLD_OK)
            return NULL;
        else if (count == 0)
            first++;
    if (choice == ALLFOLD_BACKEND_AUTO && backend != NULL && count > 0 && backend->id != backends[first]->id) {
        struct error why = {0};
        backends[first]->visible(&why);
        error_set(error, ALLFOLD_UNSUPPORTED,
                  "no %s device, though %d of the %d ranks have one: give each rank a device, or choose the backend "
                  "(--backend=%s): %s", backends[first]->devices, count, ctx->comm.size, backend->name, why.text);
    }
    return error->status == ALLFOLD_OK ? backend : NULL;
}

/* The number of this rank's device: the thread's current one if some rank's program has chosen one, which shows in a number other than
   0. Else the local rank. Collective. */
static int device_number(struct allfold_context *ctx, const struct backend *backend, struct error *error)
{
    struct error ignored = {0};
    const int current = backend != NULL ? backend->visible(&ignored).current : 0;
    int chosen = 0;
    comm_count(&ctx->comm, current > 0, &chosen, error);
    return chosen > 0 ? current : ctx->comm.local_rank;
}

/* Finds the other ranks that use this rank's device. UUIDs are compared, not indices: if a batch system binds one device to each
   task, every rank's device has index 0. Collective. */
static void count_sharers(struct allfold_context *ctx, struct error *error)
{
    uint64_t key = 0;
    int same = 1, before = 0;
    for (const char *c = ctx->device != NULL ? ctx->device->info.uuid : ""; *c != '\0'; c++) /* FNV-1a */
        key = ((key != 0 ? key : UINT64_C(0xcbf29ce484222325)) ^ (unsigned char)*c) * UINT64_C(0x100000001b3);
    if (comm_same(&ctx->comm, key, &same, &before, error) == ALLFOLD_OK && ctx->device != NULL) {
        ctx->device->sharers = key != 0 ? same : 1;
        ctx->device->first_sharer = key == 0 || before == 0;
    }
}

/* Checks sizes that a caller may have given against the machine's, so that nothing computed from them can wrap. */
static allfold_status check_sizes(const struct allfold_context *ctx, const allfold_options *options, struct error *error)
{
    const struct device *const device = ctx->device;
    const uint64_t most = host_memory() / (uint64_t)ctx->comm.local_size / (uint64_t)device->worker_queues;
    const uint64_t total = device->info.memory_total;
    if (options->threads < 0 || options->threads > THREADS_MAX)
        error_set(error, ALLFOLD_BAD_ARGUMENT, "threads: expected 1 to %d, or 0 for the default, found %d", THREADS_MAX,
                  options->threads);
    else if (device->shard_bytes > most)
        error_set(error, ALLFOLD_NO_MEMORY, "staging buffers: expected at most %" PRIu64 " bytes each (this host has %" PRIu64
                  " bytes of memory; ranks: %d, buffers of a thread: %d), found %zu", most, host_memory(), ctx->comm.local_size,
                  device->worker_queues, device->shard_bytes);
    else if (options->device_memory > total && total > 0)
        error_set(error, ALLFOLD_NO_MEMORY, "device memory: expected at most the %" PRIu64 " bytes that %s has, found %" PRIu64,
                  total, device->label, options->device_memory);
    return error->status;
}

static allfold_status open_queue(struct allfold_context *ctx, const allfold_options *options, struct error *error)
{
    const struct backend *const backend = ctx->device->backend;
    backend->budget(ctx->device, options);
    if (check_sizes(ctx, options, error) != ALLFOLD_OK)
        return error->status;
    return backend->queues_open(ctx->device, 0, 1, &ctx->queue, error);
}

/* The first of those that were opened together is closed last. */
static void close_queues(struct allfold_context *ctx)
{
    while (ctx->queue_count > 0)
        ctx->device->backend->queue_close(ctx->queues[--ctx->queue_count]);
    free(ctx->queues);
    ctx->queues = NULL;
}

allfold_status core_queues(struct allfold_context *ctx, int count, size_t bytes, struct error *error)
{
    if (bytes > ctx->queue_bytes) {
        close_queues(ctx);
        ctx->queue_bytes = bytes;
    }
    if (count <= ctx->queue_count)
        return ALLFOLD_OK;
    struct queue **const more = realloc(ctx->queues, (size_t)count * sizeof *more);
    if (more == NULL)
        return error_set(error, ALLFOLD_NO_MEMORY, "no memory for %d queues", count);
    ctx->queues = more;
    if (ctx->device->backend->queues_open(ctx->device, ctx->queue_bytes, count - ctx->queue_count, more + ctx->queue_count, error)
        == ALLFOLD_OK)
        ctx->queue_count = count;
    else if (ctx->queue_count == 0)
        ctx->queue_bytes = 0; /* a later call may need less */
    return error->status;
}

void core_release(struct allfold_context *ctx, struct kept_memory *kept)
{
    if (kept->memory != NULL)
        ctx->device->backend->release(ctx->device, kept->memory);
    *kept = (struct kept_memory){NULL, 0};
}

allfold_status core_keep(struct allfold_context *ctx, struct kept_memory *kept, size_t bytes, struct error *error)
{
    if (bytes <= kept->bytes)
        return ALLFOLD_OK;
    core_release(ctx, kept);
    if (ctx->device->backend->allocate(ctx->device, bytes, &kept->memory, error) == ALLFOLD_OK)
        kept->bytes = bytes;
    return error->status;
}

/* Refuses what is true of some ranks and not of others. Collective. */
static void all_or_none(struct allfold_context *ctx, bool mine, const char *option, struct error *error)
{
    int count = 0;
    if (comm_count(&ctx->comm, mine, &count, error) == ALLFOLD_OK && count > 0 && count < ctx->comm.size)
        error->shared = error_set(error, ALLFOLD_BAD_ARGUMENT, "%d of the %d ranks ask for %s: expected all or none", count,
                                  ctx->comm.size, option) != ALLFOLD_OK;
}

/* Ranks must use the same level, or every later call would report different calls. They must use the same exchange, or the last
   bits at level fast would depend on the ranks that have it. Collective. */
static void check_choices(struct allfold_context *ctx, const allfold_options *options, struct error *error)
{
    if ((unsigned)options->exchange > ALLFOLD_EXCHANGE_MPI)
        error_set(error, ALLFOLD_BAD_ARGUMENT, "exchange %d: expected auto or mpi", (int)options->exchange);
    if ((unsigned)options->level > ALLFOLD_LEVEL_FAST)
        error_set(error, ALLFOLD_BAD_ARGUMENT, "level %d: expected exact or fast", (int)options->level);
    if (comm_agree(&ctx->comm, error) != ALLFOLD_OK) /* what one rank cannot mean comes before what differs */
        return;
    all_or_none(ctx, options->level == ALLFOLD_LEVEL_EXACT, "level exact", error);
    all_or_none(ctx, options->exchange == ALLFOLD_EXCHANGE_MPI, "exchange mpi", error);
}

allfold_status core_open(struct allfold_context *ctx, const allfold_options *options, struct error *error)
{
    ctx->log = options->log;
    ctx->log_user = options->log_user;
    ctx->level = options->level;
    const double begun = clock_seconds();
    check_choices(ctx, options, error);
    const struct backend *const backend = choose(ctx, options->backend, error);
    const int number = device_number(ctx, backend, error);
    if (backend != NULL)
        backend->open(number, ctx->comm.local_size, options, &ctx->device, error);
    if (ctx->device != NULL)
        snprintf(ctx->comm.device, sizeof ctx->comm.device, "%s", ctx->device->label);
    count_sharers(ctx, error);
    const double opened = clock_seconds();
    if (error->status == ALLFOLD_OK)
        open_queue(ctx, options, error);
    if (comm_agree(&ctx->comm, error) != ALLFOLD_OK) {
        core_close(ctx);
        return error->status;
    }
    core_log(ctx, "%s backend, %d threads, shards of %zu bytes, %" PRIu64 " bytes of device memory for elements, "
             "%d rank%s on this device, exchange %s: %d rank%s as %d host%s", ctx->device->backend->name, ctx->device->threads,
             ctx->device->shard_bytes, ctx->device->memory, ctx->device->sharers, ctx->device->sharers == 1 ? "" : "s",
             options->exchange == ALLFOLD_EXCHANGE_MPI ? "mpi" : "auto", ctx->comm.size, ctx->comm.size == 1 ? "" : "s",
             ctx->comm.hosts, ctx->comm.hosts == 1 ? "" : "s");
    core_log(ctx, "context opened in %.3f s: communicator %.3f, device %.3f, queues %.3f", clock_seconds() - ctx->opening,
             begun - ctx->opening, opened - begun, clock_seconds() - opened);
    return ALLFOLD_OK;
}

/* Waits for kernels of folds that were begun and not ended. */
static void close_begun(struct allfold_context *ctx)
{
    struct error ignored = {0};
    for (int i = 0; i < BEGUN_MOST; i++) {
        struct begun *const begun = &ctx->begun[i];
        if (begun->under_way)
            ctx->device->backend->wait(begun->queue, &ignored);
        ctx->device->backend->queue_close(begun->queue);
        *begun = (struct begun){0};
    }
}

void core_close(struct allfold_context *ctx)
{
    if (ctx->device != NULL) {
        close_begun(ctx);
        close_queues(ctx);
        core_release(ctx, &ctx->gathered);
        core_release(ctx, &ctx->order);
        if (ctx->axis_memory != NULL)
            ctx->device->backend->release(ctx->device, ctx->axis_memory);
        ctx->device->backend->queue_close(ctx->queue);
        ctx->device->backend->close(ctx->device);
    }
    comm_window_close(ctx->window.memory, WINDOW_BYTES); /* which the device may have pinned */
    memset(&ctx->window, 0, sizeof ctx->window);
    ctx->axis_memory = NULL;
    ctx->order_clean = 0;
    ctx->queue = NULL;
    ctx->device = NULL;
}
