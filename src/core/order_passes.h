/* What order statistics share: passes over all elements, or over what a pass has kept (order_passes.c, with order_place.c and order_stream.c), and
   the search for elements of a given rank by such passes (order_narrow.c). Tables: order_table.c. All functions are collective, and do nothing if
   *o->error is set, which is then agreed upon. */
#pragma once

#include "core/order.h"
#include "core/pipeline.h"

/* Keys that a pass has kept on this rank, and their indices, if they are wanted. */
struct order_set {
    bool on_device; /* in device memory; else the host's */
    char *keys;
    uint64_t *indices;
    const char *answer; /* of the device's: the last pass wrote all to the host's memory, too: here */
    uint64_t count, capacity;
    uint64_t room;   /* of the host's: how much of the capacity is allocated */
    bool overflowed; /* some rank had no room for all: the same on all ranks */
};

struct order {
    struct allfold_context *ctx;
    const struct order_input *input;
    struct error *error;
    bool indexed;             /* what is kept has indices */
    struct device_data x;     /* the part, if the device uses it in place */
    struct source loaded;     /* of x that is owned */
    _Atomic uint64_t loaded_elements; /* which may be less than the part has positions, */
    bool is_packed;           /* if so */
    double range[2];          /* of bins, kept with the progress, */
    bool has_range;           /* once they are known */
    int reads;                /* passes over a part that is the caller's, or a file's */
    bool is_begun;            /* the pass whose progress is kept has begun */
    uint64_t first;           /* the index of its first element; of a source its position */
    uint64_t neighbours;      /* elements of a sample that were read together, the same on all ranks */
    uint64_t positions;       /* of the whole array: its elements, unless some are left out */
    bool on_host;             /* some rank works in host memory: the same on all ranks */
    struct order_set set;
    /* Called when the set, of elements that stream, is full: makes room. NULL: then it overflows. */
    void (*trim)(struct order *o);
    /* NULL; or what the host does while a device is at work. Only passes over elements in device memory call it. */
    void (*meanwhile)(struct order *o);
    uint64_t *counts;         /* of the last pass, of all ranks: see order_work. Behind them is room for ORDER_MORE_COUNTS */
    bool takes_short;         /* the caller takes counters of 32 bits, which hold all elements: the same on all ranks */
    uint32_t *short_counts;   /* of the last pass, if it does; then they are not in `counts`: */
    int short_parts;          /* the sums of `short_parts` counters each, */
    size_t short_stride;      /* that far apart in memory */
    uint64_t seen, kept;      /* elements in it, without those left out; in the sets of all ranks, */
    uint64_t kept_there;      /* and in those in device memory */
    uint64_t *own_counts;     /* memory for them, unless the device of the only rank has answered, */
    uint64_t most_counts;     /* and its room */
    char *slots;              /* NULL; or where the devices of all ranks answer the pass, in the window, */
    size_t slot_bytes;        /* of one of them */
};

enum {
    ORDER_NEIGHBOURS = 64, /* elements of a file that are read together for a sample, or a whole granule */
    ORDER_SAMPLE_MOST = 1 << 20 /* elements, for which a set has room that is asked for so much, however little memory there is */
};

/* Counter number i behind ORDER_FIRST_COUNT. */
static inline uint64_t order_count(const struct order *o, uint64_t i)
{
    if (o->short_counts == NULL)
        return o->counts[ORDER_FIRST_COUNT + i];
    uint64_t sum = 0;
    for (int part = 0; part < o->short_parts; part++)
        sum += o->short_counts[(size_t)part * o->short_stride + ORDER_FIRST_COUNT + i];
    return sum;
}
/* The sums of counters [first, first + n). Each part is read page by page: memory that no cache has is slow to read from several places at once. */
void order_counts(const struct order *o, uint64_t first, uint64_t n, int64_t *sums);

static inline bool order_failed(const struct order *o) { return o->error->status != ALLFOLD_OK; }

/* Of an order with ctx, input, error and indexed set. call: a number for all that the ranks must agree upon. several: there will be several
   passes. */
void order_open(struct order *o, uint64_t call, bool several);
void order_close(struct order *o); /* local */

/* The part, where it is now: a job for other pipelines. */
struct job order_job(const struct order *o);

/* The set gets room for as many elements as that, or as there is memory for. Local: *o->error may be this rank's alone. */
void order_room(struct order *o, uint64_t capacity);

/* A pass over the array: kind and what belongs to it are set in the work, and counters are how many follow ORDER_FIRST_COUNT. What brackets keep
   is the set. */
void order_pass(struct order *o, struct order_work *work, uint64_t counters);
/* Whether a chain is possible: one device has all elements, none of which is left out. */
static inline bool order_has_chain(const struct order *o)
{
    return o->ctx->comm.size == 1 && o->x.elements > 0 && o->set.on_device && o->input->nan == ALLFOLD_NAN_PROPAGATE;
}
/* The pass of a chain, whose sample, and what is wanted, are set: see fold/order.h. NULL: *o->error is set. */
const struct order_chain *order_pass_chain(struct order *o, struct order_work *work);
/* The same over the set, of all ranks; not for brackets. */
void order_pass_set(struct order *o, struct order_work *work, uint64_t counters);

/* The set in host memory, until the next pass: where the device has written it, or brought there now. Local. */
struct order_set order_set_on_host(struct order *o);

/* The same of keys alone, for which there is room, and the set stays where it is. Local. */
void order_set_read(struct order *o, void *keys);

/* Of a sample of at most `count` elements, for which there is room. */
uint64_t order_stride(const struct order *o, uint64_t count);
/* Makes the set a sample of the keys of all ranks: *found of them, at most `count`, for which there is room; unless NaN propagates, without the NaNs, which are last.
   Neighbours that are read together (o->neighbours) count for less: they are as good as *worth that lie apart, as far as is known without a look at them. */
void order_sample(struct order *o, uint64_t count, uint64_t *found, uint64_t *worth);
/* The keys of such a sample, of all ranks, in ascending order, *found of them; the caller frees them. NULL: *o->error is set. */
uint64_t *order_sample_sorted(struct order *o, uint64_t count, uint64_t *found);

/* Even bins: an edge in the middle of each cell. False: numbers are too far apart, or too near. */
bool order_guess_even(struct order_guess *guess, double low, double high, uint64_t bins);
/* Cells by key, of which most have no more than one of these keys, which ascend; an order_table_free is due. */
allfold_status order_guess_by_key(struct order_guess *guess, allfold_type type, const uint64_t *keys, uint64_t count, struct error *error);
/* A table of boundaries in host memory, keys that ascend. If table->guess is not one of even bins, it is made by key. Local, as the others are. order_table_free
   ignores a table that is all 0. */
allfold_status order_table_make(struct order_table *table, allfold_type type, const uint64_t *boundaries, uint32_t count, struct error *error);
/* An exact table, whose cells have about half of one of these keys, which ascend; and one for all NaNs, the last. Its boundaries, which the caller frees; NULL: the error
   is set. */
uint64_t *order_table_grid(struct order_table *table, allfold_type type, const uint64_t *keys, uint64_t count, struct error *error);
void order_table_free(struct order_table *table);

/* Whether some targets are not known well enough yet. */
bool order_is_open(const struct order_target *targets, uint64_t count);
/* Narrows the ranges of targets, of which those that begin at one key are one, by a pass over the array or the set: each to a 2048th, if they
   are at most 512; of a set, at most 4. */
void order_narrow(struct order *o, bool of_set, struct order_target *targets, uint64_t count);
/* Narrows the ranges of targets in the set until none is open, or `passes` passes are done. */
void order_search(struct order *o, struct order_target *targets, uint64_t count, uint32_t passes);

/* ---- order_place.c and order_stream.c. All local */

static inline size_t order_key_bytes(const struct order *o) { return allfold_type_bytes(o->input->type); }

/* Elements, or keys, in memory that the work uses where it is. */
struct order_elements {
    allfold_type type;
    const void *x;
    uint64_t count, first;
};
void order_run_on_host(struct order *o, const struct order_work *given, const struct order_elements *elements);
/* counts: bytes of the counters, and of those behind them. They are o->counts, which is 0, or becomes what the device answers. */
void order_run_elements(struct order *o, const struct order_work *work, const struct order_elements *elements, size_t counts, bool on_device);
/* Makes room in host memory for that many of the set. */
allfold_status order_host_room(struct order *o, uint64_t room);
/* Whether a pass over elements in memory is answered by the device. */
bool order_is_answered(size_t counts, bool on_device);
/* Sets o->slots to the half of the window that was not used last, for a pass with `counters` counters that keeps elements or does not: the same on all ranks. NULL: they
   have no window, or no room in it. */
void order_find_slots(struct order *o, size_t counters, bool keeps);
static inline char *order_slot(const struct order *o, int rank) { return o->slots + (size_t)rank * o->slot_bytes; }
/* Brings counters, which are 0, and the table to the device, at once if they are small. table: NULL if there is none; the pass then clears its
   counters. */
void order_upload(struct order *o, struct order_work *work, size_t counts, struct order_table *table);

/* The part is read now: the progress expects it once more, if it was before. */
void order_read(struct order *o);
/* Brings the part to memory that the device uses in place, if it fits. several: there will be several passes. */
void order_load(struct order *o, bool several);
/* Takes what an earlier run has saved of this call. */
allfold_status order_progress_load(struct order *o, uint64_t call);
/* A pass, piece by piece; counts: bytes of the counters. */
void order_run_pieces(struct order *o, const struct order_work *given, size_t counts);
/* Makes the set a sample of the part, of one of `stride` elements. */
void order_sample_source(struct order *o, uint64_t stride);
