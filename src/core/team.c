/* Threads that work on a rank's part: see team.h. */
#include "core/team.h"

#include "base/host.h"

#include <stdlib.h>
#include <string.h>

#ifdef _OPENMP
#include <omp.h>
#endif

uint64_t team_elements(const struct job *job, size_t bytes)
{
    const uint64_t granule = job->source != NULL ? job->source->granule : 1;
    return u64_max(bytes / allfold_type_bytes(job->type) / granule, 1) * granule;
}

uint64_t team_window(const struct job *job, uint64_t shard, size_t bytes)
{
    const uint64_t granule = job->source->granule, part = job->range.count / granule + (job->range.count % granule != 0);
    return u64_min(u64_min(team_elements(job, bytes), shard), part * granule);
}

/* Sizes are powers of two, up to what any type's usual windows need: so the queues of one call mostly serve the next. */
size_t team_queue_bytes(const struct allfold_context *ctx, const struct job *job, uint64_t window, uint64_t more)
{
    const uint64_t usual = reader_room(ctx->device->window_bytes, 1), needed = reader_room(window, allfold_type_bytes(job->type)) + more;
    uint64_t bytes = 1 << 16;
    while (bytes < needed)
        bytes *= 2;
    return (size_t)(u64_max(u64_min(bytes, usual), needed) + 4095) / 4096 * 4096;
}

int team_workers(const struct allfold_context *ctx, uint64_t shards, size_t queue_bytes)
{
    const struct device *const device = ctx->device;
    const uint64_t memory = host_memory() / (uint64_t)ctx->comm.local_size / 2;
    const uint64_t room = device->queue_memory > 0 ? u64_min(memory, device->queue_memory) : memory;
    const uint64_t most = u64_max(room / (uint64_t)device->worker_queues / u64_max(queue_bytes, ctx->queue_bytes), 1);
    return (int)u64_max(u64_min(u64_min((uint64_t)device->workers, most), shards), 1);
}

void team_shards_done(struct team *team, uint64_t done)
{
    team->done = done;
    pthread_cond_broadcast(&team->moved);
}

/* The phase that the rank shows is then that of the worker that failed. */
void team_fail(struct team *team, const struct error *error)
{
    pthread_mutex_lock(&team->lock);
    if (!team->failed) {
        team->failed = true;
        team->failed_in = phase_of_thread(team->ctx->comm.progress);
        team->error = *error;
    }
    pthread_cond_broadcast(&team->moved);
    pthread_mutex_unlock(&team->lock);
}

enum taken { TAKEN, LATER, NOTHING_LEFT };

/* Takes the next shard. If there is no slot for it, waits if it may, else LATER. */
static enum taken take_shard(struct team *team, bool may_wait, uint64_t *shard)
{
    enum taken taken = LATER;
    pthread_mutex_lock(&team->lock);
    for (;;) {
        if (atomic_load_explicit(&team->ctx->comm.progress->stop, memory_order_relaxed) != 0 || team->failed
            || team->next == team->end || (team->pause_at > 0 && team->next > team->first && clock_seconds() >= team->pause_at))
            taken = NOTHING_LEFT;
        else if (team->slots == 0 || team->next - team->done < team->slots)
            taken = TAKEN;
        if (taken != LATER || !may_wait)
            break;
        pthread_cond_wait(&team->moved, &team->lock);
    }
    if (taken == TAKEN)
        *shard = team->next++;
    pthread_mutex_unlock(&team->lock);
    return taken;
}

/* The elements of shard number i. */
static struct range shard_range(const struct team *team, uint64_t i)
{
    const struct range *const part = &team->job->range;
    const uint64_t place = team->backwards ? (part->count - 1) / team->shard_elements - i : i, first = place * team->shard_elements;
    return (struct range){part->first + first, u64_min(team->shard_elements, part->count - first)};
}

static allfold_status finish_lane(struct worker *worker, struct lane *lane)
{
    if (!lane->busy)
        return worker->error.status;
    lane->busy = false;
    return worker->team->work->finish(worker, lane, &worker->error);
}

static allfold_status finish_all(struct worker *worker)
{
    const int lanes = worker->team->lanes;
    for (int i = 0; i < lanes && worker->error.status == ALLFOLD_OK; i++)
        finish_lane(worker, &worker->lanes[(worker->started + (uint64_t)i) % (uint64_t)lanes]);
    return worker->error.status;
}

/* Cuts the next window from the shard under way, or from a new one. A worker that must wait for a slot finishes its own shards first:
   others may wait for them. */
static bool next_window(struct worker *worker, struct window *window)
{
    struct team *const team = worker->team;
    if (worker->rest.count == 0) {
        enum taken taken = take_shard(team, false, &worker->shard);
        if (taken == LATER)
            taken = finish_all(worker) == ALLFOLD_OK ? take_shard(team, true, &worker->shard) : NOTHING_LEFT;
        if (taken == NOTHING_LEFT)
            return false;
        worker->rest = shard_range(team, worker->shard);
    }
    struct range *const rest = &worker->rest;
    const uint64_t count = u64_min(team->window_elements, rest->count);
    *window = (struct window){worker->shard, {rest->first, count}, rest->count - count};
    *rest = (struct range){rest->first + count, rest->count - count};
    return true;
}

/* After an error nothing may still be running. */
static void drain(struct worker *worker)
{
    for (int i = 0; i < worker->team->lanes; i++) {
        struct error ignored = {0};
        struct queue *const queue = worker->lanes[i].queue;
        queue->device->backend->wait(queue, &ignored);
    }
}

static void work(struct worker *worker)
{
    struct team *const team = worker->team;
    while (worker->error.status == ALLFOLD_OK) {
        struct lane *const lane = &worker->lanes[worker->started % (uint64_t)team->lanes];
        if (finish_lane(worker, lane) != ALLFOLD_OK || !next_window(worker, &lane->window)
            || team->work->start(worker, lane, &worker->error) != ALLFOLD_OK)
            break;
        lane->busy = true;
        worker->started++;
    }
    if (finish_all(worker) != ALLFOLD_OK) {
        team_fail(team, &worker->error);
        drain(worker);
    }
}

/* Orders what threads do where they begin and end. OpenMP does so, too, but a thread sanitizer does not see that. */
static void pass_lock(struct team *team)
{
    pthread_mutex_lock(&team->lock);
    pthread_mutex_unlock(&team->lock);
}

/* Side by side, each with a clock of its own. Fewer threads than asked for do all the work as well. */
static void work_together(struct team *team, struct worker *workers, int count)
{
    struct progress *const progress = team->ctx->comm.progress;
    const enum phase before = phase_of_thread(progress);
    int running = 1;
    struct phase_clock *const clocks = calloc((size_t)count, sizeof *clocks);
    if (count == 1 || clocks == NULL) { /* with the rank's own clock */
        work(&workers[0]);
        free(clocks);
        return;
    }
    pass_lock(team);
#pragma omp parallel num_threads(count)
    {
        pass_lock(team);
#ifdef _OPENMP
#pragma omp single
        running = omp_get_num_threads();
#endif
        phase_clock_start(&clocks[host_thread()], progress, PHASE_READ);
        work(&workers[host_thread()]);
        phase_clock_stop();
        pass_lock(team);
    }
    pass_lock(team);
    /* if none has failed, as if one had worked alone */
    phase_clocks_add(progress, clocks, running, before, team->failed ? team->failed_in : clocks[0].phase);
    free(clocks);
}

/* Gives each worker its queues and a reader. */
static allfold_status equip(struct team *team, struct worker *workers, int count, struct error *error)
{
    struct allfold_context *const ctx = team->ctx;
    struct source *const source = team->job->source, *const second = team->job->second;
    if (core_queues(ctx, count * team->lanes, team->queue_bytes, error) != ALLFOLD_OK)
        return error->status;
    for (int i = 0; i < count; i++) {
        workers[i].team = team;
        for (int lane = 0; lane < team->lanes; lane++)
            workers[i].lanes[lane].queue = ctx->queues[i * team->lanes + lane];
        if (source->open_reader(source, &workers[i].reader, error) != ALLFOLD_OK
            || (second != NULL && second->open_reader(second, &workers[i].second, error) != ALLFOLD_OK))
            return error->status;
        if ((workers[i].partial = malloc(sizeof *workers[i].partial)) == NULL)
            return error_set(error, ALLFOLD_NO_MEMORY, "no memory for a worker thread");
    }
    return ALLFOLD_OK;
}

static void dismiss(struct worker *workers, int count)
{
    for (int i = 0; i < count; i++) {
        if (workers[i].reader != NULL)
            workers[i].reader->close(workers[i].reader);
        if (workers[i].second != NULL)
            workers[i].second->close(workers[i].second);
        free(workers[i].partial);
    }
    free(workers);
}

int team_lanes(const struct team *team)
{
    return (int)u64_min((uint64_t)team->ctx->device->worker_queues, team->end - team->next);
}

allfold_status team_follow(const struct team *team, struct error *error)
{
    struct allfold_context *const ctx = team->ctx;
    const int queues = team_workers(ctx, team->end - team->next, team->queue_bytes) * team_lanes(team);
    if (core_queues(ctx, queues, team->queue_bytes, error) != ALLFOLD_OK)
        return error->status;
    for (int i = 0; i < queues; i++)
        if (ctx->device->backend->follow(ctx->queues[i], team->job->stream, error) != ALLFOLD_OK)
            return error->status;
    return ALLFOLD_OK;
}

allfold_status team_run(struct team *team, struct error *error)
{
    if (team->next == team->end)
        return error->status;
    const int count = team_workers(team->ctx, team->end - team->next, team->queue_bytes);
    struct worker *const workers = calloc((size_t)count, sizeof *workers);
    if (workers == NULL)
        return error_set(error, ALLFOLD_NO_MEMORY, "no memory for %d worker threads", count);
    team->lanes = team_lanes(team);
    team->first = team->done = team->next;
    pthread_mutex_init(&team->lock, NULL);
    pthread_cond_init(&team->moved, NULL);
    if (equip(team, workers, count, error) == ALLFOLD_OK) {
        core_log(team->ctx, "%d threads, each with %d buffers of %zu bytes, read the elements", count, team->lanes, team->queue_bytes);
        work_together(team, workers, count);
        if (team->failed)
            error_set(error, team->error.status, "%s", team->error.text);
    }
    dismiss(workers, count);
    pthread_cond_destroy(&team->moved);
    pthread_mutex_destroy(&team->lock);
    return error->status;
}

/* Whether the source's elements lie in host memory that the device can copy from; *from is then their address. */
static bool find_pinned(const struct worker *worker, const struct source *source, const struct range *elements, const void **from,
                        struct error *error)
{
    struct device *const device = worker->team->ctx->device;
    const size_t element_bytes = allfold_type_bytes(source->type);
    enum place first = PLACE_HOST, last = PLACE_HOST;
    if (source->memory == NULL)
        return false;
    const char *const at = (const char *)source->memory + (elements->first - worker->team->job->range.first) * element_bytes;
    *from = at;
    return device->backend->locate(device, at, &first, error) == ALLFOLD_OK && first == PLACE_PINNED
           && device->backend->locate(device, at + elements->count * element_bytes - 1, &last, error) == ALLFOLD_OK
           && last == PLACE_PINNED;
}

/* One of the job's sources, as a worker reads it. */
struct operand {
    const struct source *source;
    struct reader *reader;
    size_t offset; /* of its part of a queue's staging */
    void *memory;  /* where a device with memory of its own gets a copy */
    struct piece *piece;
};

/* Reads the lane's window of it. */
static allfold_status operand_read(struct worker *worker, const struct lane *lane, const struct operand *operand, struct error *error)
{
    const struct queue *const queue = lane->queue;
    char *const staging = (char *)queue->staging + operand->offset;
    const struct read_request request = {lane->window.elements, lane->window.ahead, staging};
    struct piece *const piece = operand->piece;
    const bool own_memory = queue->device->backend->own_memory;
    phase_enter(worker->team->ctx->comm.progress, PHASE_READ);
    *piece = (struct piece){.count = lane->window.elements.count};
    if (own_memory && find_pinned(worker, operand->source, &lane->window.elements, &piece->elements, error))
        return error->status;
    if (error->status != ALLFOLD_OK || operand->reader->read(operand->reader, &request, piece, error) != ALLFOLD_OK)
        return error->status;
    const char *const found = piece->elements;
    if (own_memory && (found < staging || found >= (char *)queue->staging + queue->bytes))
        piece->elements = memcpy(staging, found, piece->count * allfold_type_bytes(operand->source->type));
    return ALLFOLD_OK;
}

/* Reads it and starts its copy, if there is one. *x is where the device finds it. */
static allfold_status operand_load(struct worker *worker, struct lane *lane, const struct operand *operand, const void **x,
                                   struct error *error)
{
    const struct backend *const backend = lane->queue->device->backend;
    if (operand_read(worker, lane, operand, error) != ALLFOLD_OK)
        return error->status;
    *x = backend->own_memory ? operand->memory : operand->piece->elements;
    if (!backend->own_memory)
        return ALLFOLD_OK;
    phase_enter(worker->team->ctx->comm.progress, PHASE_UPLOAD);
    return backend->upload(lane->queue, operand->piece->elements, operand->memory,
                           (size_t)operand->piece->count * allfold_type_bytes(operand->source->type), error);
}

static struct operand first_operand(const struct worker *worker, struct lane *lane, void *memory)
{
    return (struct operand){worker->team->job->source, worker->reader, 0, memory, &lane->piece};
}

allfold_status lane_read(struct worker *worker, struct lane *lane, struct error *error)
{
    const struct operand operand = first_operand(worker, lane, NULL);
    return operand_read(worker, lane, &operand, error);
}

allfold_status lane_load(struct worker *worker, struct lane *lane, void *memory, const void **x, struct error *error)
{
    const struct job *const job = worker->team->job;
    const struct operand operand = first_operand(worker, lane, memory != NULL ? memory : lane->queue->buffer);
    if (!job_is_generated(worker->team->ctx, job))
        return operand_load(worker, lane, &operand, x, error);
    phase_enter(worker->team->ctx->comm.progress, PHASE_READ);
    lane->piece = (struct piece){.count = lane->window.elements.count};
    *x = operand.memory;
    return lane->queue->device->backend->generate(lane->queue, job->source->draw, lane->window.elements, operand.memory, error);
}

allfold_status lane_load_second(struct worker *worker, struct lane *lane, const void **y, struct error *error)
{
    const size_t half = lane->queue->bytes / 2 / 4096 * 4096;
    struct piece piece;
    const struct operand operand = {worker->team->job->second, worker->second, half, (char *)lane->queue->buffer + half, &piece};
    return operand_load(worker, lane, &operand, y, error);
}
