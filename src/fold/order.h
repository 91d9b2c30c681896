/* Order statistics: elements as unsigned integers of their size, keys, whose order is that of the elements; and one pass over elements, which
   counts them between keys and keeps those that are wanted. Written once, for host and device; what is made of passes: core/order.h. */
#pragma once

#include "base/elements.h"

#include <math.h>

/* Of an element's bits, those of a negative number are flipped, and then a number is added, so that NaN, of either sign, comes last. Of bool
   the byte is the key: all but 0 are one. */
struct order_map {
    uint64_t flip, add;
};

/* X(bytes of an element, bits, unsigned, signed) */
#define ORDER_WIDTHS(X)           \
    X(1, 8, uint8_t, int8_t)      \
    X(2, 16, uint16_t, int16_t)   \
    X(4, 32, uint32_t, int32_t)   \
    X(8, 64, uint64_t, int64_t)

/* The interval that a key lies in, of those that keys[first .. end) begin: how many of these are not above it, counted from 0 as `first` is. */
#define DEFINE(bytes, bits, type, signed_type)                                                                         \
    HOST_DEVICE type order_key_##bits(type x, const struct order_map map)                                              \
    {                                                                                                                  \
        return (type)((x ^ ((type)((signed_type)x >> ((bits) - 1)) & (type)map.flip)) + (type)map.add);                \
    }                                                                                                                  \
    HOST_DEVICE uint32_t order_interval_##bits(const type *keys, uint32_t first, uint32_t end, type key)               \
    {                                                                                                                  \
        while (first < end) {                                                                                          \
            const uint32_t middle = (first + end) / 2;                                                                 \
            if (keys[middle] <= key)                                                                                   \
                first = middle + 1;                                                                                    \
            else                                                                                                       \
                end = middle;                                                                                          \
        }                                                                                                              \
        return first;                                                                                                  \
    }
ORDER_WIDTHS(DEFINE)
#undef DEFINE

/* ---- brackets: few ranges of keys, of which what is inside may be kept */

enum { ORDER_BRACKETS_MOST = 63 };

/* Keys [low, last]. */
struct order_bracket {
    uint64_t low, last;
};
/* They follow one another, and none overlap. whole: all elements inside are kept, else those that equal neither end: these are only counted, so that
   arrays of few values need no room. */
struct order_brackets {
    uint32_t count;
    bool whole;
    struct order_bracket list[ORDER_BRACKETS_MOST];
};
/* What is counted of each: elements from low on, within the bracket or behind it; those that equal low; that equal last, which is not low; the
   others inside. */
enum { ORDER_FROM, ORDER_LOW, ORDER_LAST, ORDER_BETWEEN, ORDER_COUNTS };

/* ---- a table: many intervals, of which the elements are counted */

/* The cell of an element, which never falls as the elements rise. It is the same to the bit on host and device, so the host knows between which
   boundaries the elements of a cell lie. By value, (x - low) * scale; else by key, (key - base) >> shift; either way within [0, cells). */
struct order_guess {
    bool by_value;
    bool even; /* and boundary i < cells is low + i / scale, but for f64 roundings; others are above these */
    uint32_t shift, cells;
    uint64_t base;
    double low, scale;
    float low_f32, scale_f32; /* the same, for types of which f32 holds every element */
};

/* Cells are rounded to nearest: a sum with 2^23, or 2^52, ends in the integer. NaN is in the last cell. */
HOST_DEVICE uint32_t order_cell_f32(float x, const struct order_guess *guess)
{
    const float last = (float)(guess->cells - 1);
    float cell = (x - guess->low_f32) * guess->scale_f32;
#ifdef __CUDA_ARCH__
    cell = fmaxf(fminf(cell, last), 0.0f);
#else
    cell = cell < last ? cell : last;
    cell = cell > 0 ? cell : 0;
#endif
    return f32_bits(cell + 0x1p23f) & 0x7fffffu;
}
HOST_DEVICE uint32_t order_cell_f64(double x, const struct order_guess *guess)
{
    const double last = (double)(guess->cells - 1);
    double cell = (x - guess->low) * guess->scale;
#ifdef __CUDA_ARCH__
    cell = fmax(fmin(cell, last), 0.0);
#else
    cell = cell < last ? cell : last;
    cell = cell > 0 ? cell : 0;
#endif
    return (uint32_t)f64_bits(cell + 0x1p52);
}
HOST_DEVICE uint32_t order_cell_key(uint64_t key, const struct order_guess *guess)
{
    const uint64_t cell = key < guess->base ? 0 : (key - guess->base) >> guess->shift;
    return cell < guess->cells ? (uint32_t)cell : guess->cells - 1;
}
/* Whether a type's values go through order_cell_f32. */
#define ORDER_IS_SHORT(bytes, kind) ((bytes) <= 2 || ((bytes) == 4 && (kind) == 'f'))

/* Boundaries are sorted keys, in memory that the device reads; interval i has the elements from boundary i - 1 on and below boundary i. The
   boundaries in cell c are those from cells[c] on and before cells[c + 1]. */
struct order_table {
    uint32_t count;
    const void *keys; /* of the elements' size; one more than count can be read */
    const uint32_t *cells;
    struct order_guess guess;
};

/* ---- even bins, on a device with memory of its own */

enum { ORDER_EVEN_MOST = 1 << 16 }; /* bins */

/* Edge i is low + i * step, the last one high. x * scale + offset is i at edge i; if it is further than `near` from an integer, that decides, else
   the edge itself. Intervals: below the edges, the bins, above, NaN. What is in f32 is half a bin further: intervals are the integers that are nearest. */
struct order_even {
    double low, step, high;
    uint32_t bins;
    double from, to; /* half a bin beyond the edges */
    double scale, offset, near;
    float from_f32, to_f32, scale_f32, scale_rest, offset_f32, offset_whole, offset_rest; /* for types of which f32 holds every element */
    float part_scale, part_offset, parts, part_sure; /* the same by a part of all intervals, between 0 and 1, if bins are coarse: the integer that is nearest
                                                        to it times `parts` is right if no further than part_sure off, which is 0 of other bins */
};
#define ORDER_NEAR_F32 0x1p-20f
#define ORDER_WHOLE_F32 0x1.8p23f /* a sum with it ends in the integer that is nearest */
#define ORDER_WHOLE_F64 0x1.8p52

/* ---- digits, on a device with memory of its own: ranges of keys that are cut into equal parts, of which the elements are counted */

enum { ORDER_CUTS_MOST = 63, ORDER_DIGITS_MOST = 1 << 13 };

/* Keys [low, last]: part i has the keys whose distance from low is i << shift or more. Its counter is number first + 1 + i, as if a table's boundaries
   began the parts. */
struct order_cut {
    uint64_t low, last;
    uint32_t first, digits, shift;
};

/* An element that is looked for: number `rank`, from 0, in ascending order. It is known that its key is in [low, last] and that `below` elements
   have smaller ones. */
struct order_target {
    uint64_t rank, low, last, below;
    uint64_t count; /* elements with a key in [low, last], as far as that is known; else all */
    uint64_t room;  /* its key need not be known better if these are so many, at most */
};
HOST_DEVICE bool order_target_is_open(const struct order_target *target) { return target->low < target->last && target->count > target->room; }

/* How a range is cut into at most that many digits. */
HOST_DEVICE void order_cut_into(struct order_cut *cut, uint32_t most)
{
    const uint64_t length = cut->last - cut->low;
    cut->shift = 0;
    for (uint32_t step = 32; step > 0; step /= 2)
        cut->shift += length >> cut->shift >> step >= most ? step : 0;
    cut->shift += length >> cut->shift >= most;
    cut->digits = (uint32_t)(length >> cut->shift) + 1;
}
/* Numbers the counters of ranges: of each its digits, and its end, unless the next one or no key follows. How many there are. */
HOST_DEVICE uint32_t order_cuts_number(struct order_cut *cuts, uint32_t count, uint64_t most_key)
{
    uint32_t found = 0;
    for (uint32_t c = 0; c < count; c++) {
        cuts[c].first = found;
        found += cuts[c].digits + (cuts[c].last < most_key && (c + 1 == count || cuts[c + 1].low != cuts[c].last + 1));
    }
    return found;
}
/* The target is in the digit of its range. below: elements in the digits before it; count: in it. */
HOST_DEVICE void order_target_narrow(struct order_target *target, const struct order_cut *cut, uint32_t digit, uint64_t below, uint64_t count)
{
    target->below += below;
    target->count = count;
    target->low = cut->low + ((uint64_t)digit << cut->shift);
    target->last = digit + 1 == cut->digits ? cut->last : target->low + (UINT64_C(1) << cut->shift) - 1;
}

/* ---- a search, on a device with memory of its own: round by round the ranges of targets are cut, and the elements counted */

enum { ORDER_SEARCH_MOST = 32, /* targets */ ORDER_SEARCH_COUNTS = (3 * (ORDER_DIGITS_MOST + ORDER_SEARCH_MOST + 1) + 1) / 2 + 2 };

/* ---- ties: elements of a range of keys, counted by their index >> shift */

struct order_ties {
    uint64_t low, last;
    uint32_t shift;
};

/* ---- a sample: one element of each stretch of `stride` */

HOST_DEVICE uint64_t order_sample_place(uint64_t i, uint64_t stride)
{
    uint64_t hash = (i + 1) * UINT64_C(0x9e3779b97f4a7c15);
    hash = (hash ^ hash >> 32) * UINT64_C(0xd6e8feb86659fd93);
    return i * stride + (hash >> 32) % (stride < UINT32_MAX ? stride : UINT32_MAX);
}

/* ---- a pass */

enum order_kind { ORDER_BRACKETS, ORDER_TABLE, ORDER_EVEN, ORDER_DIGITS, ORDER_SEARCH, ORDER_TIES, ORDER_SAMPLE };

/* Where numbers are in counts, which the work adds to. Those of the kind follow: of each bracket ORDER_COUNTS, of each interval one, of each
   range of indices one. */
enum { ORDER_KEPT, ORDER_NANS, ORDER_FIRST_COUNT };

struct order_work {
    enum order_kind kind;
    allfold_type type;
    const void *x;
    uint64_t n;
    uint64_t first;                        /* the index of x[0] */
    const struct order_brackets *brackets; /* host memory */
    const struct order_table *table;       /* host memory, which points to the device's */
    const struct order_even *even;         /* host memory */
    const struct order_cut *cuts;          /* host memory, in ascending order */
    uint32_t cut_count, digits;            /* how many, and their counters */
    const struct order_target *targets;    /* host memory, in ascending order of their ranks. A search answers with what is known of them then */
    uint32_t target_count, rounds;         /* how many; at most so many rounds */
    struct order_ties ties;
    uint64_t limit;     /* brackets: elements of `ties` are kept only if their index is below it */
    uint64_t stride;    /* of a sample, of n / stride elements */
    uint64_t *counts;   /* device memory. Of a sample NULL */
    size_t clear;       /* bytes of counts that are set to 0 first, of a device with memory of its own */
    uint64_t *answer;   /* the queue's staging memory, to which the device writes its `answered` bytes of counts, which then are 0; NULL: it does not */
    size_t answered;    /* the last one of these counters is the device's own */
    uint64_t answer_room; /* with indices: behind the counts there is room for so many indices, and behind these for as many keys: what is kept first
                             is written there, too */
    void *keys;         /* where kept elements' keys go, in any order: device memory of the elements' size; NULL: none are kept */
    uint64_t *indices;  /* and their indices; NULL: not wanted */
    uint64_t capacity;  /* room for so many; counts[ORDER_KEPT] is larger if some did not find room */
};

/* ---- of keys, on the host. Those of NaN, and only those, are above order_last */

#ifdef __cplusplus
extern "C" {
#endif

/* The largest key there is. */
static inline uint64_t order_most(allfold_type type) { return UINT64_MAX >> (64 - 8 * allfold_type_bytes(type)); }

/* What is known of a type's keys. */
struct order_space {
    allfold_type type;
    char kind;
    struct order_map map;
    uint64_t top, most; /* bit of an element; key */
    uint64_t last;      /* key of a number */
    uint64_t zero;      /* key of +0; -0 is just below */
};
struct order_space order_space_of(allfold_type type);
static inline uint64_t order_key_in(const struct order_space *space, uint64_t bits)
{
    return ((bits ^ ((bits & space->top) != 0 ? space->map.flip : 0)) + space->map.add) & space->most;
}
/* The keys of all elements that compare equal to the one of this key: both zeros, every NaN, all that is true. */
static inline struct order_bracket order_equals(const struct order_space *space, uint64_t key)
{
    const bool zero = space->kind == 'f' && (key == space->zero || key == space->zero - 1);
    return space->kind == 'b' && key > 0 ? (struct order_bracket){1, space->most}
           : key > space->last           ? (struct order_bracket){space->last + 1, space->most}
           : zero                        ? (struct order_bracket){space->zero - 1, space->zero}
                                         : (struct order_bracket){key, key};
}
/* The least key of a number that is at least x, which is not NaN, or if `beyond` larger than x; false: no number is. */
bool order_at_least(const struct order_space *space, double x, bool beyond, uint64_t *key);
uint32_t order_cell(const struct order_space *space, uint64_t key, const struct order_guess *guess);
/* False: the bins are too many, too narrow, or too far from 0 for this arithmetic. */
bool order_even_of(double low, double high, uint64_t bins, struct order_even *even);

/* The same of a type, once. */
struct order_map order_map_of(allfold_type type);
uint64_t order_last(allfold_type type);
uint64_t order_key(allfold_type type, uint64_t bits);
/* The element's bits, of bool 0 or 1; its number, which is rounded if it is an integer beyond 2^53; and as a result has it. */
uint64_t order_bits(allfold_type type, uint64_t key);
double order_real(allfold_type type, uint64_t key);
allfold_value order_value(allfold_type type, uint64_t key);

/* A place between two elements of a sorted array: number `below` from 0, and part / 2^bits of the way to the next. part < 2^bits. */
struct order_place {
    uint64_t below;
    uint128 part;
    int bits;
};
/* q * (count - 1), exactly; 0 <= q <= 1. */
struct order_place order_place_of(double q, uint64_t count);
/* -1, 0 or 1: the part is less than a half, a half, or more. */
int order_half(const struct order_place *place);
/* (1 - t) a + t b for elements of these keys, t the place's part: the real number, rounded once. An infinity among them that counts gives
   itself, two of different sign NaN. */
double order_between(allfold_type type, uint64_t a, uint64_t b, const struct order_place *place);

#ifdef __cplusplus
}
#endif
