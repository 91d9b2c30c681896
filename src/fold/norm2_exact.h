/* Exact sum of exact squares, and its root, rounded once. Limbs: f32 from 2^-350, the last bit of the smallest double that can
   stand for a square of an f32, to 2^320; f64 from 2^-2148 to 2^2112. A square of an f64 is a rounded product
   and its rounding error, which fma gives exactly unless it is below 2^-1074. Smaller elements go to the words. */
#define NAME norm2_exact
#define NAME_FN(x) FN(norm2_exact_##x)
#if VALUE_BITS == 64
HOST_DEVICE double norm2_exact_square(double x) { return x != 0.0 && fabs(x) < 0x1p-480 ? (double)NAN : x * x; }
#define LIMBS 133
#define LOWEST -2148
#define WINDOWS 4
#define TERM(x) norm2_exact_square(x)
#define TERM_REST(x, term) fma(x, x, -(term))
#define ADD(sink, x, finite) exact_add_product_f64(sink, x, x, finite)
#define WEIGHT 2
#else
#define LIMBS 21
#define LOWEST -350
#define WINDOWS 2
#define TERM(x) ((double)(x) * (double)(x))
#define SQUARES
#define ADD(sink, x, finite) exact_add_product_f32(sink, x, x, finite)
#define WEIGHT 1
#endif
#include "fold/exact_template.h"

#ifdef FOLD_FINISH
FOLD_FINISH allfold_status FN(norm2_exact_finish)(const FN(norm2_exact) * norm, const struct finish *finish)
{
    struct exact_total total;
    exact_total_set(&total, norm->words, FN(norm2_exact_limbs), FN(norm2_exact_lowest));
    exact_total_root(&total);
    return result_f64(finish, exact_total_round(&total, false, finish->format));
}
#endif
