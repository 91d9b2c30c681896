/* Log-probabilities and their gradient: against sums in long double, within the bounds of docs/numerics.md; at level exact with the bits that one
   rank of the CPU gets of the whole array, however it is cut; what is refused. */
#include "tests/support.h"

enum { OUTPUTS = 4, ROWS_MAX = 64, IGNORED = -7 };
enum pattern { NORMAL, PEAKED, TIED, FAR, SPREAD, MASKED, EQUAL, LOWEST, SPECIAL, PATTERNS };
static const char *const patterns[] = {"normal", "peaked", "tied", "far from 0", "spread over bins", "masked", "equal", "lowest", "special"};

static allfold_context *all[2], *alone[2], *cpu; /* of all ranks, of one; by level. cpu: of one, of level exact, or NULL */

struct test_case {
    allfold_type type;
    enum pattern pattern;
    enum memory memory;
    enum split split;
    allfold_cut cut;
    allfold_level level;
    uint64_t outer, length, inner;
};

/* What a rank has: its part of logits and of the rows' numbers, and what the calls give. */
struct arrays {
    allfold_view view;
    void *x, *y;
    size_t element_bytes, bytes;
    int64_t targets[ROWS_MAX], argmax[ROWS_MAX];
    double results[OUTPUTS - 1][ROWS_MAX], scale[ROWS_MAX];
};

static double logit(const struct test_case *c, uint64_t row, uint64_t l)
{
    const double u = unit_of(row * 1009 + l, 17 + (uint64_t)c->pattern), v = unit_of(row * 1009 + l, 91);
    switch (c->pattern) {
    case NORMAL: return 8 * (u - 0.5) + 4 * (v - 0.5) * v;
    case PEAKED: return l == row % c->length ? 20 + 30 * unit_of(row, 5) : -40 * u;
    case TIED: return floor(4 * u) - 3;
    case FAR: return (row % 2 == 0 ? 1 : -1) * (row % 3 == 0 ? 40000.0 : row % 3 == 1 || c->type != ALLFOLD_F64 ? 3000.0 : 1e13) + 64 * u;
    case SPREAD: return (row % 4 == 3 && c->type != ALLFOLD_F16 ? 32740.0 : 50.0 * (double)(row % 7) - 150) + 60 * (u - 0.5) * (v > 0.9 ? 1.5 : 0.5);
    case MASKED: return v < 0.1 ? -INFINITY : (row % 2 == 0 ? 20 : 60) * (u - 0.5) + (v > 0.99 ? -90 : 0);
    case EQUAL: return (double)row - 9;
    case LOWEST: return row % 3 == 1 && u < 0.5 ? -INFINITY : -float_format_of(c->type).largest * (row % 3 == 2 && u < 0.5 ? 0.984375 : 1);
    default: break;
    }
    if (row % 5 == 1)
        return -INFINITY;
    if (row % 5 == 2 && l % 7 == 5)
        return NAN;
    if (row % 5 == 3 && l % 11 == 4)
        return INFINITY;
    return l % 3 == 0 ? -INFINITY : 5 * u;
}

static int64_t target_of(const struct test_case *c, uint64_t row)
{
    switch (row % 6) {
    case 0: return 0;
    case 1: return (int64_t)c->length - 1;
    case 2: return IGNORED;
    case 3: return (int64_t)(row % c->length); /* of a peaked row the peak */
    default: return (int64_t)(unit_of(row, 23) * (double)c->length);
    }
}

/* The element as it is stored. */
static double stored(const struct test_case *c, uint64_t row, uint64_t l)
{
    double one[2], value = 0;
    element_put(c->type, one, 0, logit(c, row, l));
    real_load(one, 0, (int)c->type, &value);
    return value;
}

/* Fills a rank's part. Rows lie behind one another, or `inner` of them side by side. */
static void fill(struct arrays *a, const struct test_case *c, allfold_context *ctx, int rank, int size)
{
    const uint64_t extents[] = {c->outer, c->length, c->inner};
    struct range parts[3];
    for (int d = 0; d < 3; d++)
        parts[d] = (int)c->cut == d ? split_part(c->split, extents[d], rank, size) : (struct range){0, extents[d]};
    memset(a, 0, sizeof *a);
    a->view = (allfold_view){.outer = parts[0].count, .length = parts[1].count, .inner = parts[2].count, .type = c->type, .cut = c->cut};
    a->element_bytes = allfold_type_bytes(c->type);
    a->bytes = parts[0].count * parts[1].count * parts[2].count * a->element_bytes;
    char *const host = host_block(a->bytes, a->element_bytes);
    for (uint64_t o = 0, at = 0, r; o < parts[0].count; o++)
        for (uint64_t l = 0; l < parts[1].count; l++)
            for (uint64_t i = 0; i < parts[2].count; i++) {
                const uint64_t row = (parts[0].first + o) * c->inner + parts[2].first + i;
                r = o * parts[2].count + i;
                element_put(c->type, host, at++, logit(c, row, parts[1].first + l));
                a->targets[r] = target_of(c, row);
                a->scale[r] = row % 4 == 3 ? -1.5 : 0.25 + (double)row;
            }
    for (uint64_t r = 0; parts[1].count == 0 && r < parts[0].count * parts[2].count; r++) {
        a->targets[r] = target_of(c, r);
        a->scale[r] = r % 4 == 3 ? -1.5 : 0.25 + (double)r;
    }
    a->x = a->y = host;
    if (c->memory == MEMORY_DEVICE) {
        a->x = device_block(ctx, a->bytes, a->element_bytes);
        device_write(ctx, a->x, host, a->bytes);
        host_block_free(host, a->element_bytes);
        a->y = device_block(ctx, a->bytes, a->element_bytes);
    }
    a->view.data = a->x;
}

static void take_away(struct arrays *a, const struct test_case *c, allfold_context *ctx)
{
    if (c->memory != MEMORY_DEVICE) {
        host_block_free(a->x, a->element_bytes);
        return;
    }
    device_block_free(ctx, a->x, a->element_bytes);
    device_block_free(ctx, a->y, a->element_bytes);
}

static const int64_t ignored = IGNORED;

static allfold_status find(struct arrays *a, allfold_context *ctx)
{
    const allfold_log_probs_output output = {a->results[0], a->results[1], a->results[2], a->argmax};
    return allfold_log_probs(ctx, &a->view, a->targets, &ignored, NULL, &output);
}

/* In place on the host. The rows' numbers are those of this rank's rows. */
static allfold_status slopes(struct arrays *a, allfold_context *ctx, const double *logsumexp)
{
    return allfold_log_probs_gradient(ctx, &a->view, a->targets, &ignored, logsumexp, a->scale, a->y, a->view.type, NULL);
}

/* ---- what is expected of a row */

struct row {
    long double max, others, weighted;
    int64_t argmax;
    bool nan, infinite;
};

static struct row row_of(const struct test_case *c, uint64_t row)
{
    struct row e = {.max = -INFINITY, .argmax = 0};
    for (uint64_t l = c->length; l-- > 0;) {
        const double x = stored(c, row, l);
        if (x != x || (!e.nan && (long double)x >= e.max)) {
            e.argmax = (int64_t)l;
            e.max = x;
            e.nan = e.nan || x != x;
        }
    }
    e.infinite = !e.nan && fabsl(e.max) == INFINITY;
    for (uint64_t l = 0; l < c->length && !e.nan && !e.infinite; l++) {
        const long double below = e.max - stored(c, row, l), term = expl(-below);
        e.others += (int64_t)l == e.argmax ? 0 : term;
        e.weighted += below < INFINITY ? below * term : 0;
    }
    return e;
}

static long double step_of(long double x) { return x == 0 || !(fabsl(x) < INFINITY) ? 0x1p-1074L : ldexpl(1.0L, ilogbl(x) - 52); }

static bool is_near(double got, long double want, long double allowed)
{
    return want != want ? got != got : want == got || fabsl(got - want) <= allowed;
}

static struct row expected[ROWS_MAX];

/* The results of row r. */
static bool row_is_right(const struct test_case *c, const double got[OUTPUTS - 1], int64_t argmax, uint64_t row)
{
    const struct row e = expected[row];
    const bool fast = c->level == ALLFOLD_LEVEL_FAST, f64 = c->type == ALLFOLD_F64;
    const int64_t target = target_of(c, row);
    const long double log = log1pl(e.others), sum = e.nan ? NAN : e.max + log, n = (long double)c->length;
    const long double entropy = e.nan || e.infinite ? NAN : log + e.weighted / (1 + e.others);
    const long double x = target == IGNORED ? 0 : stored(c, row, (uint64_t)target);
    const long double log_prob = target == IGNORED ? 0 : e.nan || e.infinite ? NAN : x - e.max - log;
    const long double loose = !fast ? 0 : f64 ? n * 0x1p-51L : 0x1p-18L, tiny = n * 0x1p-95L;
    return is_near(got[0], log_prob, 2 * step_of(log_prob) + tiny + loose) && !(got[0] > 0)
           && is_near(got[1], sum, step_of(sum) * 1.001L + 0x1p-53L + tiny + loose * (1 + fabsl(sum)))
           && is_near(got[2], entropy, (fast ? 0 : 0x1p-23L * entropy) + tiny * (1 + entropy) + loose * (1 + entropy)) && argmax == e.argmax
           && (c->pattern != EQUAL || fast || is_near(got[2], logl(n), 0x1p-46L));
}

/* Whether the slopes are those of softmax within 1.5 ulp and a rounding, and of the target within two of those. */
static bool slopes_are_right(const struct test_case *c, const struct arrays *a, const void *y, const struct range parts[3], int *wrong)
{
    const int precision = c->type == ALLFOLD_F64 ? 53 : c->type == ALLFOLD_F32 ? 24 : c->type == ALLFOLD_F16 ? 11 : 8;
    const long double smallest = c->type == ALLFOLD_F64 ? 0x1p-1074L : c->type == ALLFOLD_F16 ? 0x1p-24L : c->type == ALLFOLD_BF16 ? 0x1p-133L : 0x1p-149L;
    for (uint64_t o = 0, at = 0; o < parts[0].count; o++)
        for (uint64_t l = 0; l < parts[1].count; l++)
            for (uint64_t i = 0; i < parts[2].count; i++, at++) {
                const uint64_t row = (parts[0].first + o) * c->inner + parts[2].first + i, column = parts[1].first + l;
                const struct row e = expected[row];
                const int64_t target = target_of(c, row);
                const double scale = a->scale[o * parts[2].count + i];
                const bool here = (int64_t)column == target;
                long double want = expl(stored(c, row, column) - e.max) / (1 + e.others);
                double got = 0;
                real_load(y, at, (int)c->type, &got);
                if (here)
                    want = column == (uint64_t)e.argmax ? -e.others / (1 + e.others) : want - 1;
                want = target == IGNORED ? 0 : e.nan || e.infinite ? NAN : scale * want;
                const long double sum = fabsl(e.max) + log1pl(e.others), off = 2 * step_of(sum); /* of the logsumexp */
                const long double loose = c->level == ALLFOLD_LEVEL_FAST ? 0x1p-18L * (1 + sum) : 0;
                const long double allowed = fabsl(want) * (ldexpl(1.6L, 1 - precision) + off + loose) + fabsl(scale) * (here ? loose + off : 0) + 2 * smallest;
                if (!is_near(got, want, allowed) && (*wrong)++ == 0)
                    printf("# rank %d, row %d, %d: %.17g, expected %.17Lg\n", world_rank(), (int)row, (int)column, got, want);
            }
    return *wrong == 0;
}

/* ---- a case */

static void read_back(const struct arrays *a, const struct test_case *c, allfold_context *ctx, void *to)
{
    if (c->memory == MEMORY_DEVICE)
        device_read(ctx, to, a->y, a->bytes);
    else
        memcpy(to, a->y, a->bytes);
}

static bool bits_are(const struct arrays *a, const struct arrays *b, uint64_t rows)
{
    bool equal = memcmp(a->argmax, b->argmax, rows * sizeof *a->argmax) == 0;
    for (int k = 0; k < OUTPUTS - 1; k++)
        for (uint64_t r = 0; r < rows; r++) /* NaN has no promised bits */
            equal = equal && (a->results[k][r] != a->results[k][r] ? b->results[k][r] != b->results[k][r] : a->results[k][r] == b->results[k][r]);
    return equal;
}

/* The fold of its own gives the same bits; at level fast it is within its bound. */
static bool is_logsumexp(const struct test_case *c, const struct arrays *a, allfold_context *ctx, uint64_t rows)
{
    double sums[ROWS_MAX];
    bool equal = allfold_reduce_axis(ctx, ALLFOLD_LOGSUMEXP, &a->view, NULL, &(allfold_outputs){&(allfold_output){.values = sums}, 1}) == ALLFOLD_OK;
    for (uint64_t r = 0; r < rows; r++) {
        const long double want = c->level == ALLFOLD_LEVEL_EXACT ? a->results[1][r] : expected[r].nan ? NAN : expected[r].max + log1pl(expected[r].others);
        const long double allowed = c->level == ALLFOLD_LEVEL_EXACT ? 0 : 0x1p-23L * fmaxl(1, fabsl(want)) + step_of(want);
        equal = equal && is_near(sums[r], want, allowed);
    }
    return equal;
}

/* Ranks share the work on what is expected of the rows. */
static void expect_rows(const struct test_case *c, uint64_t rows)
{
    memset(expected, 0, sizeof expected);
    for (uint64_t r = (uint64_t)world_rank(); r < rows; r += (uint64_t)world_size())
        expected[r] = row_of(c, r);
    MPI_Allreduce(MPI_IN_PLACE, expected, sizeof expected, MPI_BYTE, MPI_BOR, MPI_COMM_WORLD);
}

/* What one rank gets of the whole array: the ranks in turn, for all. */
static bool find_whole(const struct test_case *c, uint64_t rows, struct arrays *whole)
{
    static int cases;
    allfold_context *const one = alone[c->level];
    const int turn = cases++ % world_size();
    bool right = true;
    if (world_rank() == turn) {
        fill(whole, c, one, 0, 1);
        must(find(whole, one) == ALLFOLD_OK, allfold_message(one));
        right = is_logsumexp(c, whole, one, rows);
        take_away(whole, c, one);
        if (cpu != NULL && c->level == ALLFOLD_LEVEL_EXACT) {
            static struct arrays other;
            struct test_case host = *c;
            host.memory = MEMORY_HOST;
            fill(&other, &host, cpu, 0, 1);
            must(find(&other, cpu) == ALLFOLD_OK, allfold_message(cpu));
            right = bits_are(whole, &other, rows) && right;
            take_away(&other, &host, cpu);
        }
    }
    MPI_Bcast(whole->results, sizeof whole->results, MPI_BYTE, turn, MPI_COMM_WORLD);
    MPI_Bcast(whole->argmax, sizeof whole->argmax, MPI_BYTE, turn, MPI_COMM_WORLD);
    return right;
}

/* True: right on this rank. */
static bool run(const struct test_case *c)
{
    static struct arrays mine, whole;
    allfold_context *const ctx = all[c->level];
    const int rank = world_rank(), size = world_size();
    const uint64_t rows = c->outer * c->inner, extents[] = {c->outer, c->length, c->inner};
    struct range parts[3];
    bool right = true;
    int wrong = 0;
    for (int d = 0; d < 3; d++)
        parts[d] = (int)c->cut == d ? split_part(c->split, extents[d], rank, size) : (struct range){0, extents[d]};
    expect_rows(c, rows);
    right = find_whole(c, rows, &whole);
    fill(&mine, c, ctx, rank, size);
    if (find(&mine, ctx) != ALLFOLD_OK)
        must(false, allfold_message(ctx));
    for (uint64_t r = 0; r < rows && right; r++) {
        const double got[] = {mine.results[0][r], mine.results[1][r], mine.results[2][r]};
        right = row_is_right(c, got, mine.argmax[r], r);
        if (!right)
            printf("# rank %d, row %d: %.17g %.17g %.17g %d\n", rank, (int)r, got[0], got[1], got[2], (int)mine.argmax[r]);
    }
    if (c->level == ALLFOLD_LEVEL_EXACT)
        right = bits_are(&mine, &whole, rows) && right;
    double logsumexp[ROWS_MAX];
    for (uint64_t o = 0; o < parts[0].count; o++)
        for (uint64_t i = 0; i < parts[2].count; i++)
            logsumexp[o * parts[2].count + i] = whole.results[1][(parts[0].first + o) * c->inner + parts[2].first + i];
    if (slopes(&mine, ctx, logsumexp) != ALLFOLD_OK)
        must(false, allfold_message(ctx));
    char *const y = host_block(mine.bytes, mine.element_bytes);
    read_back(&mine, c, ctx, y);
    right = slopes_are_right(c, &mine, y, parts, &wrong) && right;
    if (wrong > 0)
        printf("# rank %d: %d slopes are wrong\n", rank, wrong);
    host_block_free(y, mine.element_bytes);
    take_away(&mine, c, ctx);
    return right;
}

/* ---- refusals */

static void expect(const char *what, allfold_status status, const char *text)
{
    tap_ok(status != ALLFOLD_OK && strstr(allfold_message(all[1]), text) != NULL, "%s: %s", what, status == ALLFOLD_OK ? "done" : allfold_message(all[1]));
}

static void refuse(bool own_memory)
{
    static float x[12] = {1, 2, 3};
    static double numbers[4];
    static int64_t targets[] = {0, 1, 2, 1};
    const bool last = world_rank() == world_size() - 1;
    const allfold_view view = {.data = x, .outer = 4, .length = 3, .inner = 1, .type = ALLFOLD_F32};
    const allfold_view integers = {.data = x, .outer = 4, .length = 3, .inner = 1, .type = ALLFOLD_INT32};
    const allfold_log_probs_output output = {.log_prob = numbers}, none = {.log_prob = NULL};
    expect("no output", allfold_log_probs(all[1], &view, targets, NULL, NULL, last ? NULL : &output), "the output is NULL");
    expect("no targets", allfold_log_probs(all[1], &view, last ? NULL : targets, NULL, NULL, &output), "targets are NULL");
    expect("integers", allfold_log_probs(all[1], last ? &integers : &view, targets, NULL, NULL, &output), "not int32");
    expect("another type of results", allfold_log_probs(all[1], &view, targets, NULL, &(allfold_call){.size = sizeof(allfold_call),
           .result_type = last ? ALLFOLD_F32 : ALLFOLD_F64}, &output), "are f64");
    expect("other numbers that are ignored", world_size() == 1 ? allfold_log_probs(all[1], NULL, targets, NULL, NULL, &output)
           : allfold_log_probs(all[1], &view, targets, last ? &(int64_t){5} : NULL, NULL, &output), world_size() == 1 ? "NULL" : "different calls");
    expect("no logsumexp", allfold_log_probs_gradient(all[1], &view, targets, NULL, last ? NULL : numbers, NULL, x, ALLFOLD_F32, NULL), "logsumexp is NULL");
    for (int side = 0; side < 2; side++) {
        targets[2] = last ? (side == 0 ? 3 : -1) : 0;
        char text[64];
        const allfold_view cut = {.data = x, .outer = 4, .length = 3, .inner = 1, .type = ALLFOLD_F32, .cut = ALLFOLD_CUT_OUTER};
        snprintf(text, sizeof text, "result [%d, :, 0]: its target", 4 * (world_size() - 1) + 2);
        static double results[4 * 64];
        expect("a target out of range", allfold_log_probs(all[1], &cut, targets, NULL, NULL, &(allfold_log_probs_output){.log_prob = results}), text);
        expect("the same, of the gradient", allfold_log_probs_gradient(all[1], &cut, targets, NULL, numbers, NULL, x, ALLFOLD_F32, NULL),
               "row 2 of this rank: target");
    }
    targets[2] = 3 * world_size();
    const allfold_view shared = {.data = x, .outer = 4, .length = 3, .inner = 1, .type = ALLFOLD_F32, .cut = ALLFOLD_CUT_AXIS};
    expect("a target out of range, of an axis that is cut", allfold_log_probs(all[1], &shared, targets, NULL, NULL, &output), "result [2, :, 0]: its target");
    targets[2] = -100;
    tap_ok(allfold_log_probs(all[1], &shared, targets, NULL, NULL, &output) == ALLFOLD_OK && numbers[2] == 0.0 && numbers[1] < 0.0, "-100 is ignored");
    tap_ok(allfold_log_probs(all[1], &shared, NULL, NULL, NULL, &none) == ALLFOLD_OK, "nothing is wanted");
    (void)own_memory;
}

static void empty_axis(void)
{
    static const int64_t targets[] = {IGNORED, IGNORED};
    double sums[2] = {0, 0}, entropy[2] = {0, 0}, log_prob[2] = {1, 1};
    int64_t argmax[2] = {0, 0};
    const allfold_view view = {.outer = 2, .length = 0, .inner = 1, .type = ALLFOLD_F32, .cut = ALLFOLD_CUT_AXIS};
    const allfold_status status = allfold_log_probs(all[1], &view, targets, &ignored, NULL, &(allfold_log_probs_output){log_prob, sums, entropy, argmax});
    tap_ok(status == ALLFOLD_OK && sums[1] == -INFINITY && entropy[1] != entropy[1] && argmax[1] == -1 && log_prob[1] == 0, "an empty axis");
}

int main(int argc, char **argv)
{
    static const allfold_type types[] = {ALLFOLD_F32, ALLFOLD_BF16, ALLFOLD_F64, ALLFOLD_F16};
    static const uint64_t shapes[][3] = {{48, 1047, 1}, {3, 37, 5}, {4, 75001, 1}, {40, 3, 1}, {2, 8193, 2}, {30, 1, 2}, {21, 1024, 1}};
    static const allfold_level levels[] = {ALLFOLD_LEVEL_FAST, ALLFOLD_LEVEL_EXACT};
    char message[ALLFOLD_ERROR_BYTES];
    (void)argc;
    MPI_Init(NULL, NULL);
    const bool own_memory = strcmp(argv[1], "cuda") == 0;
    for (int i = 0; i < 2; i++) {
        allfold_options options = ALLFOLD_OPTIONS_INIT;
        options.level = levels[i];
        if ((all[levels[i]] = open_or_skip(argv[1], options)) == NULL)
            goto done;
        options.backend = backend_named(argv[1]);
        must(allfold_open(MPI_COMM_SELF, &options, &alone[levels[i]], message, sizeof message) == ALLFOLD_OK, message);
        options.backend = backend_named("cpu");
        if (own_memory && levels[i] == ALLFOLD_LEVEL_EXACT)
            must(allfold_open(MPI_COMM_SELF, &options, &cpu, message, sizeof message) == ALLFOLD_OK, message);
    }
    for (int pattern = 0; pattern < PATTERNS; pattern++)
        for (int level = 0; level < 2; level++) {
            int cases = 0, wrong = 0;
            for (int shape = 0; shape < (int)(sizeof shapes / sizeof *shapes); shape++)
                for (int cut = 0; cut < 3; cut++) {
                    const int at = cases + pattern * 5 + level * 3 + shape;
                    const bool bf16 = shape == 2 && level == 1; /* whose values a GPU looks up, if rows are long */
                    const struct test_case c = {.type = bf16 ? ALLFOLD_BF16 : types[at % 4], .pattern = (enum pattern)pattern, .split = (enum split)(at / 2 % SPLIT_COUNT),
                                                .memory = own_memory && at % 3 != 0 ? MEMORY_DEVICE : MEMORY_HOST, .cut = (allfold_cut)cut,
                                                .level = levels[level], .outer = shapes[shape][0], .length = shapes[shape][1],
                                                .inner = shapes[shape][2]};
                    if (c.type == ALLFOLD_F16 && c.pattern == FAR)
                        continue;
                    cases++;
                    if (run(&c))
                        continue;
                    wrong++;
                    printf("# rank %d: %s, %s, %d x %d x %d, cut %d, %s\n", world_rank(), patterns[pattern], allfold_type_name(c.type), (int)c.outer,
                           (int)c.length, (int)c.inner, cut, split_names[c.split]);
                }
            tap_ok(wrong == 0, "%s logits, level %s: %d cases", patterns[pattern], level == 0 ? "fast" : "exact", cases);
        }
    empty_axis();
    refuse(own_memory);
    for (int i = 0; i < 2; i++) {
        allfold_close(all[i]);
        allfold_close(alone[i]);
    }
    allfold_close(cpu);
done:;
    const int status = tap_done();
    MPI_Finalize();
    return status;
}
