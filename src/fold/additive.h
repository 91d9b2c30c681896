/* Template of the sums. NAME is the monoid. TERM(x) is added for element x. TERM_SIGNED says whether integer terms can be
   negative. TERM_ZERO is the identity. Included by sum.h and norm1.h, for each value type. */
#if VALUE_FLOAT
typedef struct {
    pair total;
} FN(NAME);

HOST_DEVICE FN(NAME) NAME_FN(identity)(void)
{
    FN(NAME) sum;
    sum.total.high = TERM_ZERO;
    sum.total.low = 0.0;
    return sum;
}

HOST_DEVICE void NAME_FN(combine)(FN(NAME) * a, const FN(NAME) * b) { pair_combine(&a->total, &b->total); }

#if VALUE_BITS == 64
HOST_DEVICE void NAME_FN(step)(double *high, double *low, V x)
{
    double error;
    *high = two_sum(*high, TERM(x), &error);
    *low += error;
}
#endif

#if VALUE_BITS == 64
HOST_DEVICE void NAME_FN(tile)(FN(NAME) * sum, const V *x, uint32_t n, uint64_t first)
{
    double high[FOLD_LANES], low[FOLD_LANES] = {0.0};
    (void)first;
    for (int lane = 0; lane < FOLD_LANES; lane++)
        high[lane] = TERM_ZERO;
    FOLD_FOR_LANES(n, i, lane, { NAME_FN(step)(&high[lane], &low[lane], x[i]); });
    for (int lane = 0; lane < FOLD_LANES; lane++)
        sum->total.low += low[lane];
    for (int lane = 0; lane < FOLD_LANES; lane++)
        pair_add(&sum->total, high[lane]);
}
#else
HOST_DEVICE double NAME_FN(total)(const V *x, uint32_t n)
{
    double high[FOLD_LANES];
    for (int lane = 0; lane < FOLD_LANES; lane++)
        high[lane] = TERM_ZERO;
    FOLD_FOR_LANES(n, i, lane, { high[lane] += TERM((double)x[i]); });
    return lanes_total(high);
}

HOST_DEVICE void NAME_FN(tile)(FN(NAME) * sum, const V *x, uint32_t n, uint64_t first)
{
    (void)first;
    pair_add(&sum->total, NAME_FN(total)(x, n));
}
#endif

#ifdef FOLD_COLUMNS
#if VALUE_BITS == 64
#define LANE(F) F(double, high, TERM_ZERO) F(double, low, 0.0)
#define STEP(lane, x) NAME_FN(step)(&(lane)->high, &(lane)->low, x)
#define SETTLE(lane, sum, first) (pair_add(&(sum)->total, (lane)->high), (sum)->total.low += (lane)->low, true)
#define RESULT(lane) (is_finite((lane)->high) && (lane)->low != 0.0 ? (lane)->high + (lane)->low : (lane)->high)
#else
#define LANE(F) F(double, high, TERM_ZERO)
#define STEP(lane, x) ((lane)->high += TERM((double)(x)))
#define SETTLE(lane, sum, first) (pair_add(&(sum)->total, (lane)->high), true)
#define RESULT(lane) ((lane)->high)
#endif
#define HOLDS(lane) ((void)(lane), true)
#include "fold/columns_template.h"

static bool NAME_FN(row_result)(const void *x, uint32_t n, double *result)
{
#if VALUE_BITS == 64
    FN(NAME) sum = NAME_FN(identity)();
    NAME_FN(tile)(&sum, x, n, 0);
    *result = pair_value(&sum.total);
#else
    *result = NAME_FN(total)(x, n);
#endif
    return true;
}
#endif

#else /* integers: exact */
typedef struct {
    int128 total;
} FN(NAME);

HOST_DEVICE FN(NAME) NAME_FN(identity)(void)
{
    FN(NAME) sum;
    sum.total = 0;
    return sum;
}

HOST_DEVICE void NAME_FN(combine)(FN(NAME) * a, const FN(NAME) * b) { a->total += b->total; }

/* Each lane adds halves of at most 32 bits, at most 2^32 of them: 64 bits cannot overflow. */
#if TERM_SIGNED
typedef int64_t NAME_FN(half);
#else
typedef uint64_t NAME_FN(half);
#endif
#if VALUE_BITS == 64
HOST_DEVICE void NAME_FN(step)(NAME_FN(half) * high, uint64_t *low, V x)
{
    const NAME_FN(half) term = TERM(x);
    *low += (uint32_t)term;
    *high += term >> 32;
}
HOST_DEVICE int128 NAME_FN(value)(NAME_FN(half) high, uint64_t low) { return (int128)high * ((int128)1 << 32) + (int128)low; }
#endif

HOST_DEVICE void NAME_FN(tile)(FN(NAME) * sum, const V *x, uint32_t n, uint64_t first)
{
    (void)first;
    NAME_FN(half) high[FOLD_LANES] = {0};
#if VALUE_BITS == 64
    uint64_t low[FOLD_LANES] = {0};
    FOLD_FOR_LANES(n, i, lane, { NAME_FN(step)(&high[lane], &low[lane], x[i]); });
    for (int lane = 0; lane < FOLD_LANES; lane++)
        sum->total += NAME_FN(value)(high[lane], low[lane]);
#else
    FOLD_FOR_LANES(n, i, lane, { high[lane] += (NAME_FN(half))TERM(x[i]); });
    for (int lane = 0; lane < FOLD_LANES; lane++)
        sum->total += high[lane];
#endif
}

#ifdef FOLD_COLUMNS
#if VALUE_BITS == 64
#define LANE(F) F(NAME_FN(half), high, 0) F(uint64_t, low, 0)
#define STEP(lane, x) NAME_FN(step)(&(lane)->high, &(lane)->low, x)
#define SETTLE(lane, sum, first) ((sum)->total += NAME_FN(value)((lane)->high, (lane)->low), true)
#else
#define LANE(F) F(NAME_FN(half), high, 0)
#define STEP(lane, x) ((lane)->high += (NAME_FN(half))TERM(x))
#define SETTLE(lane, sum, first) ((sum)->total += (lane)->high, true)
#endif
#include "fold/columns_template.h"
#endif
#endif
#undef NAME_FN
#undef NAME
#undef TERM
#undef TERM_SIGNED
#undef TERM_ZERO
