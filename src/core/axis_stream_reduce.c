/* Folds along an axis of a source: a worker finishes the rows that fit a piece and writes their results; other rows come in batches,
   which all threads finish. See axis_stream.h. */
#include "core/axis_stream.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { FINISHED = 2048 }; /* results that a thread finishes before it writes them */

struct reduction {
    struct axis_stream s;
    struct fold_call fold;
    const struct axis_sinks *sinks;
    size_t results; /* of the fold */
};

static size_t finished_bytes(const struct reduction *r) { return FINISHED * r->results * 2 * sizeof(uint64_t); }

/* Memory for finished results, of those that are wanted. */
static void finished_places(const struct reduction *r, char *memory, struct rows_output *outputs)
{
    for (size_t i = 0; i < r->results; i++) {
        char *const own = memory + i * FINISHED * 2 * sizeof(uint64_t);
        outputs[i].values = r->sinks[i].values != NULL ? own : NULL;
        outputs[i].indices = r->sinks[i].indices != NULL ? (int64_t *)(void *)(own + FINISHED * sizeof(uint64_t)) : NULL;
    }
}

static allfold_status write_finished(const struct reduction *r, const struct rows_output *outputs, struct range places, struct error *error)
{
    phase_enter(r->s.ctx->comm.progress, PHASE_WRITE);
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
    const uint64_t *counts; /* as a task's */
};

/* Finishes results and writes them, by way of memory of finished_bytes. */
static allfold_status store(const struct reduction *r, const struct folded_rows *folded, char *memory, struct error *error)
{
    const struct range results = folded->results;
    const struct axis_stream *const s = &r->s;
    struct rows_output outputs[FOLD_RESULTS_MAX];
    uint64_t count, run;
    finished_places(r, memory, outputs);
    for (uint64_t done = 0; done < results.count; done += count) {
        const uint64_t place = axis_stream_place(s, results.first + done, &run);
        count = u64_min(u64_min(FINISHED, run), results.count - done);
        const struct rows rows = {.call = &r->fold, .type = s->array->type, .count = s->array->length,
                                  .partials = folded->partials + done * s->stride,
                                  .counts = folded->counts != NULL ? folded->counts + done : NULL,
                                  .outputs = outputs, .run = count, .step = count, .whole_first = place, .inner = s->array->inner, .shape = &s->array->shape};
        phase_enter(s->ctx->comm.progress, PHASE_FOLD);
        if (rows_finish(&rows, (struct range){0, count}, error) != ALLFOLD_OK
            || write_finished(r, outputs, (struct range){place, count}, error) != ALLFOLD_OK)
            break;
    }
    return error->status;
}

/* ---- rows that fit a piece */

static allfold_status start_rows(struct worker *worker, struct lane *lane, struct error *error)
{
    const struct reduction *const r = worker->team->user;
    const struct axis_stream *const s = &r->s;
    const uint64_t unit = lane->window.elements.first;
    struct axis_task task = {.worker = worker, .queue = lane->queue, .piece = axis_stream_piece(s, unit, 0)};
    struct folded_rows folded = {.results = {axis_stream_first(s, unit), task.piece.outer * task.piece.inner}};
    task.ahead = s->stripes == 1 ? lane->window.ahead * s->outer * s->length * s->inner : 0;
    if (axis_stream_load(s, &task, error) != ALLFOLD_OK || axis_stream_fold(s, &task, &folded.partials, error) != ALLFOLD_OK)
        return error->status;
    folded.counts = task.counts;
    return store(r, &folded, (char *)lane->queue->staging + s->more_at, error);
}

static allfold_status finish_rows(struct worker *worker, struct lane *lane, struct error *error)
{
    (void)worker;
    (void)lane;
    return error->status;
}

/* ---- rows that come in batches */

/* Finishes a batch by all threads. */
static void take_batch(void *user, const struct axis_rows *batch, struct error *error)
{
    const struct reduction *const r = user;
    const int threads = batch->mine.count < FINISHED / 8 ? 1 : r->s.ctx->device->threads;
    const uint64_t first = batch->results.first + batch->mine.first;
    char *const memory = malloc((size_t)threads * finished_bytes(r));
    int failed = threads;
    if (memory == NULL)
        error_set(error, ALLFOLD_NO_MEMORY, "no memory for results");
#pragma omp parallel for schedule(static) num_threads(threads) if (threads > 1)
    for (int thread = 0; thread < threads; thread++) {
        struct error own = {0};
        const struct range part = range_part(batch->mine.count, (uint64_t)thread, (uint64_t)threads);
        const struct folded_rows folded = {{first + part.first, part.count}, batch->partials + part.first * r->s.stride,
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
    static const struct team_work work = {start_rows, finish_rows};
    struct reduction r = {.s = {.ctx = ctx, .array = array}, .fold = *call, .sinks = sinks, .results = allfold_result_count(call->fold)};
    r.fold.level = call->packing != NULL ? ALLFOLD_LEVEL_EXACT : ctx->level;
    r.s.monoid = fold_monoid(call->fold, r.fold.level);
    monoid_has_room(r.s.monoid, array->length, error);
    if (comm_agree(&ctx->comm, error) != ALLFOLD_OK)
        return error->status;
    axis_stream_cut(&r.s, &(struct axis_room){.widest = allfold_type_bytes(array->type), .fixed = finished_bytes(&r)});
    progress_expect(ctx->comm.progress, r.s.part.outer * r.s.part.length * r.s.part.inner * allfold_type_bytes(array->type));
    if (axis_stream_is_whole(&r.s))
        axis_stream_run_rows(&r.s, &work, &r, error);
    else
        axis_stream_batches(&r.s, take_batch, &r, error);
    if (error->shared)
        return error->status;
    source_check(array->source, error);
    return comm_agree(&ctx->comm, error);
}
