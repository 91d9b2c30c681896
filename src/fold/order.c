/* Keys of order statistics on the host, and what lies between two elements: see order.h. */
#include "fold/order.h"

#include "fold/exact_total.h"

#include <math.h>

static int bits_of(allfold_type type) { return 8 * (int)allfold_type_bytes(type); }
static uint64_t top_of(allfold_type type) { return UINT64_C(1) << (bits_of(type) - 1); }
static bool is_floating(allfold_type type) { return type_kind(type) == 'f'; }
/* The bits of a number's fraction. */
static uint64_t fraction_of(allfold_type type) { return (UINT64_C(1) << (float_format_of(type).precision - 1)) - 1; }

/* The bits of -inf, flipped, are those of the fraction: with these taken off -inf has key 0, and the NaNs below it come last. */
struct order_map order_map_of(allfold_type type)
{
    const uint64_t top = top_of(type);
    if (is_floating(type))
        return (struct order_map){top - 1, top - fraction_of(type)};
    return (struct order_map){0, type_kind(type) == 'i' ? top : 0};
}

uint64_t order_key(allfold_type type, uint64_t bits)
{
    const struct order_map map = order_map_of(type);
    return ((bits ^ ((bits & top_of(type)) != 0 ? map.flip : 0)) + map.add) & order_most(type);
}

static uint64_t stored_bits(allfold_type type, uint64_t key)
{
    const struct order_map map = order_map_of(type);
    const uint64_t flipped = (key - map.add) & order_most(type);
    return flipped ^ ((flipped & top_of(type)) != 0 ? map.flip : 0);
}

uint64_t order_last(allfold_type type)
{
    return is_floating(type) ? order_key(type, type_real_bits(type, INFINITY)) : order_most(type);
}

uint64_t order_bits(allfold_type type, uint64_t key) { return type_kind(type) == 'b' ? key != 0 : stored_bits(type, key); }

/* An integer's value. */
static int128 integer_of(allfold_type type, uint64_t key)
{
    return type_kind(type) == 'i' ? (int128)key - (int128)top_of(type) : (int128)order_bits(type, key);
}

double order_real(allfold_type type, uint64_t key)
{
    const uint64_t bits = stored_bits(type, key);
    double real = (double)integer_of(type, key);
    real_load(&bits, 0, (int)type, &real);
    return real;
}

allfold_value order_value(allfold_type type, uint64_t key)
{
    if (is_floating(type))
        return (allfold_value){.kind = ALLFOLD_VALUE_F64, .f64 = order_real(type, key)};
    if (type_kind(type) == 'i')
        return (allfold_value){.kind = ALLFOLD_VALUE_I64, .i64 = (int64_t)integer_of(type, key)};
    return (allfold_value){.kind = ALLFOLD_VALUE_U64, .u64 = order_bits(type, key)};
}

struct order_bracket order_equals(allfold_type type, uint64_t key)
{
    if (type_kind(type) == 'b')
        return key == 0 ? (struct order_bracket){0, 0} : (struct order_bracket){1, order_most(type)};
    if (!is_floating(type))
        return (struct order_bracket){key, key};
    const uint64_t zero = order_key(type, 0), last = order_last(type); /* -0 is just below */
    if (key > last)
        return (struct order_bracket){last + 1, order_most(type)};
    return key == zero || key == zero - 1 ? (struct order_bracket){zero - 1, zero} : (struct order_bracket){key, key};
}

bool order_at_least(allfold_type type, double x, bool beyond, uint64_t *key)
{
    if (is_floating(type)) {
        uint64_t found = order_equals(type, order_key(type, type_real_bits(type, x))).low;
        while (found <= order_last(type) && (beyond ? order_real(type, found) <= x : order_real(type, found) < x))
            found++; /* rounding went down, or x is a zero: two steps are enough */
        *key = found;
        return found <= order_last(type);
    }
    const int128 least = integer_of(type, 0), last = integer_of(type, type_kind(type) == 'b' ? 1 : order_most(type));
    const double whole = beyond ? floor(x) : ceil(x), bounded = whole < -0x1p70 ? -0x1p70 : whole > 0x1p70 ? 0x1p70 : whole;
    const int128 number = (int128)bounded + beyond;
    *key = number > least ? (uint64_t)(number - least) : 0;
    return number <= last;
}

uint32_t order_cell(allfold_type type, uint64_t key, const struct order_guess *guess)
{
    if (!guess->by_value)
        return order_cell_key(key, guess);
    return ORDER_IS_SHORT(allfold_type_bytes(type), type_kind(type)) ? order_cell_f32((float)order_real(type, key), guess)
                                                                      : order_cell_f64(order_real(type, key), guess);
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

static struct scaled scaled_of(allfold_type type, uint64_t key)
{
    if (!is_floating(type)) {
        const int128 value = integer_of(type, key);
        return (struct scaled){value < 0, (uint64_t)(value < 0 ? -value : value), 0};
    }
    int exponent = 0;
    const double fraction = frexp(order_real(type, key), &exponent);
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
    const double first = order_real(type, a), second = order_real(type, b);
    struct exact_total total = {.length = EXACT_TOTAL_DIGITS, .lowest = BETWEEN_LOWEST};
    if (a == b || place->part == 0)
        return first;
    if (isinf(first) || isinf(second))
        return first + second;
    add_product(total.digits, 1, 0, scaled_of(type, a), false);
    add_product(total.digits, place->part, place->bits, scaled_of(type, a), true);
    add_product(total.digits, place->part, place->bits, scaled_of(type, b), false);
    total.negative = total.digits[EXACT_TOTAL_DIGITS - 1] >> 31 != 0;
    uint64_t carry = 1;
    for (int i = 0; total.negative && i < EXACT_TOTAL_DIGITS; i++, carry >>= 32)
        total.digits[i] = (uint32_t)(carry += (uint32_t)~total.digits[i]);
    return exact_total_round(&total, false, ALLFOLD_F64);
}
