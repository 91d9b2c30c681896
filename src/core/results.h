/* Results of a fold along an axis, finished and brought to where they belong: results.c. The calls are reduce_axis.c. */
#pragma once

#include "core/view.h"

/* Writes to an array of results in memory what this rank keeps of it. */
struct array_sink {
    struct sink sink;
    const struct kept_rows *kept;
    char *host;  /* the array, or a copy of it if it lies on the device: NULL until there is one */
    void *array; /* the caller's; NULL: none */
};

struct reduction {
    struct pieces *p;
    struct fold_call fold;
    size_t arrays;                         /* of results */
    struct sink *sinks[RESULT_ARRAYS_MAX]; /* NULL: not wanted of this rank */
    /* an array in memory */
    const struct view *view;               /* NULL: a source */
    struct kept_rows kept;
    struct array_sink *memory;             /* of each array */
};

static inline allfold_type array_type(const struct reduction *r, size_t k)
{
    return k % 2 == 1 ? ALLFOLD_INT64 : rows_type(r->fold.fold, k / 2, r->p->array->type, r->fold.result_type);
}

static inline size_t array_bytes(const struct reduction *r, size_t k) { return allfold_type_bytes(array_type(r, k)); }

/* Arrays of this rank, in memory. Those on the device, if it has memory of its own, have no host memory yet: open_arrays gives them some.
   close_arrays copies what was finished there to where the caller wants it. All local. */
void take_arrays(struct reduction *r, void *const outputs[RESULT_ARRAYS_MAX], struct error *error);
allfold_status open_arrays(struct reduction *r, struct error *error);
void close_arrays(struct reduction *r, struct error *error);
/* A sink for array k in host memory. */
struct array_sink array_sink(const struct reduction *r, size_t k, const struct kept_rows *kept, void *array);

/* Results of the part. */
struct folded_rows {
    struct range results;
    const unsigned char *partials;
    const uint64_t *counts; /* as a lane's */
};

/* Finishes results and writes them to the sinks, by way of memory of finished_bytes. Local. */
allfold_status finish_rows(const struct reduction *r, const struct folded_rows *folded, char *memory, struct error *error);
size_t finished_bytes(const struct reduction *r);

/* Finishes a batch's results [mine) by all host threads, and writes them to the sinks. Local. */
void finish_batch(const struct reduction *r, const struct batch *batch, struct error *error);

/* Has the device fold and finish all results, if it can. False: the host is to do so. Collective if ranks cut the axis. */
bool device_reduce(struct reduction *r, struct error *error);
