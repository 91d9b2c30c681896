/* A fold that takes its elements in shards: its progress, and a hook for a caller that saves it (store/checkpoint.h). */
#pragma once

#include "fold/table.h"

struct stream {
    enum monoid monoid;
    allfold_type type;
    uint64_t shard_elements; /* of every shard but the last */
    uint64_t shards;         /* of this rank's part */
    uint64_t done;           /* the first `done` of them are in *partial */
    uint64_t count;          /* elements in *partial: those of the shards that are done, without missing ones */
    struct partial *partial;
    void *state;             /* along an axis, where partial is NULL: what is folded of units that are not done; `before` sets it to */
    size_t state_bytes;      /* memory from malloc, of so many bytes, or to NULL and 0 */
    char device[64];         /* the device that the partial's bits depend on: "cpu" or a GPU's model; set if there is a hook */
};

/* Called between the shards. Either all ranks have a hook or none. Each rank calls its functions by itself. */
struct stream_hook {
    void *user;
    double every; /* seconds after which after_shard has something to do */
    /* Before the first shard, also on a rank without elements. May set *stream->partial (or state) and stream->done, to resume from there.
       The ranks agree on the outcome before any begins. */
    allfold_status (*before)(void *user, struct stream *stream, struct error *error);
    /* After each shard, in order. last: no other may follow, because the run was asked to stop, or all are done. */
    allfold_status (*after_shard)(void *user, const struct stream *stream, bool last, struct error *error);
};
