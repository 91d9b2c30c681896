/* Folds several arrays, each to one value, or all joined to one. Each rank folds its parts, those that its device uses where they lie together;
   then one exchange takes all partials. Called by api_reduce.c. */
#include "core/pipeline.h"


#include <stdlib.h>
#include <string.h>

enum { EARLY_LEAST = 32 }; /* arrays of which the device is given some before the others */

struct many_fold {
    struct allfold_context *ctx;
    const struct many_job *job;
    struct fold_call call;
    enum monoid monoid;        /* of array 0 */
    struct comm_part *parts;   /* of each array; the partials lie behind them */
    struct fold_item *items;   /* of what the device folds where it lies */
    uint64_t item_count, items_started;
    allfold_result *results;   /* the caller's once all are known */
};

static enum monoid monoid_of(const struct many_fold *m, uint64_t i) { return fold_monoid(m->call.fold, m->call.level, m->job->arrays[i].type); }

/* The partials of no elements. The number of arrays is part of the call: ranks with others must not exchange. */
static allfold_status open_parts(struct many_fold *m, struct error *error)
{
    const struct many_job *const job = m->job;
    const uint64_t call = (fold_call_number(CALL_MANY, &m->call) ^ (job->count << 1 | job->total)) * UINT64_C(0x9e3779b97f4a7c15) >> 1;
    size_t bytes = 0;
    for (uint64_t i = 0; i < job->count; i++)
        bytes += partial_stride(monoid_of(m, i), job->arrays[i].type);
    m->parts = aligned_alloc(16, partial_bytes_aligned(job->count * sizeof *m->parts) + bytes);
    m->items = malloc(job->count * sizeof *m->items);
    m->results = malloc(job->count * sizeof *m->results);
    if (m->parts == NULL || m->items == NULL || m->results == NULL)
        return error_set(error, ALLFOLD_NO_MEMORY, "no memory for the partials of %zu arrays", (size_t)job->count);
    unsigned char *partial = (unsigned char *)m->parts + partial_bytes_aligned(job->count * sizeof *m->parts);
    for (uint64_t i = 0; i < job->count; i++) {
        const enum monoid monoid = monoid_of(m, i);
        const allfold_type type = job->arrays[i].type;
        m->parts[i] = (struct comm_part){.call = call, .monoid = monoid, .type = type, .count = job->arrays[i].count, .partial = (struct partial *)partial};
        monoid_identity(monoid, type, m->parts[i].partial);
        partial += partial_stride(monoid, type);
    }
    return ALLFOLD_OK;
}

/* An array that streams to the device. */
static allfold_status fold_streamed(const struct many_fold *m, const struct comm_part *part, const allfold_array *array, struct error *error)
{
    struct source source = m->job->source_of(array, error);
    const struct job job = {.type = array->type, .source = &source, .range = {0, array->count}, .stream = m->job->stream};
    const struct device_data none = {0};
    struct partial partial;
    struct part_job own = {part->monoid, &job, &none, &partial, 0};
    monoid_identity(part->monoid, array->type, &partial);
    fold_part(m->ctx, &own, error);
    memcpy(part->partial, &partial, monoid_bytes(part->monoid, array->type));
    return error->status;
}

/* Folds an array, or leaves it to fold_items. */
static allfold_status take_array(struct many_fold *m, uint64_t i, struct error *error)
{
    const allfold_array *const array = &m->job->arrays[i];
    const struct comm_part *const part = &m->parts[i];
    struct device_data x;
    if (monoid_has_room(part->monoid, array->count, error) != ALLFOLD_OK
        || locate_memory(m->ctx, array->data, array->count, &x, error) != ALLFOLD_OK || array->count == 0)
        return error->status;
    if (x.elements == 0)
        return fold_streamed(m, part, array, error);
    m->items[m->item_count++] = (struct fold_item){{part->monoid, array->type, array->data, array->count, 0, NULL, NULL}, part->partial};
    return ALLFOLD_OK;
}

/* Has the items since the last call folded. */
static allfold_status fold_items(struct many_fold *m, bool last, struct error *error)
{
    const struct backend *const backend = m->ctx->device->backend;
    struct queue *const queue = m->ctx->queue;
    const uint64_t first = m->items_started;
    uint64_t bytes = 0;
    if (m->item_count == 0 || (first == m->item_count && !last))
        return ALLFOLD_OK;
    phase_enter(m->ctx->comm.progress, PHASE_FOLD);
    m->items_started = m->item_count;
    if ((first == 0 && backend->enter(queue, m->job->stream, error) != ALLFOLD_OK)
        || backend->fold_many(queue, m->items + first, m->item_count - first, last, error) != ALLFOLD_OK)
        return error->status;
    for (uint64_t i = first; i < m->item_count; i++)
        bytes += m->items[i].work.n * allfold_type_bytes(m->items[i].work.type);
    atomic_fetch_add(&m->ctx->comm.progress->done, bytes);
    return ALLFOLD_OK;
}

/* A device begins when some arrays have been looked at, as that takes as long as folding them. */
static allfold_status fold_arrays(struct many_fold *m, struct error *error)
{
    const uint64_t count = m->job->count, early = m->ctx->device->backend->own_memory && count >= EARLY_LEAST ? count / 8 : 0;
    for (uint64_t i = 0; i < count && error->status == ALLFOLD_OK; i++) {
        struct error own = {0};
        if (take_array(m, i, &own) != ALLFOLD_OK)
            error_within(error, &own, "array %zu of %zu", (size_t)i, (size_t)count);
        else if (early > 0 && (i + 1 == early || i + 1 == 3 * early))
            fold_items(m, false, error);
    }
    if (error->status == ALLFOLD_OK)
        fold_items(m, true, error);
    if (error->status != ALLFOLD_OK && m->item_count > 0)
        drain(m->ctx);
    return error->status;
}

/* Part 0 becomes that of all arrays, one behind the other. */
static void join(const struct many_fold *m)
{
    struct comm_part *const all = &m->parts[0];
    for (const struct comm_part *next = all + 1; next < all + m->job->count; next++) {
        monoid_append(all->monoid, all->type, all->partial, all->count, next->partial);
        all->count += next->count;
    }
}

/* Partials without indices are joined before they are exchanged; others when the arrays' lengths are known. */
static allfold_status exchange(const struct many_fold *m, struct error *error)
{
    const bool early = m->job->total && !monoid_facts[m->monoid].indexed;
    if (early && error->status == ALLFOLD_OK)
        join(m);
    if (comm_combine_many(&m->ctx->comm, m->parts, early ? 1 : m->job->count, error) == ALLFOLD_OK && m->job->total && !early)
        join(m);
    return error->status;
}

/* Every rank holds the same partials: the same results, or the same error. */
static allfold_status finish(const struct many_fold *m, struct error *error)
{
    const uint64_t count = m->job->total ? 1 : m->job->count;
    for (uint64_t i = 0; i < count; i++) {
        const struct comm_part *const part = &m->parts[i];
        struct fold_results found;
        struct error own = {0};
        if (fold_finish(&m->call, &(struct folded){part->type, part->count, part->partial}, &found, &own) != ALLFOLD_OK) {
            error->shared = true;
            return m->job->total ? error_set(error, own.status, "%s", own.text)
                                 : error_within(error, &own, "array %zu of %zu", (size_t)i, (size_t)count);
        }
        m->results[i] = (allfold_result){found.fields[0].name, found.fields[0].value, found.fields[0].index, found.count, found.level};
    }
    if (count > 0)
        memcpy(m->job->results, m->results, count * sizeof *m->results);
    return ALLFOLD_OK;
}

allfold_status core_reduce_many(struct allfold_context *ctx, const struct fold_call *call, const struct many_job *job, struct error *error)
{
    struct many_fold m = {.ctx = ctx, .job = job, .call = *call};
    uint64_t bytes = 0;
    m.call.level = ctx->level;
    if (error->status == ALLFOLD_OK && job->count > 0) {
        m.monoid = monoid_of(&m, 0);
        for (uint64_t i = 0; i < job->count; i++)
            bytes += job->arrays[i].count * allfold_type_bytes(job->arrays[i].type);
        progress_expect(ctx->comm.progress, bytes);
        if (open_parts(&m, error) == ALLFOLD_OK)
            fold_arrays(&m, error);
    }
    if (exchange(&m, error) == ALLFOLD_OK)
        finish(&m, error);
    free(m.results);
    free(m.items);
    free(m.parts);
    return error->status;
}
