/* Shared by all pipelines: folding a rank's part on its device. */
#pragma once

#include "core/core.h"

/* A number for what the ranks must agree upon besides monoid and element type: the pipeline, and in the lower bits its own
   options. */
enum { CALL_REDUCE = 1 << 16, CALL_SOFTMAX = 2 << 16, CALL_BEGUN = 3 << 16, CALL_DDOF_SHIFT = 20 };
_Static_assert(ALLFOLD_NAN_ERROR < 1 << 2 && ALLFOLD_TYPE_COUNT <= 1 << 6 && (int)FOLD_COUNT <= 1 << 8 && CALL_BEGUN < 1 << CALL_DDOF_SHIFT,
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

/* The copy of a part, or of its beginning, in device memory. */
struct device_data {
    char *memory;      /* NULL: nowhere */
    uint64_t elements; /* how many of the part's first elements are there */
    uint64_t capacity; /* for how many there is room: elements that a fold streams are kept there */
    bool owned;        /* allocated here: device_data_release frees it */
};

/* Sets *device_data to this memory of a source or sink, if the device can use it in place. */
allfold_status locate_memory(struct allfold_context *ctx, const void *memory, uint64_t count, struct device_data *device_data,
                              struct error *error);
void device_data_release(struct allfold_context *ctx, struct device_data *device_data);

/* Begins a fold at the identity, or from where the job's hook says. A part that is longer than the monoid allows is an error here,
   before any element is read. The caller sets monoid, type and partial of *stream; this sets the rest. If the job has a hook this
   is collective, and false means an error that is agreed upon. */
bool stream_begin(struct allfold_context *ctx, const struct job *job, struct stream *stream, struct error *error);

/* Combines the partial of the next shard, whose elements the caller has added to stream->count. One thread at a time. Local. */
allfold_status stream_take(struct allfold_context *ctx, const struct job *job, struct stream *stream, const struct partial *partial,
                           struct error *error);
/* After the last shard; also after the last before a run stops that was asked to, which is an error then. Local. */
allfold_status stream_end(struct allfold_context *ctx, const struct job *job, const struct stream *stream, struct error *error);

/* Folds the rest of a part whose elements the device makes itself. They stay in device_data, if it has room for all. Local. */
allfold_status fold_generated(struct allfold_context *ctx, const struct job *job, struct stream *stream,
                              const struct device_data *device_data, struct error *error);

/* Folds the rest of this rank's part into *stream->partial. If device_data has all elements, they are folded there. Otherwise they are
   streamed through the queues, and device_data keeps as many as it has room for; then the source is checked. Local. */
allfold_status fold_part(struct allfold_context *ctx, const struct job *job, struct stream *stream, const struct device_data *device_data,
                         struct error *error);

/* Waits for what is under way in place, and ignores its errors: after an error nothing may still be running. */
void drain(struct allfold_context *ctx);
