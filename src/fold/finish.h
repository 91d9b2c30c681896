/* Shared by the finish functions of the folds: results, and the effect of NaN on them. Host only; included by table.c before
   folds.h. */
#pragma once

#define FOLD_HOST 1

#include "base/elements.h"
#include "fold/arithmetic.h"
#include "fold/exact_exponential.h"
#include "fold/exact_total.h"
#include "fold/softmax_constants.h"
#include "fold/table.h"

#include <inttypes.h>
#include <math.h>

/* The arguments of a finish function besides the partial. */
struct finish {
    uint64_t count; /* elements of the global array */
    allfold_nan nan;
    uint64_t ddof; /* as in fold_call */
    allfold_type format; /* floating-point results are rounded to it */
    bool rounds;         /* integers are rounded to it, too: the caller asked for that format */
    struct fold_results *result; /* to which the fields are added */
    struct error *error;
};

static allfold_status result_add(const struct finish *finish, allfold_value value)
{
    struct fold_results *const result = finish->result;
    result->fields[result->field_count++] = (struct fold_field){.name = "value", .value = value, .index = ALLFOLD_NO_INDEX};
    return ALLFOLD_OK;
}

/* The field added last. */
static struct fold_field *result_last(const struct finish *finish)
{
    return &finish->result->fields[finish->result->field_count - 1];
}
static void result_name(const struct finish *finish, const char *name) { result_last(finish)->name = name; }

static allfold_status result_f64(const struct finish *finish, double value)
{
    return result_add(finish, (allfold_value){.kind = ALLFOLD_VALUE_F64, .f64 = value});
}

/* A field that is a number of elements. */
static void result_count(const struct finish *finish, const char *name, uint64_t count)
{
    result_add(finish, (allfold_value){.kind = ALLFOLD_VALUE_U64, .u64 = count});
    result_name(finish, name);
    result_last(finish)->is_count = 1;
}

/* Writes |value| in decimal so that it ends at end, and returns its first digit. */
static const char *decimal_128(uint128 value, char *end)
{
    *end = '\0';
    do
        *--end = (char)('0' + (int)(value % 10));
    while ((value /= 10) != 0);
    return end;
}

#define ASK_FOR_FLOATING ": ask for a floating-point result, with --output-type=f64 (in C by result_type, in Python by dtype)"

struct integer {
    const char *what; /* for messages */
    int128 value;
    bool is_signed;
};

static allfold_status integer_overflow(const struct integer *integer, struct error *error)
{
    const int128 value = integer->value;
    char digits[48];
    const char *text = decimal_128(value < 0 ? -(uint128)value : (uint128)value, digits + sizeof digits - 1);
    return error_set(error, ALLFOLD_OVERFLOW,
                     "%s is %s%s, which %s cannot hold" ASK_FOR_FLOATING,
                     integer->what, value < 0 ? "-" : "", text, integer->is_signed ? "int64" : "uint64");
}

/* As int64 or uint64. A value that these cannot hold is an error, unless the caller asked for a floating-point format: then it is
   rounded to that, once. */
static allfold_status result_integer(const struct finish *finish, struct integer integer)
{
    const int128 value = integer.value;
    const bool fits = integer.is_signed ? value >= INT64_MIN && value <= INT64_MAX : value >= 0 && value <= UINT64_MAX;
    if (!fits && finish->rounds) {
        const struct exact_total total = exact_total_of_integer(value);
        return result_f64(finish, exact_total_round(&total, false, finish->format));
    }
    if (!fits)
        return integer_overflow(&integer, finish->error);
    return integer.is_signed ? result_add(finish, (allfold_value){.kind = ALLFOLD_VALUE_I64, .i64 = (int64_t)value})
                             : result_add(finish, (allfold_value){.kind = ALLFOLD_VALUE_U64, .u64 = (uint64_t)value});
}

/* The same of an integer of any length. */
static allfold_status result_total(const struct finish *finish, const char *what, const struct exact_total *total, bool is_signed)
{
    if (exact_total_bits(total) < 128)
        return result_integer(finish, (struct integer){what, exact_total_integer(total), is_signed});
    if (finish->rounds)
        return result_f64(finish, exact_total_round(total, false, finish->format));
    return error_set(finish->error, ALLFOLD_OVERFLOW,
                     "%s has %d bits, which %s cannot hold" ASK_FOR_FLOATING,
                     what, exact_total_bits(total), is_signed ? "int64" : "uint64");
}

/* An element as a result. */
#define RESULT_VALUE(value_name, kind_id, field, type)                                              \
    static allfold_status result_value_##value_name(const struct finish *finish, bool nan, type value)   \
    {                                                                                               \
        if (nan)                                                                                    \
            return result_f64(finish, NAN);                                                         \
        return result_add(finish, (allfold_value){.kind = ALLFOLD_VALUE_##kind_id, .field = value}); \
    }
RESULT_VALUE(f32, F64, f64, float)
RESULT_VALUE(f64, F64, f64, double)
RESULT_VALUE(i32, I64, i64, int32_t)
RESULT_VALUE(i64, I64, i64, int64_t)
RESULT_VALUE(u32, U64, u64, uint32_t)
RESULT_VALUE(u64, U64, u64, uint64_t)
#undef RESULT_VALUE

/* The root of a + b scale^2, neither negative, b the smaller: rounded once, or nearly. */
static inline double root_of_pairs(pair a, pair b, double scale)
{
    b.high = b.high * scale * scale; /* scale^2 need not be representable */
    b.low = b.low * scale * scale;
    pair_combine(&a, &b);
    const double root = sqrt(a.high), rest = fma(-root, root, a.high) + a.low;
    return is_finite(root) && root != 0.0 ? root + rest / (2.0 * root) : root;
}

/* Refuses an array that has no extreme: an empty one, one with NaN alone if NaN is left out, and one with NaN if NaN is refused.
   nan_index may be ALLFOLD_NO_INDEX. */
static allfold_status finish_nan(const struct finish *finish, const char *name, uint64_t nans, uint64_t nan_index)
{
    if (finish->nan == ALLFOLD_NAN_ERROR && nans > 0) {
        char where[48] = "";
        if (nan_index != ALLFOLD_NO_INDEX)
            snprintf(where, sizeof where, ", the first at index %" PRIu64, nan_index);
        return error_set(finish->error, ALLFOLD_NO_VALUE, "%" PRIu64 " of %" PRIu64 " elements are NaN%s, and NaN is refused here",
                         nans, finish->count, where);
    }
    if (finish->count == 0)
        return error_set(finish->error, ALLFOLD_NO_VALUE, "%s of an empty array does not exist", name);
    if (finish->nan == ALLFOLD_NAN_OMIT && nans == finish->count)
        return error_set(finish->error, ALLFOLD_NO_VALUE, "%s does not exist: all %" PRIu64 " elements are NaN and left out", name,
                         nans);
    return ALLFOLD_OK;
}

/* logsumexp: rounded once. +inf gives +inf. -inf gives -inf if there is nothing else. */
static allfold_status result_logsumexp(const struct finish *finish, double max, pair others)
{
    const pair log = log_of_others(max, others);
    double lost;
    const double value = two_sum(max, log.high, &lost);
    return result_f64(finish, is_finite(value) ? value + (lost + log.low) : max + log.high);
}
