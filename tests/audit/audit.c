/* The audit of numbers: directed searches for the worst errors of softmax, log-softmax, logsumexp, and of norm2 and variance at level
   fast, through allfold.h, against 113 bits. It prints the table of docs/numerics.md, but its last column. argv[1] is the backend;
   ALLFOLD_AUDIT_ROWS how many rows each search tries (make check-numerics: a hundred times as many as make check). Several
   ranks share them, and search apart.

   A search climbs: it changes the row with the largest error so far, keeps the change if the error grows, and now and then starts anew.
   Rows are what is bad for sums: few distinct values, each repeated, and some far below or above the others. Softmax has many results:
   beside one value, repeated, stand others once each, whose results show the error of the sum and add their own. */
#include "tests/audit/wide.h"

#include <float.h>
#include <inttypes.h>

enum { KINDS = 24, FEW = 3, MOST = 2048, COLUMNS = 3 };

static struct {
    allfold_context *levels[2]; /* fast, exact */
    uint64_t state, rows;
    _Alignas(64) unsigned char x[MOST * COLUMNS * 8], y[MOST * COLUMNS * 8];
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
    double promise[2]; /* fast, exact */
    void (*draw)(struct row *row);
    double (*error)(allfold_context *ctx, const struct row *row);
};

/* The row, `columns` times side by side. Returns its elements. */
static uint64_t fill(const struct row *row, int columns)
{
    uint64_t n = 0;
    for (int k = 0; k < row->kinds; k++)
        for (uint32_t i = 0; i < row->count[k] * (uint32_t)columns; i++, n++)
            if (row->type == ALLFOLD_F32)
                ((float *)audit.x)[n] = (float)row->value[k];
            else
                ((double *)audit.x)[n] = row->value[k];
    return n / (uint64_t)columns;
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

static void normalise(allfold_context *ctx, const struct row *row, uint64_t n, int columns, bool logarithm)
{
    const allfold_array array = {audit.x, n, row->type};
    const allfold_view view = {audit.x, 1, n, (uint64_t)columns, n * (uint64_t)columns, (uint64_t)columns, row->type, ALLFOLD_CUT_AXIS};
    const allfold_call call = {.size = sizeof call, .logarithm = logarithm};
    const allfold_status status = columns == 1 ? allfold_softmax(ctx, &array, audit.y, row->type, &call)
                                               : allfold_softmax_axis(ctx, &view, audit.y, row->type, &call);
    must(status == ALLFOLD_OK, allfold_message(ctx));
}

static double normalise_error(allfold_context *ctx, const struct row *row, int columns, bool logarithm)
{
    const uint64_t n = fill(row, columns);
    normalise(ctx, row, n, columns, logarithm);
    const wide max = (wide)max_of(row), others = others_of(row), log = logarithm ? wide_log1p(others) : 0;
    const wide forgotten = logarithm ? (wide)n * (wide)0x1p-96 : 0; /* terms that are in none of the bins */
    double worst = 0.0;
    uint64_t at = 0;
    for (int k = 0; k < row->kinds; at += row->count[k++] * (uint64_t)columns) {
        const wide t = (wide)row->value[k] - max, exact = logarithm ? t - log : wide_exp(t) / (1 + others);
        const double y = result_at(row->type, at);
        const double error = (double)(wide_magnitude((wide)y - exact) / (wide_ulp(exact, row->type) + forgotten));
        worst = !(error <= worst) ? error : worst;
        if (logarithm && (y > 0.0 || (n == 1 && y != 0.0)))
            worst = INFINITY;
        for (uint32_t i = 1; i < row->count[k] * (uint32_t)columns; i++)
            must(result_at(row->type, at + i) == y, "equal elements give different results");
    }
    return n == 1 && !logarithm && result_at(row->type, 0) != 1.0 ? (double)INFINITY : worst;
}
static double softmax_error(allfold_context *ctx, const struct row *row) { return normalise_error(ctx, row, 1, false); }
static double columns_error(allfold_context *ctx, const struct row *row) { return normalise_error(ctx, row, COLUMNS, false); }
static double log_softmax_error(allfold_context *ctx, const struct row *row) { return normalise_error(ctx, row, 1, true); }

static double reduced(allfold_context *ctx, allfold_fold fold, const struct row *row, const char *field)
{
    const allfold_array array = {audit.x, fill(row, 1), row->type};
    struct fold_results result = {0};
    must(reduce_all(ctx, fold, &array, NULL, &result) == ALLFOLD_OK, allfold_message(ctx));
    for (int i = 0; i < result.field_count; i++)
        if (strcmp(result.fields[i].name, field) == 0)
            return result.fields[i].value.f64;
    return NAN;
}

/* In ulps; where the maximum is negative, and the logarithm positive, in ulps and 2^-53. And in what the sum may be off: the terms that are in
   none of the bins, or at level fast the rounding errors of rounding errors. */
static double logsumexp_error_once(allfold_context *ctx, const struct row *row)
{
    const double found = reduced(ctx, ALLFOLD_LOGSUMEXP, row, "value"), max = max_of(row);
    const wide log = wide_log1p(others_of(row)), exact = (wide)max + log;
    wide n = 0;
    for (int k = 0; k < row->kinds; k++)
        n += row->count[k];
    const wide sum = ctx == audit.levels[1] ? n * (wide)0x1p-96 : n * n * (wide)0x1p-106;
    const wide allowed = wide_ulp(exact, ALLFOLD_F64) + (max < 0.0 && log > 0 ? (wide)0x1p-53 : 0) + sum;
    return row->kinds == 1 && row->count[0] == 1 && found != max ? (double)INFINITY
                                                                  : (double)(wide_magnitude((wide)found - exact) / allowed);
}
/* The worst of the row and of some that differ in how often the last value stands there: the last rounding is another in each. */
static double logsumexp_error(allfold_context *ctx, const struct row *row)
{
    struct row varied = *row;
    double worst = logsumexp_error_once(ctx, row);
    for (int more = 0; more < 12 && row->kinds > 1; more++) {
        varied.count[row->kinds - 1]++;
        const double error = logsumexp_error_once(ctx, &varied);
        worst = !(error <= worst) ? error : worst;
    }
    return worst;
}

/* Of f32, whose terms are less accurate at level fast: in 2^-24 of the result, or of 1. */
static double logsumexp_f32_error(allfold_context *ctx, const struct row *row)
{
    if (ctx == audit.levels[1])
        return logsumexp_error(ctx, row);
    const double found = reduced(ctx, ALLFOLD_LOGSUMEXP, row, "value"), max = max_of(row);
    const wide exact = (wide)max + wide_log1p(others_of(row)), magnitude = wide_magnitude(exact);
    return row->kinds == 1 && row->count[0] == 1 && found != max ? (double)INFINITY
                                                                  : (double)(wide_magnitude((wide)found - exact) * 0x1p24 / (magnitude > 1 ? magnitude : 1));
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

static double mean_error(allfold_context *ctx, const struct row *row)
{
    const double found = reduced(ctx, ALLFOLD_MEAN, row, "value");
    wide n = 0, sum = 0;
    for (int k = 0; k < row->kinds; k++) {
        n += row->count[k];
        sum += (wide)row->count[k] * (wide)row->value[k];
    }
    return (double)(wide_magnitude((wide)found - sum / n) / wide_ulp(sum / n, ALLFOLD_F64));
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

/* Half of the time moved next to a half of a multiple of ln 2: what is left of exponents is largest there. */
static double hard(double x)
{
    const double n = rint(x * 0x1.71547652b82fep0), half = next_random() % 2 ? 0.5 : -0.5;
    return next_random() % 2 ? x : (n + half * (1.0 - unit() / 8)) * 0x1.62e42fefa39efp-1;
}
static double below(const struct row *row, double gap) { return held(row->type, hard(row->value[0] - gap * unit())); }

/* Values near 0, or anywhere where the reference is a power of two or the maximum: one many times over, and others below it or a little above. */
static void draw_exponentials(struct row *row)
{
    static const double spans[] = {1.0, 8.0, 8.0, 8.0, 90.0, 2047.0, 2100.0, 40000.0, 1e7};
    const double gaps[] = {2.0, 16.0, row->type == ALLFOLD_F32 ? 80.0 : 700.0}, gap = gaps[next_random() % 3];
    const bool few = next_random() % 4 == 0;
    row->kinds = 2 + (int)(next_random() % (few ? FEW - 1 : KINDS - 1));
    row->value[0] = held(row->type, next_random() % 8 == 0 ? 0.0 : hard(spans[next_random() % 9] * (2.0 * unit() - 1.0)));
    for (int k = 0; k < row->kinds; k++) {
        row->value[k] = k == 0 ? row->value[0] : held(row->type, below(row, gap) + (few ? 0.2 * gap * unit() : 0.0));
        row->count[k] = k == 0 || few ? draw_count(MOST / FEW) : 1;
    }
}
/* One element above all others, by so much that the logarithm of the sum is near 0, but no more than the bins of exact sums hold. */
static void draw_near_zero(struct row *row)
{
    const double span = next_random() % 2 ? 8.0 : 300.0;
    row->kinds = 1 + (int)(next_random() % FEW);
    for (int k = 0; k < row->kinds; k++) {
        row->value[k] = k == 0 ? held(row->type, span * (2.0 * unit() - 1.0)) : below(row, 65.0);
        row->count[k] = k == 0 && next_random() % 4 ? 1 : draw_count(MOST / FEW);
    }
}
/* A maximum of 0, or next to it, and little else: a value many times over, and one far below it that shifts the last rounding. */
static void draw_at_zero(struct row *row)
{
    if (next_random() % 4 == 0) {
        draw_near_zero(row);
        return;
    }
    row->kinds = 3;
    row->value[0] = next_random() % 2 ? 0.0 : ldexp(2.0 * unit() - 1.0, -(int)(next_random() % 200));
    row->count[0] = 1;
    row->value[1] = below(row, next_random() % 4 == 0 ? 740.0 : 60.0);
    row->count[1] = draw_count(MOST / FEW);
    row->value[2] = fmax(row->value[1] - 37.0 + log((double)row->count[1]), -740.0);
    row->count[2] = 1;
}
static void draw_few(struct row *row)
{
    row->kinds = 1 + (int)(next_random() % FEW);
    for (int k = 0; k < row->kinds; k++) {
        row->value[k] = ldexp(1.0 + unit(), -(int)(next_random() % 30));
        row->count[k] = draw_count(MOST / FEW);
    }
}
/* Around the limits of the three sums of norm2, and anywhere. */
static void draw_squares(struct row *row)
{
    static const int centres[] = {-511, 486, -537, -1040, 510, 0};
    const int centre = centres[next_random() % 6];
    row->kinds = 1 + (int)(next_random() % FEW);
    for (int k = 0; k < row->kinds; k++) {
        row->value[k] = ldexp(1.0 + unit(), centre + (int)(next_random() % 61) - 30);
        row->count[k] = draw_count(16);
    }
}
/* An outlier in the first place, or none. */
static void draw_deviations(struct row *row)
{
    row->kinds = 1 + (int)(next_random() % FEW);
    for (int k = 0; k < row->kinds; k++) {
        row->value[k] = ldexp(2.0 * unit() - 1.0, k == 0 ? (int)(next_random() % 40) : 0);
        row->count[k] = k == 0 && next_random() % 2 ? 1 : draw_count(MOST / FEW);
    }
}

/* One value, or count, a little else; or one of the others drawn anew. The first, whose error all share, is changed seldom. */
static void change(struct row *row)
{
    const int k = (int)(next_random() % (uint64_t)row->kinds);
    double *const value = &row->value[k];
    const unsigned choice = (unsigned)(next_random() % 8);
    if (choice < 2 && (row->kinds <= FEW || k == 0))
        row->count[k] = draw_count(MOST / FEW);
    else if (choice < 5 && k > 0 && row->kinds > FEW)
        *value = below(row, fmax(row->value[0] - *value, 2.0));
    else if (choice < 7)
        *value = held(row->type, *value + (2.0 * unit() - 1.0) * ldexp(fmin(fabs(*value), 64.0), -(int)(next_random() % 24)));
    else
        *value = row->type == ALLFOLD_F32 ? (double)nextafterf((float)*value, unit() < 0.5 ? -INFINITY : INFINITY)
                                          : nextafter(*value, unit() < 0.5 ? -INFINITY : INFINITY);
}

static void run(const struct search *search, int level)
{
    struct row best = {.type = search->type}, worst_row = best;
    double found = -1.0, worst = 0.0;
    for (uint64_t i = 0, tries = 0, stuck = 0; i < audit.rows; i++, tries++, stuck++) {
        struct row row = best;
        if (stuck > 300) {
            found = -1.0;
            tries = 0;
        }
        if (tries < 100)
            search->draw(&row);
        else
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
    tap_ok(worst <= search->promise[level], "%s, level %s", search->name, name);
    tap_note("| %s | %s | %g | %.3f | %" PRIu64 " |", search->name, name, search->promise[level], worst, audit.rows);
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
            logsumexp = fmax(logsumexp, rows[i].type == ALLFOLD_F32 ? logsumexp_f32_error(audit.levels[level], &rows[i]) / (2 - level)
                                                                    : logsumexp_error(audit.levels[level], &rows[i]));
        }
        tap_ok(softmax <= 1.5 && logarithm <= 2.0 && logsumexp <= 1.0, "rows that were bad once, level %s: %.3f, %.3f, %.3f of what is promised",
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
    options.backend = backend_named(backend);
    const allfold_status status = allfold_open(MPI_COMM_SELF, &options, &ctx, message, sizeof message);
    must(status == ALLFOLD_OK || status == ALLFOLD_UNSUPPORTED, message);
    if (status == ALLFOLD_UNSUPPORTED)
        tap_skip_all("%s", message);
    return ctx;
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    const char *const backend = argc > 1 ? argv[1] : "cpu", *const rows = getenv("ALLFOLD_AUDIT_ROWS");
    const struct search searches[] = {
        {"softmax of f32, ulp", ALLFOLD_F32, {1.5, 1.5}, draw_exponentials, softmax_error},
        {"softmax of f64, ulp", ALLFOLD_F64, {1.5, 1.5}, draw_exponentials, softmax_error},
        {"softmax of f32, columns, ulp", ALLFOLD_F32, {strcmp(backend, "cpu") == 0 ? 1.5 : 4.1, 1.5}, draw_exponentials, columns_error},
        {"softmax of f64, columns, ulp", ALLFOLD_F64, {1.5, 1.5}, draw_exponentials, columns_error},
        {"log-softmax of f32, ulp", ALLFOLD_F32, {2.0, 2.0}, draw_near_zero, log_softmax_error},
        {"log-softmax of f64, ulp", ALLFOLD_F64, {2.0, 2.0}, draw_near_zero, log_softmax_error},
        {"logsumexp, ulp (+ 2^-53)", ALLFOLD_F64, {1.0, 1.0}, draw_at_zero, logsumexp_error},
        {"logsumexp of f32; fast: 2^-24", ALLFOLD_F32, {2.0, 1.0}, draw_exponentials, logsumexp_f32_error},
        {"mean of f64, ulp", ALLFOLD_F64, {1.5, 0.5}, draw_few, mean_error},
        {"norm2 of f64, ulp", ALLFOLD_F64, {0.51, 0.51}, draw_squares, norm2_error},
        {"variance, of its bound", ALLFOLD_F64, {1.0, 1.0}, draw_deviations, variance_error}};
    audit.rows = (rows != NULL ? strtoull(rows, NULL, 10) : 3000) / (uint64_t)world_size();
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
