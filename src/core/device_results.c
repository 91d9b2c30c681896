/* Results of a fold along an axis that the device finishes: see results.h. It writes them to the caller's memory, if that is the device's
   and no other rank needs them, or if the device is the CPU; else to a buffer, in a batch's order, from which they go to the sinks. */
#include "core/results.h"

enum {
    REFUSED_BYTES = 64,      /* the end of the staging buffer, in which the device says that it refuses a result */
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
    const struct part part = pieces_at(p, unit);
    struct finishing f = {.batch = in_place_batch(p, unit), .run = part.inner};
    const struct range results = f.batch.results, all = r->kept.all;
    uint64_t unused;
    f.place = pieces_place(p, results.first, &unused);
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
    uint32_t of_host, *const refused = backend->own_memory ? (uint32_t *)(void *)((char *)queue->staging + IN_PLACE_BYTES - REFUSED_BYTES) : &of_host;
    *refused = 0;
    finish.refused = refused;
    if (in_place_start(p, &f.batch, &(struct wanted){&finish, NULL}, error) != ALLFOLD_OK
        || (f.bytes > STAGED_BYTES && backend->download(queue, queue->buffer, f.bytes, queue->staging, error) != ALLFOLD_OK)
        || backend->wait(queue, error) != ALLFOLD_OK)
        return true;
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
    return r->p->in_window ? in_place_results(r->p) : direct || each == 0 ? UINT64_MAX : (IN_PLACE_BYTES - REFUSED_BYTES) / each;
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
