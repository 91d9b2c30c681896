/* A fold that takes its elements in shards: how far it has come, and a hook for a caller who keeps that (store/checkpoint.h). */
#ifndef ALLFOLD_STREAM_H
#define ALLFOLD_STREAM_H

#include "fold/table.h"

struct stream {
    enum monoid monoid;
    allfold_type type;
    uint64_t shard_elements; /* of every shard but the last */
    uint64_t shards;         /* of this rank's part */
    uint64_t done;           /* so many of them are in *partial, the first ones */
    struct partial *partial;
    char device[64];         /* on which device the partial's bits depend: "cpu", or the model of a GPU. Set where there is a hook */
};

/* What a caller does between the shards. All ranks have a hook, or none. Its functions are called on each rank by itself. */
struct stream_hook {
    void *user;
    /* Before the first shard, also on a rank without elements. May set *stream->partial and stream->done, to go on from there.
       The outcome is agreed upon before any rank begins. */
    allfold_status (*before)(void *user, struct stream *stream, struct error *error);
    /* After each shard, in order. last: the run was asked to stop, and no other shard follows. */
    allfold_status (*after_shard)(void *user, const struct stream *stream, bool last, struct error *error);
};

#endif
