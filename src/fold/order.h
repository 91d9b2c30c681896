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

/* Keys [low, last]. */
struct order_bracket {
    uint64_t low, last;
};

/* What is known of a type's keys. */
struct order_space {
    allfold_type type;
    char kind;
    struct order_map map;
    uint64_t top, most; /* bit of an element; key */
    uint64_t last;      /* key of a number */
    uint64_t zero;      /* key of +0; -0 is just below */
};
/* The keys of all elements that compare equal to the one of this key: both zeros, every NaN, all that is true. */
HOST_DEVICE struct order_bracket order_equals(const struct order_space *space, uint64_t key)
{
    const bool is_true = space->kind == 'b' && key > 0, is_nan = !is_true && key > space->last;
    const bool is_zero = space->kind == 'f' && (key == space->zero || key == space->zero - 1);
    const struct order_bracket equal = {is_true ? 1 : is_nan ? space->last + 1 : is_zero ? space->zero - 1 : key,
                                        is_true || is_nan ? space->most : is_zero ? space->zero : key};
    return equal;
}
/* The keys on one side of this one, itself and its equals included, as far as `most`. */
HOST_DEVICE struct order_bracket order_side(const struct order_space *space, uint64_t key, bool smallest, uint64_t most)
{
    const struct order_bracket equal = order_equals(space, key);
    const struct order_bracket side = {smallest ? 0 : equal.low < most ? equal.low : most, smallest && equal.last < most ? equal.last : most};
    return side;
}

/* Where numbers are in counts, which a pass adds to. Those of its kind follow: of each bracket ORDER_COUNTS, of each interval one, of each
   range of indices one; and then there is room for more that ranks add up. */
enum { ORDER_KEPT, ORDER_NANS, ORDER_FIRST_COUNT, ORDER_MORE_COUNTS = 4 };

/* ---- brackets: few ranges of keys, of which what is inside may be kept */

enum { ORDER_BRACKETS_MOST = 24 };

/* They follow one another, and none overlap. whole: all elements inside are kept, else those that equal neither end: these are only counted, so that
   arrays of few values need no room. */
struct order_brackets {
    uint32_t count;
    bool whole;
    struct order_bracket list[ORDER_BRACKETS_MOST];
};
/* What is counted of each: elements from low on, within the bracket or behind it, unless what is kept has indices; those that equal low; that equal last, which is not low; the
   others inside. */
enum { ORDER_FROM, ORDER_LOW, ORDER_LAST, ORDER_BETWEEN, ORDER_COUNTS };

/* ---- a table: many intervals, of which the elements are counted */

/* The cell of an element, which never falls as the elements rise. It is the same to the bit on host and device, so the host knows between which
   boundaries the elements of a cell lie. By key: all keys from base to top are in `coarse` stretches of 2^shift, each of which is split into equal cells, as many as its
   boundaries need; smaller keys are in the first cell, larger ones in that of top, and those above `last` in the last one. */
struct order_split {
    uint32_t first, shift; /* cells of 2^shift keys, numbered from first on */
};
struct order_guess {
    bool even;  /* by value, (x - low) * scale, within [0, cells); boundary i < cells is low + i / scale, but for f64 roundings; others are above these */
    bool exact; /* by key, and each cell is an interval: there are no keys to compare with */
    uint32_t cells, coarse, shift;
    uint64_t base, top, last;
    const struct order_split *splits; /* in memory that the device reads */
    double low, scale;
    float low_f32, scale_f32; /* the same, for types of which f32 holds every element */
};

#define DEFINE(bytes, bits, type, signed_type)                                                                         \
    HOST_DEVICE uint32_t order_cell_##bits(type key, const struct order_guess *guess, const struct order_split *splits) \
    {                                                                                                                  \
        const type base = (type)guess->base, top = (type)guess->top;                                                   \
        const type at = (type)((key < base ? base : key > top ? top : key) - base);                                    \
        const struct order_split split = splits[at >> guess->shift];                                                   \
        const type within = (type)(at & (((type)1 << guess->shift) - 1));                                              \
        return key > (type)guess->last ? guess->cells - 1 : split.first + (uint32_t)(within >> split.shift);           \
    }
ORDER_WIDTHS(DEFINE)
#undef DEFINE

/* Cells are rounded to nearest: a sum with 2^23, or 2^52, ends in the integer. NaN is in the last cell. */
HOST_DEVICE uint32_t order_even_f32(float x, const struct order_guess *guess)
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
HOST_DEVICE uint32_t order_even_f64(double x, const struct order_guess *guess)
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
/* Whether a type's values go through order_even_f32. */
#define ORDER_IS_SHORT(bytes, kind) ((bytes) <= 2 || ((bytes) == 4 && (kind) == 'f'))

/* Boundaries are sorted keys, in memory that the device reads; interval i has the elements from boundary i - 1 on and below boundary i. The
   boundaries in cell c are those from cells[c] on and before cells[c + 1]. */
struct order_table {
    uint32_t count;
    const void *keys;      /* of the elements' size; one more than count can be read. Of an exact guess NULL, */
    const uint32_t *cells; /* and so are these */
    struct order_guess guess;
};

/* What a cell has of the odd intervals: `keys` keys from low on, of the one that meets it; none: 0. If several do, or one has all keys, these are as many as
   there can be, and the key's interval tells. */
#define DEFINE(bytes, bits, type, signed_type)                                                                         \
    struct order_odd_##bits {                                                                                          \
        type low, keys;                                                                                                \
    };                                                                                                                 \
    HOST_DEVICE struct order_odd_##bits order_odd_in_##bits(const struct order_table *table, uint32_t cell)            \
    {                                                                                                                  \
        const type *const keys = (const type *)table->keys;                                                            \
        const uint32_t first = table->cells[cell] / 2, end = (table->cells[cell + 1] + 1) / 2;                         \
        struct order_odd_##bits odd = {0, (type)(end > first ? ~(type)0 : 0)};                                         \
        if (end == first + 1) {                                                                                        \
            odd.low = keys[2 * first];                                                                                 \
            odd.keys = (type)((2 * first + 1 < table->count ? keys[2 * first + 1] : 0) - odd.low); /* 0: behind all */ \
            odd.keys = odd.keys == 0 ? (type)~(type)0 : odd.keys;                                                      \
        }                                                                                                              \
        return odd;                                                                                                    \
    }
ORDER_WIDTHS(DEFINE)
#undef DEFINE

/* ---- even bins, on a device with memory of its own */

enum { ORDER_EVEN_MOST = 1 << 16 }; /* bins */

/* Edge i is low + i * step, the last one high. A pass counts elements in `count` bins from number `first` on, below them and above. In f32, x * scale + offset,
   bounded to 0 and 1, is an element's part of the way through all of these; times `parts`, its nearest integer is the interval if that is no further than `sure` off,
   else the nearest edge decides. */
struct order_even {
    double low, step, high;
    uint32_t bins, first, count;
    float scale, offset, parts;
    float sure, sure_rounded; /* the latter for types of which f32 does not hold every element */
};
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
    uint64_t count; /* elements with a key in [low, last], or more, up to all */
    uint64_t room;  /* its key need not be known better if `count` is at most this */
};
HOST_DEVICE bool order_target_is_open(const struct order_target *target) { return target->low < target->last && target->count > target->room; }

/* How many bits a number takes; 0 takes one. */
HOST_DEVICE uint32_t order_bit_length(uint64_t number)
{
#if defined(__NVCC__) && defined(__CUDA_ARCH__)
    return 64 - (uint32_t)__clzll((long long)(number | 1));
#else
    return 64 - (uint32_t)__builtin_clzll(number | 1);
#endif
}
/* How a range is cut into at most that many digits, a power of two. */
HOST_DEVICE void order_cut_into(struct order_cut *cut, uint32_t most)
{
    const uint64_t length = cut->last - cut->low;
    const uint32_t bits = order_bit_length(length), of_digit = order_bit_length(most) - 1;
    cut->shift = bits > of_digit ? bits - of_digit : 0;
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

/* ---- brackets by a sample */

/* How many are kept is chosen so that a bracket misses once in ten thousand times, */
#define ORDER_DEVIATIONS 4.0
/* and is at most one of this number of elements. */
#define ORDER_KEPT_PART 16

/* A sample of pieces, of `each` neighbours, is worth as much as one of elements that lie apart, divided by this: the variance of how many elements of a piece are
   on one side, beside that of independent ones. sum, squares: of these numbers. */
HOST_DEVICE double order_sample_spread(uint64_t squares, uint64_t sum, uint64_t pieces, uint32_t each)
{
    const double n = (double)(pieces > 0 ? pieces : 1), mean = (double)sum / n;
    const double variance = (double)squares / n - mean * mean, independent = mean * (1 - mean / each);
    return independent > 0 && variance > independent ? variance / independent : 1;
}
/* How far the ends of a bracket around quantile q are from it, as a part of all `found` elements of a sample. */
HOST_DEVICE double order_sample_off(double q, uint64_t found, double spread)
{
    const double n = (double)found / spread;
    return (ORDER_DEVIATIONS * sqrt(n * q * (1 - q)) + 2) / n;
}
/* These are nearer, by this factor, if else there would be no room for what is inside. */
HOST_DEVICE double order_sample_part(const double *offs, uint32_t count)
{
    double inside = 0;
    for (uint32_t i = 0; i < count; i++)
        inside += 2 * offs[i];
    return inside * ORDER_KEPT_PART > 0.75 ? 0.75 / ORDER_KEPT_PART / inside : 1;
}
/* The targets at these ends, among `found` elements of a sample. */
HOST_DEVICE void order_sample_pair(struct order_target pair[2], double q, double off, uint64_t found, uint64_t most_key)
{
    const double at = (double)found - 1, low = floor((q - off) * at), high = ceil((q + off) * at);
    const struct order_target target = {low > 0 ? (uint64_t)low : 0, 0, most_key, 0, found, 0};
    pair[0] = pair[1] = target;
    pair[1].rank = high < at ? (uint64_t)high : found - 1;
}
/* Joins pairs, in ascending order of q, that meet, so that all targets are in ascending order. What need not be known of a pair is an eighth of what lies between. How
   many pairs are left. */
HOST_DEVICE uint32_t order_sample_join(struct order_target *targets, uint32_t pairs)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < pairs; i++) {
        struct order_target begin = targets[2 * i], end = targets[2 * i + 1];
        for (; kept > 0 && begin.rank <= targets[2 * kept - 1].rank; kept--) {
            begin.rank = targets[2 * kept - 2].rank < begin.rank ? targets[2 * kept - 2].rank : begin.rank;
            end.rank = targets[2 * kept - 1].rank > end.rank ? targets[2 * kept - 1].rank : end.rank;
        }
        begin.room = end.room = (end.rank - begin.rank) / 8;
        targets[2 * kept] = begin;
        targets[2 * kept + 1] = end;
        kept++;
    }
    return kept;
}

/* Makes brackets of pairs of targets, which are in ascending order, among `found` elements of a sample; joined where they meet. A bracket that begins or ends
   the sample has all that lies beyond. */
HOST_DEVICE void order_brackets_take(struct order_brackets *brackets, const struct order_target *targets, uint32_t pairs, uint64_t found, uint64_t last_number)
{
    struct order_bracket next = {0, 0};
    uint32_t count = 0;
    for (uint32_t i = 0; i < pairs; i++) {
        const struct order_target *const begin = &targets[2 * i], *const end = begin + 1;
        const uint64_t low = begin->rank == 0 ? 0 : begin->low < last_number ? begin->low : last_number;
        const uint64_t last = end->rank != found - 1 && end->last < last_number ? end->last : last_number;
        const bool is_apart = count == 0 || low > next.last + (next.last < last_number);
        next.low = is_apart || low < next.low ? low : next.low;
        next.last = is_apart || last > next.last ? last : next.last;
        count += is_apart;
        brackets->list[count - 1] = next;
    }
    brackets->count = count;
}

/* Narrows a target to where it is, as a pass has counted: counts are those of the brackets, of `numbers` elements that have an order among `all`.
   How many of the kept elements lie below it; UINT64_MAX: it is not one of these. */
HOST_DEVICE uint64_t order_target_locate(struct order_target *target, const struct order_brackets *brackets, const uint64_t *counts, uint64_t all,
                                         uint64_t numbers, uint64_t last_number)
{
    uint64_t low = target->low, last = target->last, below = target->below, kept_before = 0;
    uint64_t end = last == last_number ? numbers : below + target->count; /* elements up to and with last */
    bool is_kept = false;
    for (uint32_t b = 0; b < brackets->count; b++, counts += ORDER_COUNTS) {
        const struct order_bracket *const bracket = &brackets->list[b];
        const uint64_t begin = all - counts[ORDER_FROM], at_low = counts[ORDER_LOW], between = counts[ORDER_BETWEEN];
        const uint64_t behind = begin + at_low + between + counts[ORDER_LAST], kept = brackets->whole ? behind - begin : between;
        if (bracket->last < target->low) {
            kept_before += kept;
        } else if (bracket->low <= target->last) {
            if (target->rank < begin) { /* it is between the brackets */
                last = bracket->low - 1;
                end = begin;
                break;
            }
            low = bracket->last + 1;
            below = behind;
            if (target->rank >= behind) {
                kept_before += kept;
                continue;
            }
            const bool is_low = target->rank < begin + at_low, is_last = target->rank >= begin + at_low + between;
            is_kept = brackets->whole || !(is_low || is_last);
            low = brackets->whole || is_low ? bracket->low : is_last ? bracket->last : bracket->low + 1;
            last = brackets->whole || is_last ? bracket->last : is_low ? bracket->low : bracket->last - 1;
            below = brackets->whole || is_low ? begin : is_last ? behind - counts[ORDER_LAST] : begin + at_low;
            end = brackets->whole || is_last ? behind : is_low ? begin + at_low : begin + at_low + between;
            break;
        }
    }
    target->low = low;
    target->last = last;
    target->below = below;
    target->count = end - below;
    return is_kept ? kept_before : UINT64_MAX;
}

/* ---- a search, on a device with memory of its own: round by round the ranges of targets are cut, and the elements counted */

enum { ORDER_SEARCH_MOST = 32, /* targets */ ORDER_SEARCH_COUNTS = 3 * (ORDER_DIGITS_MOST + 4) / 2 + 2 };

/* ---- a chain, on a device with memory of its own that has all elements: the sample, the search in it, brackets, their pass, and the search in what that has
   kept, one after the other, and nothing of it waits for the host */

enum { ORDER_CHAIN_BRACKETS = ORDER_SEARCH_MOST / 2, ORDER_CHAIN_TOP = 32 /* elements of a sample; groups of it */, ORDER_CHAIN_GROUPS = 256 };

/* What it finds: in device memory, behind which a search has its counters, all 0 before and after; and in the answer. */
struct order_chain {
    uint64_t counts[ORDER_FIRST_COUNT + ORDER_CHAIN_BRACKETS * ORDER_COUNTS]; /* of the brackets' pass */
    struct order_target targets[ORDER_SEARCH_MOST]; /* of the sample; then those wanted. Of each that is in what was kept, low is its key; ranks are among what was kept */
    struct order_brackets brackets;
    uint64_t is_done; /* else the pass has not taken place: elements cannot be looked at so, or there are many ties */
    uint64_t sampled, pairs; /* elements of the sample; pairs of its targets */
    uint64_t spread[ORDER_CHAIN_BRACKETS]; /* of each quantile, for order_sample_spread: the sum, and in the upper 32 bits the squares */
    uint64_t more[ORDER_MORE_COUNTS];
};
enum { ORDER_CHAIN_COUNTS = sizeof(struct order_chain) / 8 - ORDER_FIRST_COUNT - ORDER_MORE_COUNTS };

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
    return i * stride + ((hash >> 32) * (stride < UINT32_MAX ? stride : UINT32_MAX) >> 32);
}

/* ---- a pass */

enum order_kind {
    ORDER_BRACKETS,
    ORDER_TABLE, /* counts what is in each interval, */
    ORDER_KEEP,  /* or keeps what is in the odd ones, of elements of at least 4 bytes */
    ORDER_EVEN,
    ORDER_DIGITS,
    ORDER_SEARCH,
    ORDER_TIES,
    ORDER_ENDS, /* keeps the least and the largest key of a number, of several parts of x: no more than a piece, or a set of ORDER_ENDS_MOST, has room for */
    ORDER_SAMPLE,
    ORDER_CHAIN
};

enum { ORDER_ENDS_MOST = 1 << 16 };

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
    uint32_t target_count, rounds;         /* how many; the most rounds of a search */
    uint64_t sample;                       /* of a chain: its elements, at most */
    const double *q;                       /* of a chain: quantiles, in ascending order, */
    uint32_t q_count;                      /* how many. 0: top-k. The one target has a rank among the largest elements of a sample's groups, from 0, below
                                              ORDER_CHAIN_TOP, and room for those that equal it or are larger */
    const struct order_target *wanted;     /* of quantiles, if no element is NaN: as targets are; */
    uint32_t wanted_count;                 /* how many */
    bool smallest;                         /* of top-k: the smallest elements, and groups' smallest ones */
    struct order_chain *chain;             /* device memory: this pass is a part of that chain. NULL: of none */
    uint64_t chain_elements, chain_last;   /* of the search behind brackets: how many the array has; the largest key of a number */
    struct order_ties ties;
    uint64_t limit;     /* brackets: elements of `ties` are kept only if their index is below it */
    uint64_t stride;    /* of a sample, of n / stride elements */
    uint64_t *counts;   /* device memory. Of a sample NULL */
    size_t clear;       /* bytes of counts that are set to 0 first, of a device with memory of its own */
    uint64_t *answer;   /* pinned host memory, at 16 bytes, to which the device writes its `answered` bytes of counts, which then are 0; NULL: it does not */
    size_t answered;    /* the last two of these counters are the device's own */
    bool short_counts;  /* of even bins: counters are uint32_t, the device's own two of them */
    uint64_t answer_room; /* with indices: behind the counts is room for this many indices, then as many keys; what is kept first is written there, too */
    void *keys;         /* where kept elements' keys go, in any order: device memory of the elements' size; NULL: none are kept */
    uint64_t *indices;  /* and their indices; NULL: not wanted */
    uint64_t capacity;  /* elements that there is room for; counts[ORDER_KEPT] is larger if some did not find room */
};

/* ---- of keys, on the host. Those of NaN, and only those, are above order_last */

#ifdef __cplusplus
extern "C" {
#endif

/* The largest key there is. */
static inline uint64_t order_most(allfold_type type) { return UINT64_MAX >> (64 - 8 * allfold_type_bytes(type)); }

struct order_space order_space_of(allfold_type type);
/* The type of keys as elements. */
allfold_type order_key_type(allfold_type type);
static inline uint64_t order_key_in(const struct order_space *space, uint64_t bits)
{
    return ((bits ^ ((bits & space->top) != 0 ? space->map.flip : 0)) + space->map.add) & space->most;
}
/* The least key of a number that is at least x, which is not NaN, or if `beyond` larger than x; false: no number is. */
bool order_at_least(const struct order_space *space, double x, bool beyond, uint64_t *key);
uint32_t order_cell(const struct order_space *space, uint64_t key, const struct order_guess *guess);
/* False: the bins are too many, too narrow, or too far from 0 for this arithmetic. */
bool order_even_of(double low, double high, uint64_t bins, struct order_even *even);
/* The pass has these bins, not all. */
void order_even_part(struct order_even *even, uint32_t first, uint32_t count);

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
