/* Threads that work on a rank's part: see team.h. */
#include "core/pieces.h"

#include "base/host.h"

#include <inttypes.h>
#include <stdlib.h>

#ifdef _OPENMP
#include <omp.h>
#endif

enum { RESULTS_BYTES = 64 << 20 }; /* of shards that are done, and wait for those before them */

static uint64_t shards_of_run(const struct team *team)
{
    return team->run / team->pieces->shard + (team->run % team->pieces->shard != 0);
}

uint64_t team_shards(const struct team *team, uint64_t runs) { return runs * shards_of_run(team); }

uint64_t team_pieces(const struct team *team, uint64_t shards)
{
    const uint64_t each = shards_of_run(team);
    return shards / each * team->run + u64_min(shards % each * team->pieces->shard, team->run);
}

/* The pieces of a shard. */
static struct range pieces_of(const struct team *team, uint64_t shard)
{
    const uint64_t each = shards_of_run(team), place = team->backwards ? team_shards(team, team->runs) - 1 - shard : shard;
    const uint64_t shard_pieces = team->pieces->shard, first = place % each * shard_pieces;
    return (struct range){place / each * team->run + first, u64_min(shard_pieces, team->run - first)};
}

/* How many threads work side by side: as many as the device's host threads, the shards, its memory for queues and half of this rank's
   share of the host's memory allow. */
static int workers_of(const struct team *team)
{
    const struct allfold_context *const ctx = team->pieces->ctx;
    const struct device *const device = ctx->device;
    const uint64_t memory = host_memory() / (uint64_t)ctx->comm.local_size / 2;
    const uint64_t room = device->queue_memory > 0 ? u64_min(memory, device->queue_memory) : memory;
    const uint64_t most = u64_max(room / (uint64_t)device->worker_queues / u64_max(team->pieces->queue_bytes, ctx->queue_bytes), 1);
    const bool copies = device->backend->own_memory && !pieces_are_chunked(team->pieces);
    const int workers = copies ? copying_threads(device->workers) : device->workers;
    return team->pieces->queue != NULL ? 1 : (int)u64_max(u64_min(u64_min((uint64_t)workers, most), team->end - team->next), 1);
}

/* One for a single piece. */
static int lanes_of(const struct team *team)
{
    const bool single = team->end - team->next == 1 && u64_min(team->pieces->shard, team->run) == 1;
    return single || team->pieces->queue != NULL ? 1 : team->pieces->ctx->device->worker_queues;
}

/* The error of the first shard that fails is the team's: those before it have been taken, and go on to their ends. The phase that the rank shows
   is that of its worker. */
static void fail(struct team *team, const struct worker *worker)
{
    pthread_mutex_lock(&team->lock);
    if (!team->failed || worker->failed < team->failed_shard) {
        team->failed = true;
        team->failed_shard = worker->failed;
        team->failed_in = phase_of_thread(team->pieces->ctx->comm.progress);
        team->error = worker->error;
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
        if (atomic_load_explicit(&team->pieces->ctx->comm.progress->stop, memory_order_relaxed) != 0 || team->failed
            || team->next == team->end)
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

/* Says that a shard is done. If no thread takes results, this one does, as long as the next shard is done. After an error none does any
   more. */
static allfold_status hand_over(struct team *team, uint64_t shard, struct error *error)
{
    pthread_mutex_lock(&team->lock);
    team->full[shard % team->slots] = true;
    const bool takes = !team->taking;
    while (takes && error->status == ALLFOLD_OK && team->full[team->done % team->slots]) {
        team->taking = true;
        pthread_mutex_unlock(&team->lock);
        team->work->take(team, team->done, error);
        pthread_mutex_lock(&team->lock);
        team->full[team->done % team->slots] = false;
        team->done++;
        pthread_cond_broadcast(&team->moved);
    }
    if (takes && error->status == ALLFOLD_OK)
        team->taking = false;
    pthread_mutex_unlock(&team->lock);
    return error->status;
}

static allfold_status finish_lane(struct worker *worker, struct lane *lane)
{
    struct team *const team = worker->team;
    if (!lane->busy)
        return worker->error.status;
    lane->busy = false;
    worker->failed = lane->shard; /* if it fails */
    if (team->work->finish(worker, lane, &worker->error) == ALLFOLD_OK && lane->ahead == 0 && team->slots > 0)
        hand_over(team, lane->shard, &worker->error);
    return worker->error.status;
}

static allfold_status finish_all(struct worker *worker)
{
    const int lanes = worker->team->lanes;
    for (int i = 0; i < lanes && worker->error.status == ALLFOLD_OK; i++)
        finish_lane(worker, &worker->lanes[(worker->started + (uint64_t)i) % (uint64_t)lanes]);
    return worker->error.status;
}

/* Gives the lane the next piece of the shard under way, or of a new one. A worker that must wait for a slot finishes its own shards first:
   others may wait for them. */
static bool next_piece(struct worker *worker, struct lane *lane)
{
    struct team *const team = worker->team;
    struct range *const pieces = &worker->pieces;
    const bool first = pieces->count == 0;
    if (first) {
        enum taken taken = take_shard(team, false, &worker->shard);
        if (taken == LATER)
            taken = finish_all(worker) == ALLFOLD_OK ? take_shard(team, true, &worker->shard) : NOTHING_LEFT;
        if (taken == NOTHING_LEFT)
            return false;
        *pieces = pieces_of(team, worker->shard);
    }
    *lane = (struct lane){.queue = lane->queue, .weighted = lane->weighted, .shard = worker->shard, .number = team->before + pieces->first * team->step, .first = first, .ahead = pieces->count - 1};
    *pieces = (struct range){pieces->first + 1, pieces->count - 1};
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
        if (finish_lane(worker, lane) != ALLFOLD_OK || !next_piece(worker, lane))
            break;
        worker->failed = lane->shard;
        if (team->work->start(worker, lane, &worker->error) != ALLFOLD_OK)
            break;
        lane->busy = true;
        worker->started++;
    }
    if (finish_all(worker) != ALLFOLD_OK) {
        fail(team, worker);
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
    struct progress *const progress = team->pieces->ctx->comm.progress;
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

/* Gives each worker its queues and readers. */
static allfold_status equip(struct team *team, struct worker *workers, int count, struct error *error)
{
    const struct pieces *const p = team->pieces;
    struct allfold_context *const ctx = p->ctx;
    struct source *const source = p->array->source, *const second = p->second;
    if (p->queue == NULL && core_queues(ctx, count * team->lanes, p->queue_bytes, error) != ALLFOLD_OK)
        return error->status;
    for (int i = 0; i < count; i++) {
        workers[i].team = team;
        for (int lane = 0; lane < team->lanes; lane++) {
            struct queue *const queue = p->queue != NULL ? p->queue : ctx->queues[i * team->lanes + lane];
            workers[i].lanes[lane].queue = queue;
            if (p->follows && ctx->device->backend->follow(queue, p->stream, error) != ALLFOLD_OK)
                return error->status;
        }
        if ((source != NULL && source_open_reader(source, &workers[i].reader, error) != ALLFOLD_OK)
            || (second != NULL && source_open_reader(second, &workers[i].second, error) != ALLFOLD_OK))
            return error->status;
    }
    return ALLFOLD_OK;
}

static void dismiss(struct worker *workers, int count)
{
    for (int i = 0; i < count; i++) {
        reader_close(workers[i].reader);
        reader_close(workers[i].second);
    }
    free(workers);
}

/* Slots for the results of shards, if they are taken. */
static allfold_status open_slots(struct team *team, int workers, struct error *error)
{
    team->slots = 0;
    if (team->work->take == NULL)
        return ALLFOLD_OK;
    const size_t bytes = (u64_max(team->result_bytes, 1) + 63) / 64 * 64;
    team->result_bytes = bytes;
    team->slots = u64_max(u64_min(4 * (uint64_t)(team->lanes * workers), RESULTS_BYTES / bytes), 1);
    team->results = aligned_alloc(64, team->slots * bytes);
    team->full = calloc(team->slots, sizeof *team->full);
    if (team->results == NULL || team->full == NULL)
        error_set(error, ALLFOLD_NO_MEMORY, "no memory for the partials of %" PRIu64 " shards", team->slots);
    return error->status;
}

allfold_status team_run(struct team *team, struct error *error)
{
    if (team->next >= team->end)
        return error->status;
    const int count = workers_of(team);
    struct worker *const workers = calloc((size_t)count, sizeof *workers);
    if (workers == NULL)
        return error_set(error, ALLFOLD_NO_MEMORY, "no memory for %d worker threads", count);
    team->lanes = lanes_of(team);
    team->done = team->next;
    team->failed = team->taking = false;
    team->results = NULL;
    team->full = NULL;
    pthread_mutex_init(&team->lock, NULL);
    pthread_cond_init(&team->moved, NULL);
    if (open_slots(team, count, error) == ALLFOLD_OK && equip(team, workers, count, error) == ALLFOLD_OK) {
        core_log(team->pieces->ctx, "%d threads, each with %d buffers of %zu bytes, work on %" PRIu64 " shards", count, team->lanes, team->pieces->queue_bytes,
                 team->end - team->next);
        work_together(team, workers, count);
        if (team->failed)
            error_set(error, team->error.status, "%s", team->error.text);
    }
    dismiss(workers, count);
    free(team->results);
    free(team->full);
    pthread_cond_destroy(&team->moved);
    pthread_mutex_destroy(&team->lock);
    return error->status;
}
