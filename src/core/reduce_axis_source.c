/* Folds along an axis of a source: a worker finishes the rows that fit a piece and writes their results; other rows come in batches,
   which all threads finish. See pieces.h. */
#include "core/pieces.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { FINISHED = 2048 }; /* results that a thread finishes before it writes them */

struct source_reduction {
    struct pieces p;
    struct fold_call fold;
    const struct axis_sinks *sinks;
    size_t results; /* of the fold */
};

static size_t finished_bytes(const struct source_reduction *r) { return FINISHED * r->results * 2 * sizeof(uint64_t); }

/* Memory for finished results, of those that are wanted. */
static void finished_places(const struct source_reduction *r, char *memory, struct rows_output *outputs)
{
    for (size_t i = 0; i < r->results; i++) {
        char *const own = memory + i * FINISHED * 2 * sizeof(uint64_t);
        outputs[i].values = r->sinks[i].values != NULL ? own : NULL;
        outputs[i].indices = r->sinks[i].indices != NULL ? (int64_t *)(void *)(own + FINISHED * sizeof(uint64_t)) : NULL;
    }
}

static allfold_status write_finished(const struct source_reduction *r, const struct rows_output *outputs, struct range places, struct error *error)
{
    phase_enter(r->p.ctx->comm.progress, PHASE_WRITE);
    for (size_t i = 0; i < r->results; i++) {
        struct sink *const values = r->sinks[i].values, *const indices = r->sinks[i].indices;
        if ((values != NULL && values->write(values, places.first, places.count, outputs[i].values, error) != ALLFOLD_OK)
            || (indices != NULL && indices->write(indices, places.first, places.count, outputs[i].indices, error) != ALLFOLD_OK))
            break;
    }
    return error->status;
}

/* Results of the part. */
struct folded_rows {
    struct range results;
    const unsigned char *partials;
    const uint64_t *counts; /* as a lane's */
};

/* Finishes results and writes them, by way of memory of finished_bytes. */
static allfold_status store(const struct source_reduction *r, const struct folded_rows *folded, char *memory, struct error *error)
{
    const struct range results = folded->results;
    const struct pieces *const p = &r->p;
    struct rows_output outputs[FOLD_RESULTS_MAX];
    uint64_t count, run;
    finished_places(r, memory, outputs);
    for (uint64_t done = 0; done < results.count; done += count) {
        const uint64_t place = pieces_place(p, results.first + done, &run);
        count = u64_min(u64_min(FINISHED, run), results.count - done);
        const struct rows rows = {.call = &r->fold, .type = p->array->type, .count = p->array->length,
                                  .partials = folded->partials + done * p->stride,
                                  .counts = folded->counts != NULL ? folded->counts + done : NULL,
                                  .outputs = outputs, .run = count, .step = count, .whole_first = place, .inner = p->array->inner, .shape = &p->array->shape};
        phase_enter(p->ctx->comm.progress, PHASE_FOLD);
        if (rows_finish(&rows, (struct range){0, count}, error) != ALLFOLD_OK
            || write_finished(r, outputs, (struct range){place, count}, error) != ALLFOLD_OK)
            break;
    }
    return error->status;
}

/* ---- rows that fit a piece */

static allfold_status start_rows(struct worker *worker, struct lane *lane, struct error *error)
{
    const struct pieces *const p = worker->team->pieces;
    return piece_load(p, worker, lane, error) == ALLFOLD_OK ? piece_fold(p, lane, error) : error->status;
}

static allfold_status finish_rows(struct worker *worker, struct lane *lane, struct error *error)
{
    const struct pieces *const p = worker->team->pieces;
    if (piece_partials(p, lane, error) != ALLFOLD_OK)
        return error->status;
    const struct folded_rows folded = {{pieces_first_result(p, lane->number), part_results(&lane->part)}, lane->found, lane->counts};
    return store(worker->team->user, &folded, lane_host(lane, p->more_at), error);
}

/* ---- rows that come in batches */

/* Finishes a batch by all threads. */
static void take_batch(void *user, const struct batch *batch, struct error *error)
{
    const struct source_reduction *const r = user;
    const int threads = batch->mine.count < FINISHED / 8 ? 1 : r->p.ctx->device->threads;
    const uint64_t first = batch->results.first + batch->mine.first;
    char *const memory = malloc((size_t)threads * finished_bytes(r));
    int failed = threads;
    if (memory == NULL)
        error_set(error, ALLFOLD_NO_MEMORY, "no memory for results");
#pragma omp parallel for schedule(static) num_threads(threads) if (threads > 1)
    for (int thread = 0; thread < threads; thread++) {
        struct error own = {0};
        const struct range part = range_part(batch->mine.count, (uint64_t)thread, (uint64_t)threads);
        const struct folded_rows folded = {{first + part.first, part.count}, batch->partials + part.first * r->p.stride,
                                           batch->counts != NULL ? batch->counts + part.first : NULL};
        if (memory != NULL && store(r, &folded, memory + (size_t)thread * finished_bytes(r), &own) != ALLFOLD_OK) {
#pragma omp critical(allfold_axis_stream)
            if (thread < failed) {
                failed = thread;
                *error = own;
            }
        }
    }
    free(memory);
}

allfold_status core_reduce_stream(struct allfold_context *ctx, const struct fold_call *call, struct axis_array *array,
                                  const struct axis_sinks *sinks, struct error *error)
{
    static const struct team_work work = {start_rows, finish_rows, NULL};
    struct source_reduction r = {.p = {.ctx = ctx, .array = array}, .fold = *call, .sinks = sinks, .results = allfold_result_count(call->fold)};
    r.fold.level = call->packing != NULL ? ALLFOLD_LEVEL_EXACT : ctx->level;
    r.p.monoid = fold_monoid(call->fold, r.fold.level);
    monoid_has_room(r.p.monoid, array->length, error);
    if (comm_agree(&ctx->comm, error) != ALLFOLD_OK)
        return error->status;
    pieces_cut(&r.p, array, &(struct axis_room){.widest = allfold_type_bytes(array->type), .fixed = finished_bytes(&r)});
    progress_expect(ctx->comm.progress, part_elements(&r.p.part) * allfold_type_bytes(array->type));
    if (pieces_are_whole(&r.p))
        pieces_run_rows(&r.p, &work, &r, error);
    else
        pieces_fold(&r.p, take_batch, &r, error);
    if (error->shared)
        return error->status;
    source_check(array->source, error);
    return comm_agree(&ctx->comm, error);
}
