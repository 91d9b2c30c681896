/* Finds missing elements and unpacks packed ones: see encoding.h. Elements are taken 64 at a time, a word of the bitmap. */
#include "array/encoding.h"

#include "base/elements.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* ---- attributes */

/* Value i of a numeric attribute: exactly one of the two is meant. */
struct attribute_value {
    bool is_integer;
    int128 integer;
    double real;
};

static struct attribute_value attribute_number(const struct attribute *attribute, uint64_t i)
{
    struct attribute_value number = {.is_integer = type_kind(attribute->type) != 'f'};
    switch (attribute->type) {
#define CASE(ID, name, numpy, bytes, kind, value)                                  \
    case ALLFOLD_##ID: {                                                          \
        element_##name element;                                                    \
        memcpy(&element, attribute->values + i * sizeof element, sizeof element);  \
        if (number.is_integer)                                                     \
            number.integer = (int128)load_##name(element);                         \
        else                                                                       \
            number.real = (double)load_##name(element);                            \
        break;                                                                     \
    }
        ALLFOLD_TYPES(CASE)
#undef CASE
    default: break;
    }
    return number;
}

static double number_real(const struct attribute_value *number) { return number->is_integer ? (double)number->integer : number->real; }

/* As an integer of the type, in two's complement. False if the type cannot hold it. */
static bool number_as_integer(const struct attribute_value *number, allfold_type type, uint64_t *bits)
{
    const unsigned width = 8 * (unsigned)allfold_type_bytes(type);
    const bool is_signed = type_kind(type) == 'i';
    const int128 most = ((int128)1 << (is_signed ? width - 1 : width)) - 1, least = is_signed ? -most - 1 : 0;
    if (!number->is_integer && !(fabs(number->real) < 0x1p65 && number->real == floor(number->real)))
        return false;
    const int128 integer = number->is_integer ? number->integer : (int128)number->real;
    if (integer < least || integer > most)
        return false;
    *bits = (uint64_t)integer & (width == 64 ? UINT64_MAX : ((uint64_t)1 << width) - 1);
    return true;
}

/* As an element of the floating-point type, rounded. False if the number is finite and too large for the type. */
static bool number_as_real(const struct attribute_value *number, allfold_type type, uint64_t *bits)
{
    const double x = number_real(number);
    const struct float_format format = float_format_of(type);
    *bits = type_real_bits(type, x);
    /* half a unit beyond the largest number, and all that is larger, rounds to infinity */
    return !isfinite(x) || fabs(x) < ldexp(2.0 - ldexp(1.0, -format.precision), format.exponent_max);
}

struct describer {
    attribute_find *find;
    void *user;
    struct attribute attribute; /* the last that was found */
    struct error *error;
};

static bool find_numbers(struct describer *d, const char *name, uint64_t most)
{
    if (d->error->status != ALLFOLD_OK || !d->find(d->user, name, &d->attribute, d->error))
        return false;
    if (d->attribute.type != ALLFOLD_TYPE_NONE && d->attribute.count >= 1 && d->attribute.count <= most)
        return true;
    error_set(d->error, ALLFOLD_UNSUPPORTED, "attribute %s: expected 1 to %" PRIu64 " numbers, found %" PRIu64 " %s",
              name, most, d->attribute.count,
              d->attribute.type == ALLFOLD_TYPE_NONE ? "characters" : "numbers");
    return false;
}

/* _Unsigned = "true": the file's integers have no sign, though their type there has one. */
static bool find_unsigned(struct describer *d)
{
    if (!d->find(d->user, "_Unsigned", &d->attribute, d->error) || d->attribute.type != ALLFOLD_TYPE_NONE)
        return false;
    return d->attribute.count >= 4 && strncasecmp((const char *)d->attribute.values, "true", 4) == 0;
}

static allfold_type without_sign(allfold_type type)
{
    switch (type) {
    case ALLFOLD_INT8: return ALLFOLD_UINT8;
    case ALLFOLD_INT16: return ALLFOLD_UINT16;
    case ALLFOLD_INT32: return ALLFOLD_UINT32;
    case ALLFOLD_INT64: return ALLFOLD_UINT64;
    default: return type;
    }
}

/* The values of the attribute become missing ones. */
static void add_missing(struct describer *d, const char *name, allfold_type file_type, struct encoding *encoding)
{
    const bool real = type_kind(encoding->stored) == 'f';
    if (!find_numbers(d, name, MISSING_VALUES_MAX / 2))
        return;
    if (d->attribute.type == file_type) /* of the elements' own bits, whether they have a sign or not */
        d->attribute.type = encoding->stored;
    for (uint64_t i = 0; i < d->attribute.count; i++) {
        const struct attribute_value number = attribute_number(&d->attribute, i);
        uint64_t bits = 0;
        if (!number.is_integer && isnan(number.real))
            encoding->missing_nan |= real;
        else if (real ? number_as_real(&number, encoding->stored, &bits) : number_as_integer(&number, encoding->stored, &bits))
            encoding->missing[encoding->missing_count++] = bits;
    }
}

/* Scale and offset are limited so that the exact sum of packed integers fits the limbs of an exact sum of f64. */
static void add_factor(struct describer *d, const char *name, double *factor, struct encoding *encoding)
{
    if (!find_numbers(d, name, 1))
        return;
    const struct attribute_value number = attribute_number(&d->attribute, 0);
    *factor = number_real(&number);
    encoding->packed = 1;
    if (!(fabs(*factor) <= 0x1p900))
        error_set(d->error, ALLFOLD_BAD_INPUT, "attribute %s: expected a number of at most 2^900, found %g",
                  name, *factor);
}

allfold_status encoding_describe(attribute_find *find, void *user, allfold_type *type, struct encoding *encoding, struct error *error)
{
    struct describer describer = {.find = find, .user = user, .error = error};
    const allfold_type file_type = *type;
    memset(encoding, 0, sizeof *encoding);
    encoding->stored = find_unsigned(&describer) ? without_sign(file_type) : file_type;
    encoding->packing.scale = 1.0;
    if (type_kind(file_type) != 'b') {
        add_missing(&describer, "_FillValue", file_type, encoding);
        add_missing(&describer, "missing_value", file_type, encoding);
        add_factor(&describer, "scale_factor", &encoding->packing.scale, encoding);
        add_factor(&describer, "add_offset", &encoding->packing.offset, encoding);
    }
    if (encoding->packing.scale == 1.0 && encoding->packing.offset == 0.0)
        encoding->packed = 0;
    if (error->status == ALLFOLD_OK)
        *type = encoding->packed ? ALLFOLD_F64 : encoding->stored;
    return error->status;
}

/* ---- in words */

/* In as few digits as mean the same number, but at least 15. */
static int print_real(double x, char *text, size_t room)
{
    int length = 0;
    for (int digits = 15; digits <= 17; digits++) {
        length = snprintf(text, room, "%.*g", digits, x);
        if (strtod(text, NULL) == x)
            break;
    }
    return length;
}

static int print_element(allfold_type type, uint64_t bits, char *text, size_t room)
{
    struct attribute one = {.type = type, .count = 1};
    memcpy(one.values, &bits, sizeof bits);
    const struct attribute_value number = attribute_number(&one, 0);
    if (!number.is_integer)
        return type == ALLFOLD_F64 ? print_real(number.real, text, room) : snprintf(text, room, "%.7g", number.real);
    if (number.integer < 0)
        return snprintf(text, room, "%" PRId64, (int64_t)number.integer);
    return snprintf(text, room, "%" PRIu64, (uint64_t)number.integer);
}

void encoding_missing_text(const struct encoding *encoding, char text[ENCODING_TEXT_BYTES])
{
    size_t at = 0;
    text[0] = '\0';
    for (uint32_t i = 0; i < encoding->missing_count; i++) {
        bool known = false;
        for (uint32_t j = 0; j < i; j++)
            known |= encoding->missing[j] == encoding->missing[i];
        if (known)
            continue;
        at += (size_t)snprintf(text + at, ENCODING_TEXT_BYTES - at, "%s", at > 0 ? ", " : "");
        at += (size_t)print_element(encoding->stored, encoding->missing[i], text + at, ENCODING_TEXT_BYTES - at);
    }
    if (encoding->missing_nan)
        snprintf(text + at, ENCODING_TEXT_BYTES - at, "%snan", at > 0 ? ", " : "");
}

void encoding_packing_text(const struct encoding *encoding, char text[ENCODING_TEXT_BYTES])
{
    char scale[40], offset[40];
    text[0] = '\0';
    if (!encoding->packed)
        return;
    print_real(encoding->packing.scale, scale, sizeof scale);
    print_real(fabs(encoding->packing.offset), offset, sizeof offset);
    snprintf(text, ENCODING_TEXT_BYTES, "%s x %c %s", scale, encoding->packing.offset < 0 ? '-' : '+', offset);
}

/* ---- elements */

/* The missing values as arithmetic values of the stored type, and the words of a bitmap: bit i is set if x[i] is not missing. */
#define DEFINE(ID, name, numpy, bytes, kind, value)                                                               \
    static uint64_t kept_word_##name(const struct encoding *encoding, const void *elements, unsigned n)           \
    {                                                                                                             \
        const element_##name *const x = elements;                                                                 \
        unsigned char missing[64] = {0};                                                                          \
        uint64_t word = 0;                                                                                        \
        for (uint32_t m = 0; m < encoding->missing_count; m++) {                                                  \
            element_##name element;                                                                               \
            memcpy(&element, &encoding->missing[m], sizeof element);                                              \
            const value_##value sought = load_##name(element);                                                    \
            for (unsigned i = 0; i < n; i++)                                                                      \
                missing[i] |= load_##name(x[i]) == sought;                                                        \
        }                                                                                                         \
        if (encoding->missing_nan)                                                                                \
            for (unsigned i = 0; i < n; i++)                                                                      \
                missing[i] |= load_##name(x[i]) != load_##name(x[i]);                                             \
        for (unsigned i = 0; i < 8; i++) { /* eight bytes, each 0 or 1, become eight bits */                      \
            uint64_t eight;                                                                                       \
            memcpy(&eight, missing + 8 * i, 8);                                                                   \
            word |= (eight * UINT64_C(0x0102040810204080) >> 56) << 8 * i;                                        \
        }                                                                                                         \
        return ~word & (n == 64 ? UINT64_MAX : (UINT64_C(1) << n) - 1);                                           \
    }                                                                                                             \
    static uint64_t compact_##name(const struct encoding *encoding, const void *from, uint64_t n, void *to, uint64_t *kept) \
    {                                                                                                             \
        const element_##name *const x = from;                                                                     \
        element_##name *const y = to;                                                                             \
        uint64_t count = 0;                                                                                       \
        for (uint64_t start = 0; start < n; start += 64) {                                                        \
            const unsigned size = (unsigned)u64_min(64, n - start);                                               \
            const uint64_t word = kept_word_##name(encoding, x + start, size);                                    \
            kept[start / 64] = word;                                                                              \
            if (word == UINT64_MAX) {                                                                             \
                if (y + count != x + start)                                                                       \
                    memmove(y + count, x + start, 64 * sizeof *x);                                                \
                count += 64;                                                                                      \
                continue;                                                                                         \
            }                                                                                                     \
            for (unsigned i = 0; i < size && word != 0; i++) {                                                    \
                y[count] = x[start + i];                                                                          \
                count += word >> i & 1;                                                                           \
            }                                                                                                     \
        }                                                                                                         \
        return count;                                                                                             \
    }
ALLFOLD_TYPES(DEFINE)
#undef DEFINE

enum { UNPACK_BLOCK = 512 };

/* With the processor's fused operation where it has one: the C library's is a call. */
#ifdef ALLFOLD_HAVE_X86_ISA
#define FUSED __attribute__((target("avx2,fma")))
#else
#define FUSED
#endif
#define DEFINE_UNPACK(function, attributes, element, load)                                                 \
    attributes static void function(const struct encoding *encoding, const void *elements, uint64_t n, double *y) \
    {                                                                                                      \
        const double scale = encoding->packing.scale, offset = encoding->packing.offset;                                   \
        element x[UNPACK_BLOCK]; /* a copy: y may end up where the elements lie */                         \
        for (uint64_t start = 0; start < n; start += UNPACK_BLOCK) {                                       \
            const uint64_t count = u64_min(UNPACK_BLOCK, n - start);                                       \
            memcpy(x, (const char *)elements + start * sizeof *x, count * sizeof *x);                      \
            for (uint64_t i = 0; i < count; i++)                                                           \
                y[start + i] = fma((double)load(x[i]), scale, offset);                                     \
        }                                                                                                  \
    }
#define DEFINE(ID, name, numpy, bytes, kind, value)             \
    DEFINE_UNPACK(unpack_##name, , element_##name, load_##name) \
    DEFINE_UNPACK(unpack_fused_##name, FUSED, element_##name, load_##name)
ALLFOLD_TYPES(DEFINE)
#undef DEFINE

static const struct {
    uint64_t (*compact)(const struct encoding *encoding, const void *from, uint64_t n, void *to, uint64_t *kept);
    void (*unpack)(const struct encoding *encoding, const void *elements, uint64_t n, double *y);
    void (*unpack_fused)(const struct encoding *encoding, const void *elements, uint64_t n, double *y);
} functions[] = {
#define ROW(ID, name, numpy, bytes, kind, value) [ALLFOLD_##ID] = {compact_##name, unpack_##name, unpack_fused_##name},
    ALLFOLD_TYPES(ROW)
#undef ROW
};

uint64_t encoding_compact(const struct encoding *encoding, const void *from, uint64_t n, void *to, uint64_t *kept)
{
    return functions[encoding->stored].compact(encoding, from, n, to, kept);
}

void encoding_unpack(const struct encoding *encoding, const void *x, uint64_t n, double *y)
{
#ifdef ALLFOLD_HAVE_X86_ISA
    if (__builtin_cpu_supports("fma") && __builtin_cpu_supports("avx2")) {
        functions[encoding->stored].unpack_fused(encoding, x, n, y);
        return;
    }
#endif
    functions[encoding->stored].unpack(encoding, x, n, y);
}

uint64_t encoding_first_missing(const uint64_t *kept, uint64_t n)
{
    for (uint64_t word = 0; word < (n + 63) / 64; word++)
        if (kept[word] != UINT64_MAX)
            return u64_min(n, word * 64 + (unsigned)__builtin_ctzll(~kept[word]));
    return n;
}

uint64_t encoding_select(const uint64_t *kept, uint64_t k)
{
    uint64_t word = 0;
    for (unsigned bits; (bits = (unsigned)__builtin_popcountll(kept[word])) <= k; word++)
        k -= bits;
    uint64_t rest = kept[word];
    for (; k > 0; k--)
        rest &= rest - 1;
    return word * 64 + (unsigned)__builtin_ctzll(rest);
}
