/* What reduce.c and softmax.c share: a rank's part, folded on its device. */
#ifndef ALLFOLD_PIPELINE_H
#define ALLFOLD_PIPELINE_H

#include "core/core.h"

/* What the ranks must agree upon beside monoid and element type, in a number: the pipeline, and in its lower bits the
   pipeline's own options. */
enum { CALL_REDUCE = 1 << 16, CALL_SOFTMAX = 2 << 16 };
_Static_assert(ALLFOLD_NAN_ERROR < 1 << 2 && ALLFOLD_TYPE_COUNT <= 1 << 6 && ALLFOLD_FOLD_COUNT <= 1 << 8,
               "CALL_REDUCE has 2 bits for the NaN policy, 6 for the result type, 8 for the fold; CALL_SOFTMAX 8 for its type");

/* Where a part, or its beginning, lies in device memory. */
struct placed {
    char *memory;      /* NULL: nowhere */
    uint64_t elements; /* how many of the part's first elements are there */
    uint64_t capacity; /* for how many there is room: those that a fold streams are kept there */
    bool owned;        /* allocated here: placed_release frees it */
};

/* Where the source's resident memory is, if it has any that the device can use in place. */
allfold_status place_resident(struct allfold_context *ctx, const void *resident, uint64_t count, struct placed *placed,
                              struct error *error);
/* Sets elements of the source, no more than the queue holds, on their way to `memory` on the queue's device. Local. */
allfold_status elements_upload(struct queue *queue, const struct job *job, struct range elements, void *memory,
                               struct progress *progress, struct error *error);
void placed_release(struct allfold_context *ctx, struct placed *placed);

/* Begins a fold at the identity, or from where the job's hook says. Fills in all of *stream but its monoid, type and place of
   the partial, which the caller sets. Where the job has a hook this is collective, and false is an error agreed upon. */
bool stream_begin(struct allfold_context *ctx, const struct job *job, struct stream *stream, struct error *error);

/* Folds the rest of this rank's part into *stream->partial. If placed has all elements they are folded there, else they are
   streamed through the queues, and those that placed has room for are kept there. Local. */
allfold_status fold_part(struct allfold_context *ctx, const struct job *job, struct stream *stream, const struct placed *placed,
                         struct error *error);

/* Waits for all queues, whatever they find: after an error nothing may still be running. */
void drain(struct allfold_context *ctx);

#endif
