/* Product. Floating point: a pair of f64 with a separate exponent, so that there is no intermediate overflow or underflow, and
   the result is rounded at the end. Integers: exact. Once the magnitude passes 64 bits only a zero element can make the result
   representable again, so that is remembered instead. */
#if VALUE_FLOAT
typedef struct {
    double high, low; /* the product is (high + low) * 2^exponent; 2^-400 <= |high| <= 2^400 unless 0, inf or NaN */
    int64_t exponent;
} FN(prod);

HOST_DEVICE FN(prod) FN(prod_identity)(void)
{
    FN(prod) prod;
    prod.high = 1.0;
    prod.low = 0.0;
    prod.exponent = 0;
    return prod;
}

HOST_DEVICE void FN(prod_combine)(FN(prod) * a, const FN(prod) * b)
{
    const double high = a->high * b->high;
    const double low = fma(a->high, b->high, -high) + (a->high * b->low + a->low * b->high);
    const double magnitude = fabs(high);
    const int shift = magnitude > 0x1p400 ? -512 : magnitude < 0x1p-400 ? 512 : 0;
    const double scale = power_of_two(shift);
    a->high = high * scale;
    a->low = low * scale;
    a->exponent += b->exponent - shift;
}

HOST_DEVICE void FN(prod_take)(FN(prod) * prod, double x)
{
    const double magnitude = fabs(x);
    const int shift = magnitude > 0x1p400 ? -624 : magnitude < 0x1p-400 ? 674 : 0;
    FN(prod) factor;
    factor.high = x * power_of_two(shift);
    factor.low = 0.0;
    factor.exponent = -shift;
    FN(prod_combine)(prod, &factor);
}

HOST_DEVICE void FN(prod_tile)(FN(prod) * prod, const V *x, uint32_t n, uint64_t first)
{
    (void)first;
    FN(prod) lanes[FOLD_LANES];
    for (int lane = 0; lane < FOLD_LANES; lane++)
        lanes[lane] = FN(prod_identity)();
    FOLD_FOR_LANES(n, i, lane, { FN(prod_take)(&lanes[lane], (double)x[i]); });
    for (int lane = 0; lane < FOLD_LANES; lane++)
        FN(prod_combine)(prod, &lanes[lane]);
}

#else
typedef struct {
    uint64_t magnitude; /* of the nonzero elements' product while it fits */
    uint32_t negative, zero, overflow;
    uint32_t reserved;
} FN(prod);

HOST_DEVICE FN(prod) FN(prod_identity)(void)
{
    FN(prod) prod;
    prod.magnitude = 1;
    prod.negative = prod.zero = prod.overflow = prod.reserved = 0;
    return prod;
}

HOST_DEVICE void FN(prod_combine)(FN(prod) * a, const FN(prod) * b)
{
    const uint128 product = (uint128)a->magnitude * b->magnitude;
    a->overflow |= b->overflow | (uint32_t)((product >> 64) != 0);
    a->magnitude = (product >> 64) != 0 ? 1 : (uint64_t)product;
    a->negative ^= b->negative;
    a->zero |= b->zero;
}

HOST_DEVICE void FN(prod_tile)(FN(prod) * prod, const V *x, uint32_t n, uint64_t first)
{
    (void)first;
    for (uint32_t i = 0; i < n; i++) {
        FN(prod) factor = FN(prod_identity)();
        factor.zero = x[i] == 0;
        factor.negative = FN(is_negative)(x[i]);
        factor.magnitude = FN(magnitude)(x[i]) | factor.zero; /* a zero element counts as 1 */
        FN(prod_combine)(prod, &factor);
    }
}
#endif

#ifdef FOLD_FINISH
FOLD_FINISH allfold_status FN(prod_finish)(const FN(prod) * prod, const struct finish *finish)
{
#if VALUE_FLOAT
    const double value = is_finite(prod->high) ? prod->high + prod->low : prod->high;
    const int64_t limit = 4000, exponent = prod->exponent;
    return result_f64(finish, ldexp(value, (int)(exponent > limit ? limit : exponent < -limit ? -limit : exponent)));
#else
    if (prod->zero)
        return result_integer(finish, (struct integer){"the product", 0, VALUE_SIGNED});
    if (prod->overflow)
        return finish_refuse(finish, ALLFOLD_OVERFLOW, "the product exceeds 64 bits: convert the elements to f64");
    const int128 magnitude = (int128)prod->magnitude;
    return result_integer(finish, (struct integer){"the product", prod->negative ? -magnitude : magnitude, VALUE_SIGNED});
#endif
}
#endif
