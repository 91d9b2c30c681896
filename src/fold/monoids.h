/* The monoids: what devices run and ranks combine. One line a monoid: X(name, indexed, nan). indexed: the partial holds
   indices, which move when parts are put behind one another. nan: the fold offers a choice of what NaN does. Ordered monoids
   are combined in the order of the array; partials of exact ones are words that are added in any order (exact.h), and, where
   they are indexed, something ordered behind.

   Each monoid is one file, included once for every value type (folds.h) with these macros set:

       VALUE            f32 f64 i32 i64 u32 u64; V its C type; FN(x) the name x_VALUE
       VALUE_FLOAT      1 for f32 and f64;  VALUE_SIGNED  1 for i32 and i64;  VALUE_BITS  32 or 64

   and defines, as C that is host and device code at once (HOST_DEVICE),

       FN(name)                  the partial: plain bytes, at most PARTIAL_BYTES_MAX, the same on every machine
       FN(name_identity)()       the partial of no elements
       FN(name_tile)(p, x, n, first)   takes x[0 .. n), whose first element has the index `first`, into *p
       FN(name_combine)(a, b)    *a = *a followed by *b; associative, and with the identity a monoid
       FN(name_shift)(p, offset) where indexed: adds offset to every index

   and, for the host only (#ifdef FOLD_HOST), for each fold of ALLFOLD_FOLDS that it computes,

       FN(fold_finish)(p, finish, result, error)   the result of the whole array's partial */
#ifndef ALLFOLD_MONOIDS_H
#define ALLFOLD_MONOIDS_H

#define ORDERED_MONOIDS(X) \
    X(sum, 0, 0)      \
    X(prod, 0, 0)     \
    X(min, 0, 1)      \
    X(max, 0, 1)      \
    X(argmin, 1, 1)   \
    X(argmax, 1, 1)   \
    X(norm1, 0, 0)    \
    X(norm2, 0, 0)    \
    X(norminf, 0, 0)  \
    X(sumexp, 0, 0)   \
    X(sumexp_f64, 0, 0) \
    X(sumexp_half, 0, 0) \
    X(sumexp_exact, 0, 0) \
    X(sumexp_f64_exact, 0, 0) \
    X(stats, 1, 1)

#define EXACT_MONOIDS(X)  \
    X(sum_exact, 0, 0)    \
    X(norm1_exact, 0, 0)  \
    X(norm2_exact, 0, 0)  \
    X(stats_exact, 1, 1)

#define MONOIDS(X) ORDERED_MONOIDS(X) EXACT_MONOIDS(X)

/* What the folds compute under ALLFOLD_LEVEL_EXACT: X(ID of the fold, its finish function, its monoid). Others have one way. */
#define EXACT_FOLDS(X)                        \
    X(SUM, sum_exact, sum_exact)              \
    X(MEAN, mean_exact, sum_exact)            \
    X(NORM1, norm1_exact, norm1_exact)        \
    X(NORM2, norm2_exact, norm2_exact)        \
    X(STATS, stats_exact, stats_exact)          \
    X(LOGSUMEXP, logsumexp_exact, sumexp_f64_exact)

/* The value types: X(argument, value type) for each. */
#define VALUES(X, argument) \
    X(argument, f32) X(argument, f64) X(argument, i32) X(argument, i64) X(argument, u32) X(argument, u64)

#define PARTIAL_BYTES_MAX 2560
#define ORDERED_BYTES_MAX 320 /* of an ordered monoid */
#endif

#ifdef VALUE
#include "fold/sum.h"
#include "fold/prod.h"
#include "fold/extreme.h"
#include "fold/argextreme.h"
#include "fold/norm1.h"
#include "fold/norm2.h"
#include "fold/norminf.h"
#include "fold/sumexp.h"
#include "fold/stats.h"
#include "fold/sum_exact.h"
#include "fold/norm2_exact.h"
#include "fold/stats_exact.h"
#endif
