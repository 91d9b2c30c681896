/* The audit of numbers: directed searches for the worst errors of softmax, log-softmax, logsumexp, and of norm2 and variance at level
   fast, through allfold.h, against 113 bits. It prints the table of docs/numerics.md, but its last column. argv[1] is the backend;
   ALLFOLD_AUDIT_ROWS how many rows each search tries (make check-numerics: a hundred times as many as make check). Of several ranks
   each searches on its own.

   A search climbs: it changes the row with the largest error so far, keeps what is no better not, and now and then starts anew.
   Rows are what is bad for sums: few distinct values, each repeated, and some far below or above the others. */
#include "tests/audit/wide.h"

#include <float.h>
#include <inttypes.h>

enum { KINDS = 3, MOST = 2048 };

static struct {
    allfold_context *levels[2]; /* fast, exact */
    uint64_t state, rows;
    _Alignas(64) unsigned char x[MOST * 8], y[MOST * 8];
} audit;

static uint64_t next_random(void)
{
    uint64_t z = audit.state += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}
static double unit(void) { return (double)(next_random() >> 11) * 0x1p-53; }

/* kinds values, value[k] count[k] times over. */
struct row {
    allfold_type type;
    int kinds;
    double value[KINDS];
    uint32_t count[KINDS];
};

static double held(allfold_type type, double x) { return type == ALLFOLD_F32 ? (double)(float)x : x; }

/* What is searched: how rows are drawn, what is measured, in units of the promise's ulp, and the promise. */
struct search {
    const char *name;
    allfold_type type;
    double promise;
    void (*draw)(struct row *row);
    double (*error)(allfold_context *ctx, const struct row *row);
};

static uint64_t fill(const struct row *row)
{
    uint64_t n = 0;
    for (int k = 0; k < row->kinds; k++)
        for (uint32_t i = 0; i < row->count[k]; i++, n++)
            if (row->type == ALLFOLD_F32)
                ((float *)audit.x)[n] = (float)row->value[k];
            else
                ((double *)audit.x)[n] = row->value[k];
    return n;
}
static double result_at(allfold_type type, uint64_t i)
{
    return type == ALLFOLD_F32 ? (double)((const float *)audit.y)[i] : ((const double *)audit.y)[i];
}

static double max_of(const struct row *row)
{
    double max = -INFINITY;
    for (int k = 0; k < row->kinds; k++)
        max = fmax(max, row->value[k]);
    return max;
}
/* The sum of exp(x - max) but for one term of the maximum. */
static wide others_of(const struct row *row)
{
    const double max = max_of(row);
    wide sum = 0;
    bool found = false;
    for (int k = 0; k < row->kinds; k++) {
        const bool own = !found && row->value[k] == max;
        sum += (wide)(row->count[k] - own) * wide_exp((wide)row->value[k] - (wide)max);
        found = found || own;
    }
    return sum;
}

static double normalise_error(allfold_context *ctx, const struct row *row, bool logarithm)
{
    const uint64_t n = fill(row);
    const allfold_array array = {audit.x, n, row->type};
    const allfold_call call = {.size = sizeof call, .logarithm = logarithm};
    must(allfold_softmax(ctx, &array, audit.y, row->type, &call) == ALLFOLD_OK, allfold_message(ctx));
    const wide max = (wide)max_of(row), others = others_of(row), log = logarithm ? wide_log1p(others) : 0;
    double worst = 0.0, least = max_of(row);
    uint64_t at = 0;
    for (int k = 0; k < row->kinds; k++)
        least = fmin(least, row->value[k]);
    /* what lies below the maximum by more than that may be in none of the bins */
    const wide forgotten = logarithm && least < max_of(row) - 65.0 ? (wide)n * (wide)0x1p-96 : 0;
    for (int k = 0; k < row->kinds; at += row->count[k++]) {
        const wide t = (wide)row->value[k] - max, exact = logarithm ? t - log : wide_exp(t) / (1 + others);
        const double y = result_at(row->type, at);
        const double error = (double)(wide_magnitude((wide)y - exact) / (wide_ulp(exact, row->type) + forgotten));
        worst = !(error <= worst) ? error : worst;
        if (logarithm && (y > 0.0 || (n == 1 && y != 0.0)))
            worst = INFINITY;
        for (uint32_t i = 1; i < row->count[k]; i++)
            must(result_at(row->type, at + i) == y, "equal elements give different results");
    }
    return n == 1 && !logarithm && result_at(row->type, 0) != 1.0 ? (double)INFINITY : worst;
}
static double softmax_error(allfold_context *ctx, const struct row *row) { return normalise_error(ctx, row, false); }
static double log_softmax_error(allfold_context *ctx, const struct row *row) { return normalise_error(ctx, row, true); }

static double reduced(allfold_context *ctx, allfold_fold fold, const struct row *row, const char *field)
{
    const allfold_array array = {audit.x, fill(row), row->type};
    struct fold_results result = {0};
    must(reduce_all(ctx, fold, &array, NULL, &result) == ALLFOLD_OK, allfold_message(ctx));
    for (int i = 0; i < result.field_count; i++)
        if (strcmp(result.fields[i].name, field) == 0)
            return result.fields[i].value.f64;
    return NAN;
}

/* In ulps; where the maximum is negative, and the logarithm positive, in ulps and 2^-53. */
static double logsumexp_error(allfold_context *ctx, const struct row *row)
{
    const double found = reduced(ctx, ALLFOLD_LOGSUMEXP, row, "value"), max = max_of(row);
    const wide log = wide_log1p(others_of(row)), exact = (wide)max + log;
    const wide allowed = wide_ulp(exact, ALLFOLD_F64) + (max < 0.0 && log > 0 ? (wide)0x1p-53 : 0);
    return row->kinds == 1 && row->count[0] == 1 && found != max ? (double)INFINITY
                                                                  : (double)(wide_magnitude((wide)found - exact) / allowed);
}

/* norm2: values are scaled so that squares neither overflow nor underflow 113 bits' exponents, which are those of long double. */
static double norm2_error(allfold_context *ctx, const struct row *row)
{
    const double found = reduced(ctx, ALLFOLD_NORM2, row, "value");
    wide square = 0, root;
    for (int k = 0; k < row->kinds; k++)
        square += (wide)row->count[k] * (wide)row->value[k] * (wide)row->value[k];
    root = (wide)found;
    if (square == 0 || isinf(found))
        return found == 0.0 || isinf(found) ? 0.0 : INFINITY;
    root = (root + square / root) / 2;
    root = (root + square / root) / 2;
    return (double)(wide_magnitude((wide)found - root) / wide_ulp(root, ALLFOLD_F64));
}

/* In parts of 1e-13 of itself and 16 squares of an ulp of the mean. */
static double variance_error(allfold_context *ctx, const struct row *row)
{
    const double found = reduced(ctx, ALLFOLD_STATS, row, "variance");
    wide n = 0, mean = 0, variance = 0;
    for (int k = 0; k < row->kinds; k++) {
        n += row->count[k];
        mean += (wide)row->count[k] * (wide)row->value[k];
    }
    mean /= n;
    for (int k = 0; k < row->kinds; k++)
        variance += (wide)row->count[k] * ((wide)row->value[k] - mean) * ((wide)row->value[k] - mean);
    variance /= n;
    const wide unit_of_mean = wide_ulp(mean, ALLFOLD_F64);
    return (double)(wide_magnitude((wide)found - variance) / ((wide)1e-13 * variance + 16 * unit_of_mean * unit_of_mean));
}

static uint32_t draw_count(uint32_t most)
{
    const double power = pow((double)most, unit());
    return unit() < 0.3 ? 1 : (uint32_t)power;
}

/* Values near 0, or anywhere where the reference is a power of two or the maximum: most often one, many times over, and one element
   below it; else up to three, and gaps that are small or wide. */
static void draw_exponentials(struct row *row)
{
    static const double spans[] = {1.0, 8.0, 8.0, 8.0, 90.0, 2047.0, 2100.0, 40000.0, 1e7};
    const double span = spans[next_random() % 9], gap = next_random() % 2 ? 2.0 : row->type == ALLFOLD_F32 ? 80.0 : 700.0;
    const bool two = next_random() % 4 != 0;
    row->kinds = two ? 2 : 1 + (int)(next_random() % KINDS);
    for (int k = 0; k < row->kinds; k++) {
        row->value[k] = held(row->type, k == 0 ? span * (2.0 * unit() - 1.0) : row->value[0] - gap * (unit() - (two ? 0.0 : 0.2)));
        row->count[k] = two && k == 1 ? 1 : draw_count(MOST / KINDS);
    }
}
/* One element above all others, by so much that the logarithm of the sum is near 0, but no more than the bins of exact sums hold. */
static void draw_near_zero(struct row *row)
{
    const double span = next_random() % 2 ? 8.0 : 300.0;
    row->kinds = 1 + (int)(next_random() % KINDS);
    for (int k = 0; k < row->kinds; k++) {
        row->value[k] = held(row->type, k == 0 ? span * (2.0 * unit() - 1.0) : row->value[0] - 65.0 * unit());
        row->count[k] = k == 0 && next_random() % 4 ? 1 : draw_count(MOST / KINDS);
    }
}
/* Around the limits of the three sums of norm2, and anywhere. */
static void draw_squares(struct row *row)
{
    static const int centres[] = {-511, 486, -537, -1040, 510, 0};
    const int centre = centres[next_random() % 6];
    row->kinds = 1 + (int)(next_random() % KINDS);
    for (int k = 0; k < row->kinds; k++) {
        row->value[k] = ldexp(1.0 + unit(), centre + (int)(next_random() % 61) - 30);
        row->count[k] = draw_count(16);
    }
}
/* An outlier in the first place, or none. */
static void draw_deviations(struct row *row)
{
    row->kinds = 1 + (int)(next_random() % KINDS);
    for (int k = 0; k < row->kinds; k++) {
        row->value[k] = ldexp(2.0 * unit() - 1.0, k == 0 ? (int)(next_random() % 40) : 0);
        row->count[k] = k == 0 && next_random() % 2 ? 1 : draw_count(MOST / KINDS);
    }
}

/* One value, or count, a little else. */
static void change(struct row *row)
{
    const int k = (int)(next_random() % (uint64_t)row->kinds);
    double *const value = &row->value[k];
    if (next_random() % 4 == 0)
        row->count[k] = draw_count(MOST / KINDS);
    else if (next_random() % 4 != 0)
        *value = held(row->type, *value + (2.0 * unit() - 1.0) * ldexp(fmin(fabs(*value), 64.0), -(int)(next_random() % 24)));
    else
        *value = row->type == ALLFOLD_F32 ? (double)nextafterf((float)*value, unit() < 0.5 ? -INFINITY : INFINITY)
                                          : nextafter(*value, unit() < 0.5 ? -INFINITY : INFINITY);
}

static void run(const struct search *search, int level)
{
    struct row best = {.type = search->type}, worst_row = best;
    double found = -1.0, worst = 0.0;
    for (uint64_t i = 0, stuck = 0; i < audit.rows; i++, stuck++) {
        struct row row = best;
        if (found < 0.0 || stuck > 500) {
            found = -1.0;
            stuck = 0;
            search->draw(&row);
        } else
            change(&row);
        const double error = search->error(audit.levels[level], &row);
        if (!(error <= found)) {
            best = row;
            found = error;
            stuck = 0;
        }
        if (!(error <= worst)) {
            worst = error;
            worst_row = row;
        }
    }
    const char *const name = level == 0 ? "fast" : "exact";
    tap_ok(worst <= search->promise, "%s, level %s", search->name, name);
    tap_note("| %s | %s | %g | %.3f | %" PRIu64 " |", search->name, name, search->promise, worst, audit.rows);
    for (int k = 0; k < worst_row.kinds; k++)
        tap_note("    %" PRIu32 " x %a", worst_row.count[k], worst_row.value[k]);
}

/* Rows that were found to be bad once, with what they must give. */
static void run_known(void)
{
    static const struct row rows[] = {
        {ALLFOLD_F32, 2, {-0x1.767e44p+2, -0x1.28a9dap+5}, {123, 1}}, {ALLFOLD_F32, 2, {0x1.4cb6c4p+2, -0x1.339076p+5}, {2047, 1}},
        {ALLFOLD_F32, 2, {-0x1.4caa68p+2, -0x1.339ab2p+5}, {2047, 1}}, {ALLFOLD_F64, 2, {0x1.e8f99bea4640ep+1, -0x1.2959330d7825cp+7}, {2044, 1}},
        {ALLFOLD_F32, 2, {0x1.4cbb1p+2, -20.0}, {1, 1}}, {ALLFOLD_F32, 2, {-0x1.4ccccep+2, -40.0}, {1, 1}}, {ALLFOLD_F64, 1, {1e-20}, {1}},
        {ALLFOLD_F64, 1, {1e-3}, {1}}, {ALLFOLD_F64, 2, {0.0, -46.0}, {1, 1}}, {ALLFOLD_F32, 2, {0x1p-20, -60.0}, {1, 9}}};
    for (int level = 0; level < 2; level++) {
        const struct row small = {ALLFOLD_F64, 2, {0x1.71e94bf1952ebp-511, 0x1.b771277c24832p-513}, {1, 1}};
        const struct row outlier = {ALLFOLD_F64, 2, {1e5, 0.1}, {1, 999}};
        double softmax = 0.0, logarithm = 0.0, logsumexp = 0.0;
        for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
            softmax = fmax(softmax, softmax_error(audit.levels[level], &rows[i]));
            logarithm = fmax(logarithm, log_softmax_error(audit.levels[level], &rows[i]));
            logsumexp = fmax(logsumexp, logsumexp_error(audit.levels[level], &rows[i]));
        }
        tap_ok(softmax <= 1.5 && logarithm <= 2.0 && logsumexp <= 1.0, "rows that were bad once, level %s: %.3f, %.3f, %.3f ulp",
               level == 0 ? "fast" : "exact", softmax, logarithm, logsumexp);
        tap_ok(norm2_error(audit.levels[level], &small) <= 0.51 && variance_error(audit.levels[level], &outlier) <= 1.0,
               "small elements' norm2, and an outlier in the first place, level %s", level == 0 ? "fast" : "exact");
    }
}

/* One element: softmax 1, log-softmax 0, logsumexp the element; the error functions see to that. */
static void run_single(void)
{
    for (int level = 0; level < 2; level++) {
        uint64_t wrong = 0;
        for (uint64_t i = 0; i < audit.rows; i++) {
            struct row row = {next_random() % 2 ? ALLFOLD_F32 : ALLFOLD_F64, 1, {0.0}, {1}};
            row.value[0] = held(row.type, ldexp(2.0 * unit() - 1.0, (int)(next_random() % 120) - 60));
            wrong += !(softmax_error(audit.levels[level], &row) == 0.0 && log_softmax_error(audit.levels[level], &row) == 0.0
                       && logsumexp_error(audit.levels[level], &row) == 0.0);
        }
        tap_ok(wrong == 0, "one element gives 1, 0 and itself, level %s (%" PRIu64 " of %" PRIu64 " do not)",
               level == 0 ? "fast" : "exact", wrong, audit.rows);
    }
}

/* A context of this rank alone; NULL, and all is skipped, where there is no such backend. */
static allfold_context *open_self(const char *backend, allfold_options options)
{
    allfold_context *ctx = NULL;
    char message[ALLFOLD_ERROR_BYTES];
    options.size = sizeof options;
    options.backend = strcmp(backend, "cuda") == 0 ? ALLFOLD_BACKEND_CUDA : ALLFOLD_BACKEND_CPU;
    const allfold_status status = allfold_open(MPI_COMM_SELF, &options, &ctx, message, sizeof message);
    must(status == ALLFOLD_OK || status == ALLFOLD_UNSUPPORTED, message);
    if (status == ALLFOLD_UNSUPPORTED)
        tap_skip_all("%s", message);
    return ctx;
}

int main(int argc, char **argv)
{
    static const struct search searches[] = {
        {"softmax of f32, ulp", ALLFOLD_F32, 1.5, draw_exponentials, softmax_error},
        {"softmax of f64, ulp", ALLFOLD_F64, 1.5, draw_exponentials, softmax_error},
        {"log-softmax of f32, ulp", ALLFOLD_F32, 2.0, draw_near_zero, log_softmax_error},
        {"log-softmax of f64, ulp", ALLFOLD_F64, 2.0, draw_near_zero, log_softmax_error},
        {"logsumexp, ulp (+ 2^-53)", ALLFOLD_F64, 1.0, draw_near_zero, logsumexp_error},
        {"norm2 of f64, ulp", ALLFOLD_F64, 0.51, draw_squares, norm2_error},
        {"variance, of its bound", ALLFOLD_F64, 1.0, draw_deviations, variance_error}};
    MPI_Init(&argc, &argv);
    const char *const backend = argc > 1 ? argv[1] : "cpu", *const rows = getenv("ALLFOLD_AUDIT_ROWS");
    audit.rows = rows != NULL ? strtoull(rows, NULL, 10) : 3000;
    audit.state = UINT64_C(0x5eed) + (uint64_t)world_rank();
    for (int level = 0; level < 2; level++)
        audit.levels[level] = open_self(
            backend, (allfold_options){.threads = 1, .level = level == 0 ? ALLFOLD_LEVEL_FAST : ALLFOLD_LEVEL_EXACT});
    if (audit.levels[1] != NULL) {
        run_known();
        run_single();
        for (size_t i = 0; i < sizeof searches / sizeof *searches; i++)
            for (int level = 0; level < 2; level++)
                run(&searches[i], level);
        allfold_close(audit.levels[0]);
        allfold_close(audit.levels[1]);
    }
    const int status = tap_done();
    MPI_Finalize();
    return status;
}
