/* Folds by number: functions and facts about partials without their types. The CPU and CUDA backends fill partials, ranks
   exchange and combine them, core/ finishes them. */
#pragma once

#include "base/base.h"
#include "fold/monoids.h"

/* Data that C++ may use in templates, too. */
#ifdef __cplusplus
#define FOLD_CONSTANT constexpr
#define FOLD_CONSTEXPR constexpr
#else
#define FOLD_CONSTANT static const
#define FOLD_CONSTEXPR static inline
#endif

enum monoid {
#define ROW(name, ...) MONOID_##name,
    MONOIDS(ROW)
#undef ROW
    MONOID_COUNT
};

/* Folds that have calls of their own; their numbers follow those of allfold_fold. */
enum {
    FOLD_PUBLIC_LAST = ALLFOLD_FOLD_COUNT - 1,
#define ROW(ID, ...) FOLD_##ID,
    OTHER_FOLDS(ROW)
#undef ROW
    FOLD_COUNT
};

enum value {
#define ROW(nothing, name) VALUE_##name,
    VALUES(ROW, )
#undef ROW
    VALUE_COUNT
};

/* What an element costs on a device. The kernels' shapes follow from it (kernels/tuning.h). */
enum cost {
    COST_LITTLE,      /* an addition or a comparison */
    COST_SQUARES,     /* little if values are f32, much otherwise: squares are scaled */
    COST_PRODUCTS,    /* little if values are floating-point numbers, much otherwise: products are wide */
    COST_MUCH,
    COST_INDEX,       /* little, but the index must be kept: neighbours come one by one */
    COST_EXPONENTIAL,
    COST_BINS,        /* exponentials that are added exactly, in many registers */
    COST_STATS,       /* most of the above at once */
    COST_COMPARE      /* little of equal elements, and as much as that of others */
};

/* The arithmetic of the terms of monoids of exponentials. */
enum terms { TERMS_NONE, TERMS_F32, TERMS_F64, TERMS_QUICK, TERMS_SHORT };

/* The element that changes no partial: monoids.h. */
enum neutral { NEUTRAL_NONE, NEUTRAL_ZERO, NEUTRAL_ONE, NEUTRAL_LARGEST, NEUTRAL_SMALLEST, NEUTRAL_INFINITE };

struct monoid_facts {
    unsigned int values; /* bit VALUE_f32 and so on: of the value types that it is made for */
    int operands;
    bool indexed, nan;
    allfold_level level;
    enum cost cost;
    enum terms terms;
    int most; /* at most 2^most elements; 64: any number */
    enum neutral neutral;
};
FOLD_CONSTANT struct monoid_facts monoid_facts[] = {
#define BIT(nothing, name) | 1u << VALUE_##name
#define ROW(name, values, operands, indexed, nan, level, cost, terms, most, neutral)                                     \
    {0u VALUES_##values(BIT, ), operands, indexed, nan, ALLFOLD_LEVEL_##level, COST_##cost, TERMS_##terms, most, \
     NEUTRAL_##neutral},
    MONOIDS(ROW)
#undef ROW
#undef BIT
};

/* The value type in which arithmetic on elements of the type starts. */
FOLD_CONSTEXPR enum value type_value(allfold_type type)
{
    FOLD_CONSTANT enum value values[] = {
        VALUE_COUNT, /* ALLFOLD_TYPE_NONE starts in none */
#define ROW(ID, name, numpy, bytes, kind, value) VALUE_##value,
        ALLFOLD_TYPES(ROW)
#undef ROW
    };
    return values[type];
}

/* Floating-point types of 16 bits. */
FOLD_CONSTEXPR bool type_is_short(allfold_type type)
{
    FOLD_CONSTANT bool is_short[] = {
        false,
#define ROW(ID, name, numpy, bytes, kind, value) (kind) == 'f' && (bytes) == 2,
        ALLFOLD_TYPES(ROW)
#undef ROW
    };
    return is_short[type];
}

/* Whether there is an element that changes no partial: that of facts.neutral, which is infinite only among floating-point numbers. */
FOLD_CONSTEXPR bool monoid_has_neutral(enum monoid monoid, bool floating)
{
    const enum neutral neutral = monoid_facts[monoid].neutral;
    return neutral != NEUTRAL_NONE && (neutral != NEUTRAL_INFINITE || floating);
}

/* Whether the monoid exists for elements of the type. */
FOLD_CONSTEXPR bool monoid_takes(enum monoid monoid, allfold_type type)
{
    return (monoid_facts[monoid].values >> type_value(type) & 1) != 0
           && (monoid_facts[monoid].terms != TERMS_SHORT || type_is_short(type));
}

/* The monoid of softmax's first pass from x to y: that of the level, with terms as precise as x and y need. The partials of one
   level have one layout and meaning. log-softmax takes exact sums at both levels: near 0 it needs, to full precision, what the
   sum holds besides the term of the maximum. */
FOLD_CONSTEXPR enum monoid softmax_monoid(allfold_type x_type, allfold_type y_type, bool logarithm, allfold_level level)
{
    const allfold_level sums = logarithm ? ALLFOLD_LEVEL_EXACT : level;
    const bool f64 = type_value(x_type) != VALUE_f32 || y_type == ALLFOLD_F64;
    const bool both_short = type_is_short(x_type) && type_is_short(y_type) && sums == ALLFOLD_LEVEL_FAST;
    const enum terms terms = f64 ? TERMS_F64 : both_short ? TERMS_SHORT : TERMS_F32;
    int monoid = 0;
    while (monoid_facts[monoid].terms != terms || monoid_facts[monoid].level != sums)
        monoid++;
    return (enum monoid)monoid;
}

/* Whether its partials hold a mark of their row's target (log_probs.h). They are folded along an axis alone. */
FOLD_CONSTEXPR bool monoid_has_mark(enum monoid monoid) { return monoid == MONOID_logits || monoid == MONOID_logits_exact; }
/* Combines a mark with that of a partial. */
void partial_take_mark(enum monoid monoid, void *partial, uint64_t mark);

/* A partial of any monoid. monoid_bytes says how many of its bytes are used. */
struct partial {
    __attribute__((aligned(16))) unsigned char bytes[PARTIAL_BYTES_MAX];
};

/* Elements to fold. */
struct work {
    enum monoid monoid;
    allfold_type type;
    const void *x;
    uint64_t n;
    uint64_t first; /* the index of x[0] */
    const void *y;  /* of monoids of two operands: the other n elements, of the same type */
    const struct compare_rule *rule; /* of comparisons; NULL: all zero */
};

/* All take the element type, on which the partial's layout depends. Only for types that the monoid takes. */
size_t monoid_bytes(enum monoid monoid, allfold_type type);
/* From one partial to the next where many lie together: its bytes, aligned. */
FOLD_CONSTEXPR size_t partial_bytes_aligned(size_t bytes) { return (bytes + 15) / 16 * 16; }
size_t partial_stride(enum monoid monoid, allfold_type type);
/* What a comparison keeps beside its sums: it is the end of the partial. */
struct compare_ends *compare_ends_of(allfold_type type, struct partial *partial);
void monoid_identity(enum monoid monoid, allfold_type type, struct partial *partial);
/* *a = *a followed by *b. */
void monoid_combine(enum monoid monoid, allfold_type type, struct partial *a, const struct partial *b);

/* Where the partial holds indices: how many, 0 for monoids without indices. One that is ALLFOLD_NO_INDEX is none. */
#define MONOID_INDICES_MAX 4
int monoid_indices(enum monoid monoid, allfold_type type, struct partial *partial, uint64_t *indices[MONOID_INDICES_MAX]);

/* Adds offset to them. */
void monoid_shift(enum monoid monoid, allfold_type type, struct partial *partial, uint64_t offset);
/* *a, of `count` elements, becomes *a followed by *b, whose indices count from its own first element. *b is destroyed. */
static inline void monoid_append(enum monoid monoid, allfold_type type, struct partial *a, uint64_t count, struct partial *b)
{
    monoid_shift(monoid, type, b, count);
    monoid_combine(monoid, type, a, b);
}

/* The level that is reported if this level is asked for: another if the fold has one method. */
allfold_level fold_level(allfold_fold fold, allfold_level level);
static inline const char *level_name(allfold_level level) { return level == ALLFOLD_LEVEL_EXACT ? "exact" : "fast"; }
/* The monoid for elements of the type. */
enum monoid fold_monoid(allfold_fold fold, allfold_level level, allfold_type type);
size_t fold_result_count(allfold_fold fold);  /* at most */
bool fold_has_level_choice(allfold_fold fold);
bool fold_has_nan_choice(allfold_fold fold);  /* takes allfold_nan; others propagate */
bool fold_has_variance(allfold_fold fold);    /* takes ddof */
const char *fold_text(allfold_fold fold);     /* what it is, for --help */

/* The results of stats, in order: X(ID, name, what it is: enum result_kind). */
#define STATISTICS(X)               \
    X(COUNT, count, COUNT)          \
    X(NAN_COUNT, nan_count, COUNT)  \
    X(SUM, sum, ELEMENT)            \
    X(MEAN, mean, REAL)             \
    X(VARIANCE, variance, REAL)     \
    X(MIN, min, PLACED)             \
    X(MAX, max, PLACED)             \
    X(NORM1, norm1, MAGNITUDE)      \
    X(NORM2, norm2, REAL)           \
    X(NORMINF, norminf, MAGNITUDE)
enum statistic {
#define ROW(ID, ...) STATISTIC_##ID,
    STATISTICS(ROW)
#undef ROW
    STATISTIC_END
};

/* What a result is, from which its type follows where no format is asked for. A count of elements is never rounded to one. PLACED: an element that
   has an index. */
enum result_kind { RESULT_REAL, RESULT_COUNT, RESULT_ELEMENT, RESULT_PLACED, RESULT_MAGNITUDE };
enum result_kind fold_result_kind(allfold_fold fold, size_t i);
const char *fold_result_name(allfold_fold fold, size_t i); /* "value" if the fold has one */

/* The results of a fold, in order, each an allfold_result with a name. */
#define FOLD_RESULTS_MAX 12
struct fold_field {
    int which;        /* of the fold's results: of stats an enum statistic */
    const char *name; /* fold_finish sets it */
    allfold_value value;
    uint64_t index; /* ALLFOLD_NO_INDEX: none */
};
struct fold_results {
    uint64_t count; /* elements of the global array, without those that were left out as missing */
    allfold_level level;
    int field_count;
    struct fold_field fields[FOLD_RESULTS_MAX];
};

/* Where results are stored that the host finds while a stream waits for them. */
struct delivery_output {
    void *values;     /* memory that the device can write; NULL: not wanted */
    int64_t *indices; /* likewise */
    int bytes;        /* of a value */
};
struct delivery {
    void *stream; /* as in allfold_call */
    uint32_t id;  /* of the queue's deliveries, from 1: each has another than the one before */
    int count;    /* of the fold's results, in order */
    struct delivery_output outputs[FOLD_RESULTS_MAX];
};
/* One of these results. The value's bytes come first. */
struct delivered {
    uint64_t value;
    int64_t index;
};

/* The arguments of a fold besides its input. */
struct fold_call {
    allfold_fold fold;
    allfold_level level;
    allfold_nan nan;
    allfold_type result_type; /* as in allfold_call */
    uint64_t ddof; /* stats, variance, std: the variance is divided by the number of elements less this; of a comparison, a number for its rule */
    const struct packing *packing; /* sum and mean only: the elements are packed integers, for values of f64; NULL: they are values */
    /* Says where the element with an index is, behind that index in a message; NULL: nothing. */
    void (*place)(const void *array, uint64_t index, char *text, size_t bytes);
    const void *array;
};
#define ASK_FOR_FLOATING ": ask for a floating-point result, with --output-type=f64 (in C by result_type, in Python by dtype)"

/* The partial of `count` elements of a type. */
struct folded {
    allfold_type type;
    uint64_t count;
    const struct partial *partial;
};

/* The result of the fold over a whole array. *result is written only on success. */
allfold_status fold_finish(const struct fold_call *call, const struct folded *whole, struct fold_results *result, struct error *error);

/* Refuses more elements than a partial can hold. */
allfold_status monoid_has_room(enum monoid monoid, uint64_t count, struct error *error);

/* The constants of softmax's second pass, from a partial of the monoid. */
struct softmax_constants;
void softmax_constants_set(enum monoid monoid, const struct partial *partial, struct softmax_constants *constants);
