/* Exact sum of the exact products x[i] * y[i], rounded once. Limbs as of norm2_exact, whose squares are products, too. A product of
   two f64 is a rounded one and its rounding error, which fma gives exactly unless it is below 2^-1074. Smaller products, and those
   beyond the largest f64, go to the words. */
#define NAME dot_exact
#define NAME_FN(x) FN(dot_exact_##x)
#define TWO
#if VALUE_BITS == 64
HOST_DEVICE double dot_exact_product(double x, double y)
{
    const double product = x * y;
    return fabs(product) < 0x1p-960 && x != 0.0 && y != 0.0 ? (double)NAN : product;
}
#define LIMBS 133
#define LOWEST -2148
#define WINDOWS 4
#define OWN_WINDOWS 2 /* a product and its error in as few operations as there can be */
#define TERM(e) dot_exact_product((e).x, (e).y)
#define TERM_REST(e, term) fma((e).x, (e).y, -(term))
#define ADD(sink, e, finite) exact_add_product_f64(sink, (e).x, (e).y, finite)
#define WEIGHT 2
#else
#define LIMBS 21
#define LOWEST -350
#define WINDOWS 2
#define TERM(e) ((double)(e).x * (double)(e).y)
#define ADD(sink, e, finite) exact_add_product_f32(sink, (e).x, (e).y, finite)
#define WEIGHT 1
#endif
#include "fold/exact_template.h"

#ifdef FOLD_FINISH
FOLD_FINISH allfold_status FN(dot_exact_finish)(const FN(dot_exact) * dot, const struct finish *finish)
{
    struct exact_total total;
    exact_total_set(&total, dot->words, FN(dot_exact_limbs), FN(dot_exact_lowest));
    return result_f64(finish, exact_total_round(&total, finish->count > 0, finish->format));
}
#endif
