/* Folds a rank's part piece by piece: see pieces.h. Partials of pieces with whole rows are finished where they are found. Others are combined
   in order, first those of a shard by its worker, then the shards' in the partials of a batch. A flat array is a batch of one row. */
#include "core/pieces.h"

#include "comm/vectors.h"
#include "fold/targets.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { BATCH_BYTES = 64 << 20 }; /* of a batch's partials */

/* ---- a piece */

/* Whether the folds' indices count the elements that were read, and become those of the array afterwards: its order is not the source's, or
   elements are left out. */
static bool maps_indices(const struct pieces *p, const struct lane *lane)
{
    return monoid_facts[p->monoid].indexed && (lane->kept != NULL || (p->flat && pieces_are_chunked(p)));
}

static void map_indices(const struct pieces *p, const struct lane *lane, struct partial *partial)
{
    struct source *const source = p->array->source;
    uint64_t *indices[MONOID_INDICES_MAX], run;
    const int count = monoid_indices(p->monoid, p->array->type, partial, indices);
    for (int i = 0; i < count; i++) {
        if (*indices[i] == ALLFOLD_NO_INDEX)
            continue;
        const uint64_t position = lane->part.l + (lane->kept != NULL ? encoding_select(lane->kept, *indices[i]) : *indices[i]);
        *indices[i] = source->chunking != NULL ? chunking_index(source->chunking, position, &run) : position - p->origin;
    }
}

allfold_status piece_fold(const struct pieces *p, struct lane *lane, struct error *error)
{
    const struct part *const part = &lane->part;
    const struct backend *const backend = lane->queue->device->backend;
    const uint64_t first = maps_indices(p, lane) ? 0 : part->l - p->origin;
    phase_enter(p->ctx->comm.progress, PHASE_FOLD);
    if (part_results(part) == 1 && !p->array->in_place && lane->box.axis_stride == 1 && !monoid_has_mark(p->monoid)
        && p->array->weights == NULL) {
        const struct work work = {p->monoid, p->array->type, lane->x, lane->count, first, lane->y, p->rule};
        lane->found = lane->queue->partial;
        return backend->fold(lane->queue, &work, error);
    }
    const struct axis_work work = {.monoid = p->monoid, .type = p->array->type, .x = lane->x, .box = lane->box, .weights = lane->weights, .first = first,
                                   .partials = lane_device(lane, p->partials_at), .bytes = p->more_at - p->partials_at};
    lane->found = lane_host(lane, p->partials_at);
    if (backend->fold_axis(lane->queue, &work, error) != ALLFOLD_OK)
        return error->status;
    return backend->copy(lane->queue, work.partials, lane_host(lane, p->partials_at), part_results(part) * p->stride, error);
}

/* Indices along a rank's own part of the axis become those along the whole, if the ranks have it in turns. Both have one order. */
static void spread_indices(const struct pieces *p, const struct lane *lane, unsigned char *partials)
{
    const uint64_t turns = p->array->turns, own = turns > 1 ? p->part.length / turns : 0;
    uint64_t *indices[MONOID_INDICES_MAX];
    for (uint64_t r = 0; own > 0 && monoid_facts[p->monoid].indexed && r < part_results(&lane->part); r++) {
        const int count = monoid_indices(p->monoid, p->array->type, (struct partial *)(void *)(partials + r * p->stride), indices);
        for (int i = 0; i < count; i++) {
            const uint64_t at = *indices[i] - p->part.l;
            if (*indices[i] != ALLFOLD_NO_INDEX)
                *indices[i] = at / own * (p->array->length / turns) + p->part.l / turns + at % own;
        }
    }
}

/* Gives a piece's partials in host memory the marks of their targets. */
static void targets_mark(const struct pieces *p, const struct part *part, unsigned char *partials)
{
    const struct axis_array *const array = p->array;
    const struct part *const all = &p->part;
    const struct axis_targets targets = {row_array_here(&p->targets.of), p->targets.ignore, array->length};
    const struct box box = {all->outer, all->length, all->inner, array->outer_stride, array->axis_stride};
    for (uint64_t r = 0; targets.of != NULL && r < part_results(part); r++) {
        const uint64_t row = (part->o - all->o + r / part->inner) * all->inner + part->i - all->i + r % part->inner;
        partial_take_mark(p->monoid, partials + r * p->stride, target_mark(&targets, row, array->memory, array->type, &box, all->l));
    }
}

allfold_status piece_partials(const struct pieces *p, struct lane *lane, struct error *error)
{
    unsigned char *const found = (unsigned char *)(uintptr_t)lane->found;
    phase_enter(p->ctx->comm.progress, PHASE_FOLD);
    if (lane->queue->device->backend->wait(lane->queue, error) != ALLFOLD_OK || missing_mend(p, lane, found, error) != ALLFOLD_OK)
        return error->status;
    if (maps_indices(p, lane))
        map_indices(p, lane, (struct partial *)(void *)found);
    spread_indices(p, lane, found);
    targets_mark(p, &lane->part, found);
    if (p->rule != NULL)
        missing_count_alone(p, lane, (struct partial *)(void *)found);
    return ALLFOLD_OK;
}

/* ---- pieces with whole rows */

/* The units of the part that are done; those that are done before it do not count. */
static uint64_t units_done(const struct pieces *p)
{
    const uint64_t done = p->array->progress->done;
    return u64_min(done - u64_min(done, p->before), p->units);
}

static allfold_status take_rows(struct team *team, uint64_t shard, struct error *error)
{
    struct resumable *const progress = team->pieces->array->progress;
    progress->done = team->pieces->before + u64_min((shard + 1) * team->pieces->shard, team->run);
    return progress_is_due(progress) ? progress_save(team->pieces->ctx, progress, error) : ALLFOLD_OK;
}

static uint64_t part_bytes(const struct pieces *p, uint64_t units)
{
    return pieces_first_result(p, units) * p->part.length * allfold_type_bytes(p->array->type);
}

static void tell_units(const struct pieces *p, uint64_t units)
{
    progress_tell(p->ctx, "units", units, p->units, part_bytes(p, units));
}

allfold_status pieces_run_rows(struct pieces *p, const struct team_work *work, void *user, struct error *error)
{
    struct resumable *const progress = p->array->progress;
    const struct team_work kept = {work->start, work->finish, progress != NULL ? take_rows : NULL};
    struct team team = pieces_team(p, (struct range){0, p->units}, 0, &kept, user);
    if (progress != NULL) {
        if ((p->last && progress->done > p->before + p->units) || progress->state_bytes > 0)
            return progress_refuse(error);
        const uint64_t done = units_done(p);
        team.next = done == p->units ? team.end : done / p->shard;
        tell_units(p, done);
    }
    if ((team.next < team.end || p->slab.shared > 0) && slab_fill(p, 0, error) != ALLFOLD_OK)
        return error->status;
    if (team_run(&team, error) == ALLFOLD_OK && progress != NULL && (p->last || team.next < team.end))
        progress_save(p->ctx, progress, error);
    return progress_check(p->ctx->comm.progress, error);
}

/* ---- batches */

struct batches {
    struct pieces *p;
    struct batch batch;
    uint64_t most;            /* units of a batch */
    uint64_t shards;          /* of the batch that are in its partials, in order */
    unsigned char *partials;  /* of the batch, of this rank's part; in place the context's, or its queue's */
    uint64_t *counts;
    unsigned char *exchanged; /* what this rank gets of all */
    uint64_t *exchanged_counts;
    struct range *shares;
};

/* Some results, of which counts is NULL if no elements are left out. */
struct results {
    unsigned char *partials;
    uint64_t *counts;
};

/* Those of a batch, from result `first` of the part on. */
static struct results of_batch(const struct batches *f, uint64_t first)
{
    const uint64_t at = first - f->batch.results.first;
    return (struct results){f->partials + at * f->p->stride, f->counts != NULL ? f->counts + at : NULL};
}

static struct results of_shard(const struct team *team, uint64_t shard)
{
    const struct pieces *const p = team->pieces;
    unsigned char *const result = team_result(team, shard);
    return (struct results){result, p->array->omits ? (uint64_t *)(void *)(result + p->outer * p->inner * p->stride) : NULL};
}

/* Appends `from` to results of the same rows, or begins them. */
static void append(const struct pieces *p, const struct results *to, const struct results *from, uint64_t count, bool begins)
{
    if (begins)
        memcpy(to->partials, from->partials, count * p->stride);
    for (uint64_t r = 0; !begins && r < count; r++)
        monoid_combine(p->monoid, p->array->type, (struct partial *)(to->partials + r * p->stride),
                       (const struct partial *)(from->partials + r * p->stride));
    for (uint64_t r = 0; to->counts != NULL && r < count; r++)
        to->counts[r] = (begins ? 0 : to->counts[r]) + from->counts[r];
}

allfold_status piece_start(struct worker *worker, struct lane *lane, struct error *error)
{
    const struct pieces *const p = worker->team->pieces;
    return piece_load(p, worker, lane, error) == ALLFOLD_OK ? piece_fold(p, lane, error) : error->status;
}

/* Whether no two pieces of a round have the same rows: the results of each then go to their places in the batch at once. */
static bool places_are_own(const struct pieces *p) { return p->segments == 1 || p->slab.length > 0; }

static allfold_status finish_piece(struct worker *worker, struct lane *lane, struct error *error)
{
    const struct team *const team = worker->team;
    const struct pieces *const p = team->pieces;
    if (piece_partials(p, lane, error) != ALLFOLD_OK)
        return error->status;
    const struct results found = {(unsigned char *)(uintptr_t)lane->found, (uint64_t *)(uintptr_t)lane->counts};
    const struct results to = places_are_own(p) ? of_batch(team->user, pieces_first_result(p, lane->number / p->segments)) : of_shard(team, lane->shard);
    append(p, &to, &found, part_results(&lane->part), places_are_own(p) ? lane->number % p->segments == 0 : lane->first);
    return ALLFOLD_OK;
}

/* Units of the batch of which the first `shards` shards have something. */
static uint64_t units_of(const struct batches *f, const struct team *team, uint64_t shards)
{
    const uint64_t each = team_shards(team, 1);
    return places_are_own(f->p) ? u64_min(shards * f->p->shard, f->batch.units) : shards / each + (shards % each != 0);
}

/* Progress within a batch: how many shards, and their results. */
static size_t state_bytes(const struct batches *f, uint64_t results)
{
    return sizeof(uint64_t) + results * (f->p->stride + (f->counts != NULL ? sizeof *f->counts : 0));
}

static uint64_t results_of(const struct batches *f, const struct team *team, uint64_t shards)
{
    return pieces_first_result(f->p, f->batch.unit + units_of(f, team, shards)) - f->batch.results.first;
}

static allfold_status save(const struct batches *f, const struct team *team, struct error *error)
{
    struct resumable *const progress = f->p->array->progress;
    const uint64_t results = results_of(f, team, f->shards);
    const size_t bytes = f->shards > 0 ? state_bytes(f, results) : 0;
    unsigned char *const state = malloc(bytes + 1);
    if (state == NULL)
        return error_set(error, ALLFOLD_NO_MEMORY, "no memory for progress of %zu bytes", bytes);
    if (bytes > 0) {
        memcpy(state, &f->shards, sizeof f->shards);
        memcpy(state + sizeof f->shards, f->partials, results * f->p->stride);
        if (f->counts != NULL)
            memcpy(state + sizeof f->shards + results * f->p->stride, f->counts, results * sizeof *f->counts);
    }
    progress->done = f->p->before + f->batch.unit;
    progress->state = state;
    progress->state_bytes = bytes;
    progress_save(f->p->ctx, progress, error);
    progress_free_state(progress);
    return error->status;
}

/* Begins a batch with what the progress has of it, or with nothing. */
static allfold_status restore(struct batches *f, const struct team *team, struct error *error)
{
    struct resumable *const progress = f->p->array->progress;
    const unsigned char *const state = progress != NULL ? progress->state : NULL;
    f->shards = 0;
    if (state == NULL || progress->state_bytes == 0)
        return error->status;
    if (progress->state_bytes >= sizeof f->shards)
        memcpy(&f->shards, state, sizeof f->shards);
    const uint64_t end = pieces_rounds(f->p) * team->end, results = f->shards <= end ? results_of(f, team, f->shards) : 0;
    if (f->shards == 0 || f->shards > end || progress->state_bytes != state_bytes(f, results))
        return progress_refuse(error);
    memcpy(f->partials, state + sizeof f->shards, results * f->p->stride);
    if (f->counts != NULL)
        memcpy(f->counts, state + sizeof f->shards + results * f->p->stride, results * sizeof *f->counts);
    progress_free_state(progress);
    const uint64_t bytes = team_pieces(team, f->shards) * f->p->outer * f->p->length * f->p->inner * allfold_type_bytes(f->p->array->type);
    progress_tell(f->p->ctx, "shards", f->shards, end, bytes);
    return error->status;
}

/* Whether the results that would be saved have the shards that are counted, and no others. In a later round than the first, threads that are
   ahead have added to results that are saved, too, until all are through. */
static bool results_are_counted(const struct batches *f, const struct team *team)
{
    return !places_are_own(f->p) || f->shards <= team->end || f->shards % team->end == 0;
}

static allfold_status take_shard(struct team *team, uint64_t shard, struct error *error)
{
    struct batches *const f = team->user;
    const struct pieces *const p = f->p;
    const uint64_t each = team_shards(team, 1), unit = f->batch.unit + shard / each;
    if (!places_are_own(p)) {
        const uint64_t first = pieces_first_result(p, unit);
        const struct results to = of_batch(f, first), from = of_shard(team, shard);
        append(p, &to, &from, pieces_first_result(p, unit + 1) - first, shard % each == 0);
    }
    f->shards++;
    return p->array->progress != NULL && results_are_counted(f, team) && progress_is_due(p->array->progress) ? save(f, team, error) : ALLFOLD_OK;
}

/* A kernel is loaded when it first starts, which takes longer than many pieces do: a thread starts it without elements while queues are opened. */
static void *load_kernel(void *user)
{
    const struct pieces *const p = user;
    const struct backend *const backend = p->ctx->device->backend;
    const struct work work = {.monoid = p->monoid, .type = p->array->type, .rule = p->rule};
    struct error ignored = {0}; /* whoever folds elements meets it again */
    if (backend->fold(p->ctx->queue, &work, &ignored) == ALLFOLD_OK)
        backend->wait(p->ctx->queue, &ignored);
    return NULL;
}

/* Folds the pieces of a round. A run that is asked to stop saves what it has, which is an error then. */
static allfold_status fold_round(struct batches *f, uint64_t round, struct error *error)
{
    static const struct team_work work = {piece_start, finish_piece, take_shard};
    struct pieces *const p = f->p;
    struct team team = pieces_team(p, (struct range){f->batch.unit, f->batch.units}, round, &work, f);
    const uint64_t before = round * team.end, end = before + team.end;
    team.result_bytes = places_are_own(p) ? 0 : p->outer * p->inner * (p->stride + (p->array->omits ? sizeof *f->counts : 0));
    if (round == 0 && restore(f, &team, error) != ALLFOLD_OK)
        return error->status;
    if (f->shards >= end || slab_fill(p, round, error) != ALLFOLD_OK)
        return error->status;
    team.next = f->shards - before;
    pthread_t loading;
    const bool loads = p->flat && p->ctx->device->backend->own_memory && p->queue == NULL && p->ctx->queue_count == 0
                       && pthread_create(&loading, NULL, load_kernel, p) == 0;
    team_run(&team, error);
    if (loads)
        pthread_join(loading, NULL);
    if (error->status != ALLFOLD_OK || f->shards == end)
        return error->status;
    if (p->array->progress != NULL && save(f, &team, error) != ALLFOLD_OK)
        return error->status;
    return progress_check(p->ctx->comm.progress, error);
}

static allfold_status fold_batch(struct batches *f, struct error *error)
{
    struct batch *const batch = &f->batch;
    const uint64_t first = pieces_first_result(f->p, batch->unit), count = pieces_first_result(f->p, batch->unit + batch->units) - first;
    batch->results = (struct range){first, count};
    batch->mine = (struct range){0, count};
    batch->partials = f->partials;
    batch->counts = f->counts;
    for (uint64_t round = 0; round < pieces_rounds(f->p) && error->status == ALLFOLD_OK; round++)
        fold_round(f, round, error);
    return error->status;
}

/* The same by one call of the backend. */
static void fold_in_place(struct batches *f, struct error *error)
{
    f->batch = in_place_batch(f->p, f->batch.unit);
    f->batch.shares = f->shares;
    if (error->status == ALLFOLD_OK)
        in_place_partials(f->p, &f->batch, error);
    f->partials = f->batch.partials;
}

/* Gives each rank the partials of its share of the batch. Agrees on *error. Collective. */
static allfold_status exchange(struct batches *f, struct error *error)
{
    struct comm *const comm = &f->p->ctx->comm;
    for (int rank = 0; rank < comm->size; rank++)
        f->shares[rank] = range_part(f->batch.results.count, (uint64_t)rank, (uint64_t)comm->size);
    const struct comm_partials partials = {f->p->monoid, f->p->array->type, f->partials, f->shares};
    f->batch.mine = f->shares[comm->rank];
    f->batch.partials = f->exchanged;
    f->batch.counts = f->exchanged_counts;
    if (comm_combine_partials(comm, &partials, f->exchanged, error) == ALLFOLD_OK && f->counts != NULL)
        comm_add_counts(comm, f->counts, f->shares, f->exchanged_counts, error);
    return error->status;
}

static size_t round_up(uint64_t bytes) { return (size_t)((bytes + 63) / 64 * 64); }

/* Units of a batch: one in place; all, if their partials stay from slab to slab; else as many as there is room for. */
static uint64_t batch_units(const struct pieces *p)
{
    if (p->in_place)
        return 1;
    const bool stay = p->slab.length > 0 && p->slab.length < p->longest;
    return u64_max(1, stay ? p->units : u64_min(p->units, BATCH_BYTES / (p->outer * p->inner * p->stride)));
}

/* Sizes that are the same on all ranks, if they exchange anything, and memory. */
static allfold_status open_memory(struct batches *f, struct error *error)
{
    const struct pieces *const p = f->p;
    const uint64_t unit = p->outer * p->inner, size = (uint64_t)p->ctx->comm.size;
    f->most = batch_units(p);
    const uint64_t share = range_part(f->most * unit, 0, size).count;
    const bool exchanged = pieces_are_exchanged(p), omits = p->array->omits;
    f->partials = p->in_place ? p->ctx->axis_memory : aligned_alloc(64, round_up(f->most * unit * p->stride));
    f->counts = omits ? malloc(f->most * unit * sizeof *f->counts) : NULL;
    if (exchanged) {
        f->batch.shares = f->shares = malloc(size * sizeof *f->shares);
        f->exchanged = aligned_alloc(64, round_up(size * share * p->stride));
        f->exchanged_counts = omits ? malloc(u64_max(share, 1) * sizeof *f->exchanged_counts) : NULL;
    }
    if (f->partials == NULL || (omits && f->counts == NULL)
        || (exchanged && (f->shares == NULL || f->exchanged == NULL || (omits && f->exchanged_counts == NULL))))
        error_set(error, ALLFOLD_NO_MEMORY, "no memory for the partials of %" PRIu64 " rows", f->most * unit);
    return exchanged ? comm_agree(&p->ctx->comm, error) : error->status;
}

static void close_memory(struct batches *f)
{
    if (!f->p->in_place)
        free(f->partials);
    free(f->counts);
    free(f->exchanged);
    free(f->exchanged_counts);
    free(f->shares);
}

/* The unit from which this rank goes on. A rank that has not saved that others went on from a batch has finished it as they have: see
   end_batch. */
static uint64_t first_unit(const struct batches *f)
{
    struct resumable *const progress = f->p->array->progress;
    if (progress == NULL)
        return 0;
    if (pieces_are_exchanged(f->p) && progress->furthest > progress->done) {
        progress_free_state(progress);
        progress->done = progress->furthest;
    }
    const uint64_t done = units_done(f->p);
    tell_units(f->p, done);
    return done;
}

/* If ranks have parts of the same rows, all make their results durable before any saves that it has gone on. */
static void end_batch(struct batches *f, struct error *error)
{
    struct allfold_context *const ctx = f->p->ctx;
    struct resumable *const progress = f->p->array->progress;
    f->batch.unit += f->batch.units;
    if (progress == NULL)
        return;
    progress->done = f->p->before + f->batch.unit;
    progress->state_bytes = 0;
    if (pieces_are_exchanged(f->p) && !error->shared) {
        progress_sync(ctx, progress, error);
        comm_agree(&ctx->comm, error);
    }
    if (f->batch.unit >= f->p->units && f->p->last && error->status == ALLFOLD_OK)
        progress_save(ctx, progress, error);
}

void pieces_fold(struct pieces *p, batch_take *take, void *user, struct error *error)
{
    struct batches f = {.p = p};
    const bool exchanged = pieces_are_exchanged(p);
    open_memory(&f, error);
    f.batch.unit = first_unit(&f);
    while (f.batch.unit < p->units && !error->shared && (exchanged || error->status == ALLFOLD_OK)) {
        f.batch.units = u64_min(f.most, p->units - f.batch.unit);
        if (p->in_place)
            fold_in_place(&f, error);
        else
            fold_batch(&f, error);
        if ((exchanged ? exchange(&f, error) : error->status) == ALLFOLD_OK)
            take(user, &f.batch, error);
        end_batch(&f, error);
    }
    close_memory(&f);
}

void pieces_each_group(struct pieces *p, void (*fold)(struct pieces *p, void *user, struct error *error), void *user, struct error *error)
{
    const bool exchanged = pieces_are_exchanged(p) || p->slab.shared > 0;
    for (uint64_t number = 0; !error->shared && (exchanged || error->status == ALLFOLD_OK) && pieces_take_group(p, number); number++)
        fold(p, user, error);
    slab_close(&p->slab);
}

allfold_status pieces_fold_row(struct pieces *p, struct partial *partial, uint64_t *count, struct error *error)
{
    struct batches f = {.p = p, .batch = {.units = 1}};
    *count = 0;
    if (open_memory(&f, error) == ALLFOLD_OK && fold_batch(&f, error) == ALLFOLD_OK) {
        memcpy(partial, f.partials, monoid_bytes(p->monoid, p->array->type));
        *count = f.counts[0];
    }
    close_memory(&f);
    return error->status;
}
