/* Keys of order statistics on the host, and what lies between two elements: see order.h. */
#include "fold/order.h"

#include "fold/exact_total.h"

#include <math.h>

/* The bits of -inf, flipped, are those of the fraction: with these taken off -inf has key 0, and the NaNs below it come last. */
struct order_space order_space_of(allfold_type type)
{
    const uint64_t top = UINT64_C(1) << (8 * allfold_type_bytes(type) - 1);
    struct order_space space = {.type = type, .kind = type_kind(type), .top = top, .most = order_most(type), .last = order_most(type)};
    if (space.kind == 'f') {
        const uint64_t fraction = (UINT64_C(1) << (float_format_of(type).precision - 1)) - 1;
        space.map = (struct order_map){top - 1, top - fraction};
        space.last = order_key_in(&space, type_real_bits(type, INFINITY));
    } else if (space.kind == 'i') {
        space.map.add = top;
    }
    space.zero = order_key_in(&space, 0);
    return space;
}

struct order_map order_map_of(allfold_type type) { return order_space_of(type).map; }
uint64_t order_last(allfold_type type) { return order_space_of(type).last; }

uint64_t order_key(allfold_type type, uint64_t bits)
{
    const struct order_space space = order_space_of(type);
    return order_key_in(&space, bits);
}

static uint64_t stored_bits(const struct order_space *space, uint64_t key)
{
    const uint64_t flipped = (key - space->map.add) & space->most;
    return flipped ^ ((flipped & space->top) != 0 ? space->map.flip : 0);
}

static uint64_t bits_in(const struct order_space *space, uint64_t key) { return space->kind == 'b' ? key != 0 : stored_bits(space, key); }

/* An integer's value. */
static int128 integer_of(const struct order_space *space, uint64_t key)
{
    return space->kind == 'i' ? (int128)key - (int128)space->top : (int128)bits_in(space, key);
}

static double real_in(const struct order_space *space, uint64_t key)
{
    const uint64_t bits = stored_bits(space, key);
    double real = 0;
    return real_load(&bits, 0, (int)space->type, &real) ? real : (double)integer_of(space, key);
}

allfold_type order_key_type(allfold_type type)
{
    switch (allfold_type_bytes(type)) {
    case 1: return ALLFOLD_UINT8;
    case 2: return ALLFOLD_UINT16;
    case 4: return ALLFOLD_UINT32;
    default: return ALLFOLD_UINT64;
    }
}

uint64_t order_bits(allfold_type type, uint64_t key)
{
    const struct order_space space = order_space_of(type);
    return bits_in(&space, key);
}

double order_real(allfold_type type, uint64_t key)
{
    const struct order_space space = order_space_of(type);
    return real_in(&space, key);
}

allfold_value order_value(allfold_type type, uint64_t key)
{
    const struct order_space space = order_space_of(type);
    if (space.kind == 'f')
        return (allfold_value){.kind = ALLFOLD_VALUE_F64, .f64 = real_in(&space, key)};
    if (space.kind == 'i')
        return (allfold_value){.kind = ALLFOLD_VALUE_I64, .i64 = (int64_t)integer_of(&space, key)};
    return (allfold_value){.kind = ALLFOLD_VALUE_U64, .u64 = bits_in(&space, key)};
}

bool order_at_least(const struct order_space *space, double x, bool beyond, uint64_t *key)
{
    if (space->kind == 'f') {
        uint64_t found = order_equals(space, order_key_in(space, type_real_bits(space->type, x))).low;
        while (found <= space->last && (beyond ? real_in(space, found) <= x : real_in(space, found) < x))
            found++; /* rounding went down, or x is a zero: two steps are enough */
        *key = found;
        return found <= space->last;
    }
    const int128 least = integer_of(space, 0), last = integer_of(space, space->kind == 'b' ? 1 : space->most);
    const double whole = beyond ? floor(x) : ceil(x), bounded = whole < -0x1p70 ? -0x1p70 : whole > 0x1p70 ? 0x1p70 : whole;
    const int128 number = (int128)bounded + beyond;
    *key = number > least ? (uint64_t)(number - least) : 0;
    return number <= last;
}

uint32_t order_cell(const struct order_space *space, uint64_t key, const struct order_guess *guess)
{
    if (!guess->even)
        return order_cell_64(key, guess, guess->splits);
    return ORDER_IS_SHORT(allfold_type_bytes(space->type), space->kind) ? order_even_f32((float)real_in(space, key), guess)
                                                                        : order_even_f64(real_in(space, key), guess);
}

/* `error` is how far the place of an element near the edges may be off, in bins: by the two constants, as they are in f32, by the sum's rounding, which is below 1,
   and by roundings in f64, and of numbers that are tiny in f32. Beyond the edges, places never fall. An element that is rounded to f32 adds as much as a constant
   in f32 may. */
void order_even_part(struct order_even *even, uint32_t first, uint32_t count)
{
    const double scale = even->bins / (even->high - even->low), half = 0.5 - even->low * scale - first, parts = (double)count + 1;
    const double reach = fmax(fabs(half + first), fabs(even->bins + 1 - half - first)) + 1; /* x * scale */
    even->first = first;
    even->count = count;
    even->scale = (float)(scale / parts);
    even->offset = (float)(half / parts);
    even->parts = (float)parts;
    const double error = reach * fabs(even->scale * parts / scale - 1) + fabs(even->offset * parts - half) + parts * 0x1p-25 + 0x1p-20;
    even->sure = (float)(0.5 - error);
    even->sure_rounded = (float)(0.5 - error - reach * 0x1p-24);
}

bool order_even_of(double low, double high, uint64_t bins, struct order_even *even)
{
    const double width = high - low, scale = (double)bins / width;
    if (bins > ORDER_EVEN_MOST || !(fmax(fabs(low), fabs(high)) * scale <= 0x1p20 && scale >= 0x1p-100 && scale <= 0x1p100))
        return false;
    *even = (struct order_even){.low = low, .step = width / (double)bins, .high = high, .bins = (uint32_t)bins};
    order_even_part(even, 0, (uint32_t)bins);
    return even->sure_rounded >= 0.375f;
}

/* ---- between two elements */

struct order_place order_place_of(double q, uint64_t count)
{
    int exponent = 0;
    const uint64_t mantissa = (uint64_t)ldexp(frexp(q, &exponent), 53); /* q = mantissa * 2^(exponent - 53) */
    const int bits = 53 - exponent;
    const uint128 product = (uint128)mantissa * (count - 1);
    if (bits >= 127) /* the product has 116 */
        return (struct order_place){0, product, bits};
    return (struct order_place){(uint64_t)(product >> bits), product & (((uint128)1 << bits) - 1), bits};
}

int order_half(const struct order_place *place)
{
    if (place->bits == 0 || place->bits > 127)
        return -1;
    const uint128 half = (uint128)1 << (place->bits - 1);
    return place->part < half ? -1 : place->part > half;
}

/* A number as mantissa * 2^exponent. */
struct scaled {
    bool negative;
    uint64_t mantissa;
    int exponent;
};

static struct scaled scaled_of(const struct order_space *space, uint64_t key)
{
    if (space->kind != 'f') {
        const int128 value = integer_of(space, key);
        return (struct scaled){value < 0, (uint64_t)(value < 0 ? -value : value), 0};
    }
    int exponent = 0;
    const double fraction = frexp(real_in(space, key), &exponent);
    return (struct scaled){fraction < 0, (uint64_t)ldexp(fabs(fraction), 53), exponent - 53};
}

enum { BETWEEN_LOWEST = -2304 }; /* bits of a subnormal number times a part of a subnormal q */

/* Adds part * x * 2^-bits to a sum in two's complement, or takes it off. */
static void add_product(uint32_t *sum, uint128 part, int bits, struct scaled x, bool minus)
{
    const uint32_t factors[2] = {(uint32_t)x.mantissa, (uint32_t)(x.mantissa >> 32)};
    const int place = x.exponent - bits - BETWEEN_LOWEST;
    for (int i = 0; i < 8; i++) { /* digits of the part times those of the mantissa, each a number of 64 bits */
        const uint128 product = (uint128)((uint64_t)(uint32_t)(part >> (32 * (i / 2))) * factors[i % 2]) << (place % 32);
        int64_t carry = 0;
        for (int digit = place / 32 + i / 2 + i % 2, k = 0; digit < EXACT_TOTAL_DIGITS; digit++, k++) {
            const uint32_t term = k < 4 ? (uint32_t)(product >> (32 * k)) : 0;
            const int64_t next = (int64_t)sum[digit] + (x.negative != minus ? -(int64_t)term : (int64_t)term) + carry;
            sum[digit] = (uint32_t)next;
            carry = next >> 32;
        }
    }
}

double order_between(allfold_type type, uint64_t a, uint64_t b, const struct order_place *place)
{
    const struct order_space space = order_space_of(type);
    const double first = real_in(&space, a), second = real_in(&space, b);
    struct exact_total total = {.length = EXACT_TOTAL_DIGITS, .lowest = BETWEEN_LOWEST};
    if (a == b || place->part == 0)
        return first;
    if (isinf(first) || isinf(second))
        return first + second;
    add_product(total.digits, 1, 0, scaled_of(&space, a), false);
    add_product(total.digits, place->part, place->bits, scaled_of(&space, a), true);
    add_product(total.digits, place->part, place->bits, scaled_of(&space, b), false);
    total.negative = total.digits[EXACT_TOTAL_DIGITS - 1] >> 31 != 0;
    uint64_t carry = 1;
    for (int i = 0; total.negative && i < EXACT_TOTAL_DIGITS; i++, carry >>= 32)
        total.digits[i] = (uint32_t)(carry += (uint32_t)~total.digits[i]);
    return exact_total_round(&total, false, ALLFOLD_F64);
}
