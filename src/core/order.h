/* Order statistics: quantiles, the largest elements, histograms. Each is made of passes (fold/order.h) over the ranks' parts, of which the ranks
   exchange counts: order_passes.h. The calls are quantile.c, topk.c and histogram.c. */
#pragma once

#include "core/core.h"
#include "fold/order.h"

struct order_input {
    struct source *source; /* NULL on a rank that failed before (error then says why) */
    allfold_type type;
    struct range range;    /* this rank's part of the source */
    bool has_part;         /* it is the caller's: indices count from the parts of the ranks before */
    uint64_t key;          /* as in struct job */
    void *stream;
    allfold_nan nan;
    struct resumable *progress; /* NULL: none is kept, on all ranks. That of the first pass is */
};

/* See allfold_quantile. Collective. */
allfold_status core_quantile(struct allfold_context *ctx, const struct order_input *input, const allfold_quantiles *call,
                             allfold_result *results, struct error *error);

/* What allfold_topk finds: elements' bits and indices. */
struct order_top {
    uint64_t bits, index;
};
/* See allfold_topk: k of them, on every rank. Collective. */
allfold_status core_topk(struct allfold_context *ctx, const struct order_input *input, uint64_t k, bool smallest, struct order_top *top,
                         struct error *error);

/* See allfold_histogram. Collective. */
allfold_status core_histogram(struct allfold_context *ctx, const struct order_input *input, const allfold_bins *call, double *edges,
                              int64_t *counts, allfold_outside *outside, struct error *error);
