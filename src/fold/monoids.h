/* The monoids: devices run them and ranks combine them. Every fact about a monoid is in its line. The table of functions
   (table.c), the kernels and their shapes, and softmax read it there. One line a monoid:

       X(name, values, operands, indexed, nan, level, cost, terms, most, neutral)

       values   ALL value types, FLOAT, or F32 alone
       operands 1, or 2: it takes two arrays side by side
       indexed  1: the partial holds indices, which change when one part follows another
       nan      1: its folds let the caller choose the effect of NaN
       level    the level at which it computes: FAST rounds, EXACT does not
       cost     of an element on a device: enum cost (table.h)
       terms    the arithmetic of a term, if not that of the values; of monoids of exponentials F32, F64, QUICK: f32, for less accurate results, or SHORT: f32,
                for elements and results of 16 bits only; else NONE
       most     at most 2^most elements; 64: any number

       neutral  the element that changes no partial, whatever its index: ZERO (-0.0), ONE, the LARGEST or SMALLEST of the value type,
                INFINITE (-inf, of floating-point numbers alone), or NONE

   WORD_MONOIDS are exact sums of floating-point numbers; those of integers are exact in STRUCT_MONOIDS. Their partials begin with words
   that are added (exact.h). If a monoid is indexed, ordered data follows the words. These monoids have a kernel of their own
   (kernels/exact.cuh).

   Each monoid is one file, included once for every value type (folds.h) with these macros set:

       VALUE            f32 f64 i32 i64 u32 u64; V its C type; FN(x) the name x_VALUE
       VALUE_FLOAT      1 for f32 and f64;  VALUE_SIGNED  1 for i32 and i64;  VALUE_BITS  32 or 64

   and defines, as C that is host and device code at once (HOST_DEVICE),

       FN(name)                  the partial: plain bytes, at most PARTIAL_BYTES_MAX, the same on every machine
       FN(name_identity)()       the partial of no elements
       FN(name_tile)(p, x, n, first)   takes x[0 .. n), whose first element has the index `first`, into *p; x is a const V *, or of
                                       two operands an FN(arrays) (folds.h)
       FN(name_combine)(a, b)    *a = *a followed by *b; associative, and with the identity a monoid
       FN(name_indices)(p, places)  if indexed: the places of its indices, at most MONOID_INDICES_MAX; returns how many they are

   and, if the CPU is to fold columns as they lie, what columns_template.h needs (#ifdef FOLD_COLUMNS; its users: device/cpu/side_by_side.h)

   and, where results are wanted (#ifdef FOLD_FINISH, see finish.h), for each fold of ALLFOLD_FOLDS that it computes,

       FN(fold_finish)(p, finish)   the result of the whole array's partial */
#ifndef ALLFOLD_MONOIDS_H
#define ALLFOLD_MONOIDS_H

#define STRUCT_MONOIDS(X)                                                        \
    X(sum,              ALL, 1, 0, 0, FAST,  LITTLE,      NONE,  64, ZERO)       \
    X(prod,             ALL, 1, 0, 0, FAST,  MUCH,        NONE,  64, ONE)        \
    X(min,              ALL, 1, 0, 1, EXACT, LITTLE,      NONE,  64, LARGEST)    \
    X(max,              ALL, 1, 0, 1, EXACT, LITTLE,      NONE,  64, SMALLEST)   \
    X(argmin,           ALL, 1, 1, 1, EXACT, INDEX,       NONE,  64, NONE)       \
    X(argmax,           ALL, 1, 1, 1, EXACT, INDEX,       NONE,  64, NONE)       \
    X(norm1,            ALL, 1, 0, 0, FAST,  LITTLE,      NONE,  64, ZERO)       \
    X(norm2,            ALL, 1, 0, 0, FAST,  SQUARES,     NONE,  64, ZERO)       \
    X(norminf,          ALL, 1, 0, 0, EXACT, LITTLE,      NONE,  64, ZERO)       \
    X(sumexp,           F32, 1, 0, 0, FAST,  EXPONENTIAL, F32,   64, INFINITE)   \
    X(sumexp_f64,       ALL, 1, 0, 0, FAST,  EXPONENTIAL, F64,   64, INFINITE)   \
    X(sumexp_half,      F32, 1, 0, 0, FAST,  EXPONENTIAL, SHORT, 64, INFINITE)   \
    X(sumexp_quick,     F32, 1, 0, 0, FAST,  EXPONENTIAL, QUICK, 64, INFINITE)   \
    X(sumexp_exact,     F32, 1, 0, 0, EXACT, BINS,        F32,   64, INFINITE)   \
    X(sumexp_f64_exact, ALL, 1, 0, 0, EXACT, BINS,        F64,   41, INFINITE)   \
    X(logits,           FLOAT, 1, 1, 0, FAST, EXPONENTIAL, NONE, 64, INFINITE)   \
    X(logits_exact,     FLOAT, 1, 1, 0, EXACT, BINS,      NONE,  41, INFINITE)   \
    X(stats,            ALL, 1, 1, 1, FAST,  STATS,       NONE,  64, NONE)       \
    X(dot,              ALL, 2, 0, 0, FAST,  PRODUCTS,    NONE,  64, NONE)

#define WORD_MONOIDS(X)                                                          \
    X(sum_exact,        FLOAT, 1, 0, 0, EXACT, LITTLE,    NONE,  64, ZERO)       \
    X(norm1_exact,      FLOAT, 1, 0, 0, EXACT, LITTLE,    NONE,  64, ZERO)       \
    X(norm2_exact,      FLOAT, 1, 0, 0, EXACT, SQUARES,   NONE,  64, ZERO)       \
    X(stats_exact,      FLOAT, 1, 1, 1, EXACT, STATS,     NONE,  64, NONE)       \
    X(dot_exact,        FLOAT, 2, 0, 0, EXACT, PRODUCTS,  NONE,  64, NONE)       \
    X(compare,          ALL, 2, 1, 0, EXACT, COMPARE,     NONE,  64, NONE)

/* Of elements and their weights, which are f64: terms F64, as elements are taken as such. Words, too, but no kernels of one array. */
#define WEIGHTED_MONOIDS(X)                                                      \
    X(weighted,         ALL, 2, 0, 0, EXACT, PRODUCTS,    F64,   64, ZERO)       \
    X(weighted_squares, ALL, 2, 0, 0, EXACT, PRODUCTS,    F64,   64, ZERO)

#define MONOIDS(X) STRUCT_MONOIDS(X) WORD_MONOIDS(X) WEIGHTED_MONOIDS(X)

/* Folds that have calls of their own (allfold_dot): lines as in ALLFOLD_FOLDS. Their numbers, FOLD_ID, follow those of allfold_fold. */
#define OTHER_FOLDS(X)                            \
    X(DOT, dot, dot, 1, "dot product")            \
    X(COMPARE, compare, compare, 2, "comparison") \
    X(LOG_PROBS, log_probs, logits, 4, "log-probabilities") \
    X(WEIGHTED_SUM, weighted_sum, weighted, 1, "sum of weighted elements") \
    X(WEIGHTED_MEAN, weighted_mean, weighted, 1, "weighted mean") \
    X(WEIGHTED_VARIANCE, weighted_variance, weighted_squares, 1, "weighted variance") \
    X(WEIGHTED_STD, weighted_std, weighted_squares, 1, "root of the weighted variance")

/* The methods of folds that differ from the one of ALLFOLD_FOLDS: X(when, number of the fold, its finish function, its monoid, for values).
   when: at level EXACT or FAST. Integers have one method for sums. */
#define FOLD_METHODS(X)                                                 \
    X(EXACT, ALLFOLD_SUM, sum_exact, sum_exact, FLOAT)                  \
    X(EXACT, ALLFOLD_MEAN, mean_exact, sum_exact, FLOAT)                \
    X(EXACT, ALLFOLD_NORM1, norm1_exact, norm1_exact, FLOAT)            \
    X(EXACT, ALLFOLD_NORM2, norm2_exact, norm2_exact, FLOAT)            \
    X(EXACT, ALLFOLD_STATS, stats_exact, stats_exact, FLOAT)            \
    X(EXACT, ALLFOLD_VARIANCE, variance_exact, stats_exact, FLOAT)      \
    X(EXACT, ALLFOLD_STD, std_exact, stats_exact, FLOAT)                \
    X(EXACT, ALLFOLD_LOGSUMEXP, logsumexp_exact, sumexp_f64_exact, ALL) \
    X(EXACT, FOLD_DOT, dot_exact, dot_exact, FLOAT)                     \
    X(EXACT, FOLD_LOG_PROBS, log_probs_exact, logits_exact, FLOAT)      \
    X(FAST, ALLFOLD_LOGSUMEXP, logsumexp_quick, sumexp_quick, F32)

/* The value types. A monoid has all of them or some: X(argument, value type) for each. */
#define VALUES_FLOAT(X, argument) X(argument, f32) X(argument, f64)
#define VALUES_INTEGER(X, argument) X(argument, i32) X(argument, i64) X(argument, u32) X(argument, u64)
#define VALUES(X, argument) VALUES_FLOAT(X, argument) VALUES_INTEGER(X, argument)
#define VALUES_ALL VALUES
#define VALUES_F32(X, argument) X(argument, f32)
#define VALUES_F64(X, argument) X(argument, f64)

#define PARTIAL_BYTES_MAX 3328
#define STRUCT_BYTES_MAX 320 /* of STRUCT_MONOIDS */
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
#include "fold/logits.h"
#include "fold/stats.h"
#include "fold/dot.h"
#if VALUE_FLOAT
#include "fold/sum_exact.h"
#include "fold/norm2_exact.h"
#include "fold/stats_exact.h"
#include "fold/dot_exact.h"
#endif
#include "fold/compare.h"
#include "fold/weighted.h"
#endif
