/* What reduce.c and softmax.c share: a rank's part, folded on its device. */
#ifndef ALLFOLD_PIPELINE_H
#define ALLFOLD_PIPELINE_H

#include "core/core.h"

/* What the ranks must agree upon beside monoid and element type, in a number: the pipeline, and in its lower bits the
   pipeline's own options. */
enum { CALL_REDUCE = 1 << 16, CALL_SOFTMAX = 2 << 16 };

/* Where a part, or its beginning, lies in device memory. */
struct placed {
    char *memory;      /* NULL: nowhere */
    uint64_t elements; /* how many of the part's first elements are there */
    bool owned;        /* allocated here: placed_release frees it */
};

/* Where the source's resident memory is, if it has any that the device can use in place. */
allfold_status place_resident(struct allfold_context *ctx, const void *resident, uint64_t count, struct placed *placed,
                              struct error *error);
/* Sets elements of the source, no more than the queue holds, on their way to `memory` on the device. Local. */
allfold_status elements_upload(struct allfold_context *ctx, struct queue *queue, const struct job *job, struct range elements,
                               size_t element_bytes, void *memory, struct error *error);
void placed_release(struct allfold_context *ctx, struct placed *placed);

/* Folds this rank's part into *partial. Elements that placed already has are folded in place; others are streamed
   through the queues, and kept in placed->memory where keep says so (room for keep elements from the first). Local. */
allfold_status fold_part(struct allfold_context *ctx, enum monoid monoid, allfold_type type, const struct job *job,
                         const struct placed *placed, uint64_t keep, struct partial *partial, struct error *error);

/* Waits for all queues, whatever they find: after an error nothing may still be running. */
void drain(struct allfold_context *ctx);

#endif
