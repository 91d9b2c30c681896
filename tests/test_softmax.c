/* Softmax and log-softmax of every element type into every floating-point type against long double: over patterns,
   sizes, ways to cut the array, and places of input and output; what they must be by definition; the same bits whenever
   due.

   Errors are measured in units in the last place (ulp) of the output type. Bounds: softmax 1.5 ulp in f32 and f64, log-softmax 2,
   near 0, too; in f16 and bf16 both 0.51. */
#include "tests/support.h"

#include <float.h>
#include <inttypes.h>

enum { GUARD = 64 };

static struct {
    allfold_context *plain, *shards, *little, *nothing; /* staging of 4096 bytes and all, some, none of the input kept */
    allfold_context *exact, *exact_shards; /* level exact; with staging of 4096 bytes */
    allfold_context *threads;
    int rank, size;
    bool standin; /* devices that stand in for GPUs, which are slow */
    long calls;
} test;

/* EQUAL_BUT_ONE: the difference lies midway between two numbers, so all equal terms are rounded the same way. */
enum pattern { UNIFORM, SPREAD, CONSTANT, TWO_VALUES, ONE_LARGE, EQUAL_BUT_ONE, RAMP, FAR, SOME_MINUS_INFINITE,
               LAST_MINUS_INFINITE, NAN_FIRST, NAN_LAST, PLUS_INFINITE, INFINITIES, ALL_MINUS_INFINITE, PATTERN_COUNT };
static const char *const pattern_names[] = {
    "uniform", "wide spread", "constant", "two values", "one large", "equal but one", "ramp", "far from zero",
    "some -inf", "-inf on the last rank", "NaN first", "NaN last", "one +inf", "both infinities", "nothing but -inf"};

struct test_case {
    allfold_type x_type, y_type;
    bool logarithm, in_place;
    enum pattern pattern;
    uint64_t count;
    enum split split;
    enum memory x_memory, y_memory;
    allfold_context *ctx;
    unsigned number;
};

static double whole_number_at(const struct test_case *c, uint64_t i, double u)
{
    switch (c->pattern) {
    case SPREAD: return floor(u * 120.0);
    case CONSTANT: return 5.0;
    case TWO_VALUES: return (double)(i % 2);
    case ONE_LARGE: return i == c->count / 3 ? 100.0 : 3.0;
    default: return floor(u * 20.0) - (type_kind(c->x_type) == 'u' ? 0.0 : 10.0);
    }
}

static double number_at(const struct test_case *c, uint64_t i)
{
    const double u = unit_of(i, 7);
    const bool narrow = c->x_type == ALLFOLD_F16;
    const bool last_rank = i >= split_part(c->split, c->count, test.size - 1, test.size).first;
    if (type_kind(c->x_type) != 'f')
        return whole_number_at(c, i, u);
    switch (c->pattern) {
    case SPREAD: return -u * u * (c->x_type == ALLFOLD_F64 || c->y_type == ALLFOLD_F64 ? 760.0 : 110.0);
    case CONSTANT: return 0.7;
    case TWO_VALUES: return i % 2 == 0 ? 0.1 : -1.3;
    case ONE_LARGE: return i == c->count / 3 ? (narrow ? 6e4 : 1e30) : u;
    case EQUAL_BUT_ONE: return i == c->count / 3 ? 0.5 + (c->x_type == ALLFOLD_F64 ? 0x1p-50 : 0x1p-21) : -8.25;
    case RAMP: return 1e-5 * (double)i;
    case FAR: return (narrow ? 2e3 : 1e5) + 8.0 * u;
    case SOME_MINUS_INFINITE: return i % 3 == 1 ? -INFINITY : u;
    case LAST_MINUS_INFINITE: return last_rank && i != 0 ? -INFINITY : u;
    case NAN_FIRST: return i == 0 ? NAN : u;
    case NAN_LAST: return i == c->count - 1 ? nan("0x20000000") : u; /* whose f32 has a last bit */
    case PLUS_INFINITE: return i == c->count / 2 ? INFINITY : u;
    case INFINITIES: return i == 0 ? -INFINITY : i == c->count - 1 ? INFINITY : u;
    case ALL_MINUS_INFINITE: return -INFINITY;
    default: return 20.0 * u + (allfold_type_bytes(c->x_type) == 2 ? 11.9 : -10.0); /* 16 bits: up to where log2 e is short */
    }
}

/* The row's maximum and sum of exponentials; NaN where it has no softmax. */
struct row {
    long double max, sum, others; /* others: the sum without the term of one element that is the maximum, which is 1 */
};

static struct row expect(allfold_type type, const void *x, uint64_t count)
{
    struct row row = {-INFINITY, 0, 0};
    wide sum = 0; /* in long double the rounding of a million equal terms would show */
    bool nan = false;
    for (uint64_t i = 0; i < count; i++) {
        const long double value = element_get(type, x, i);
        nan = nan || value != value;
        row.max = value > row.max ? value : row.max;
    }
    if (nan || isinf(row.max))
        return (struct row){NAN, NAN, NAN};
    for (uint64_t i = 0; i < count; i++)
        sum += (wide)expl(element_get(type, x, i) - row.max);
    row.sum = (long double)sum;
    row.others = (long double)(sum - 1);
    return row;
}

static long double ulp_of(allfold_type type, long double x)
{
    static const struct { int digits, least; } formats[] = {
        [ALLFOLD_F16] = {11, -14}, [ALLFOLD_BF16] = {8, -126}, [ALLFOLD_F32] = {24, -126}, [ALLFOLD_F64] = {53, -1022}};
    int exponent;
    frexpl(x, &exponent);
    exponent = x == 0 || exponent - 1 < formats[type].least ? formats[type].least : exponent - 1;
    return ldexpl(1.0L, exponent - formats[type].digits + 1);
}
static bool is_wide(allfold_type type) { return type == ALLFOLD_F32 || type == ALLFOLD_F64; }

/* The verdict on one pair of types. */
static struct {
    char fault[300];
    double worst;
    long calls;
} verdict;

__attribute__((format(printf, 2, 3))) static void found(const struct test_case *c, const char *format, ...)
{
    char what[160];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(what, sizeof what, format, arguments);
    va_end(arguments);
    if (verdict.fault[0] == '\0')
        snprintf(verdict.fault, sizeof verdict.fault, "rank %d: %s, n = %" PRIu64 ", %s, from %s to %s%s: %s", test.rank,
                 pattern_names[c->pattern], c->count, split_names[c->split], memory_names[c->x_memory],
                 memory_names[c->y_memory], c->in_place ? " in place" : "", what);
}

static void check_element(const struct test_case *c, const struct row *row, long double x, long double y)
{
    const long double t = x - row->max, exact = c->logarithm ? t - log1pl(row->others) : expl(t) / row->sum;
    const long double largest = c->y_type == ALLFOLD_F16 ? 65519.0L : c->y_type == ALLFOLD_F64 ? DBL_MAX : FLT_MAX;
    const bool defined = exact == exact;
    if (exact < -largest) { /* a logarithm that the type cannot hold */
        if (y != -INFINITY)
            found(c, "%Lg gave %Lg, not -inf", x, y);
        return;
    }
    if (!defined || (!c->logarithm && x == -INFINITY)) {
        if (defined ? y != exact : y == y)
            found(c, "%Lg gave %Lg, not %Lg", x, y, exact);
        return;
    }
    const long double bound = !is_wide(c->y_type) ? 0.51L : c->logarithm ? 2.0L : 1.5L;
    const double ulps = (double)(fabsl(y - exact) / ulp_of(c->y_type, exact));
    verdict.worst = ulps > verdict.worst ? ulps : verdict.worst;
    if (!(ulps <= (double)bound))
        found(c, "%.10Lg gave %.10Lg, not %.10Lg: %.3f ulp", x, y, exact, ulps);
}

/* One call; x and y are where the case says. */
static allfold_status call(const struct test_case *c, allfold_context *ctx, void *x, void *y, struct range part)
{
    verdict.calls++;
    if (c->x_memory != MEMORY_SOURCE && c->y_memory != MEMORY_SOURCE) {
        const allfold_call options = {.size = sizeof options, .logarithm = c->logarithm};
        const allfold_array array = {x, part.count, c->x_type};
        return allfold_softmax(ctx, &array, y, c->y_type, &options);
    }
    struct error error = {0};
    struct test_source source = source_of(x, part, c->x_type);
    struct test_sink sink = sink_of(y, part, c->y_type);
    source.filled.source.memory = c->x_memory == MEMORY_SOURCE ? NULL : x;
    sink.sink.memory = c->y_memory == MEMORY_SOURCE ? NULL : y;
    const struct job job = {.type = c->x_type, .source = &source.filled.source, .range = part};
    return core_softmax(ctx, c->logarithm, &job, &sink.sink, &error);
}

/* Calls, with x and y where the case wants them, and brings the result to host memory. False after an error. */
static bool run(const struct test_case *c, allfold_context *ctx, const void *x, void *y, struct range part)
{
    const size_t x_bytes = allfold_type_bytes(c->x_type), y_bytes = allfold_type_bytes(c->y_type);
    const size_t y_all = part.count * y_bytes + 2 * GUARD;
    char *const guarded = host_block(y_all, y_bytes), *const x_copy = host_block(part.count * x_bytes, x_bytes);
    char *x_place = x_copy, *y_place = guarded;
    memset(guarded, 0xa5, y_all);
    memcpy(x_copy, x, part.count * x_bytes);
    if (c->in_place)
        memcpy(guarded + GUARD, x, part.count * x_bytes);
    if (c->x_memory == MEMORY_DEVICE && !c->in_place) {
        x_place = device_block(ctx, part.count * x_bytes, x_bytes);
        device_write(ctx, x_place, x_copy, part.count * x_bytes);
    }
    if (c->y_memory == MEMORY_DEVICE) {
        y_place = device_block(ctx, y_all, y_bytes);
        device_write(ctx, y_place, guarded, y_all);
    }
    struct queue *pinned = NULL;
    if (c->x_memory == MEMORY_PINNED && !c->in_place) {
        pinned = pinned_block(ctx, part.count * x_bytes, x_bytes);
        x_place = memcpy(pinned_memory(pinned, x_bytes), x_copy, part.count * x_bytes);
    }
    const allfold_status status = call(c, ctx, c->in_place ? y_place + GUARD : x_place, y_place + GUARD, part);
    if (y_place != guarded) {
        device_read(ctx, guarded, y_place, y_all);
        device_block_free(ctx, y_place, y_bytes);
    }
    ctx->device->backend->queue_close(pinned);
    if (x_place != x_copy && pinned == NULL)
        device_block_free(ctx, x_place, x_bytes);
    for (size_t i = 0; i < GUARD; i++)
        if ((unsigned char)guarded[i] != 0xa5 || (unsigned char)guarded[y_all - 1 - i] != 0xa5) {
            found(c, "memory beside the output was written");
            break;
        }
    if (memcmp(x_copy, x, part.count * x_bytes) != 0)
        found(c, "the input was written");
    memcpy(y, guarded + GUARD, part.count * y_bytes);
    host_block_free(guarded, y_bytes);
    host_block_free(x_copy, x_bytes);
    if (status != ALLFOLD_OK)
        found(c, "%s: %s", allfold_status_text(status), allfold_message(ctx));
    return status == ALLFOLD_OK;
}

static void run_case(const struct test_case *c)
{
    const size_t x_bytes = allfold_type_bytes(c->x_type), y_bytes = allfold_type_bytes(c->y_type);
    const struct range part = split_part(c->split, c->count, test.rank, test.size);
    char *const x = host_block(part.count * x_bytes, x_bytes);
    char *const y = host_block(part.count * y_bytes, y_bytes), *const again = host_block(part.count * y_bytes, y_bytes);
    struct row row = {0};
    for (uint64_t i = 0; i < part.count; i++)
        element_put(c->x_type, x, i, number_at(c, part.first + i));
    if (test.rank == 0) {
        char *const whole = host_block(c->count * x_bytes, x_bytes);
        for (uint64_t i = 0; i < c->count; i++)
            element_put(c->x_type, whole, i, number_at(c, i));
        row = expect(c->x_type, whole, c->count);
        host_block_free(whole, x_bytes);
    }
    MPI_Bcast(&row, sizeof row, MPI_BYTE, 0, MPI_COMM_WORLD);
    if (run(c, c->ctx, x, y, part))
        for (uint64_t i = 0; i < part.count; i++)
            check_element(c, &row, element_get(c->x_type, x, i), element_get(c->y_type, y, i));
    if (c->number % 4 == 0 && run(c, c->ctx, x, again, part) && memcmp(y, again, part.count * y_bytes) != 0)
        found(c, "a second run gave other bits");
    if (test.threads != NULL && c->ctx == test.plain && c->count > 65536 && run(c, test.threads, x, again, part)
        && memcmp(y, again, part.count * y_bytes) != 0)
        found(c, "more threads gave other bits");
    host_block_free(x, x_bytes);
    host_block_free(y, y_bytes);
    host_block_free(again, y_bytes);
}

/* All cases of one pair of types, or, as if they had been, none; ways to cut and to place take turns. */
static void run_types(struct test_case *c, bool wanted)
{
    static const uint64_t small[] = {1, 2, 31, 32, 33, 255, 256, 257, 1023, 1024, 1025, 3};
    const uint64_t shard = 2048 / allfold_type_bytes(c->x_type), size = (uint64_t)test.size;
    const int patterns = type_kind(c->x_type) == 'f' ? PATTERN_COUNT : EQUAL_BUT_ONE;
    allfold_context *const contexts[] = {test.shards, test.little, test.nothing, test.exact_shards};
    const unsigned first = c->number, half = (unsigned)c->x_type + (unsigned)c->y_type + (test.size > 2);
    for (int pattern = 0; pattern < patterns; pattern++) {
        if (!wanted || (test.size > 1 && ((unsigned)pattern + half) % 2 != 0)) { /* on one rank all; then half, and on more the other half */
            c->number += 4;
            continue;
        }
        for (unsigned i = 0; i < 4; i++, c->number++) {
            const unsigned choice = c->number - first + first / 7;
            c->pattern = (enum pattern)pattern;
            c->count = i < 3             ? small[(choice * 5 + i) % 12]
                       : choice % 2 == 0 ? 3 * shard * size + choice % 3 - 1
                                         : 7 * shard * size + 5;
            c->split = (enum split)(choice % SPLIT_COUNT);
            c->x_memory = (enum memory)(choice / 2 % MEMORY_COUNT);
            c->y_memory = (enum memory)(choice / 5 % MEMORY_COUNT);
            c->in_place = c->x_type == c->y_type && c->x_memory == c->y_memory && c->x_memory != MEMORY_SOURCE
                          && choice % 2 == 0;
            c->ctx = i == 1 ? test.exact : i < 3 ? test.plain : contexts[choice / 2 % 4];
            run_case(c);
        }
    }
}

static void report(const char *name)
{
    double worst;
    MPI_Allreduce(&verdict.worst, &worst, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    test.calls += verdict.calls;
    if (verdict.calls == 0)
        snprintf(verdict.fault, sizeof verdict.fault, "there was no case");
    if (!tap_ok(verdict.fault[0] == '\0', "%s", name)) {
        char faults[sizeof verdict.fault] = "";
        const int failing = tap_first_failing(verdict.fault[0] == '\0');
        memcpy(faults, verdict.fault, sizeof faults);
        MPI_Bcast(faults, sizeof faults, MPI_BYTE, failing, MPI_COMM_WORLD);
        tap_note("%s", faults);
    } else if (worst > 0.0)
        tap_note("the largest error is %.3f ulp", worst);
    memset(&verdict, 0, sizeof verdict);
}

static void test_types(void)
{
    static const allfold_type y_types[] = {ALLFOLD_F16, ALLFOLD_BF16, ALLFOLD_F32, ALLFOLD_F64};
    struct test_case c = {0};
    char name[80];
    for (int x = ALLFOLD_TYPE_NONE + 1; x < ALLFOLD_TYPE_COUNT; x++)
        for (int y = 0; y < 4; y++)
            for (int logarithm = 0; logarithm < 2; logarithm++) {
                c.x_type = (allfold_type)x;
                c.y_type = y_types[y];
                c.logarithm = logarithm != 0;
                snprintf(name, sizeof name, "%ssoftmax of %s in %s", logarithm ? "log-" : "", allfold_type_name(c.x_type),
                         allfold_type_name(c.y_type));
                const bool wanted = tap_wanted("%s", name);
                run_types(&c, wanted);
                if (wanted)
                    report(name);
            }
}

static void test_large(void)
{
    const uint64_t most = test.standin ? 1 << 17 : 1 << 20, large[] = {65535, 65536, 65537, most - 1, most + 1};
    static const allfold_type types[] = {ALLFOLD_F32, ALLFOLD_F64, ALLFOLD_BF16};
    struct test_case c = {0};
    char name[80];
    for (int t = 0; t < 3; t++) {
        snprintf(name, sizeof name, "%s in %s, long arrays", allfold_type_name(types[t]), allfold_type_name(t == 2 ? ALLFOLD_F32 : types[t]));
        if (!tap_wanted("%s", name))
            continue;
        c.number = 5 * (unsigned)t;
        for (unsigned i = 0; i < 5; i++, c.number++) {
            c.x_type = types[t];
            c.y_type = t == 2 ? ALLFOLD_F32 : types[t];
            c.logarithm = i == 1;
            c.pattern = i == 2 ? RAMP : i % 2 == 0 ? EQUAL_BUT_ONE : UNIFORM;
            c.count = large[i];
            c.split = i == 3 ? SPLIT_LAST : SPLIT_EVEN;
            c.x_memory = i % 2 == 0 ? MEMORY_DEVICE : MEMORY_HOST;
            c.y_memory = i < 3 ? c.x_memory : MEMORY_HOST;
            c.ctx = i == 3 ? test.exact : test.plain;
            run_case(&c);
        }
        report(name);
    }
}

/* More than the chip holds, of GPUs or of those that stand in for them. A little more is one launch (an H200: up to 78 MiB); else,
   for f32, the host does not launch the second pass: for one rank it has no part in it, for several it gives orders. */
static void test_beyond_chip(void)
{
    const uint64_t little = test.standin ? 320 << 10 : 36 << 20, much = test.standin ? 4 << 20 : 80 << 20;
    const struct { allfold_type type; uint64_t bytes; allfold_context *ctx; bool in_place, logarithm; } cases[] = {
        {ALLFOLD_F32, little, test.plain, true, false}, {ALLFOLD_F32, little, test.exact, false, false},
        {ALLFOLD_F64, little, test.plain, false, false}, {ALLFOLD_BF16, little, test.plain, true, false},
        {ALLFOLD_F64, little, test.exact, true, true},
        {ALLFOLD_F32, much, test.plain, true, false}, {ALLFOLD_F32, much, test.exact, false, false}};
    static const char name[] = "in device memory, more than the chip holds";
    if (!tap_wanted("%s", name))
        return;
    if (test.size > 2 || test.plain->device->backend != &backend_cuda) {
        tap_skip("%s: one or two ranks on GPUs", name);
        return;
    }
    for (unsigned i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const uint64_t count = (uint64_t)test.size * cases[i].bytes / allfold_type_bytes(cases[i].type) + i;
        const struct test_case c = {
            .x_type = cases[i].type, .y_type = cases[i].type, .logarithm = cases[i].logarithm, .in_place = cases[i].in_place,
            .pattern = UNIFORM, .count = count, .split = SPLIT_EVEN, .x_memory = MEMORY_DEVICE, .y_memory = MEMORY_DEVICE,
            .ctx = cases[i].ctx, .number = i};
        run_case(&c);
    }
    report(name);
}

/* Numbers on a grid so coarse that adding the shift is exact: the true result is the same, so the results may differ by
   their errors at most. Whether they differ at all is noted. */
static void test_shift(void)
{
    static const double shifts[] = {1024.0, -4096.0, 0x1p14};
    const uint64_t count = 50000;
    const struct range part = range_part(count, (uint64_t)test.rank, (uint64_t)test.size);
    float *const x = host_block(part.count * sizeof *x, 4), *const y = host_block(part.count * sizeof *y, 4);
    float *const shifted = host_block(part.count * sizeof *x, 4), *const z = host_block(part.count * sizeof *z, 4);
    bool right = true;
    long changed = 0, all_changed;
    uint32_t most = 0;
    for (int s = 0; s < 3; s++) {
        for (uint64_t i = 0; i < part.count; i++) {
            x[i] = (float)(floor(unit_of(part.first + i, 9) * 16384.0) / 512.0);
            shifted[i] = x[i] + (float)shifts[s];
        }
        const allfold_array array = {x, part.count, ALLFOLD_F32}, other = {shifted, part.count, ALLFOLD_F32};
        right = allfold_softmax(test.plain, &array, y, ALLFOLD_F32, NULL) == ALLFOLD_OK && right;
        right = allfold_softmax(test.plain, &other, z, ALLFOLD_F32, NULL) == ALLFOLD_OK && right;
        for (uint64_t i = 0; i < part.count; i++) {
            const uint32_t a = f32_bits(y[i]), b = f32_bits(z[i]), distance = a > b ? a - b : b - a;
            changed += distance > 0;
            most = distance > most ? distance : most;
        }
    }
    tap_ok(right && most <= 2, "adding a constant to all elements, exactly, changes no result by more than 2 ulp");
    MPI_Reduce(&changed, &all_changed, 1, MPI_LONG, MPI_SUM, 0, MPI_COMM_WORLD);
    tap_note("%ld of %d results changed", all_changed, 3 * 50000);
    host_block_free(x, 4);
    host_block_free(y, 4);
    host_block_free(shifted, 4);
    host_block_free(z, 4);
}

/* Rows in device memory, aligned to 16 bytes, many times as many as a GPU has at a time, of three and of five warps, of up to half of the registers of a block, of all, of
   three blocks, of eleven, and of more than a cluster has. Most have quarters from -7.5 to 7.5, which differ. Of each sixteen four have parts that lie far from each other, so that
   blocks do not agree on a reference; two have neighbours that lie far from each other, of which one has -inf among them; three lie where elements are reduced in other ways; one
   has NaNs, one an infinity, in one part, and one is -inf. */
enum { QUARTERS = 61, SPREADS = 3 };
static const double spreads[SPREADS] = {1, 2, 6};
static int row_spread(uint64_t r) { return r % 16 == 10 ? 2 : r % 16 == 14 ? 1 : 0; }
static bool is_masked(uint64_t r, uint64_t i) { return r % 16 == 14 && i % 5 == 2; }
static double row_number(uint64_t r, uint64_t i, uint64_t length)
{
    static const double parts[] = {0, 2, -20, -60, -1900, -INFINITY, 9, -40};
    const double number = is_masked(r, i) ? -INFINITY : spreads[row_spread(r)] * ((int)((i + r * 13) % QUARTERS) - 30) / 4.0;
    const uint64_t part = i * 8 / length;
    switch (r % 16) {
    case 1: return number + 3000;
    case 2: return number + 32600;
    case 5: return part == 7 ? NAN : number;
    case 6: return number - 40000;
    case 9: return -INFINITY;
    case 13: return part == 2 ? INFINITY : number;
    case 3: case 7: case 11: case 15: return number + parts[(part + r / 4) % 8] + (r % 8 == 7 ? 2040 : 0);
    default: return number;
    }
}
static bool row_is_nan(uint64_t r) { return r % 16 == 5 || r % 16 == 9 || r % 16 == 13; }
static void test_rows_of(allfold_context *ctx, allfold_context *host, allfold_type type, uint64_t rows, uint64_t vectors, uint64_t more)
{
    const size_t element = allfold_type_bytes(type);
    const uint64_t length = vectors * 16 / element + more;
    const double tolerance = type == ALLFOLD_F32 ? 1e-6 : 0x1p-8, least = type == ALLFOLD_F16 ? 0x1p-14 : 0x1p-126;
    char *const x = host_block(rows * length * element, 16), *const y = host_block(rows * length * element, 16), *const expected = host_block(rows * length * element, 16);
    char *const device_x = device_block(ctx, rows * length * element, 16), *const device_y = device_block(ctx, rows * length * element, 16);
    allfold_view view = {.data = device_x, .outer = rows, .length = length, .inner = 1, .type = type, .cut = ALLFOLD_CUT_OUTER};
    double terms[SPREADS][QUARTERS];
    uint64_t wrong = 0, other_bits = 0;
    for (int i = 0; i < SPREADS * QUARTERS; i++)
        terms[i / QUARTERS][i % QUARTERS] = exp(spreads[i / QUARTERS] * (i % QUARTERS - 30) / 4.0);
    for (uint64_t i = 0; i < rows * length; i++)
        element_put(type, x + i * element, 0, row_number(i / length, i % length, length));
    device_write(ctx, device_x, x, rows * length * element);
    bool done = allfold_softmax_axis(ctx, &view, device_y, type, NULL) == ALLFOLD_OK;
    device_read(ctx, y, device_y, rows * length * element);
    view.data = x;
    if (host != NULL)
        done &= allfold_softmax_axis(host, &view, expected, type, NULL) == ALLFOLD_OK;
    for (uint64_t r = 0; r < rows; r++) {
        const bool plain = r % 4 == 0 || r % 16 == 10 || r % 16 == 14, nan = row_is_nan(r);
        double max = 0.0, sum = 0.0;
        for (uint64_t i = 0; i < length && !plain; i++)
            max = fmax(i == 0 ? -INFINITY : max, element_get(type, x, r * length + i));
#define TERM(i) (plain ? is_masked(r, i) ? 0.0 : terms[row_spread(r)][((i) + r * 13) % QUARTERS] : exp(element_get(type, x, r * length + (i)) - max))
        for (uint64_t i = 0; i < length && !nan; i++)
            sum += TERM(i);
        for (uint64_t i = 0; i < length; i++) {
            const double found = element_get(type, y, r * length + i), right = nan ? 0.0 : TERM(i) / sum;
            wrong += nan ? found == found : !(fabs(found - right) <= tolerance * fmax(right, least));
            other_bits += host != NULL && !nan && memcmp(y + (r * length + i) * element, expected + (r * length + i) * element, element) != 0;
        }
#undef TERM
    }
    tap_ok(done && wrong == 0 && other_bits == 0, "softmax of %" PRIu64 " rows of %" PRIu64 " %s, level %d%s", rows, length, allfold_type_name(type), (int)ctx->level,
           host != NULL ? ", with the bits of the CPU" : "");
    if (wrong + other_bits > 0)
        tap_note("%" PRIu64 " elements are wrong, %" PRIu64 " differ from the CPU's", wrong, other_bits);
    device_block_free(ctx, device_x, 16);
    device_block_free(ctx, device_y, 16);
    host_block_free(x, 16);
    host_block_free(y, 16);
    host_block_free(expected, 16);
}

static void test_rows(void)
{
    static const struct { uint64_t rows, few, vectors, more; } cases[] = {
        {30000, 600, 12, 1}, {3000, 60, 290, 0}, {2800, 60, 300, 3}, {2700, 60, 525, 0}, {3001, 60, 100, 0}, {300, 60, 900, 0}, {1000, 60, 1024, 0}, {2700, 60, 1100, 0}, {2300, 60, 1500, 0},
        {2000, 60, 1900, 1}, {1800, 40, 2300, 0}, {700, 14, 6000, 0}, {60, 2, 41000, 0}, {20, 1, 70000, 0}};
    static const allfold_type types[] = {ALLFOLD_F32, ALLFOLD_BF16, ALLFOLD_F16};
    const bool on_gpu = test.plain->device->backend == &backend_cuda, many = on_gpu && !test.standin;
    allfold_context *const host = on_gpu ? open_or_skip("cpu", (allfold_options){.threads = 1, .level = ALLFOLD_LEVEL_EXACT}) : NULL;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (int t = 0; t < (test.standin ? 2 : 3); t++) { /* f16 as bf16 */
            test_rows_of(test.plain, NULL, types[t], many ? cases[i].rows : cases[i].few, cases[i].vectors, cases[i].more);
            test_rows_of(test.exact, host, types[t], many ? cases[i].rows : cases[i].few, cases[i].vectors, cases[i].more);
        }
    allfold_close(host);
}

static void test_sums_to_one(void)
{
    const uint64_t counts[] = {1 << 20, 1 << 22};
    for (int c = 0; c < (test.standin ? 1 : 2); c++) {
        const struct range part = range_part(counts[c], (uint64_t)test.rank, (uint64_t)test.size);
        float *const x = host_block(part.count * sizeof *x, 4), *const y = host_block(part.count * sizeof *y, 4);
        for (uint64_t i = 0; i < part.count; i++)
            x[i] = (float)(20.0 * unit_of(part.first + i, 11));
        const allfold_array array = {x, part.count, ALLFOLD_F32};
        bool right = allfold_softmax(test.plain, &array, y, ALLFOLD_F32, NULL) == ALLFOLD_OK;
        double mine = 0.0, sum;
        for (uint64_t i = 0; i < part.count; i++)
            mine += (double)y[i];
        MPI_Allreduce(&mine, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
        right = right && fabs(sum - 1.0) <= 1e-6;
        tap_ok(right, "%" PRIu64 " f32 sum to one within 1e-6", counts[c]);
        tap_note("their sum is 1 %+.2e", sum - 1.0);
        host_block_free(x, 4);
        host_block_free(y, 4);
    }
}

static void test_degenerate(void)
{
    const float x[1] = {-37.5f};
    float y[2] = {-1.0f, -1.0f};
    for (int owner = 0; owner < test.size; owner++) {
        const allfold_array array = {x, test.rank == owner, ALLFOLD_F32};
        const allfold_status status = allfold_softmax(test.plain, &array, y, ALLFOLD_F32, NULL);
        tap_ok(status == ALLFOLD_OK && y[0] == (test.rank == owner ? 1.0f : -1.0f) && y[1] == -1.0f,
               "a single element, on rank %d, gives 1", owner);
        y[0] = -1.0f;
    }
    const allfold_array empty = {NULL, 0, ALLFOLD_F64};
    tap_ok(allfold_softmax(test.plain, &empty, NULL, ALLFOLD_F64, NULL) == ALLFOLD_OK, "an empty array is no error");
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    const char *const backend = argc > 1 ? argv[1] : "cpu";
    MPI_Comm_rank(MPI_COMM_WORLD, &test.rank);
    MPI_Comm_size(MPI_COMM_WORLD, &test.size);
    test.standin = getenv("ALLFOLD_STANDIN_DEVICES") != NULL;
    test.plain = open_or_skip(backend, (allfold_options){.threads = 1, .level = ALLFOLD_LEVEL_FAST});
    if (test.plain != NULL) {
        allfold_options options = {.threads = 1, .staging_bytes = 4096, .level = ALLFOLD_LEVEL_FAST};
        test.shards = open_or_skip(backend, options);
        options.level = ALLFOLD_LEVEL_EXACT;
        test.exact_shards = open_or_skip(backend, options);
        test.exact = open_or_skip(backend, (allfold_options){.threads = 1, .level = ALLFOLD_LEVEL_EXACT});
        options.level = ALLFOLD_LEVEL_FAST;
        options.device_memory = 24576;
        test.little = open_or_skip(backend, options);
        options.device_memory = 1;
        test.nothing = open_or_skip(backend, options);
        test.threads = strcmp(backend, "cpu") == 0 ? open_or_skip(backend, (allfold_options){.threads = 3, .level = ALLFOLD_LEVEL_FAST}) : NULL;
        test_types();
        test_large();
        test_beyond_chip();
        test_shift();
        test_sums_to_one();
        test_rows();
        test_degenerate();
        tap_note("%ld calls of rank 0", test.calls);
        allfold_close(test.plain);
        allfold_close(test.shards);
        allfold_close(test.little);
        allfold_close(test.nothing);
        allfold_close(test.threads);
        allfold_close(test.exact);
        allfold_close(test.exact_shards);
    }
    const int status = tap_done();
    MPI_Finalize();
    return status;
}
