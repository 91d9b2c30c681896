/* Looks up types and folds in the tables of allfold.h, without MPI; lists what is known of a type. */
#pragma once

#define ALLFOLD_WITHOUT_MPI
#include "allfold.h"
#undef ALLFOLD_WITHOUT_MPI

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The type or fold of that name (NumPy's names too); false if there is none. */
bool type_by_name(const char *name, allfold_type *type);
bool fold_by_name(const char *name, allfold_fold *fold);
bool type_exists(allfold_type type); /* false for ALLFOLD_TYPE_NONE and for numbers that are no type */
unsigned type_number_bits(allfold_type type); /* bits of an element's number: 8 a byte, for bool 1 */
uint64_t type_whole_limit(allfold_type type, bool greatest); /* least or greatest of an integer type, in two's complement; of bool 0 or 1 */
char type_kind(allfold_type type);   /* 'f', 'i', 'u' or 'b' */
const char *type_numpy_name(allfold_type type);

/* A floating-point type: bits of its significand, exponents of its smallest normal binade and of its largest, and its largest number.
   Of -inf all bits are set but those of the fraction, which are precision - 1, as in IEEE 754. float_format_of: elements.h. */
struct float_format {
    int precision, exponent_min, exponent_max;
    double largest;
};
/* Every switch over floating-point types is made of this table: X(type, its name, the members). */
#define FLOAT_TYPES(X)                         \
    X(F16, f16, 11, -14, 15, 65504)            \
    X(BF16, bf16, 8, -126, 127, 0x1.fep127)    \
    X(F32, f32, 24, -126, 127, 0x1.fffffep127) \
    X(F64, f64, 53, -1022, 1023, 0x1.fffffffffffffp1023)

/* x rounded to that floating-point type: the element's bits. */
uint64_t type_real_bits(allfold_type type, double x);

/* Element x stands for scale * x + offset. */
struct packing {
    double scale, offset;
};
