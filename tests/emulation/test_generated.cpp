/* The kernel that generates elements, on the host: every distribution of every type, at odd indices and counts around all that the
   kernel cuts by, bit for bit what the CPU's loops draw. Every launch runs its threads and blocks in another order. Memory is
   allocated to the byte, for AddressSanitizer. */
#define TAP_WITHOUT_MPI
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

extern "C" {
#include "array/draw.h"
#include "tests/tap.h"
}
#include "emulation.h"
#include "kernels/kernels.h"
#include "kernels/tuning.h"

/* x with x * factor == 1 modulo 2^64, of an odd factor. */
static uint64_t inverse(uint64_t factor)
{
    uint64_t x = factor;
    for (int i = 0; i < 6; i++)
        x *= 2 - factor * x;
    return x;
}

/* The index at which a generator's hash is h: draw_hash, backwards. */
static uint64_t index_of(const struct draw *draw, uint64_t h)
{
    h ^= h >> 31 ^ h >> 62;
    h *= inverse(UINT64_C(0x94d049bb133111eb));
    h ^= h >> 27 ^ h >> 54;
    h *= inverse(UINT64_C(0xbf58476d1ce4e5b9));
    h ^= h >> 30 ^ h >> 60;
    return (h - draw->state) * inverse(DRAW_WEYL) - 1;
}

/* Whether the kernel makes what the loops draw, and writes nothing else. */
static bool same(const struct draw *draw, struct range range, int multiprocessors)
{
    const size_t bytes = allfold_type_bytes(draw->type) * range.count;
    char *const made = (char *)malloc(bytes + 1), *const drawn = (char *)malloc(bytes + 1);
    memset(made, 0x5c, bytes + 1);
    draw_base(draw, range, drawn);
    emulation_order(range.count % 3 == 0 ? 0 : range.count);
    const int code = generate_launch(draw, range, made, multiprocessors, NULL);
    const bool right = code == 0 && memcmp(made, drawn, bytes) == 0 && made[bytes] == 0x5c;
    if (!right)
        tap_note("%llu elements from %llu: status %d, %s", (unsigned long long)range.count, (unsigned long long)range.first, code,
                 code != 0 ? emulation_fault() : "other bits");
    free(made);
    free(drawn);
    return right;
}

static void test_generator(const char *name, allfold_type type, struct generator generator)
{
    const uint64_t tile = 32 * GENERATE_SHAPE.elements, block = tile * GENERATE_SHAPE.threads / 32;
    const uint64_t counts[] = {1, 31, 33, tile - 1, tile, tile + 1, block + 3, 2 * block + tile + 7};
    struct draw draw;
    draw_prepare(&generator, type, &draw);
    bool right = same(&draw, {7, 0}, 1);
    for (uint64_t count : counts)
        right = right && same(&draw, {(UINT64_C(1) << 32) - count / 2 - 1, count}, 1 + (int)(count % 2));
    /* the least and the greatest of all deviates, which no one meets by chance */
    right = right && same(&draw, {index_of(&draw, 0) - 1, 3}, 1) && same(&draw, {index_of(&draw, UINT64_MAX), 2}, 1);
    tap_ok(right && draw_hash(&draw, index_of(&draw, 5)) == 5, "the bits of %s, %s", name, allfold_type_name(type));
}

static void test_floating(allfold_type type)
{
    const double emin = type == ALLFOLD_F16 ? -24 : type == ALLFOLD_F64 ? -1074 : -133, emax = type == ALLFOLD_F16 ? 15 : 127;
    test_generator("uniform", type, {DISTRIBUTION_UNIFORM, 0, 0, 1, 0, 0});
    test_generator("uniform from -1e-3 to 7.25", type, {DISTRIBUTION_UNIFORM, 1, -1e-3, 7.25, 0, 0});
    test_generator("normal", type, {DISTRIBUTION_NORMAL, UINT64_C(1) << 63, 0, 1, 0, 0});
    test_generator("normal of mean -4", type, {DISTRIBUTION_NORMAL, 3, -4, 1e-3, 0, 0});
    test_generator("normal beyond the type", type, {DISTRIBUTION_NORMAL, 3, 0, type == ALLFOLD_F64 ? 1e308 : 1e38, 0, 0});
    test_generator("wide", type, {DISTRIBUTION_WIDE, 4, emin, emax, 0, 0});
    test_generator("logits", type, {DISTRIBUTION_LOGITS, 5, 4, 0.1, 0, 0});
    test_generator("constant", type, {DISTRIBUTION_CONSTANT, 0, NAN, 0, 0, 0});
    test_generator("ramp", type, {DISTRIBUTION_RAMP, 0, -7, 1.1e-9, 0, 0});
    test_generator("ramp of step 0.1", type, {DISTRIBUTION_RAMP, 0, 1e-9, 0.1, 0, 0});
}

static void test_integer(allfold_type type)
{
    const int bits = (int)type_number_bits(type), emax = type_kind(type) == 'i' ? bits - 2 : bits - 1;
    const uint64_t lowest = type_kind(type) == 'i' ? ~(UINT64_MAX >> (65 - bits)) : 0;
    test_generator("uniform, all values", type, {DISTRIBUTION_UNIFORM, 0, 0, 0, lowest, lowest + (UINT64_MAX >> (64 - bits))});
    test_generator("uniform, two values", type, {DISTRIBUTION_UNIFORM, 1, 0, 0, 0, 1});
    test_generator("normal", type, {DISTRIBUTION_NORMAL, 2, 0.5, 30, 0, 0});
    test_generator("normal beyond the type", type, {DISTRIBUTION_NORMAL, 2, 0, 1e19, 0, 0});
    test_generator("wide", type, {DISTRIBUTION_WIDE, 3, -1, (double)emax, 0, 0});
    test_generator("logits", type, {DISTRIBUTION_LOGITS, 5, 4, 0.1, 0, 0});
    test_generator("constant", type, {DISTRIBUTION_CONSTANT, 0, 1, 0, 1, 0});
    test_generator("ramp", type, {DISTRIBUTION_RAMP, 0, 0, 0, lowest, 7});
}

int main()
{
    for (int type = ALLFOLD_TYPE_NONE + 1; type < ALLFOLD_TYPE_COUNT; type++)
        if (type_kind((allfold_type)type) == 'f')
            test_floating((allfold_type)type);
        else
            test_integer((allfold_type)type);
    return tap_done();
}
