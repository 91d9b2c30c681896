/* Generated arrays: their text, and that the same bits come out whatever the pieces, the instruction set and the
   compiler. By itself; `test_generate print` writes the table of golden values anew. */
#define TAP_WITHOUT_MPI
#include "tap.h"

#include "array/array.h"
#include "base/parse.h"
#include "base/elements.h"
#include "base/host.h"
#include "generated.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static void test_counts(void)
{
    static const struct {
        const char *text;
        uint64_t value;
    } good[] = {{"0", 0}, {"1000", 1000}, {"1e9", 1000000000}, {"1E+9", 1000000000}, {"1.5e3", 1500}, {"2.50e1", 25},
                {"2^30", 1 << 30}, {"2^63", UINT64_C(1) << 63}, {"64Ki", 65536}, {"1.5Mi", 3 << 19}, {"4Gi", UINT64_C(4) << 30},
                {"64k", 64000}, {"64K", 64000}, {"1.5M", 1500000}, {"2P", UINT64_C(2000000000000000)}, {"18446744073709551615", UINT64_MAX}, {"0e64", 0}, {"007", 7}, {"10^19", UINT64_C(10000000000000000000)}};
    static const char *const bad[] = {"", " 1", "1 ", "-1", "+1", "1e", "e9", "1e-9", "1.5", "1.25e1", "2^64", "2^", "^2", "3^41",
                                      "1e20", "18446744073709551616", "16Ei", "64Kib", "64KB", "64Q", "1E", "100P0", "1e3k", "1e999999999999", "0x10",
                                      "1,000", ".", "1.2.3e9", "1e9.0", "2^3^4", "nan", "inf", "1.5^2", "1e65", "12z"};
    uint64_t value;
    int right = 0, refused = 0;
    for (size_t i = 0; i < sizeof good / sizeof *good; i++)
        right += parse_count(good[i].text, &value) && value == good[i].value;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        refused += !parse_count(bad[i], &value);
    tap_ok(right == sizeof good / sizeof *good, "%d counts are understood", right);
    tap_ok(refused == sizeof bad / sizeof *bad, "%d texts are no counts", refused);
    tap_ok(parse_size("1K", &value) && value == 1000 && parse_size("1KB", &value) && value == 1000 && parse_size("1MiB", &value)
           && value == 1 << 20 && parse_size("512B", &value) && value == 512 && !parse_size("B", &value) && !parse_size("1.B", &value)
           && !parse_size("1BB", &value) && !parse_size("1 MiB", &value) && value == 512, "sizes may say B");
}

static void test_reals(void)
{
    static const char *const good[] = {"0", "-1", "1e-400", "-.5", "2.", "1.5e+3", "nan", "inf", "-inf"};
    static const char *const bad[] = {"", " 1", "1 ", "\t1", "+1", "0x10", "0x1p3", "-nan", "nan(1)", "infinity", "INF", "1e400", "1e", "--1", "1f"};
    int right = 0, refused = 0;
    double value = 7;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        refused += !parse_real(bad[i], &value) && value == 7;
    for (size_t i = 0; i < sizeof good / sizeof *good; i++)
        right += parse_real(good[i], &value) && (value == strtod(good[i], NULL) || good[i][0] == 'n');
    tap_ok(right == sizeof good / sizeof *good, "%d numbers are understood", right);
    tap_ok(refused == sizeof bad / sizeof *bad, "%d texts are no numbers, in decimal and as a whole", refused);
}

static const struct array_hints no_hints;

static void test_refused(void)
{
    static const char *const bad[][2] = {
        {"", "one of uniform, normal"}, {"gauss?n=1", "one of uniform, normal"}, {"normal", "expected a count"},
        {"normal?", "one of n, dtype, seed, mean, sd"}, {"normal?n=1&lo=2", "one of n, dtype, seed, mean, sd"},
        {"normal?n=1&n=2", "it once"}, {"normal?n=", "a value of"}, {"normal?n", "with =VALUE"}, {"normal?n=1&", "one of"},
        {"normal?n=1&&sd=1", "one of"}, {"normal?n=-1", "a count"}, {"normal?n=1e19", "2^63 bytes"},
        {"normal?n=2^62&dtype=int16", "2^63 bytes"}, {"normal?n=1&dtype=f8", "an element type"},
        {"normal?n=1&seed=-1", "an integer from 0"}, {"normal?n=1&seed=1e30", "an integer from 0"},
        {"normal?n=1&mean=x", "a number"}, {"normal?n=1&mean=inf", "a number from"}, {"normal?n=1&sd=nan", "a number from"},
        {"normal?n=1&sd=-1", "no negative"}, {"normal?n=1&mean=1e400", "a number"}, {"uniform?n=1&lo=2", "no less than lo"},
        {"uniform?n=1&lo=2&hi=1", "no less than lo"}, {"uniform?n=1&dtype=f16&hi=65505", "-65504 to 65504"},
        {"uniform?n=1&dtype=int8&hi=128", "int8 holds"}, {"uniform?n=1&dtype=int8&lo=-129", "int8 holds"},
        {"uniform?n=1&dtype=uint8&lo=-1", "uint8 holds"}, {"uniform?n=1&dtype=int8&lo=0.5", "int8 holds"},
        {"uniform?n=1&dtype=int64&hi=9223372036854775808", "int64 holds"},
        {"uniform?n=1&dtype=int64&lo=-9223372036854775809", "int64 holds"},
        {"uniform?n=1&dtype=uint64&lo=9&hi=8", "no less than lo"}, {"uniform?n=1&dtype=int8&lo=1&hi=-1", "no less than lo"},
        {"wide?n=1&emax=128", "-149 to 127"}, {"wide?n=1&emin=-150", "-149 to 127"}, {"wide?n=1&emin=0.5", "an exponent"},
        {"wide?n=1&emin=3&emax=2", "no less than emin"}, {"wide?n=1&dtype=int8&emax=7", "-1 to 6"},
        {"logits?n=1&outliers=1.5", "0 to 1"}, {"logits?n=1&outliers=-1", "0 to 1"},
        {"constant?n=1&value=1e39", "a number from"}, {"constant?n=1&dtype=int8&value=nan", "int8 holds"},
        {"constant?n=1&value=1&value=1", "it once"}, {"ramp?n=129&dtype=int8", "a ramp"},
        {"ramp?n=257&dtype=int8&start=127&step=-1", "a ramp"}, {"ramp?n=3&dtype=uint64&start=2^63&step=2^62", "a ramp"},
        {"ramp?n=2&dtype=uint64&step=-1", "a ramp"}, {"ramp?n=2&dtype=uint64&step=-9223372036854775809", "a 64-bit type"},
        {"ramp?n=65506&dtype=f16", "a ramp"}, {"ramp?n=3&dtype=f64&start=1e308&step=1e308", "a ramp"},
        {"ramp?n=9007199254740993", "2^53"}, {"ramp?n=1&dtype=f32&step=inf", "a number from"},
        {"normal?n=1&sd=0123456789012345678901234567890123456789012345678901234567890123", "1 to 63 characters"},
    };
    int refused = 0, total = (int)(sizeof bad / sizeof *bad);
    for (int i = 0; i < total; i++) {
        struct array_info info;
        struct error error = {.status = ALLFOLD_OK};
        memset(&info, 0, sizeof info);
        const bool right = generator_parse(bad[i][0], &no_hints, &info, &error) == ALLFOLD_BAD_ARGUMENT &&
                           strstr(error.text, bad[i][1]) != NULL && strstr(error.text, "found") != NULL;
        refused += right;
        if (!right)
            tap_note("gen:%s: expected '%s', found '%s'", bad[i][0], bad[i][1], error.text);
    }
    tap_ok(refused == total, "%d texts are refused, each with its reason", total);
    struct array_info info;
    struct error error = {.status = ALLFOLD_OK}, other = {.status = ALLFOLD_OK}, third = {.status = ALLFOLD_OK};
    const struct array_hints f16 = {.type = ALLFOLD_F16}, count = {.has_count = true};
    tap_ok(array_describe("gen:normal?n=3", &f16, &info, &error) == ALLFOLD_OK && info.type == ALLFOLD_F16,
           "--dtype gives a generator its type");
    tap_ok(array_describe("gen:normal?n=3&dtype=f32", &f16, &info, &other) == ALLFOLD_BAD_ARGUMENT, "two types are refused");
    tap_ok(array_describe("gen:normal?n=3", &count, &info, &third) == ALLFOLD_BAD_ARGUMENT, "--count is refused");
}

/* FNV-1a of 10007 elements around index 2^32. */
static uint64_t fingerprint(const char *text)
{
    enum { N = 10007 };
    static unsigned char bytes[N * 8];
    const struct array_info info = parsed(text);
    uint64_t hash = UINT64_C(0xcbf29ce484222325);
    fill(&info, (UINT64_C(1) << 32) - 5000, N, bytes);
    for (size_t i = 0; i < N * allfold_type_bytes(info.type); i++)
        hash = (hash ^ bytes[i]) * UINT64_C(0x100000001b3);
    return hash;
}

static const struct {
    const char *text;
    uint64_t fingerprint;
} golden[] = {
    {"uniform?n=2^34", UINT64_C(0xc323ce61e1fea130)},
    {"uniform?n=2^34&dtype=f16&seed=1", UINT64_C(0xc952728b0e42a5d9)},
    {"uniform?n=2^34&dtype=bf16&seed=2", UINT64_C(0x8722d363aa25c3d5)},
    {"uniform?n=2^34&dtype=f64&seed=3", UINT64_C(0x4b8cc7b12fcd7e86)},
    {"uniform?n=2^34&lo=-1e-3&hi=7.25", UINT64_C(0x92b7faeabde35dfc)},
    {"uniform?n=2^34&dtype=int8", UINT64_C(0xea8123ef15cb45f6)},
    {"uniform?n=2^34&dtype=uint16&lo=100&hi=60000", UINT64_C(0xae8945eb10948432)},
    {"uniform?n=2^34&dtype=int32&lo=-7&hi=2^30", UINT64_C(0xc8ad88432a4cb2f3)},
    {"uniform?n=2^34&dtype=int64&seed=2^63", UINT64_C(0x2358998588c88862)},
    {"uniform?n=2^34&dtype=uint64&lo=3&hi=1e19", UINT64_C(0x882656e1ac7811cc)},
    {"normal?n=2^34", UINT64_C(0x21da7b0ac9ee4699)},
    {"normal?n=2^34&dtype=f64&seed=1&mean=0.1&sd=3", UINT64_C(0x9960e21027c82041)},
    {"normal?n=2^34&dtype=f16&mean=-4&sd=1e-3", UINT64_C(0x8ff8098c5f9fbbf5)},
    {"normal?n=2^34&dtype=bf16", UINT64_C(0x4467839717edb16b)},
    {"normal?n=2^34&dtype=int8&sd=40", UINT64_C(0x1f072fe9aa3bc506)},
    {"normal?n=2^34&dtype=uint64&sd=1e19", UINT64_C(0xf4beeda06e626e66)},
    {"wide?n=2^34", UINT64_C(0x9a9846e61e3f806c)},
    {"wide?n=2^34&dtype=f16", UINT64_C(0xef77855ca0c8af69)},
    {"wide?n=2^34&dtype=bf16", UINT64_C(0xd18e5c80c09eadc7)},
    {"wide?n=2^34&dtype=f64", UINT64_C(0xa50b8716cec10a40)},
    {"wide?n=2^34&dtype=f64&emin=-40&emax=40", UINT64_C(0x26101aa901198009)},
    {"wide?n=2^34&dtype=int16", UINT64_C(0xad4854e1ac2132e7)},
    {"wide?n=2^34&dtype=uint64", UINT64_C(0x9030b4669bf07783)},
    {"logits?n=2^34", UINT64_C(0xa3ea70883312b5ac)},
    {"logits?n=2^34&dtype=f16&scale=2&outliers=0.01", UINT64_C(0xaaca0fa3294806cd)},
    {"logits?n=2^34&dtype=bf16", UINT64_C(0x46b5ff06dd45608a)},
    {"constant?n=2^34&value=0.1", UINT64_C(0x628a35f7230cf153)},
    {"constant?n=2^34&dtype=bf16&value=0.1", UINT64_C(0x5f0a4abcdf171003)},
    {"ramp?n=2^34", UINT64_C(0x32fe02a505911003)},
    {"ramp?n=2^34&dtype=f64&start=0.3&step=0.1", UINT64_C(0x4ca96b044173c8d7)},
    {"ramp?n=2^34&dtype=f16&start=-7&step=1.1e-9", UINT64_C(0xe07512a5a87fc3b0)},
    {"ramp?n=2^34&dtype=bf16&start=1e-9&step=0.1", UINT64_C(0x17ea3de0d204d673)},
    {"ramp?n=2^34&dtype=int64&start=-3&step=7", UINT64_C(0xf84e0dfe4dd7c8cd)},
};

static void test_golden(void)
{
    for (size_t i = 0; i < sizeof golden / sizeof *golden; i++)
        tap_ok(fingerprint(golden[i].text) == golden[i].fingerprint, "the bits of %s", golden[i].text);
}

/* One fill, against pieces of all lengths, by the loops of each instruction set that this processor has. */
static void test_pieces(void)
{
    enum { N = 300007 };
    static draw_loop *const loops[] = {
        draw_base,
#ifdef ALLFOLD_HAVE_X86_ISA
        draw_avx2,
        draw_avx512,
#endif
    };
    for (size_t i = 0; i < sizeof golden / sizeof *golden; i++) {
        const struct array_info info = parsed(golden[i].text);
        const size_t bytes = allfold_type_bytes(info.type);
        char *whole = malloc(N * bytes), *pieces = malloc(N * bytes);
        uint64_t length = 1;
        struct draw draw;
        draw_prepare(&info.generator, info.type, &draw);
        fill(&info, 12345, N, whole);
        memset(pieces, 0xaa, N * bytes);
        for (uint64_t at = 0; at < N; at += length, length = (length * 5 + 3) % 70001) {
            const uint64_t count = u64_min(length, N - at);
            loops[at % ((uint64_t)host_isa() + 1)](&draw, (struct range){12345 + at, count}, pieces + at * bytes);
        }
        tap_ok(memcmp(whole, pieces, N * bytes) == 0, "any pieces and instruction sets: %s", golden[i].text);
        free(whole);
        free(pieces);
    }
}

static void test_ramp(void)
{
    uint64_t n;
    double *d = elements_of("ramp?n=1000&dtype=f64&start=0.1&step=0.3", &n);
    bool right = true;
    for (uint64_t i = 0; i < n; i++)
        right = right && d[i] == fma(0.3, (double)i, 0.1);
    tap_ok(right, "ramp f64: rounded once");
    free(d);
    /* just above a tie of f16, by less than f64 keeps: to f64 first would give 1 */
    element_f16 *h = elements_of("ramp?n=2&dtype=f16&start=8.673617379884035e-19&step=1.00048828125", &n);
    element_f16 *even = elements_of("ramp?n=2&dtype=f16&step=1.00048828125", &n);
    element_f16 *below = elements_of("ramp?n=2&dtype=f16&start=-8.673617379884035e-19&step=-1.00048828125", &n);
    element_f16 *less = elements_of("ramp?n=2&dtype=f16&start=-8.673617379884035e-19&step=1.00146484375", &n);
    tap_ok(load_f16(h[1]) == 0x1.004p0f && load_f16(even[1]) == 1.0f && load_f16(below[1]) == -0x1.004p0f &&
               load_f16(less[1]) == 0x1.004p0f, "ramp f16: rounded once, ties to even");
    free(h);
    free(below);
    free(less);
    free(even);
    int8_t *down = elements_of("ramp?n=256&dtype=int8&start=127&step=-1", &n);
    uint64_t *top = elements_of("ramp?n=3&dtype=uint64&start=18446744073709551615&step=-9223372036854775807", &n);
    tap_ok(down[0] == 127 && down[255] == -128 && top[0] == UINT64_MAX && top[2] == 1, "ramps that use all of a type");
    free(down);
    free(top);
    const struct array_info info = parsed("ramp?n=2^53&dtype=int64&start=-5&step=1023");
    int64_t last;
    fill(&info, (UINT64_C(1) << 53) - 1, 1, &last);
    tap_ok(last == -5 + 1023 * ((INT64_C(1) << 53) - 1), "the last of 2^53 elements");
}

static void test_constant(void)
{
    uint64_t n;
    float *f[3] = {elements_of("constant?n=3&value=inf", &n), elements_of("constant?n=3&value=-inf", &n),
                   elements_of("constant?n=3&value=nan", &n)};
    element_f16 *h = elements_of("constant?n=700&dtype=f16&value=-inf", &n);
    element_bf16 *b = elements_of("constant?n=3&dtype=bf16&value=nan", &n);
    int64_t *w = elements_of("constant?n=3&dtype=int64&value=-9223372036854775808", &n);
    uint64_t *u = elements_of("constant?n=3&dtype=uint64&value=18446744073709551615", &n);
    uint16_t *one = elements_of("constant?n=3&dtype=uint16", &n);
    tap_ok(f[0][2] == INFINITY && f[1][2] == -INFINITY && isnan(f[2][2]), "constant: inf, -inf and nan");
    tap_ok(load_f16(h[699]) == -INFINITY && isnan(load_bf16(b[2])), "constant: in 16 bits too");
    tap_ok(w[2] == INT64_MIN && u[2] == UINT64_MAX && one[2] == 1, "constant: integers are exact");
    for (int i = 0; i < 3; i++)
        free(f[i]);
    free(h), free(b), free(w), free(u), free(one);
}

int main(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], "print") == 0) {
        for (size_t i = 0; i < sizeof golden / sizeof *golden; i++)
            printf("    {\"%s\", UINT64_C(0x%016" PRIx64 ")},\n", golden[i].text, fingerprint(golden[i].text));
        return 0;
    }
    test_counts();
    test_reals();
    test_refused();
    test_golden();
    test_pieces();
    test_ramp();
    test_constant();
    tap_ok(strstr(generator_help(), "logits") != NULL, "the help names the distributions");
    return tap_done();
}
