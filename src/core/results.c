/* Results of a fold along an axis: the host finishes them, and they go to sinks, those of arrays in memory among them. Or the device finishes
   them. See results.h. */
#include "core/pipeline.h"
#include "core/results.h"

#include "comm/vectors.h"

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
                                  .shape = r->view == NULL || p->array->shape.dimensions > 0 ? &p->array->shape : NULL};
        phase_enter(p->ctx->comm.progress, PHASE_FOLD);
        for (uint64_t i = 0; p->array->missing != NULL && rows.counts != NULL && i < count; i++)
            __atomic_fetch_add(p->array->missing, p->array->length - rows.counts[i], __ATOMIC_RELAXED);
        if (rows_finish(&rows, (struct range){0, count}, error) != ALLFOLD_OK
            || write_finished(r, memory, (struct range){place, count}, error) != ALLFOLD_OK)
            break;
    }
    return error->status;
}

/* Finishes some of a batch's results [mine). */
static allfold_status finish_some(const struct reduction *r, const struct batch *batch, struct range some, char *memory, struct error *error)
{
    const struct folded_rows folded = {{batch->results.first + batch->mine.first + some.first, some.count},
                                       batch->partials + some.first * r->p->stride, batch->counts != NULL ? batch->counts + some.first : NULL};
    return finish_rows(r, &folded, memory, error);
}

void finish_batch(const struct reduction *r, const struct batch *batch, struct error *error)
{
    const uint64_t count = batch->mine.count;
    const int threads = count < FINISHED_ALONE ? 1 : r->p->ctx->device->threads;
    char *const memory = malloc((size_t)threads * finished_bytes(r));
    int failed = threads;
    if (memory == NULL) {
        error_set(error, ALLFOLD_NO_MEMORY, "no memory for results");
    } else if (threads == 1) { /* a team of one thread costs more than a few results */
        finish_some(r, batch, (struct range){0, count}, memory, error);
    } else {
#pragma omp parallel for schedule(static) num_threads(threads)
        for (int thread = 0; thread < threads; thread++) {
            struct error own = {0};
            const struct range part = range_part(count, (uint64_t)thread, (uint64_t)threads);
            if (finish_some(r, batch, part, memory + (size_t)thread * finished_bytes(r), &own) != ALLFOLD_OK) {
#pragma omp critical(allfold_finish_batch)
                if (thread < failed) {
                    failed = thread;
                    *error = own;
                }
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

/* ---- sinks in memory: of all results, or of this rank's part */

static allfold_status write_memory(struct sink *sink, uint64_t first, uint64_t count, const void *elements, struct error *error)
{
    const size_t bytes = allfold_type_bytes(sink->type);
    memcpy(((struct memory_sink *)sink)->elements + first * bytes, elements, count * bytes);
    return error->status;
}

struct memory_sink core_memory_sink(const struct allfold_context *ctx, void *elements, uint64_t count, allfold_type type)
{
    if (ctx->comm.size > 1 && elements != NULL)
        memset(elements, 0, count * allfold_type_bytes(type));
    return (struct memory_sink){{.write = write_memory, .type = type}, elements, count};
}

struct memory_sink core_part_sink(void *elements, allfold_type type)
{
    return (struct memory_sink){.sink = {.write = write_memory, .type = type, .memory = elements}, .elements = elements};
}

allfold_status core_unite(struct allfold_context *ctx, const struct memory_sink *sink, struct error *error)
{
    return comm_unite(&ctx->comm, sink->elements, sink->count * allfold_type_bytes(sink->sink.type), error);
}

/* ---- results that the device finishes. It writes them to the caller's memory, if that is the device's and no other rank needs them, or if the
   device is the CPU; else to a buffer, in a batch's order, from which they go to the sinks */

enum {
    REFUSED_BYTES = 64,      /* the end of the staging buffer, in which the device says that it refuses a result, or calls for words */
    STAGED_BYTES = 64 << 10, /* so few bytes of results the device writes to the staging buffer itself */
};

/* Results of no element are the host's to finish. */
static bool device_finishes(const struct reduction *r)
{
    const struct pieces *const p = r->p;
    return pieces_are_exchanged(p) ? p->in_window : p->in_place && !r->view->by_host && p->array->length > 0;
}

/* Whether the device may write the caller's memory. */
static bool device_writes(const struct reduction *r)
{
    const struct pieces *const p = r->p;
    if (!p->ctx->device->backend->own_memory)
        return true;
    bool direct = p->ctx->comm.size == 1 || r->view->input->own_results || pieces_are_exchanged(p);
    for (size_t k = 0; k < r->arrays; k++)
        direct = direct && (r->memory[k].array == NULL || r->memory[k].host == NULL);
    return direct;
}

/* Bytes of a result in all arrays. */
static size_t result_bytes(const struct reduction *r)
{
    size_t bytes = 0;
    for (size_t k = 0; k < r->arrays; k++)
        bytes += r->sinks[k] != NULL ? array_bytes(r, k) : 0;
    return bytes;
}

/* A batch of results that the device finishes. */
struct finishing {
    struct batch batch;
    uint64_t place, run; /* of the first of its results [mine) among all; how many of them have places that follow */
    char *memory;        /* to which the device writes them, before they are copied: the queue's staging or buffer; NULL: the caller's */
    size_t bytes;        /* there */
};

static struct finishing finishing_of(const struct reduction *r, uint64_t unit, bool direct)
{
    const struct pieces *const p = r->p;
    const struct queue *const queue = in_place_queue(p->ctx);
    struct finishing f = {.batch = in_place_batch(p, unit)};
    const struct range results = f.batch.results, all = r->kept.all;
    f.place = f.batch.part.o * p->array->inner + f.batch.part.i;
    f.run = f.batch.part.inner;
    if (p->in_window) { /* of the results of all, those that this rank keeps */
        const uint64_t end = results.first + results.count;
        f.place = u64_min(u64_max(all.first, results.first), end);
        f.run = u64_max(u64_min(all.first + all.count, end), f.place) - f.place;
        f.batch.mine = (struct range){f.place - results.first, f.run};
    }
    if (!direct) {
        f.bytes = f.batch.mine.count * result_bytes(r);
        f.memory = f.bytes <= STAGED_BYTES ? queue->staging : queue->buffer;
    }
    return f;
}

/* In a batch's memory the arrays follow one another: indices first, then values, of which those of 8 bytes are first (counts). So all are
   aligned. The array that is number `at` there. */
static size_t array_at(const struct reduction *r, size_t at) { return at < r->arrays / 2 ? 2 * at + 1 : 2 * at - r->arrays; }

static struct axis_finish finish_to(const struct reduction *r, const struct finishing *f)
{
    const uint64_t count = f->batch.mine.count, run = u64_max(f->memory != NULL ? count : f->run, 1);
    struct axis_finish finish = {.fold = r->fold.fold, .level = r->fold.level, .nan = r->fold.nan, .ddof = r->fold.ddof,
                                 .count = r->p->array->length, .outputs = r->arrays / 2, .run = run, .step = run,
                                 .format = r->fold.result_type != ALLFOLD_TYPE_NONE ? r->fold.result_type : ALLFOLD_F64};
    char *memory = f->memory;
    if (memory == NULL) {
        finish.first = kept_place(&r->kept, f->place);
        finish.step = r->p->in_window ? run : r->kept.columns.count;
    }
    for (size_t at = 0; at < r->arrays; at++) {
        const size_t k = array_at(r, at);
        struct axis_output *const to = &finish.of[k / 2];
        void *const array = memory != NULL && r->sinks[k] != NULL ? memory : r->memory[k].array;
        memory += memory != NULL && r->sinks[k] != NULL ? count * array_bytes(r, k) : 0;
        to->type = array_type(r, k - k % 2);
        if (k % 2 == 0)
            to->values = array;
        else
            to->indices = array;
    }
    return finish;
}

/* Brings results from the staging buffer to their places. */
static void place_results(const struct reduction *r, const struct finishing *f, struct error *error)
{
    const char *results = in_place_queue(r->p->ctx)->staging;
    for (size_t at = 0; at < r->arrays; at++) {
        const size_t k = array_at(r, at), bytes = array_bytes(r, k);
        struct sink *const sink = r->sinks[k];
        for (uint64_t done = 0; sink != NULL && done < f->batch.mine.count; done += f->run)
            sink->write(sink, f->place + done / f->run * r->p->array->inner, f->run, results + done * bytes, error);
        results += sink != NULL ? f->batch.mine.count * bytes : 0;
    }
}

/* A result of those that ranks exchanged has no value: the host says why. */
static void refuse(struct reduction *r, struct finishing *f, struct error *error)
{
    if (open_arrays(r, error) != ALLFOLD_OK || in_place_partials(r->p, &f->batch, error) != ALLFOLD_OK)
        return;
    finish_batch(r, &f->batch, error);
    if (error->status == ALLFOLD_OK)
        error_set(error, ALLFOLD_DEVICE_ERROR, "%s refused a result that has a value", r->p->ctx->device->label);
}

/* False: the device refuses a result of this rank alone. */
static bool reduce_unit(struct reduction *r, uint64_t unit, bool direct, struct error *error)
{
    const struct pieces *const p = r->p;
    const struct backend *const backend = p->ctx->device->backend;
    struct queue *const queue = in_place_queue(p->ctx);
    struct finishing f = finishing_of(r, unit, direct);
    struct axis_finish finish = finish_to(r, &f);
    uint32_t of_host[2], *const refused = backend->own_memory ? (uint32_t *)(void *)((char *)queue->staging + IN_PLACE_BYTES - REFUSED_BYTES) : of_host;
    *refused = 0;
    finish.refused = refused;
    finish.uncertain = refused + 1;
    do {
        *finish.uncertain = 0;
        if (in_place_start(p, &f.batch, &(struct wanted){.finish = &finish}, error) != ALLFOLD_OK
            || (f.bytes > STAGED_BYTES && backend->copy(queue, queue->buffer, queue->staging, f.bytes, error) != ALLFOLD_OK)
            || backend->wait(queue, error) != ALLFOLD_OK)
            return true;
        finish.by_words = __atomic_load_n(finish.uncertain, __ATOMIC_ACQUIRE) != 0;
    } while (finish.by_words);
    if (__atomic_load_n(refused, __ATOMIC_ACQUIRE) != 0) {
        if (p->in_window)
            refuse(r, &f, error);
        return p->in_window;
    }
    if (!direct)
        place_results(r, &f, error);
    return true;
}

/* Results of a batch: all, if the device writes them where they belong. */
static uint64_t results_of(const struct reduction *r, bool direct)
{
    const size_t each = result_bytes(r);
    return r->p->in_window || monoid_has_mark(r->p->monoid) ? in_place_results(r->p) : direct || each == 0 ? UINT64_MAX : (IN_PLACE_BYTES - REFUSED_BYTES) / each;
}

bool device_reduce(struct reduction *r, struct error *error)
{
    struct pieces *const p = r->p;
    const bool direct = device_writes(r);
    if (!device_finishes(r))
        return false;
    if (!direct)
        open_arrays(r, error);
    pieces_cut_in_place(p, results_of(r, direct));
    for (uint64_t unit = 0; unit < p->units && !error->shared && (p->in_window || error->status == ALLFOLD_OK); unit++)
        if (!reduce_unit(r, unit, direct, error))
            return false;
    return true;
}
