/* Folds along an axis. Of rows that fit a piece a worker finishes the results, and writes them. Other rows come in batches, which are exchanged
   if the ranks cut the axis, and which all threads finish. Of an array in memory the device finishes the results itself, if it can. */
#include "core/results.h"

#include "comm/vectors.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* ---- rows that fit a piece */

static allfold_status finish_piece(struct worker *worker, struct lane *lane, struct error *error)
{
    const struct pieces *const p = worker->team->pieces;
    if (piece_partials(p, lane, error) != ALLFOLD_OK)
        return error->status;
    const struct folded_rows folded = {{pieces_first_result(p, lane->number), part_results(&lane->part)}, lane->found, lane->counts};
    return finish_rows(worker->team->user, &folded, lane_host(lane, p->more_at), error);
}

/* ---- results in memory that ranks share */

/* Whether the ranks that get results want array k. */
static bool is_wanted(const struct reduction *r, size_t k) { return (r->view->outputs >> k & 1) != 0; }

/* A batch of which each rank has finished its share: all get all of it, and keep what they want. Collective. */
static void share_batch(const struct reduction *r, const struct batch *batch, struct error *error)
{
    struct comm *const comm = &r->p->ctx->comm;
    const struct kept_rows of_batch = {batch->results, UINT64_MAX, {0, UINT64_MAX}};
    struct array_sink arrays[RESULT_ARRAYS_MAX];
    struct reduction own = *r;
    for (size_t k = 0; k < r->arrays; k++) {
        arrays[k] = array_sink(r, k, &of_batch, is_wanted(r, k) ? malloc(batch->results.count * array_bytes(r, k)) : NULL);
        own.sinks[k] = is_wanted(r, k) ? &arrays[k].sink : NULL;
        if (is_wanted(r, k) && arrays[k].host == NULL)
            error_set(error, ALLFOLD_NO_MEMORY, "no memory for a batch of %" PRIu64 " results", batch->results.count);
    }
    if (error->status == ALLFOLD_OK)
        finish_batch(&own, batch, error);
    for (size_t k = 0; k < r->arrays; k++) {
        const struct comm_rows gather = {arrays[k].host, 1, batch->results.count, array_bytes(r, k), batch->shares};
        if (own.sinks[k] != NULL && !error->shared && comm_gather_rows(comm, &gather, error) == ALLFOLD_OK && r->sinks[k] != NULL)
            r->sinks[k]->write(r->sinks[k], batch->results.first, batch->results.count, arrays[k].host, error);
        free(arrays[k].host);
    }
}

/* Gives all ranks the results of all, where each has some of its own. Collective. */
static void share_results(struct reduction *r, struct error *error)
{
    const struct axis_array *const array = r->p->array;
    struct comm *const comm = &r->p->ctx->comm;
    const bool by_row = array->cut == ALLFOLD_CUT_INNER;
    for (int rank = 0; !by_row && rank < comm->size; rank++) {
        r->view->parts[rank].first *= array->inner;
        r->view->parts[rank].count *= array->inner;
    }
    for (size_t k = 0; k < r->arrays && !error->shared; k++) {
        const struct comm_rows rows = {r->memory[k].host, by_row ? array->outer : 1, by_row ? array->inner : kept_count(&r->kept),
                                       array_bytes(r, k), r->view->parts};
        if (is_wanted(r, k))
            comm_gather_rows(comm, &rows, error);
    }
}

/* ---- the calls */

static void take_batch(void *user, const struct batch *batch, struct error *error)
{
    const struct reduction *const r = user;
    if (r->view != NULL && batch->shares != NULL)
        share_batch(r, batch, error);
    else
        finish_batch(r, batch, error);
}

/* Results that the host finishes. */
static void reduce_group(struct pieces *p, void *user, struct error *error)
{
    static const struct team_work work = {piece_start, finish_piece, NULL};
    if (pieces_are_whole(p) && !p->in_place)
        pieces_run_rows(p, &work, user, error);
    else
        pieces_fold(p, take_batch, user, error);
}

static struct axis_needs needs_of(const struct reduction *r)
{
    const size_t bytes = allfold_type_bytes(r->p->array->type);
    return (struct axis_needs){.widest = r->p->array->weights != NULL ? u64_max(bytes, sizeof(double)) : bytes, .fixed = finished_bytes(r)};
}

allfold_status core_reduce_stream(struct allfold_context *ctx, const struct fold_call *call, struct axis_array *array,
                                  struct sink *const sinks[RESULT_ARRAYS_MAX], struct error *error)
{
    struct layout layout;
    struct pieces p = {.ctx = ctx, .array = array};
    struct reduction r = {.p = &p, .fold = *call, .arrays = 2 * fold_result_count(call->fold)};
    memcpy(r.sinks, sinks, sizeof r.sinks);
    array->layout = &layout;
    r.fold.level = call->packing != NULL ? ALLFOLD_LEVEL_EXACT : ctx->level;
    p.monoid = fold_monoid(call->fold, r.fold.level, array->type);
    monoid_has_room(p.monoid, array->length, error);
    const struct axis_needs needs = needs_of(&r);
    if (pieces_cut(&p, array, &needs, error) != ALLFOLD_OK)
        return error->status;
    progress_expect(ctx->comm.progress, part_elements(&p.part) * allfold_type_bytes(array->type));
    pieces_each_group(&p, reduce_group, &r, error);
    if (error->shared)
        return error->status;
    source_check(array->source, error);
    return comm_agree(&ctx->comm, error);
}

struct axis_array axis_array_of(const struct array_info *info, uint64_t folded)
{
    struct axis_array array = {.type = info->type, .outer = 1, .length = 1, .inner = 1,
                               .shape = {info->shape, info->dimensions, folded, info->fortran_order != 0},
                               .omits = info->missing == MISSING_OMIT && encoding_has_missing(&info->encoding)};
    bool behind = true; /* all that are folded */
    for (uint32_t i = 0; i < info->dimensions; i++) { /* the fastest first; array_count has checked the products */
        const uint32_t dimension = info->fortran_order ? i : info->dimensions - 1 - i;
        const uint64_t extent = info->shape[dimension];
        const bool along = rows_fold(&array.shape, dimension);
        behind = behind && !(along && extent != 1);
        *(along ? &array.length : behind ? &array.inner : &array.outer) *= extent;
    }
    return array;
}

allfold_status core_reduce_source(struct allfold_context *ctx, const struct fold_call *call, struct axis_array *array, uint64_t number,
                                  void *const outputs[RESULT_ARRAYS_MAX], struct error *error)
{
    const allfold_type type = call->packing != NULL ? ALLFOLD_F64 : array->type;
    struct memory_sink memory[RESULT_ARRAYS_MAX];
    struct sink *sinks[RESULT_ARRAYS_MAX] = {NULL};
    if (comm_agree_call(&ctx->comm, number, error) != ALLFOLD_OK)
        return error->status;
    for (size_t k = 0; k < 2 * fold_result_count(call->fold); k++)
        if (outputs[k] != NULL) {
            memory[k] = core_memory_sink(ctx, outputs[k], array->outer * array->inner,
                                         k % 2 == 1 ? ALLFOLD_INT64 : rows_type(call->fold, k / 2, type, call->result_type));
            sinks[k] = &memory[k].sink;
        }
    core_reduce_stream(ctx, call, array, sinks, error);
    for (size_t k = 0; k < RESULT_ARRAYS_MAX && error->status == ALLFOLD_OK; k++)
        if (sinks[k] != NULL)
            core_unite(ctx, &memory[k], error);
    return error->status;
}

/* Results in memory: all that this rank keeps of those that it computes. */
static void reduce_memory(struct reduction *r, struct error *error)
{
    if ((error->status != ALLFOLD_OK && !pieces_are_exchanged(r->p)) || device_reduce(r, error))
        return;
    const struct axis_needs needs = needs_of(r);
    if (open_arrays(r, error) != ALLFOLD_OK && !pieces_are_exchanged(r->p))
        return;
    if (r->p->in_place)
        pieces_cut_in_place(r->p, in_place_results(r->p));
    else
        pieces_cut_part(r->p, &needs);
    pieces_each_group(r->p, reduce_group, r, error);
}

allfold_status core_reduce_axis(struct allfold_context *ctx, const struct fold_call *call, const struct axis_input *input,
                                void *const outputs[RESULT_ARRAYS_MAX], struct error *error)
{
    const struct box *const box = &input->box;
    const bool rounds = type_kind(input->type) != 'f' && call->result_type != ALLFOLD_TYPE_NONE; /* integers */
    const enum monoid monoid = fold_monoid(call->fold, ctx->level, input->type);
    struct view view = {.input = input, .p = {.ctx = ctx, .monoid = monoid, .targets = input->targets},
                        .by_host = rounds || input->weights != NULL};
    struct array_sink memory[RESULT_ARRAYS_MAX];
    struct reduction r = {.p = &view.p, .fold = *call, .arrays = 2 * fold_result_count(call->fold), .view = &view, .memory = memory};
    r.fold.level = ctx->level;
    progress_expect(ctx->comm.progress, box->outer * box->length * box->inner * allfold_type_bytes(input->type));
    if (view_begin(&view, error) == ALLFOLD_OK) {
        targets_open(&view.p, error);
        r.kept = view_kept(&view, ctx->comm.rank);
        take_arrays(&r, outputs, error);
        reduce_memory(&r, error);
        if (!error->shared && ctx->comm.size > 1 && !input->own_results && input->cut != ALLFOLD_CUT_AXIS)
            share_results(&r, error);
        close_arrays(&r, error);
    }
    targets_close(&view.p);
    view_end(&view, error);
    return ctx->comm.size > 1 && !error->shared ? comm_agree(&ctx->comm, error) : error->status;
}
