/* Folds by number: what is known of a partial without knowing its type. The CPU and CUDA backends fill partials, ranks
   exchange and combine them, core/ finishes them. */
#ifndef ALLFOLD_FOLD_TABLE_H
#define ALLFOLD_FOLD_TABLE_H

#include "base/base.h"
#include "fold/monoids.h"

enum monoid {
#define ROW(name, indexed, nan) MONOID_##name,
    MONOIDS(ROW)
#undef ROW
    MONOID_COUNT
};

enum value {
#define ROW(nothing, name) VALUE_##name,
    VALUES(ROW, )
#undef ROW
    VALUE_COUNT
};
enum value type_value(allfold_type type); /* in which arithmetic on elements of the type starts */

/* A partial of any monoid; how many bytes of it are used, monoid_bytes tells. */
struct partial {
    __attribute__((aligned(16))) unsigned char bytes[PARTIAL_BYTES_MAX];
};

/* All take the element type; the partial's layout depends on it. */
size_t monoid_bytes(enum monoid monoid, allfold_type type);
/* How many 64-bit words at the beginning of a partial are combined by adding them, in any order; 0 for ordered monoids. */
uint32_t monoid_words(enum monoid monoid, allfold_type type);
/* Whether partials, in no words that are added, may be combined in any order all the same: bins of exact sums of exponentials. */
bool monoid_commutes(enum monoid monoid);
void monoid_identity(enum monoid monoid, allfold_type type, struct partial *partial);
/* *a = *a followed by *b. */
void monoid_combine(enum monoid monoid, allfold_type type, struct partial *a, const struct partial *b);

/* Adds offset to the indices that the partial holds, if it holds any. */
void monoid_shift(enum monoid monoid, allfold_type type, struct partial *partial, uint64_t offset);

/* The level at which the fold is computed where this one is asked for: folds without a choice have their own. */
allfold_level fold_level(allfold_fold fold, allfold_level level);
enum monoid fold_monoid(allfold_fold fold, allfold_level level);
bool fold_has_level_choice(allfold_fold fold);
bool fold_has_nan_choice(allfold_fold fold);  /* takes allfold_nan; others propagate */
const char *fold_text(allfold_fold fold);     /* what it is, for --help */

/* How a fold is called, beside its input. */
struct fold_call {
    allfold_fold fold;
    allfold_level level;
    allfold_nan nan;
    const allfold_type *result_type; /* the floating-point type to which results are rounded; NULL: see allfold_call */
};

/* The result of the fold over the whole array, whose elements number count. *result is written only on success. */
allfold_status fold_finish(const struct fold_call *call, allfold_type type, const struct partial *partial, uint64_t count,
                           allfold_result *result, struct error *error);

/* Softmax's first pass. Which it is, of one level, only matters for the precision: the partials' layout and meaning are one. */
enum monoid softmax_monoid(allfold_type x_type, allfold_type y_type, bool logarithm, allfold_level level);

/* Refuses more elements than a partial has room for: 2^41 exact exponentials in f64. All other folds have room for all that can be
   counted. */
allfold_status monoid_has_room(enum monoid monoid, uint64_t count, struct error *error);

/* What softmax's second pass needs, from a partial of that monoid over elements of `type`. */
struct softmax_constants;
void softmax_constants_set(enum monoid monoid, allfold_type type, const struct partial *partial,
                           struct softmax_constants *constants);

#endif
