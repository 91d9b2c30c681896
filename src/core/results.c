/* Results of a fold along an axis: the host finishes them, and they go to sinks, those of arrays in memory among them. See results.h. */
#include "core/pipeline.h"
#include "core/results.h"

#include <stdlib.h>
#include <string.h>

enum {
    FINISHED = 2048, /* results that a thread finishes before it writes them */
    FINISHED_ALONE = 256 /* fewer are finished without waking threads */
};

size_t finished_bytes(const struct reduction *r) { return FINISHED * r->arrays * sizeof(uint64_t); }

/* Memory for finished results, of those that are wanted. */
static void finished_places(const struct reduction *r, char *memory, struct rows_output *outputs)
{
    for (size_t k = 0; k < r->arrays; k++) {
        char *const own = r->sinks[k] != NULL ? memory + k * FINISHED * sizeof(uint64_t) : NULL;
        if (k % 2 == 0)
            outputs[k / 2].values = own;
        else
            outputs[k / 2].indices = (int64_t *)(void *)own;
    }
}

static allfold_status write_finished(const struct reduction *r, const char *memory, struct range places, struct error *error)
{
    phase_enter(r->p->ctx->comm.progress, PHASE_WRITE);
    for (size_t k = 0; k < r->arrays && error->status == ALLFOLD_OK; k++)
        if (r->sinks[k] != NULL)
            r->sinks[k]->write(r->sinks[k], places.first, places.count, memory + k * FINISHED * sizeof(uint64_t), error);
    return error->status;
}

allfold_status finish_rows(const struct reduction *r, const struct folded_rows *folded, char *memory, struct error *error)
{
    const struct range results = folded->results;
    const struct pieces *const p = r->p;
    struct rows_output outputs[FOLD_RESULTS_MAX];
    uint64_t count, run;
    finished_places(r, memory, outputs);
    for (uint64_t done = 0; done < results.count; done += count) {
        const uint64_t place = pieces_place(p, results.first + done, &run);
        count = u64_min(u64_min(FINISHED, run), results.count - done);
        const struct rows rows = {.call = &r->fold, .type = p->array->type, .count = p->array->length,
                                  .partials = folded->partials + done * p->stride,
                                  .counts = folded->counts != NULL ? folded->counts + done : NULL, .outputs = outputs, .run = count,
                                  .step = count, .whole_first = place, .inner = p->array->inner,
                                  .shape = r->view == NULL ? &p->array->shape : NULL};
        phase_enter(p->ctx->comm.progress, PHASE_FOLD);
        if (rows_finish(&rows, (struct range){0, count}, error) != ALLFOLD_OK
            || write_finished(r, memory, (struct range){place, count}, error) != ALLFOLD_OK)
            break;
    }
    return error->status;
}

void finish_batch(const struct reduction *r, const struct batch *batch, struct error *error)
{
    const int threads = batch->mine.count < FINISHED_ALONE ? 1 : r->p->ctx->device->threads;
    const uint64_t first = batch->results.first + batch->mine.first;
    char *const memory = malloc((size_t)threads * finished_bytes(r));
    int failed = threads;
    if (memory == NULL)
        error_set(error, ALLFOLD_NO_MEMORY, "no memory for results");
#pragma omp parallel for schedule(static) num_threads(threads) if (threads > 1)
    for (int thread = 0; thread < threads; thread++) {
        struct error own = {0};
        const struct range part = range_part(batch->mine.count, (uint64_t)thread, (uint64_t)threads);
        const struct folded_rows folded = {{first + part.first, part.count}, batch->partials + part.first * r->p->stride,
                                           batch->counts != NULL ? batch->counts + part.first : NULL};
        if (memory != NULL && finish_rows(r, &folded, memory + (size_t)thread * finished_bytes(r), &own) != ALLFOLD_OK) {
#pragma omp critical(allfold_finish_batch)
            if (thread < failed) {
                failed = thread;
                *error = own;
            }
        }
    }
    free(memory);
}

/* ---- results in memory */

static allfold_status keep(struct sink *sink, uint64_t first, uint64_t count, const void *elements, struct error *error)
{
    const struct array_sink *const to = (const struct array_sink *)sink;
    const struct range all = to->kept->all;
    const size_t bytes = allfold_type_bytes(sink->type);
    const uint64_t from = u64_max(first, all.first), end = u64_min(first + count, all.first + all.count);
    (void)error;
    if (from < end)
        memcpy(to->host + kept_place(to->kept, from) * bytes, (const char *)elements + (from - first) * bytes, (end - from) * bytes);
    return ALLFOLD_OK;
}

struct array_sink array_sink(const struct reduction *r, size_t k, const struct kept_rows *kept, void *array)
{
    return (struct array_sink){.sink = {.write = keep, .type = array_type(r, k)}, .kept = kept, .host = array, .array = array};
}

void take_arrays(struct reduction *r, void *const outputs[RESULT_ARRAYS_MAX], struct error *error)
{
    struct allfold_context *const ctx = r->p->ctx;
    const uint64_t count = kept_count(&r->kept);
    for (size_t k = 0; k < r->arrays; k++) {
        struct device_data data = {0};
        r->memory[k] = array_sink(r, k, &r->kept, outputs[k]);
        r->sinks[k] = outputs[k] != NULL ? &r->memory[k].sink : NULL;
        if (ctx->device->backend->own_memory && error->status == ALLFOLD_OK
            && locate_memory(ctx, outputs[k], count, &data, error) == ALLFOLD_OK && data.memory != NULL)
            r->memory[k].host = NULL;
    }
}

allfold_status open_arrays(struct reduction *r, struct error *error)
{
    const uint64_t count = kept_count(&r->kept);
    for (size_t k = 0; k < r->arrays && error->status == ALLFOLD_OK; k++) {
        struct array_sink *const array = &r->memory[k];
        if (array->array != NULL && array->host == NULL && (array->host = malloc(count * array_bytes(r, k))) == NULL)
            error_set(error, ALLFOLD_NO_MEMORY, "no memory for %zu bytes of results", (size_t)count * array_bytes(r, k));
    }
    return error->status;
}

void close_arrays(struct reduction *r, struct error *error)
{
    for (size_t k = 0; k < r->arrays; k++) {
        const struct array_sink *const array = &r->memory[k];
        if (array->host == array->array || array->host == NULL)
            continue;
        if (error->status == ALLFOLD_OK)
            in_place_upload(r->p->ctx, array->host, array->array, kept_count(&r->kept) * array_bytes(r, k), error);
        free(array->host);
    }
}
