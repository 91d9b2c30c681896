/* Shared by the pipelines over flat arrays: folding a rank's part on its device. */
#pragma once

#include "core/pieces.h"

/* A number for what the ranks must agree upon besides monoid and element type: the pipeline, and in the lower bits its own
   options. */
enum { CALL_REDUCE = 1 << 16, CALL_SOFTMAX = 2 << 16, CALL_BEGUN = 3 << 16, CALL_MANY = 4 << 16, CALL_DDOF_SHIFT = 20 };
_Static_assert(ALLFOLD_NAN_ERROR < 1 << 2 && ALLFOLD_TYPE_COUNT <= 1 << 6 && (int)FOLD_COUNT <= 1 << 8 && CALL_MANY < 1 << CALL_DDOF_SHIFT,
               "CALL_REDUCE has 2 bits for the NaN policy, 6 for the result type, 8 for the fold; CALL_SOFTMAX 8 for its type; the upper "
               "bits have ddof");

/* ddof of 2^43 - 1 and more counts as one. */
static inline uint64_t fold_call_number(uint64_t pipeline, const struct fold_call *call)
{
    const uint64_t ddof = u64_min(call->ddof, (UINT64_C(1) << (63 - CALL_DDOF_SHIFT)) - 1);
    return pipeline | ddof << CALL_DDOF_SHIFT | (uint64_t)call->fold << 8 | (uint64_t)call->result_type << 2 | (uint64_t)call->nan;
}

/* begin.c: the part of a fold that was begun. One exchange of all that are begun, or as many as they need room for; each fold gets its
   outcome, as does *error. Collective. */
struct comm_part begun_part(struct begun *begun);
void begun_exchange(struct allfold_context *ctx, struct error *error);

/* Sets *device_data to this memory of a source or sink, if the device can use it in place. */
allfold_status locate_memory(struct allfold_context *ctx, const void *memory, uint64_t count, struct device_data *device_data,
                              struct error *error);
void device_data_release(struct allfold_context *ctx, struct device_data *device_data);

/* The part of a fold that is this rank's. */
struct part_job {
    enum monoid monoid;
    const struct job *job;
    const struct device_data *x; /* elements that are on the device already, or are kept there */
    struct partial *partial;
    uint64_t count;              /* elements in it */
};

/* The array of which a job has a part, as pieces take it. */
struct axis_array job_array(const struct job *job);
/* Pieces of it, but for the cut. */
struct pieces job_pieces(struct allfold_context *ctx, const struct job *job, const struct axis_array *array, enum monoid monoid);

/* Begins at the identity. A part that is longer than the monoid allows is an error here, before any element is read. Loads progress, if it
   is kept; then this is collective, and false means an error that is agreed upon. */
bool fold_part_begin(struct allfold_context *ctx, struct part_job *part, struct error *error);

/* Folds this rank's part. What lies on the device is folded there, in one piece. Other elements pass through the queues of a team, and
   part->x keeps as many as it has room for; then the source is checked. Local. */
allfold_status fold_part(struct allfold_context *ctx, struct part_job *part, struct error *error);

/* Waits for what is under way in place, and ignores its errors: after an error nothing may still be running. */
void drain(struct allfold_context *ctx);
