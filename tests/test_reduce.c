/* Every fold of every element type against oracle.h, over patterns of data, sizes, ways to cut the array, and places of
   its parts; the same bits on all ranks, from run to run and (on the CPU) whatever the number of threads. */
#include "tests/oracle.h"
#include "tests/patterns.h"

enum { THREAD_CHOICES = 3, CALLS_MAX = 3 * ALLFOLD_FOLD_COUNT };

static struct {
    allfold_context *plain, *shards;          /* one thread; with staging of 4096 bytes, so many shards */
    allfold_context *threads[THREAD_CHOICES]; /* as many threads as by default, 2 and 4; the same bits are due */
    int thread_choices;
    int rank, size;
    long calls, calls_of[ALLFOLD_FOLD_COUNT]; /* of all types; of this type */
} test;

/* One case: an array, cut and placed. number counts them, to make choices. */
struct test_case {
    const struct pattern *pattern;
    allfold_type type;
    uint64_t count;
    enum split split;
    enum memory memory;
    allfold_context *ctx;
    unsigned number;
};

struct planned {
    allfold_fold fold;
    allfold_nan nan;
};

/* The verdicts on one type: the first fault of each fold, and the largest error. */
static struct verdict verdicts[ALLFOLD_FOLD_COUNT];

static struct outcome call(const struct test_case *c, allfold_context *ctx, allfold_fold fold, allfold_nan nan,
                           const void *data, struct range part)
{
    struct outcome outcome = {0};
    struct fold_results untouched;
    memset(&outcome.result, 0xa5, sizeof outcome.result);
    memset(&untouched, 0xa5, sizeof untouched);
    if (c->memory == MEMORY_SOURCE) {
        struct error error = {0};
        struct test_source source = source_of(data, part, c->type);
        const struct job job = {.type = c->type, .source = &source.filled.source, .range = part};
        outcome.status = core_reduce(ctx, &(struct fold_call){.fold = fold, .nan = nan}, &job, &outcome.result, &error);
        memcpy(outcome.message, error.text, sizeof outcome.message);
    } else {
        const allfold_array array = {data, part.count, c->type};
        const allfold_call options = {.size = sizeof options, .nan = nan};
        outcome.status = reduce_all(ctx, fold, &array, &options, &outcome.result);
        snprintf(outcome.message, sizeof outcome.message, "%s", allfold_message(ctx));
    }
    test.calls++;
    test.calls_of[fold]++;
    if (outcome.status != ALLFOLD_OK && memcmp(&outcome.result, &untouched, sizeof untouched) != 0)
        found(&verdicts[fold], "the result was written in spite of the error");
    return outcome;
}

/* All that callers can see, without the padding. */
static uint64_t outcome_hash(const struct outcome *outcome)
{
    uint64_t hash = bytes_hash(HASH_START, &outcome->status, sizeof outcome->status);
    hash = bytes_hash(hash, outcome->message, strlen(outcome->message));
    if (outcome->status != ALLFOLD_OK)
        return hash;
    hash = bytes_hash(hash, &outcome->result.count, sizeof outcome->result.count);
    for (int i = 0; i < outcome->result.field_count; i++) {
        const allfold_value value = outcome->result.fields[i].value;
        const bool nan = value.kind == ALLFOLD_VALUE_F64 && value.f64 != value.f64; /* NaN has many bit patterns */
        const uint64_t bits = nan ? 0 : value.u64;
        hash = bytes_hash(hash, outcome->result.fields[i].name, strlen(outcome->result.fields[i].name));
        hash = bytes_hash(hash, &value.kind, sizeof value.kind);
        hash = bytes_hash(hash, &bits, sizeof bits);
        hash = bytes_hash(hash, &outcome->result.fields[i].index, sizeof outcome->result.fields[i].index);
    }
    return hash;
}

/* Adds what was found of one case to the fold's verdict, with the case's name before a fault. */
static void judge(allfold_fold fold, const struct test_case *c, allfold_nan nan, const struct verdict *v)
{
    struct verdict *const all = &verdicts[fold];
    all->worst = v->worst > all->worst ? v->worst : all->worst;
    if (v->fault[0] != '\0')
        found(all, "%s, n = %" PRIu64 ", %s, %s, NaN policy %d: %s", c->pattern->name, c->count, split_names[c->split],
              memory_names[c->memory], (int)nan, v->fault);
}

/* The calls that are made of an array: each fold, with each NaN policy where it has a choice and there are NaN (or it is
   the turn of an array that has none). */
static int list_calls(const struct test_case *c, struct planned calls[CALLS_MAX])
{
    const double *const special = c->pattern->special;
    const bool choices = special[0] != special[0] || special[1] != special[1] || c->number % 4 == 0;
    int n = 0;
    for (int fold = 0; fold < ALLFOLD_FOLD_COUNT; fold++)
        for (int nan = 0; nan <= (choices && fold_has_nan_choice((allfold_fold)fold) ? ALLFOLD_NAN_ERROR : 0); nan++)
            calls[n++] = (struct planned){(allfold_fold)fold, (allfold_nan)nan};
    return n;
}

static void must_equal(const struct test_case *c, const struct planned *p, bool equal, const char *fault)
{
    struct verdict v = {0};
    if (!equal) {
        found(&v, "%s", fault);
        judge(p->fold, c, p->nan, &v);
    }
}

/* All folds of one array. Rank 0 alone compares with the oracle: the others must have the same outcome. */
static void run_folds(const struct test_case *c, const void *data, struct range part, const struct expected *e)
{
    struct planned calls[CALLS_MAX];
    uint64_t hashes[CALLS_MAX];
    const int n = list_calls(c, calls);
    for (int i = 0; i < n; i++) {
        struct verdict v = {0};
        const struct outcome outcome = call(c, c->ctx, calls[i].fold, calls[i].nan, data, part);
        hashes[i] = outcome_hash(&outcome);
        if (test.rank == 0)
            check(&v, calls[i].fold, calls[i].nan, e, &outcome);
        judge(calls[i].fold, c, calls[i].nan, &v);
    }
    for (int i = (int)(c->number % 8); i < n; i += 8) {
        const struct outcome again = call(c, c->ctx, calls[i].fold, calls[i].nan, data, part);
        must_equal(c, &calls[i], outcome_hash(&again) == hashes[i], "a second run gave other bits");
    }
    for (int t = 0; t < (c->ctx == test.plain && c->count > 65537 ? test.thread_choices : 0); t++)
        for (int i = (int)(c->number % 2); i < n; i += 2) {
            const struct outcome other = call(c, test.threads[t], calls[i].fold, calls[i].nan, data, part);
            must_equal(c, &calls[i], outcome_hash(&other) == hashes[i], "another number of threads gave other bits");
        }
    const int different = first_difference(hashes, n);
    if (different >= 0)
        must_equal(c, &calls[different], false, "the ranks do not hold the same");
}

static void run_case(const struct test_case *c)
{
    const size_t bytes = allfold_type_bytes(c->type);
    const struct range part = split_part(c->split, c->count, test.rank, test.size);
    const uint64_t rank_first = split_part(c->split, c->count, test.size / 2, test.size).first;
    char *const host = host_block(part.count * bytes, bytes), *device = NULL;
    struct queue *pinned = NULL;
    struct expected e = {0};
    pattern_fill(c->pattern, c->type, c->count, rank_first, part, host);
    if (test.rank == 0) {
        char *const whole = host_block(c->count * bytes, bytes);
        pattern_fill(c->pattern, c->type, c->count, rank_first, (struct range){0, c->count}, whole);
        e = expect(c->type, whole, c->count);
        host_block_free(whole, bytes);
    }
    if (c->memory == MEMORY_DEVICE) {
        device = device_block(c->ctx, part.count * bytes, bytes);
        device_write(c->ctx, device, host, part.count * bytes);
    }
    if (c->memory == MEMORY_PINNED) {
        pinned = pinned_block(c->ctx, part.count * bytes, bytes);
        memcpy(pinned_memory(pinned, bytes), host, part.count * bytes);
    }
    run_folds(c, device != NULL ? device : pinned != NULL ? pinned_memory(pinned, bytes) : host, part, &e);
    c->ctx->device->backend->queue_close(pinned);
    if (device != NULL)
        device_block_free(c->ctx, device, bytes);
    host_block_free(host, bytes);
}

/* The cases of one type. Ways to cut and to place take turns, so that in the end each has met the others. */
static void run_type(allfold_type type)
{
    static const uint64_t small[] = {0, 1, 2, 31, 32, 33, 255, 256, 257, 1023, 1024, 1025};
    static const uint64_t large[] = {65535, 65536, 65537, (1 << 20) - 1, (1 << 20) + 1};
    const bool real = type_kind(type) == 'f';
    const struct pattern *const patterns = real ? float_patterns : integer_patterns;
    const unsigned pattern_count = real ? sizeof float_patterns / sizeof *float_patterns
                                        : sizeof integer_patterns / sizeof *integer_patterns;
    const uint64_t shard = 4096 / allfold_type_bytes(type), size = (uint64_t)test.size;
    const uint64_t sharded[] = {shard - 1, shard, shard + 1, 3 * shard * size - 1, 3 * shard * size, 3 * shard * size + 1,
                                7 * shard * size + 5};
    const char *const most = getenv("ALLFOLD_TEST_PATTERNS"); /* for tools under which a launch takes long: six meet all sizes */
    const unsigned wanted = most != NULL ? (unsigned)atoi(most) : pattern_count;
    struct test_case c = {.type = type};
    for (unsigned p = 0; p < pattern_count && p < wanted; p++) {
        /* so many ranks share cores, and wait: half for each type, and on more than three the other half */
        if (test.size > 2 && (p / 2 + (unsigned)type + (test.size > 3)) % 2 != 0)
            continue;
        c.pattern = &patterns[p];
        for (unsigned i = p % 2; i < sizeof small / sizeof *small; i += 2, c.number++) {
            c.count = small[i];
            c.split = (enum split)(c.number % SPLIT_COUNT);
            c.memory = (enum memory)(c.number / SPLIT_COUNT % MEMORY_COUNT);
            c.ctx = c.number % 5 == 0 ? test.shards : test.plain;
            run_case(&c);
        }
        for (unsigned i = p % 3; i < sizeof sharded / sizeof *sharded; i += 3, c.number++) {
            c.count = sharded[i];
            c.split = (enum split)(c.number % SPLIT_COUNT);
            c.memory = c.number % 3 == 0   ? MEMORY_HOST
                       : c.number % 3 == 1 ? MEMORY_SOURCE
                                           : MEMORY_PINNED; /* what is streamed */
            c.ctx = test.shards;
            run_case(&c);
        }
    }
    for (unsigned i = 0; i < sizeof large / sizeof *large; i++, c.number++) {
        if (i >= 3 && ((unsigned)type + i) % 4 != 0) /* the longest take seconds, in the oracle: for every other type */
            continue;
        c.pattern = &patterns[i % 3];
        c.count = large[i];
        c.split = i == 2 ? SPLIT_LAST : SPLIT_EVEN;
        c.memory = i % 2 == 0 ? MEMORY_DEVICE : MEMORY_HOST;
        c.ctx = test.plain;
        run_case(&c);
    }
}

/* More elements than 32 bits count: ones, made as they are read, but for a few. */
static const struct {
    uint64_t index;
    int8_t value;
} exceptions[] = {{5, -3}, {(1ull << 31) + 7, 99}, {(1ull << 32) + 1, 100}, {(1ull << 32) + 2, 100}};

static allfold_status read_ones(struct filled_source *source, struct range range, void *elements, struct error *error)
{
    (void)source, (void)error;
    memset(elements, 1, range.count);
    for (size_t i = 0; i < sizeof exceptions / sizeof *exceptions; i++)
        if (exceptions[i].index >= range.first && exceptions[i].index - range.first < range.count)
            ((int8_t *)elements)[exceptions[i].index - range.first] = exceptions[i].value;
    return ALLFOLD_OK;
}

static void test_beyond_32_bits(allfold_context *ctx)
{
    const char *const wanted = getenv("ALLFOLD_TEST_LARGE");
    if (!tap_wanted("sum of 2^32 + 3 elements") && !tap_wanted("argmax beyond index 2^32"))
        return;
    if (test.size != 2 && (wanted == NULL || strcmp(wanted, "1") != 0)) {
        tap_skip("2^32 + 3 elements: at 2 ranks, or with ALLFOLD_TEST_LARGE=1");
        return;
    }
    const uint64_t count = (1ull << 32) + 3;
    struct filled_source source = FILLED(read_ones, ALLFOLD_INT8);
    const struct job job = {.type = ALLFOLD_INT8, .source = &source.source, .range = range_part(count, (uint64_t)test.rank, (uint64_t)test.size)};
    struct fold_results sum = {0}, argmax = {0};
    struct error error = {0};
    const double start = MPI_Wtime();
    core_reduce(ctx, &(struct fold_call){.fold = ALLFOLD_SUM}, &job, &sum, &error);
    core_reduce(ctx, &(struct fold_call){.fold = ALLFOLD_ARGMAX}, &job, &argmax, &error);
    tap_ok(error.status == ALLFOLD_OK && sum.count == count
               && sum.fields[0].value.i64 == (int64_t)count - 4 - 3 + 99 + 200,
           "sum of 2^32 + 3 elements");
    tap_ok(argmax.count == count && argmax.fields[0].value.i64 == 100 && argmax.fields[0].index == (1ull << 32) + 1,
           "argmax beyond index 2^32");
    tap_note("in %.1f seconds", MPI_Wtime() - start);
}

/* So long in device memory that blocks end, or claim their chunks (kernels/tuning.h): integers, whose sums are exact. */
static void test_long(allfold_context *exact)
{
    enum { PERIOD = 1000003, LONG_BYTES = 512 << 20 };
    static const allfold_type types[] = {ALLFOLD_F32, ALLFOLD_F64, ALLFOLD_BF16, ALLFOLD_F16, ALLFOLD_INT32, ALLFOLD_UINT8};
    static const allfold_fold folds[] = {ALLFOLD_SUM, ALLFOLD_NORM1, ALLFOLD_NORM2, ALLFOLD_MIN, ALLFOLD_MAX};
    if (test.size > 1 || test.plain->device->backend != &backend_cuda || getenv("ALLFOLD_STANDIN_DEVICES") != NULL) {
        tap_skip("arrays of 512 MiB in device memory: one rank, one GPU");
        return;
    }
    for (unsigned t = 0; t < sizeof types / sizeof *types; t++) {
        if (!tap_wanted("of %s, 512 MiB in device memory", allfold_type_name(types[t])))
            continue;
        const size_t bytes = allfold_type_bytes(types[t]);
        const uint64_t count = LONG_BYTES / bytes + 13;
        const bool signs = types[t] != ALLFOLD_UINT8;
        char *const host = host_block(count * bytes, bytes), *const device = device_block(test.plain, count * bytes, 16);
        double expected[] = {0.0, 0.0, 0.0, signs ? -100.0 : 0.0, signs ? 99.0 : 199.0};
        for (uint64_t i = 0; i < PERIOD; i++) {
            const int x = (int)((i * 2654435761u >> 12) % 200) - (signs ? 100 : 0);
            const uint64_t times = count / PERIOD + (i < count % PERIOD ? 1 : 0);
            element_put(types[t], host, i, x);
            expected[0] += (double)times * x;
            expected[1] += (double)times * abs(x);
            expected[2] += (double)times * x * x;
        }
        expected[2] = sqrt(expected[2]);
        for (uint64_t i = PERIOD; i < count; i += PERIOD)
            memcpy(host + i * bytes, host, u64_min(PERIOD, count - i) * bytes);
        device_write(test.plain, device, host, count * bytes);
        for (int level = 0; level < 2; level++)
            for (unsigned f = 0; f < sizeof folds / sizeof *folds; f++) {
                const allfold_array part = {device, count, types[t]};
                struct fold_results result = {0};
                const allfold_status status = reduce_all(level == 0 ? test.plain : exact, folds[f], &part, NULL, &result);
                const allfold_value value = result.fields[0].value;
                const double found_value = value.kind == ALLFOLD_VALUE_F64 ? value.f64 : (double)value.i64;
                const double off = folds[f] == ALLFOLD_NORM2 ? 1e-15 * expected[f] : 0.0;
                if (!tap_ok(status == ALLFOLD_OK && result.count == count && fabs(found_value - expected[f]) <= off,
                            "%s%s of %s, 512 MiB in device memory", allfold_fold_name(folds[f]), level == 0 ? "" : ", exact,",
                            allfold_type_name(types[t])))
                    tap_note("%.17g instead of %.17g", found_value, expected[f]);
            }
        device_block_free(test.plain, device, 16);
        host_block_free(host, bytes);
    }
}

static bool type_wanted(allfold_type type)
{
    bool wanted = false;
    for (int f = 0; f < ALLFOLD_FOLD_COUNT; f++)
        wanted = wanted || tap_wanted("%s of %s", allfold_fold_name((allfold_fold)f), allfold_type_name(type));
    return wanted;
}

static void report_type(allfold_type type)
{
    for (int f = 0; f < ALLFOLD_FOLD_COUNT; f++) {
        const char *const name = allfold_fold_name((allfold_fold)f);
        if (!tap_ok(test.calls_of[f] > 0 && verdicts[f].fault[0] == '\0', "%s of %s", name, allfold_type_name(type)))
            tap_note("%s", verdicts[f].fault);
        else if (verdicts[f].worst > 0.0)
            tap_note("the largest error is %.3f of the bound", verdicts[f].worst);
    }
    memset(verdicts, 0, sizeof verdicts);
    memset(test.calls_of, 0, sizeof test.calls_of);
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    const char *const backend = argc > 1 ? argv[1] : "cpu";
    MPI_Comm_rank(MPI_COMM_WORLD, &test.rank);
    MPI_Comm_size(MPI_COMM_WORLD, &test.size);
    test.plain = open_or_skip(backend, (allfold_options){.threads = 1, .level = ALLFOLD_LEVEL_FAST});
    if (test.plain != NULL) {
        test.shards = open_or_skip(backend, (allfold_options){.threads = 1, .staging_bytes = 4096, .level = ALLFOLD_LEVEL_FAST});
        test.thread_choices = strcmp(backend, "cpu") == 0 ? THREAD_CHOICES : 0;
        for (int t = 0; t < test.thread_choices; t++)
            test.threads[t] = open_or_skip(backend, (allfold_options){.threads = 2 * t, .level = ALLFOLD_LEVEL_FAST});
        for (int type = ALLFOLD_TYPE_NONE + 1; type < ALLFOLD_TYPE_COUNT; type++) {
            if (!type_wanted((allfold_type)type))
                continue;
            run_type((allfold_type)type);
            report_type((allfold_type)type);
        }
        test_beyond_32_bits(test.thread_choices > 0 ? test.threads[0] : test.plain);
        allfold_context *const exact = open_or_skip(backend, (allfold_options){.threads = 1, .level = ALLFOLD_LEVEL_EXACT});
        test_long(exact);
        allfold_close(exact);
        tap_note("%ld calls", test.calls);
        for (int t = 0; t < test.thread_choices; t++)
            allfold_close(test.threads[t]);
        allfold_close(test.shards);
        allfold_close(test.plain);
    }
    const int status = tap_done();
    MPI_Finalize();
    return status;
}
