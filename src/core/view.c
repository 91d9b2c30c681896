/* The ranks' parts of an array in memory: see view.h. */
#include "core/view.h"

#include "core/pipeline.h"

#include <inttypes.h>
#include <stdlib.h>

/* What the ranks tell each other before any work. */
struct extents {
    uint64_t outer, length, inner, outputs, in_place;
};

/* Whether a rank's extents go with this rank's: all but that of the cut dimension are equal. */
static bool goes_with(allfold_cut cut, const struct extents *mine, const struct extents *other)
{
    return (cut == ALLFOLD_CUT_OUTER || mine->outer == other->outer) && (cut == ALLFOLD_CUT_AXIS || mine->length == other->length)
           && (cut == ALLFOLD_CUT_INNER || mine->inner == other->inner);
}

static allfold_status refuse_extents(int rank, const struct extents *first, const struct extents *other, struct error *error)
{
    return error_set(error, ALLFOLD_BAD_ARGUMENT,
                     "rank 0 has outer %" PRIu64 ", length %" PRIu64 ", inner %" PRIu64 " and rank %d has %" PRIu64 ", %" PRIu64
                     ", %" PRIu64 ": ranks may differ only in the dimension that they cut", first->outer, first->length, first->inner,
                     rank, other->outer, other->length, other->inner);
}

struct kept_rows view_kept(const struct view *view, int rank)
{
    const struct axis_array *const array = &view->array;
    const uint64_t results = array->outer * array->inner;
    struct kept_rows kept = {{0, results}, array->inner, {0, array->inner}};
    if (!view->input->own_results)
        return kept;
    if (array->cut == ALLFOLD_CUT_OUTER)
        kept.all = (struct range){view->parts[rank].first * array->inner, view->parts[rank].count * array->inner};
    else if (array->cut == ALLFOLD_CUT_AXIS)
        kept.all = range_part(results, (uint64_t)rank, (uint64_t)view->p.ctx->comm.size);
    else
        kept.columns = view->parts[rank];
    return kept;
}

/* The arrays that the ranks have for results. A rank that gets none may have others, or none. */
static allfold_status take_outputs(struct view *view, const struct extents *all, struct error *error)
{
    int first = -1;
    for (int rank = 0; rank < view->p.ctx->comm.size; rank++) {
        const struct kept_rows kept = view_kept(view, rank);
        if (kept.all.count == 0 || kept.columns.count == 0)
            continue;
        if (first < 0)
            first = rank;
        if (all[rank].outputs != all[first].outputs)
            return error_set(error, ALLFOLD_BAD_ARGUMENT, "the ranks made different calls: ranks %d and %d get results, and want different "
                             "ones: the arrays that are NULL must be the same on all ranks that get results", first, rank);
    }
    view->outputs = first < 0 ? 0 : all[first].outputs;
    return ALLFOLD_OK;
}

/* This rank's part. */
static void take_part(struct view *view)
{
    struct pieces *const p = &view->p;
    uint64_t longest = 0;
    for (int rank = 0; rank < p->ctx->comm.size; rank++)
        longest = u64_max(longest, view->parts[rank].count);
    pieces_take_part(p, view->parts[p->ctx->comm.rank], longest);
    p->base = pieces_position(p, &p->part, 0, 0);
}

/* The parts of all ranks, and the whole array's dimensions. Every rank finds the same. */
static allfold_status take_extents(struct view *view, const struct extents *all, struct error *error)
{
    struct axis_array *const array = &view->array;
    struct pieces *const p = &view->p;
    const bool exchanged = pieces_are_exchanged(p);
    uint64_t total = 0, results;
    error->shared = true; /* if there is one, it is every rank's */
    for (int rank = 0; rank < p->ctx->comm.size; rank++) {
        const uint64_t extent = cut_one_of(array->cut, all[rank].outer, all[rank].length, all[rank].inner);
        if (!goes_with(array->cut, &all[0], &all[rank]))
            return refuse_extents(rank, &all[0], &all[rank], error);
        view->parts[rank] = (struct range){total, extent};
        if (__builtin_add_overflow(total, extent, &total))
            return error_set(error, ALLFOLD_BAD_ARGUMENT, "the ranks' parts are together more than 2^64");
        p->in_place = p->in_place && (all[rank].in_place || !exchanged);
    }
    array->outer = array->cut == ALLFOLD_CUT_OUTER ? total : all[0].outer;
    array->length = array->cut == ALLFOLD_CUT_AXIS ? total : all[0].length;
    array->inner = array->cut == ALLFOLD_CUT_INNER ? total : all[0].inner;
    if (__builtin_mul_overflow(array->outer, array->inner, &results) || results > (uint64_t)PTRDIFF_MAX / sizeof(uint64_t))
        return error_set(error, ALLFOLD_NO_MEMORY, "%" PRIu64 " times %" PRIu64 " results are more than any memory", array->outer,
                         array->inner);
    if (take_outputs(view, all, error) != ALLFOLD_OK || monoid_has_room(p->monoid, array->length, error) != ALLFOLD_OK)
        return error->status;
    error->shared = false;
    if (view->input->cut_extent != NULL)
        *view->input->cut_extent = total / u64_max(view->input->cut_behind, 1);
    take_part(view);
    return ALLFOLD_OK;
}

static bool is_in_place(const struct view *view, const void *memory, struct error *error)
{
    struct device_data data;
    return memory == NULL || (locate_memory(view->p.ctx, memory, 1, &data, error) == ALLFOLD_OK && data.memory != NULL);
}

/* Whether the device copies parts of a fold's elements together and folds them as those of an array that it uses in place. A row needs room. */
static bool gathers(const struct view *view)
{
    const struct axis_input *const input = view->input;
    const uint64_t row = input->box.length * allfold_type_bytes(input->type), all = row * input->box.outer * input->box.inner;
    return view->array.gathered && view->y == NULL && input->turns <= 1 && input->weights == NULL && input->targets.of.memory == NULL
           && u64_max(row, u64_min(all, GATHERED_BYTES)) <= view->p.ctx->device->memory / 2;
}

/* The places of x and y, and memory. */
static void prepare(struct view *view, struct error *error)
{
    const struct axis_input *const input = view->input;
    struct allfold_context *const ctx = view->p.ctx;
    const bool apart = input->layout != NULL, own_memory = ctx->device->backend->own_memory;
    const bool x_there = is_in_place(view, input->x, error), y_there = is_in_place(view, view->y, error);
    view->array.in_place = x_there && !apart;
    view->array.gathered = x_there && apart && own_memory && input->x != NULL;
    view->y_in_place = y_there && !apart;
    view->y_apart = y_there && apart && own_memory;
    view->p.follows = x_there || y_there;
    view->p.in_place = (view->array.in_place && view->y_in_place) || gathers(view);
    view->parts = malloc((size_t)ctx->comm.size * sizeof *view->parts);
    if (view->parts == NULL)
        error_set(error, ALLFOLD_NO_MEMORY, "no memory for the parts of %d ranks", ctx->comm.size);
    view->opened = error->status == ALLFOLD_OK && in_place_open(ctx, input->stream, error) == ALLFOLD_OK;
}

allfold_status view_begin(struct view *view, struct error *error)
{
    const struct axis_input *const input = view->input;
    const struct box *const box = &input->box;
    struct pieces *const p = &view->p;
    view->array = (struct axis_array){.memory = input->x, .outer_stride = box->outer_stride, .axis_stride = box->axis_stride,
                                      .layout = input->layout, .turns = input->turns, .weights = input->weights, .shape = input->shape, .type = input->type, .cut = input->cut};
    p->array = &view->array;
    p->stride = partial_stride(p->monoid, input->type);
    p->stream = input->stream;
    if (error->status == ALLFOLD_OK)
        prepare(view, error);
    const struct extents mine = {box->outer, box->length, box->inner, input->outputs, p->in_place};
    struct extents *const all = comm_gather_call(&p->ctx->comm, input->call, &mine, sizeof mine, error);
    if (all == NULL)
        return error->status;
    if (take_extents(view, all, error) == ALLFOLD_OK && pieces_are_exchanged(p) && p->in_place && !view->by_host && view->array.length > 0)
        p->in_window = window_open(p->ctx, error) == ALLFOLD_OK && p->ctx->window.pinned;
    free(all);
    return error->status;
}

void view_end(struct view *view, struct error *error)
{
    struct allfold_context *const ctx = view->p.ctx;
    struct error ignored = {0};
    if (view->opened)
        ctx->device->backend->wait(in_place_queue(ctx), error->status == ALLFOLD_OK ? error : &ignored);
    if (ctx->gathered.bytes > GATHERED_BYTES)
        core_release(ctx, &ctx->gathered);
    free(view->parts);
}
