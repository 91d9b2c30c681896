/* Shared by the finish functions of the folds: results, and the effect of NaN on them. Included before folds.h by table.c, and by
   kernels that finish what they fold. These have no text of errors: what is refused there, the host finishes again. */
#pragma once

#include "base/elements.h"
#include "fold/arithmetic.h"
#include "fold/axis.h"
#include "fold/exact_exponential.h"
#include "fold/exact_total.h"
#include "fold/softmax_constants.h"
#include "fold/table.h"

#include <inttypes.h>
#include <math.h>

/* The storage of finish functions. */
#ifdef __CUDACC__
#define FOLD_FINISH static __device__ __forceinline__
#define finish_refuse(finish, code, ...) ((finish)->error->status = (code))
#else
#define FOLD_FINISH static
#define finish_refuse(finish, ...) error_set((finish)->error, __VA_ARGS__)
#endif

#ifdef __CUDACC__
/* Where a device stores the results of stats of a row: at once, as keeping them takes more memory than its caches have. */
struct stats_row {
    const struct axis_output *of;
    uint64_t place;
    uint32_t stored; /* a bit for each statistic */
    bool fits;       /* each has a value of its type */
};
#endif

/* The arguments of a finish function besides the partial. */
struct finish {
    uint64_t count; /* elements of the global array */
    allfold_nan nan;
    uint64_t ddof; /* as in fold_call */
    allfold_type format; /* floating-point results are rounded to it */
    bool rounds;         /* integers are rounded to it, too: the caller asked for that format */
    struct fold_results *result; /* to which the fields are added */
    struct error *error;
    const struct fold_call *call; /* for messages; NULL on devices */
#ifdef __CUDACC__
    struct stats_row *row; /* of stats */
#endif
};

FOLD_FINISH allfold_status result_add(const struct finish *finish, allfold_value value)
{
    struct fold_results *const result = finish->result;
    struct fold_field *const field = &result->fields[result->field_count++];
    field->which = 0;
    field->value = value;
    field->index = ALLFOLD_NO_INDEX;
    return ALLFOLD_OK;
}

/* The field added last. */
FOLD_FINISH struct fold_field *result_last(const struct finish *finish)
{
    return &finish->result->fields[finish->result->field_count - 1];
}
/* The field added last is whole, and is that statistic. */
FOLD_FINISH void result_is(const struct finish *finish, enum statistic which)
{
    result_last(finish)->which = (int)which;
#ifdef __CUDACC__
    finish->row->fits &= result_store(result_last(finish), &finish->row->of[which], finish->row->place);
    finish->row->stored |= 1u << which;
    finish->result->field_count = 0;
#endif
}

FOLD_FINISH allfold_status result_f64(const struct finish *finish, double value)
{
    allfold_value result;
    result.kind = ALLFOLD_VALUE_F64;
    result.f64 = value;
    return result_add(finish, result);
}
FOLD_FINISH allfold_status result_i64(const struct finish *finish, int64_t value)
{
    allfold_value result;
    result.kind = ALLFOLD_VALUE_I64;
    result.i64 = value;
    return result_add(finish, result);
}
FOLD_FINISH allfold_status result_u64(const struct finish *finish, uint64_t value)
{
    allfold_value result;
    result.kind = ALLFOLD_VALUE_U64;
    result.u64 = value;
    return result_add(finish, result);
}

struct integer {
    const char *what; /* for messages */
    int128 value;
    bool is_signed;
};

#ifndef __CUDACC__
/* Writes |value| in decimal so that it ends at end, and returns its first digit. */
static const char *decimal_128(uint128 value, char *end)
{
    *end = '\0';
    do
        *--end = (char)('0' + (int)(value % 10));
    while ((value /= 10) != 0);
    return end;
}
#endif

/* A value that int64 or uint64 cannot hold is an error, unless the caller asked for a floating-point format: then it is rounded to
   that, once. */
FOLD_FINISH allfold_status integer_overflow(const struct finish *finish, const struct integer *integer)
{
    const int128 value = integer->value;
    if (finish->rounds) {
        const struct exact_total total = exact_total_of_integer(value);
        return result_f64(finish, exact_total_round(&total, false, finish->format));
    }
#ifndef __CUDACC__
    char digits[48];
    const char *text = decimal_128(value < 0 ? -(uint128)value : (uint128)value, digits + sizeof digits - 1);
#endif
    return finish_refuse(finish, ALLFOLD_OVERFLOW, "%s is %s%s, which %s cannot hold" ASK_FOR_FLOATING,
                         integer->what, value < 0 ? "-" : "", text, integer->is_signed ? "int64" : "uint64");
}

/* As int64 or uint64. */
FOLD_FINISH allfold_status result_integer(const struct finish *finish, struct integer integer)
{
    const int128 value = integer.value;
    const bool fits = integer.is_signed ? value >= INT64_MIN && value <= INT64_MAX : value >= 0 && value <= UINT64_MAX;
    if (!fits)
        return integer_overflow(finish, &integer);
    return integer.is_signed ? result_i64(finish, (int64_t)value) : result_u64(finish, (uint64_t)value);
}

/* As result_integer, for an integer of any length. */
FOLD_FINISH allfold_status result_total(const struct finish *finish, const char *what, const struct exact_total *total, bool is_signed)
{
    if (exact_total_bits(total) < 128)
        return result_integer(finish, (struct integer){what, exact_total_integer(total), is_signed});
    if (finish->rounds)
        return result_f64(finish, exact_total_round(total, false, finish->format));
    return finish_refuse(finish, ALLFOLD_OVERFLOW, "%s has %d bits, which %s cannot hold" ASK_FOR_FLOATING,
                         what, exact_total_bits(total), is_signed ? "int64" : "uint64");
}

/* Integers of up to this magnitude are doubles. So a ratio or a root of such, in f64, is rounded once without exact_total. */
#define EXACT_IN_F64 ((int128)1 << 53)

/* total / divisor, rounded once; divisor > 0. */
FOLD_FINISH allfold_status result_ratio(const struct finish *finish, int128 total, uint64_t divisor)
{
    if (finish->format == ALLFOLD_F64 && total <= EXACT_IN_F64 && -total <= EXACT_IN_F64 && (int128)divisor <= EXACT_IN_F64)
        return result_f64(finish, (double)(int64_t)total / (double)(int64_t)divisor);
    struct exact_total ratio = exact_total_of_integer(total);
    exact_total_divide(&ratio, divisor);
    return result_f64(finish, exact_total_round(&ratio, false, finish->format));
}

/* The variance of part->count integers, or its root, from the sums of their squares and of themselves, rounded once. */
FOLD_FINISH double variance_of_integers(wide squares, int128 sum, const struct finish *part, bool root)
{
    const uint64_t divisor = part->count - part->ddof;
    if (!root && part->format == ALLFOLD_F64 && squares.high == 0 && squares.low >> 62 == 0 && part->count >> 26 == 0) {
        const int128 ratio = (int128)(squares.low * part->count) - sum * sum; /* |sum| is at most the sum of squares */
        if (ratio <= EXACT_IN_F64)
            return (double)(int64_t)ratio / (double)(part->count * divisor);
    }
    const struct exact_total total = exact_total_of_integer(sum), of_squares = exact_total_of_wide(squares.high, squares.low);
    struct exact_total variance = exact_total_variance(&of_squares, &total, part->count, divisor);
    if (root)
        exact_total_root(&variance);
    return exact_total_round(&variance, false, part->format);
}

/* An element as a result. */
#define RESULT_VALUE(value_name, kind, type)                                                        \
    FOLD_FINISH allfold_status result_value_##value_name(const struct finish *finish, bool nan, type value) \
    {                                                                                               \
        return nan ? result_f64(finish, NAN) : result_##kind(finish, value);                        \
    }
RESULT_VALUE(f32, f64, float)
RESULT_VALUE(f64, f64, double)
RESULT_VALUE(i32, i64, int32_t)
RESULT_VALUE(i64, i64, int64_t)
RESULT_VALUE(u32, u64, uint32_t)
RESULT_VALUE(u64, u64, uint64_t)
#undef RESULT_VALUE

/* The root of a + b scale^2, neither negative, b the smaller: rounded once, or nearly. */
FOLD_FINISH double root_of_pairs(pair a, pair b, double scale)
{
    b.high = b.high * scale * scale; /* scale^2 need not be representable */
    b.low = b.low * scale * scale;
    pair_combine(&a, &b);
    const double root = sqrt(a.high), rest = fma(-root, root, a.high) + a.low;
    return is_finite(root) && root != 0.0 ? root + rest / (2.0 * root) : root;
}

/* Refuses an array that has no extreme: an empty one, one with NaN alone if NaN is left out, and one with NaN if NaN is refused.
   nan_index may be ALLFOLD_NO_INDEX. */
FOLD_FINISH allfold_status finish_nan(const struct finish *finish, const char *name, uint64_t nans, uint64_t nan_index)
{
    if (finish->nan == ALLFOLD_NAN_ERROR && nans > 0) {
#ifdef __CUDACC__
        (void)name, (void)nan_index;
#else
        char where[320] = "";
        const int length = nan_index == ALLFOLD_NO_INDEX ? 0 : snprintf(where, sizeof where, ", the first at index %" PRIu64, nan_index);
        if (length > 0 && finish->call != NULL && finish->call->place != NULL)
            finish->call->place(finish->call->array, nan_index, where + length, sizeof where - (size_t)length);
#endif
        return finish_refuse(finish, ALLFOLD_NO_VALUE, "%" PRIu64 " of %" PRIu64 " elements are NaN%s, and NaN is refused here",
                         nans, finish->count, where);
    }
    if (finish->count == 0)
        return finish_refuse(finish, ALLFOLD_NO_VALUE, "%s of an empty array does not exist", name);
    if (finish->nan == ALLFOLD_NAN_OMIT && nans == finish->count)
        return finish_refuse(finish, ALLFOLD_NO_VALUE, "%s does not exist: all %" PRIu64 " elements are NaN and left out", name,
                         nans);
    return ALLFOLD_OK;
}

/* logsumexp: rounded once. +inf gives +inf. -inf gives -inf if there is nothing else. */
FOLD_FINISH allfold_status result_logsumexp(const struct finish *finish, double max, pair others)
{
    const pair log = log_of_others(max, others);
    double lost;
    const double value = two_sum(max, log.high, &lost);
    return result_f64(finish, is_finite(value) ? value + (lost + log.low) : max + log.high);
}
