/* The numbers of generated arrays are distributed as they say. By itself; no chance in it: the seeds are fixed. */
#define TAP_WITHOUT_MPI
#include "tap.h"

#include "array/array.h"
#include "base/elements.h"
#include "generated.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Chi-square of values in [0, 1) in 256 cells, as a deviation in standard deviations. */
static double chi_square(const double *u, uint64_t n)
{
    uint64_t cells[256] = {0};
    double sum = 0;
    for (uint64_t i = 0; i < n; i++)
        cells[(int)(u[i] * 256) & 255]++;
    for (int i = 0; i < 256; i++)
        sum += pow((double)cells[i] - (double)n / 256, 2) / ((double)n / 256);
    return (sum - 255) / sqrt(2 * 255);
}

static void test_normal(void)
{
    uint64_t n;
    double *x = elements_of("normal?n=4e6&dtype=f64&seed=42", &n), *u = malloc(n * sizeof *u);
    double sum = 0, squares = 0, cubes = 0, fourths = 0, neighbours = 0, most = 0;
    uint64_t beyond[6] = {0};
    for (uint64_t i = 0; i < n; i++) {
        sum += x[i], squares += x[i] * x[i], cubes += pow(x[i], 3), fourths += pow(x[i], 4);
        neighbours += i > 0 ? x[i] * x[i - 1] : 0;
        u[i] = 0.5 * erfc(-x[i] / sqrt(2));
        for (int k = 1; k < 6; k++)
            beyond[k] += fabs(x[i]) > k;
        most = fmax(most, fabs(x[i]));
    }
    const double root = sqrt((double)n);
    tap_ok(fabs(sum / root) < 4 && fabs(squares / (double)n - 1) * root / sqrt(2) < 4, "normal: mean %g, variance %g",
           sum / (double)n, squares / (double)n);
    tap_ok(fabs(cubes / root) / sqrt(15) < 4 && fabs(fourths / (double)n - 3) * root / sqrt(96) < 4,
           "normal: third moment %g, fourth %g", cubes / (double)n, fourths / (double)n);
    tap_ok(fabs(neighbours / root) < 4, "normal: neighbours are not correlated");
    bool tails = true;
    for (int k = 1; k < 6; k++) {
        const double expected = (double)n * erfc(k / sqrt(2));
        tails = tails && fabs((double)beyond[k] - expected) < 4 * sqrt(expected) + 2;
    }
    tap_ok(tails && most > 4.5 && most < 7, "normal: tails, the largest is %g", most);
    const double chi = chi_square(u, n);
    tap_ok(fabs(chi) < 4, "normal: its distribution function is uniform, chi-square off by %g sd", chi);
    free(x);
    free(u);
}

static void test_uniform(void)
{
    uint64_t n;
    for (int seed = 0; seed < 4; seed++) {
        char text[64];
        snprintf(text, sizeof text, "uniform?n=1e6&dtype=f64&seed=%d", seed);
        double *u = elements_of(text, &n);
        const double chi = chi_square(u, n);
        bool inside = true;
        for (uint64_t i = 0; i < n; i++)
            inside = inside && u[i] >= 0 && u[i] < 1;
        tap_ok(inside && fabs(chi) < 4, "uniform, seed %d: in [0, 1), chi-square off by %g sd", seed, chi);
        free(u);
    }
    const float *f = elements_of("uniform?n=1e6&lo=-3e38&hi=3e38", &n);
    float least = 0, greatest = 0;
    for (uint64_t i = 0; i < n; i++)
        least = fminf(least, f[i]), greatest = fmaxf(greatest, f[i]);
    tap_ok(least < -2.99e38f && least >= -3e38f && greatest > 2.99e38f && greatest <= 3e38f, "uniform over most of f32");
    free((void *)f);
    int8_t *small = elements_of("uniform?n=1e5&dtype=int8", &n);
    int counts[256] = {0}, seen = 0;
    for (uint64_t i = 0; i < n; i++)
        seen += counts[small[i] + 128]++ == 0;
    tap_ok(seen == 256, "uniform int8 takes all 256 values");
    free(small);
    small = elements_of("uniform?n=1e5&dtype=int8&lo=-2&hi=5", &n);
    int outside = 0;
    memset(counts, 0, sizeof counts);
    for (uint64_t i = 0; i < n; i++)
        outside += small[i] < -2 || small[i] > 5, counts[small[i] + 128]++;
    tap_ok(outside == 0 && counts[126] > 11000 && counts[133] > 11000, "uniform integers take both ends");
    free(small);
}

/* Every exponent of each floating-point type, subnormal ones too, and both signs. */
static void test_wide(void)
{
    static const struct {
        const char *text;
        int lowest, highest;
    } wide[] = {{"wide?n=1e5&dtype=f16", -24, 15}, {"wide?n=1e5&dtype=bf16", -133, 127}, {"wide?n=1e5", -149, 127},
                {"wide?n=1e5&dtype=f64", -1074, 1023}, {"wide?n=1e5&emin=-3&emax=-1", -3, -1}};
    for (size_t k = 0; k < sizeof wide / sizeof *wide; k++) {
        const struct array_info info = parsed(wide[k].text);
        uint64_t n, negative = 0;
        const void *e = elements_of(wide[k].text, &n);
        static int counts[2100];
        int seen = 0, outside = 0;
        memset(counts, 0, sizeof counts);
        for (uint64_t i = 0; i < n; i++) {
            const double x = info.type == ALLFOLD_F16    ? load_f16(((const element_f16 *)e)[i])
                             : info.type == ALLFOLD_BF16 ? load_bf16(((const element_bf16 *)e)[i])
                             : info.type == ALLFOLD_F32  ? ((const float *)e)[i]
                                                         : ((const double *)e)[i];
            const int exponent = isfinite(x) && x != 0 ? ilogb(x) : 9999;
            negative += x < 0;
            if (exponent < wide[k].lowest || exponent > wide[k].highest)
                outside++;
            else
                seen += counts[exponent - wide[k].lowest]++ == 0;
        }
        tap_ok(outside == 0 && seen == wide[k].highest - wide[k].lowest + 1 && negative > 49000 && negative < 51000,
               "%s: exponents %d to %d, all of them", wide[k].text, wide[k].lowest, wide[k].highest);
        free((void *)e);
    }
    uint64_t n, zeros = 0;
    int64_t *whole = elements_of("wide?n=1e5&dtype=int64", &n), most = 0;
    for (uint64_t i = 0; i < n; i++)
        zeros += whole[i] == 0, most = whole[i] > most ? whole[i] : most;
    tap_ok(zeros > 1300 && zeros < 1800 && most > INT64_MAX / 4 * 3, "wide int64: zeros and all magnitudes");
    free(whole);
}

static void test_clamped(void)
{
    uint64_t n;
    int infinite = 0, ends = 0;
    element_f16 *h = elements_of("normal?n=1e4&dtype=f16&sd=1e6", &n);
    for (uint64_t i = 0; i < n; i++)
        infinite += !isfinite(load_f16(h[i])), ends += fabsf(load_f16(h[i])) == 65504;
    tap_ok(infinite == 0 && ends > 9000, "beyond f16: its largest, never infinity");
    free(h);
    float *f = elements_of("normal?n=1e4&sd=1.7e308&mean=-1.7e308", &n);
    for (uint64_t i = 0; i < n; i++)
        infinite += !isfinite(f[i]);
    tap_ok(infinite == 0, "beyond f32 and f64: never infinity");
    free(f);
    int64_t *w = elements_of("normal?n=1e4&dtype=int64&sd=1e30", &n);
    uint64_t *u = elements_of("normal?n=1e4&dtype=uint64&sd=1e30", &n);
    ends = 0;
    for (uint64_t i = 0; i < n; i++)
        ends += w[i] == (w[i] < 0 ? INT64_MIN : INT64_MAX) && u[i] == (w[i] < 0 ? 0 : UINT64_MAX);
    tap_ok(ends == (int)n, "beyond int64 and uint64: their ends");
    free(w);
    free(u);
    double *x = elements_of("normal?n=1e4&dtype=f64&sd=50&mean=0.5", &n);
    int8_t *r = elements_of("normal?n=1e4&dtype=int8&sd=50&mean=0.5", &n);
    ends = 0;
    for (uint64_t i = 0; i < n; i++)
        ends += r[i] == fmin(127, fmax(-128, nearbyint(x[i])));
    tap_ok(ends == (int)n, "integers are the rounded real numbers, kept within the type");
    free(x);
    free(r);
}

static void test_logits(void)
{
    uint64_t n, outliers = 0;
    double squares = 0;
    double *x = elements_of("logits?n=1e6&dtype=f64&scale=2&outliers=1e-3", &n);
    double *z = elements_of("normal?n=1e6&dtype=f64", &n);
    bool right = true;
    for (uint64_t i = 0; i < n; i++) {
        const bool outlier = x[i] != 2 * z[i];
        right = right && x[i] == (outlier ? 20 : 2) * z[i];
        outliers += outlier, squares += outlier ? 0 : x[i] * x[i];
    }
    tap_ok(right && outliers > 870 && outliers < 1130 && fabs(squares / 1e6 - 4) < 0.05,
           "logits: %" PRIu64 " of 10^6 are 10 times as large", outliers);
    free(x);
    free(z);
}

int main(void)
{
    test_normal();
    test_uniform();
    test_wide();
    test_clamped();
    test_logits();
    return tap_done();
}
