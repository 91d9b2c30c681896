/* What the two files of folds along an axis share: axis_reduce.c has the call, and results that the host finishes; axis_reduce_device.c
   those that the device finishes. */
#pragma once

#include "core/axis.h"

/* The results' arrays in host memory, this rank's places in them, and the work. */
struct reduction {
    struct axis axis;
    const struct axis_reduce *reduce;
    struct fold_call fold;
    struct rows_output outputs[FOLD_RESULTS_MAX]; /* host memory: the caller's, or copies of its device memory */
    bool values_copied[FOLD_RESULTS_MAX], indices_copied[FOLD_RESULTS_MAX];
    uint64_t count;            /* elements of each array */
    bool direct;               /* the device has written the caller's memory itself */
    struct rows_output finished[FOLD_RESULTS_MAX]; /* a batch's results, if this rank's own are not all those that it computes */
};

static inline size_t output_count(const struct reduction *r) { return allfold_result_count(r->fold.fold); }

static inline size_t value_bytes(const struct reduction *r, size_t i)
{
    return allfold_type_bytes(rows_type(r->fold.fold, i, r->axis.input->type, r->fold.result_type));
}

/* Results as rows_finish takes them. */
static inline struct rows rows_of(const struct reduction *r, const unsigned char *partials)
{
    return (struct rows){.call = &r->fold, .type = r->axis.input->type, .count = r->axis.length, .partials = partials,
                         .outputs = r->outputs, .inner = r->axis.inner};
}

/* The same of a batch that is this rank's alone, with its places among the results of all, or of this rank. */
static inline struct rows rows_own(const struct reduction *r, const struct axis_batch *batch, const unsigned char *partials)
{
    const struct axis *const axis = &r->axis;
    const uint64_t part = axis->parts[axis->ctx->comm.rank].first;
    const uint64_t o = batch->o + (axis->input->cut == ALLFOLD_CUT_OUTER ? part : 0);
    const uint64_t i = batch->i + (axis->input->cut == ALLFOLD_CUT_INNER ? part : 0);
    struct rows rows = rows_of(r, partials);
    rows.run = batch->inner;
    rows.whole_first = o * axis->inner + i;
    rows.first = axis->input->own_results ? batch->first : rows.whole_first;
    rows.step = axis->input->own_results ? axis->input->box.inner : axis->inner;
    return rows;
}

/* Whether the device finishes results; and whether it may write the caller's memory then. */
bool device_finishes(const struct reduction *r);
bool device_writes(const struct reduction *r);

/* Has the device fold and finish batches, as far as it can. Returns the first result that is left to the host. Collective if ranks cut the
   axis: then all are done, or *error says why not. */
uint64_t device_reduce(const struct reduction *r, struct error *error);
