/* The elements of generated arrays. Each is a function of the generator, the type and the index alone, and the same
   bits come out of any compiler and processor: integers, and IEEE +, -, *, /, sqrt and fma in a fixed order, with no
   function of the mathematical library whose result may differ. Compile with -ffp-contract=off (GCC) for that. */
#include "array/generate.h"
#include "base/elements.h"

#include <math.h>
#include <string.h>

#ifdef __clang__
#pragma STDC FP_CONTRACT OFF
#endif

#define BLOCK 512                       /* elements at a time: their numbers stay in the first cache */
#define CHUNK (UINT64_C(128) * BLOCK)   /* elements that one thread draws at a time */
#define OUTLIER_FACTOR 10.0

/* SplitMix64: a Weyl sequence through a finalizer. Steele, Lea, Flood, "Fast splittable pseudorandom number
   generators" (OOPSLA 2014); constants of Stafford's variant 13. The seed goes through the finalizer too, so that
   neighbouring seeds begin at unrelated places of the sequence. */
#define WEYL UINT64_C(0x9e3779b97f4a7c15)

static inline uint64_t mix(uint64_t z)
{
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

/* A second draw for the same index. */
static inline uint64_t again(uint64_t h) { return mix(h ^ UINT64_C(0xd1b54a32d192ed03)); }

/* The high half of a * b: h to a number in [0, span) with a bias of at most span / 2^64. */
static inline uint64_t scaled(uint64_t h, uint64_t span) { return (uint64_t)(((uint128)h * span) >> 64); }

static void hash(uint64_t seed, uint64_t first, int n, uint64_t *h)
{
    const uint64_t state = mix(seed + WEYL) + first * WEYL;
    for (int i = 0; i < n; i++)
        h[i] = mix(state + (uint64_t)(i + 1) * WEYL);
}

static inline double clamp(double x, double least, double greatest)
{
    return x < least ? least : x > greatest ? greatest : x;
}

/* u takes as many bits as the type's significand has: the default range is then exact in every type, and never 1. */
static void uniform_reals(const struct generator *g, int precision, const uint64_t *h, int n, double *x)
{
    const double lo = g->a, hi = g->b, unit = 1.0 / (double)(UINT64_C(1) << precision);
    const int shift = 64 - precision;
    for (int i = 0; i < n; i++) {
        const double u = (double)(int64_t)(h[i] >> shift) * unit;
        x[i] = clamp(lo * (1.0 - u) + hi * u, lo, hi); /* not lo + (hi - lo) * u: hi - lo may overflow */
    }
}

#define HORNER7(r, c7, c6, c5, c4, c3, c2, c1, c0)                                                                     \
    (((((((c7 * r + c6) * r + c5) * r + c4) * r + c3) * r + c2) * r + c1) * r + c0)

/* -log(p) for 0 < p < 1: p = m * 2^e with m in [sqrt(1/2), sqrt(2)); log(m) = 2 atanh((m - 1) / (m + 1)), whose series
   ends below 2^-53 after these terms. */
static double minus_log(double p)
{
    const uint64_t bits = f64_bits(p);
    int e = (int)(bits >> 52) - 1022;
    double m = f64_from_bits((bits & UINT64_C(0x000fffffffffffff)) | UINT64_C(0x3fe0000000000000));
    if (m < 0x1.6a09e667f3bcdp-1) {
        m *= 2.0;
        e -= 1;
    }
    const double s = (m - 1.0) / (m + 1.0), s2 = s * s;
    double series = 1.0 / 21.0;
    series = series * s2 + 1.0 / 19.0;
    series = series * s2 + 1.0 / 17.0;
    series = series * s2 + 1.0 / 15.0;
    series = series * s2 + 1.0 / 13.0;
    series = series * s2 + 1.0 / 11.0;
    series = series * s2 + 1.0 / 9.0;
    series = series * s2 + 1.0 / 7.0;
    series = series * s2 + 1.0 / 5.0;
    series = series * s2 + 1.0 / 3.0;
    series = series * s2 + 1.0;
    return -((double)e * 0x1.62e42fefa39efp-1 + 2.0 * s * series);
}

/* Inverse of the normal distribution at 0.5 + q: PPND16 of Wichura, Algorithm AS 241, Applied Statistics 37 (1988). */
#define CENTRE 0.425
static inline double normal_centre(double q)
{
    const double r = 0.180625 - q * q;
    return q *
           HORNER7(r, 2509.0809287301226727, 33430.575583588128105, 67265.770927008700853, 45921.953931549871457,
                   13731.693765509461125, 1971.5909503065514427, 133.14166789178437745, 3.387132872796366608) /
           HORNER7(r, 5226.495278852854561, 28729.085735721942674, 39307.89580009271061, 21213.794301586595867,
                   5394.1960214247511077, 687.1870074920579083, 42.313330701600911252, 1.0);
}
static double normal_tail(double q)
{
    double r = sqrt(minus_log(0.5 - fabs(q))), x;
    if (r <= 5.0) {
        r -= 1.6;
        x = HORNER7(r, 7.7454501427834140764e-4, 0.0227238449892691845833, 0.24178072517745061177,
                    1.27045825245236838258, 3.64784832476320460504, 5.7694972214606914055, 4.6303378461565452959,
                    1.42343711074968357734) /
            HORNER7(r, 1.05075007164441684324e-9, 5.475938084995344946e-4, 0.0151986665636164571966,
                    0.14810397642748007459, 0.68976733498510000455, 1.6763848301838038494, 2.05319162663775882187, 1.0);
    } else {
        r -= 5.0;
        x = HORNER7(r, 2.01033439929228813265e-7, 2.71155556874348757815e-5, 0.0012426609473880784386,
                    0.026532189526576123093, 0.29656057182850489123, 1.7848265399172913358, 5.4637849111641143699,
                    6.6579046435011037772) /
            HORNER7(r, 2.04426310338993978564e-15, 1.4215117583164458887e-7, 1.8463183175100546818e-5,
                    7.868691311456132591e-4, 0.0148753612908506148525, 0.13692988092273580531,
                    0.59983220655588793769, 1.0);
    }
    return q < 0.0 ? -x : x;
}

/* Two loops, because the first, with 85 % of the elements, then vectorises. */
static void normal_reals(double mean, double sd, const uint64_t *h, int n, double *x)
{
    double q[BLOCK];
    for (int i = 0; i < n; i++) {
        /* the middle of one of 2^52 equal cells of (-0.5, 0.5): [1, 2) by its bits, then exact differences */
        q[i] = f64_from_bits((h[i] >> 12) | UINT64_C(0x3ff0000000000000)) - 1.5 + 0x1p-53;
        x[i] = mean + sd * normal_centre(q[i]);
    }
    for (int i = 0; i < n; i++)
        if (fabs(q[i]) > CENTRE)
            x[i] = mean + sd * normal_tail(q[i]);
}

static void logit_reals(const struct generator *g, const uint64_t *h, int n, double *x)
{
    const double limit = g->b;
    normal_reals(0.0, g->a, h, n, x);
    for (int i = 0; i < n; i++) {
        const double u = (double)(int64_t)(again(h[i]) >> 11) * 0x1p-53;
        x[i] *= u < limit ? OUTLIER_FACTOR : 1.0;
    }
}

/* start + step * index rounded to f64: to nearest for f64 elements, else to odd, so that the second rounding, to the
   element, is the right one of the exact number (Boldo and Melquiond, 2008). */
static void ramp_reals(const struct generator *g, bool to_odd, uint64_t first, int n, double *x)
{
    const double start = g->a, step = g->b;
    for (int i = 0; i < n; i++) {
        const double index = (double)(first + (uint64_t)i);
        const double nearest = fma(step, index, start);
        x[i] = nearest;
        if (!to_odd)
            continue;
        /* what nearest lacks of the exact number: its sign is right, though it may itself be rounded */
        const double product = step * index, product_low = fma(step, index, -product);
        const double sum = product + start, part = sum - product;
        const double sum_low = (product - (sum - part)) + (start - part);
        const double lack = ((sum - nearest) + sum_low) + product_low;
        const uint64_t bits = f64_bits(nearest);
        if (lack != 0.0 && (bits & 1) == 0)
            x[i] = f64_from_bits((lack > 0.0) == (nearest > 0.0) ? bits + 1 : bits - 1);
    }
}

static void draw_reals(const struct generator *g, allfold_type type, uint64_t first, const uint64_t *h, int n,
                       double *x)
{
    switch ((enum distribution)g->distribution) {
    case DISTRIBUTION_UNIFORM: uniform_reals(g, float_format_of(type)->precision, h, n, x); break;
    case DISTRIBUTION_NORMAL: normal_reals(g->a, g->b, h, n, x); break;
    case DISTRIBUTION_LOGITS: logit_reals(g, h, n, x); break;
    case DISTRIBUTION_RAMP: ramp_reals(g, type != ALLFOLD_F64, first, n, x); break;
    default: break; /* drawn as bits */
    }
}

/* To elements, rounded to nearest even; beyond +-largest they become it. */
static void round_reals(allfold_type type, const double *x, int n, double largest, void *destination)
{
#define ROUND(ID, name)                                                                                                \
    case ALLFOLD_##ID:                                                                                                 \
        for (int i = 0; i < n; i++)                                                                                    \
            ((element_##name *)destination)[i] = round_##name(clamp(x[i], -largest, largest));                         \
        break;
    switch (type) {
        ROUND(F16, f16)
        ROUND(BF16, bf16)
        ROUND(F32, f32)
        ROUND(F64, f64)
    default: break;
    }
#undef ROUND
}

/* To integers in two's complement, rounded to nearest even and then kept within the type. */
static void round_wholes(allfold_type type, const double *x, int n, uint64_t *bits)
{
    const bool is_signed = type_kind(type) == 'i';
    const int width = (int)type_number_bits(type);
    const double beyond = (is_signed ? 0.5 : 1.0) * (double)(UINT64_C(1) << (width - 1)) * 2.0;
    const uint64_t greatest = UINT64_MAX >> (64 - width + (is_signed ? 1 : 0));
    const double least = is_signed ? -beyond : 0.0;
    for (int i = 0; i < n; i++) {
        /* below 2^52 adding and subtracting 2^52 leaves the nearest integer; above, every double is one */
        const double magnitude = fabs(x[i]);
        const double near = magnitude < 0x1p52 ? copysign((magnitude + 0x1p52) - 0x1p52, x[i]) : x[i];
        if (near >= beyond)
            bits[i] = greatest;
        else if (near <= least)
            bits[i] = is_signed ? ~greatest : 0;
        else
            bits[i] = is_signed ? (uint64_t)(int64_t)near : (uint64_t)near;
    }
}

static void wide_bits(const struct generator *g, allfold_type type, const uint64_t *h, int n, uint64_t *bits)
{
    const struct float_format *f = float_format_of(type);
    const char kind = type_kind(type);
    const int lowest = (int)g->a, fraction_bits = f->precision - 1;
    const uint64_t span = (uint64_t)((int)g->b - lowest + 1);
    for (int i = 0; i < n; i++) {
        const int exponent = lowest + (int)scaled(h[i], span);
        const uint64_t random = again(h[i]), negative = random >> 63;
        if (kind == 'f') {
            const uint64_t one = UINT64_C(1) << fraction_bits, fraction = random & (one - 1);
            const uint64_t magnitude = exponent >= f->exponent_min
                                           ? (uint64_t)(exponent - f->exponent_min + 1) << fraction_bits | fraction
                                           : (one | fraction) >> (f->exponent_min - exponent);
            bits[i] = magnitude | negative << (8 * allfold_type_bytes(type) - 1);
        } else {
            const uint64_t top = exponent < 0 ? 0 : UINT64_C(1) << exponent;
            const uint64_t magnitude = exponent < 0 ? 0 : top | (random & (top - 1));
            bits[i] = kind == 'i' && negative != 0 ? 0 - magnitude : magnitude;
        }
    }
}

static void constant_bits(const struct generator *g, allfold_type type, int n, uint64_t *bits)
{
    uint64_t element = g->whole_a;
    if (type_kind(type) == 'f') {
        unsigned char bytes[8] = {0};
        round_reals(type, &g->a, 1, INFINITY, bytes);
        memcpy(&element, bytes, sizeof element); /* little-endian, as the files are */
    }
    for (int i = 0; i < n; i++)
        bits[i] = element;
}

static void draw_bits(const struct generator *g, allfold_type type, uint64_t first, const uint64_t *h, int n,
                      uint64_t *bits)
{
    const uint64_t a = g->whole_a, b = g->whole_b, span = b - a + 1; /* 0 for all of 2^64 */
    switch ((enum distribution)g->distribution) {
    case DISTRIBUTION_UNIFORM:
        for (int i = 0; i < n; i++)
            bits[i] = a + (span == 0 ? h[i] : scaled(h[i], span));
        break;
    case DISTRIBUTION_RAMP:
        for (int i = 0; i < n; i++)
            bits[i] = a + b * (first + (uint64_t)i); /* the parser has seen that it does not wrap */
        break;
    case DISTRIBUTION_WIDE: wide_bits(g, type, h, n, bits); break;
    case DISTRIBUTION_CONSTANT: constant_bits(g, type, n, bits); break;
    default: break; /* drawn as real numbers */
    }
}

static void store_bits(size_t bytes, const uint64_t *bits, int n, void *destination)
{
    switch (bytes) {
    case 1:
        for (int i = 0; i < n; i++)
            ((uint8_t *)destination)[i] = (uint8_t)bits[i];
        break;
    case 2:
        for (int i = 0; i < n; i++)
            ((uint16_t *)destination)[i] = (uint16_t)bits[i];
        break;
    case 4:
        for (int i = 0; i < n; i++)
            ((uint32_t *)destination)[i] = (uint32_t)bits[i];
        break;
    default: memcpy(destination, bits, (size_t)n * sizeof *bits); break;
    }
}

/* At most BLOCK elements. */
static void draw_block(const struct generator *g, allfold_type type, uint64_t first, int n, void *destination)
{
    uint64_t bits[BLOCK], h[BLOCK];
    double x[BLOCK];
    const enum distribution d = (enum distribution)g->distribution;
    const bool is_float = type_kind(type) == 'f';
    if (d != DISTRIBUTION_CONSTANT && d != DISTRIBUTION_RAMP)
        hash(g->seed, first, n, h);
    if (d == DISTRIBUTION_WIDE || d == DISTRIBUTION_CONSTANT ||
        (!is_float && (d == DISTRIBUTION_UNIFORM || d == DISTRIBUTION_RAMP))) {
        draw_bits(g, type, first, h, n, bits);
        store_bits(allfold_type_bytes(type), bits, n, destination);
        return;
    }
    draw_reals(g, type, first, h, n, x);
    if (is_float) {
        round_reals(type, x, n, float_format_of(type)->largest, destination);
        return;
    }
    round_wholes(type, x, n, bits);
    store_bits(allfold_type_bytes(type), bits, n, destination);
}

void generator_fill(const struct generator *generator, allfold_type type, uint64_t first, uint64_t count,
                    void *destination, int threads)
{
    const size_t bytes = allfold_type_bytes(type);
    const uint64_t chunks = count / CHUNK + (count % CHUNK != 0);
    if (threads < 1)
        threads = 1;
#pragma omp parallel for schedule(static) num_threads(threads) if (threads > 1 && chunks > 1)
    for (uint64_t chunk = 0; chunk < chunks; chunk++) {
        const uint64_t end = u64_min(count, (chunk + 1) * CHUNK);
        for (uint64_t i = chunk * CHUNK; i < end; i += BLOCK)
            draw_block(generator, type, first + i, (int)u64_min(BLOCK, end - i), (char *)destination + i * bytes);
    }
}
