/* Several arrays in one call: the results are those of each array alone, or of all joined; and what goes wrong. */
#include "tests/support.h"

enum { ARRAYS = 10, JOINED = 12000, BYTES = JOINED * 8 };

static struct {
    allfold_context *ctx;
    int rank, size;
    allfold_array arrays[ARRAYS]; /* this rank's parts: of other lengths on each rank; every second one in device memory */
    char *memory, *device;
} test;

static bool all_ranks(bool mine)
{
    int own = mine, all;
    MPI_Allreduce(&own, &all, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
    return all != 0;
}

/* Elements of a rank's part of array k. */
static uint64_t part_of(int k, int rank)
{
    static const uint64_t lengths[ARRAYS] = {1000, 0, 1, 2553, 7, 5001, 300, 2, 1096, 33};
    return split_part((enum split)(k % SPLIT_COUNT), lengths[k], rank, test.size).count;
}

/* Writes them. of_ones: nearly all are 1, so that no product overflows. */
static uint64_t fill(allfold_type type, bool of_ones, int k, int rank, char *elements)
{
    const uint64_t count = part_of(k, rank), seed = (uint64_t)(k * 100 + rank);
    for (uint64_t i = 0; i < count; i++) {
        const double x = type_kind(type) == 'f' ? unit_of(i, seed) - 0.5 : (double)(hash_of(i, seed) % 7);
        element_put(type, elements, i, of_ones ? 1.0 + (double)(i == 3) : x);
    }
    return count;
}

/* Makes the arrays, of which each begins an element behind a multiple of 16 bytes, or at one. */
static void make_arrays(allfold_type type, bool of_ones)
{
    const size_t bytes = allfold_type_bytes(type);
    size_t at = 0;
    for (int k = 0; k < ARRAYS; k++) {
        at = (at + 15) / 16 * 16 + (k % 3 == 0 ? bytes : 0);
        const uint64_t count = fill(type, of_ones, k, test.rank, test.memory + at);
        if (count > 0)
            device_write(test.ctx, test.device + at, test.memory + at, count * bytes);
        test.arrays[k] = (allfold_array){k % 4 == 0 ? test.memory + at : test.device + at, count, type};
        at += count * bytes;
    }
}

/* At level fast GPUs cut the arrays of one call in another way, and logsumexp may have the digits of an f32. */
static bool is_same(const allfold_result *a, const allfold_result *b, bool to_the_bit)
{
    const double x = allfold_number(a->value), y = allfold_number(b->value);
    return a->value.kind == b->value.kind && (a->value.u64 == b->value.u64 || (!to_the_bit && fabs(x - y) <= 2.5e-7 * (fabs(y) + 1)))
           && a->index == b->index && a->count == b->count && a->level == b->level && strcmp(a->name, b->name) == 0;
}

/* The folds that have a value of no elements. */
static bool takes_nothing(allfold_fold fold)
{
    return fold == ALLFOLD_SUM || fold == ALLFOLD_PROD || fold == ALLFOLD_NORM1 || fold == ALLFOLD_NORM2 || fold == ALLFOLD_NORMINF
           || fold == ALLFOLD_LOGSUMEXP;
}

/* The fold of all arrays joined: the last rank has them. */
static bool fold_joined(allfold_fold fold, allfold_type type, allfold_result *found)
{
    char *const elements = malloc(BYTES);
    allfold_array joined = {elements, 0, type};
    must(elements != NULL, "no memory");
    for (int k = 0; k < ARRAYS; k++)
        for (int rank = 0; rank < test.size; rank++)
            joined.count += fill(type, fold == ALLFOLD_PROD, k, rank, elements + joined.count * allfold_type_bytes(type));
    joined.count = test.rank == test.size - 1 ? joined.count : 0;
    const bool done = allfold_reduce(test.ctx, fold, &joined, NULL, found) == ALLFOLD_OK;
    free(elements);
    return done;
}

static void test_fold(allfold_fold fold, allfold_type type)
{
    const bool exact = test.ctx->level == ALLFOLD_LEVEL_EXACT, own = !test.ctx->device->backend->own_memory;
    allfold_array arrays[ARRAYS];
    allfold_result found[ARRAYS], due;
    size_t count = 0;
    make_arrays(type, fold == ALLFOLD_PROD);
    for (int k = 0; k < ARRAYS; k++)
        if (k != 1 || takes_nothing(fold)) /* which has no elements */
            arrays[count++] = test.arrays[k];
    bool right = allfold_reduce_many(test.ctx, fold, arrays, count, NULL, found) == ALLFOLD_OK;
    for (size_t k = 0; k < count && right; k++) {
        right = allfold_reduce(test.ctx, fold, &arrays[k], NULL, &due) == ALLFOLD_OK && is_same(&found[k], &due, exact || own);
        right = right && allfold_reduce_many(test.ctx, fold, &arrays[k], 1, NULL, &due) == ALLFOLD_OK && is_same(&found[k], &due, true);
    }
    tap_ok(all_ranks(right), "%s of %zu arrays of %s, level %s: %s", allfold_fold_name(fold), count, allfold_type_name(type),
           exact ? "exact" : "fast", right ? "as of each" : allfold_message(test.ctx));

    const allfold_call call = {.size = sizeof call, .total = 1};
    right = allfold_reduce_many(test.ctx, fold, arrays, count, &call, found) == ALLFOLD_OK && fold_joined(fold, type, &due)
            && is_same(found, &due, exact);
    tap_ok(all_ranks(right), "and of all joined: %s", right ? "one value" : allfold_message(test.ctx));
}

/* Many arrays of three types: more than one exchange has room for, or more than a device starts with. */
static void test_types(bool on_device)
{
    enum { MANY = 700 };
    static const double f64[] = {-2.5, 7.0};
    static const float f32[] = {-1.5f, 4.0f};
    static const int8_t int8[] = {-3, 5};
    allfold_array of[] = {{f64, 2, ALLFOLD_F64}, {int8, 2, ALLFOLD_INT8}, {f32, 2, ALLFOLD_F32}};
    const double norms[] = {9.5, 8.0, 5.5};
    const int count = on_device ? MANY / 7 : MANY;
    allfold_array arrays[MANY];
    allfold_result found[MANY];
    for (int k = 0; k < 3 && on_device; k++) {
        device_write(test.ctx, test.device + 16 * k, of[k].data, 2 * allfold_type_bytes(of[k].type));
        of[k].data = test.device + 16 * k;
    }
    for (int i = 0; i < count; i++)
        arrays[i] = of[i % 3];
    bool right = allfold_reduce_many(test.ctx, ALLFOLD_NORM1, arrays, (size_t)count, NULL, found) == ALLFOLD_OK;
    for (int i = 0; i < count && right; i++)
        right = allfold_number(found[i].value) == norms[i % 3] * test.size
                && found[i].value.kind == (i % 3 == 1 ? ALLFOLD_VALUE_U64 : ALLFOLD_VALUE_F64);
    tap_ok(all_ranks(right), "%d arrays of three types: %s", count, right ? "all values" : allfold_message(test.ctx));
    right = allfold_reduce_many(test.ctx, ALLFOLD_SUM, NULL, 0, NULL, NULL) == ALLFOLD_OK;
    tap_ok(all_ranks(right), "no arrays");
}

/* A call that fails on all ranks with that text, and writes nothing; then one that works. */
static void refused(const char *what, allfold_status status, const char *text)
{
    allfold_result found;
    const bool right = status == ALLFOLD_BAD_ARGUMENT && strstr(allfold_message(test.ctx), text) != NULL;
    const bool works = right && allfold_reduce_many(test.ctx, ALLFOLD_SUM, test.arrays + 4, 1, NULL, &found) == ALLFOLD_OK;
    tap_ok(all_ranks(works), "%s: %s", what, works ? "refused" : allfold_message(test.ctx));
}

static void test_refusals(int failing)
{
    const bool bad = test.rank == failing;
    static const double numbers[] = {1.0, 2.0};
    const allfold_array one = {numbers, 2, ALLFOLD_F64}, odd = {(const char *)numbers + 1, 1, ALLFOLD_F64}, other = {numbers, 1, ALLFOLD_INT32};
    const allfold_array pair[] = {one, bad ? odd : one}, mixed[] = {one, bad ? other : one};
    const allfold_call total = {.size = sizeof total, .total = 1}, own = {.size = sizeof own, .own_results = bad};
    allfold_result found[2], single;
    memset(found, 0xa5, sizeof found);
    make_arrays(ALLFOLD_F64, false);
    refused("an array that is not aligned", allfold_reduce_many(test.ctx, ALLFOLD_SUM, pair, 2, NULL, found), "array 1 of 2: data is not aligned");
    refused("types that differ in a total", allfold_reduce_many(test.ctx, ALLFOLD_SUM, mixed, 2, &total, found), "array 1 of 2: expected f64");
    refused("results of one rank", allfold_reduce_many(test.ctx, ALLFOLD_SUM, pair, 1, &own, found), "own_results");
    refused("arrays that are NULL", allfold_reduce_many(test.ctx, ALLFOLD_SUM, bad ? NULL : pair, 1, NULL, found), "arrays are NULL");
    refused("results that are NULL", allfold_reduce_many(test.ctx, ALLFOLD_SUM, pair, 1, NULL, bad ? NULL : found), "results are NULL");
    refused("several results", allfold_reduce_many(test.ctx, bad ? ALLFOLD_STATS : ALLFOLD_SUM, pair, 1, NULL, found), "several results");
    refused("a fold that does not exist", allfold_reduce_many(test.ctx, bad ? ALLFOLD_FOLD_COUNT : ALLFOLD_SUM, pair, 1, NULL, found), "not exist");
    refused("a total of nothing", allfold_reduce_many(test.ctx, ALLFOLD_SUM, NULL, 0, &total, found), "a total of no arrays");
    refused("a total of one array", allfold_reduce(test.ctx, ALLFOLD_SUM, &one, bad ? &total : NULL, &single), "total is for");
    if (test.size > 1) {
        refused("ranks with other types", allfold_reduce_many(test.ctx, ALLFOLD_SUM, mixed, 2, NULL, found), "different calls");
        refused("ranks with other folds", allfold_reduce_many(test.ctx, bad ? ALLFOLD_MAX : ALLFOLD_SUM, pair, 1, NULL, found), "different calls");
        refused("one rank wants a total", allfold_reduce_many(test.ctx, ALLFOLD_SUM, pair, 1, bad ? &total : NULL, found), "different calls");
        for (int more = 1; more <= 400; more += 399) {
            allfold_array many[500];
            allfold_result room[500];
            for (int i = 0; i < 500; i++)
                many[i] = one;
            refused("ranks with other numbers of arrays", allfold_reduce_many(test.ctx, ALLFOLD_MAX, many, (size_t)(bad ? more : 500), NULL, room),
                    "different calls");
        }
    }
    const allfold_array nothing[] = {one, {NULL, 0, ALLFOLD_F64}};
    const bool right = allfold_reduce_many(test.ctx, ALLFOLD_MIN, nothing, 2, NULL, found) == ALLFOLD_NO_VALUE
                       && strncmp(allfold_message(test.ctx), "array 1 of 2: ", 14) == 0;
    tap_ok(all_ranks(right), "min of nothing names the array: %s", allfold_message(test.ctx));
    const unsigned char *const bytes = (const unsigned char *)found;
    bool untouched = true;
    for (size_t i = 0; i < sizeof found; i++)
        untouched = untouched && bytes[i] == 0xa5;
    tap_ok(all_ranks(untouched), "calls that fail write no results");
}

/* Arrays that all threads of a CPU fold together, and that several blocks of a GPU do. */
static void test_long(void)
{
    enum { COUNT = 1200001 };
    const uint64_t count = test.ctx->device->backend->own_memory ? COUNT / 8 : COUNT; /* emulated GPUs are slow */
    float *const x = malloc(COUNT * sizeof *x);
    must(x != NULL, "no memory");
    for (uint64_t i = 0; i < COUNT; i++)
        x[i] = (float)(unit_of(i, (uint64_t)test.rank) - 0.25);
    float *const device = device_block(test.ctx, COUNT * sizeof *x, sizeof *x);
    device_write(test.ctx, device, x, COUNT * sizeof *x);
    const allfold_array arrays[] = {{device, count, ALLFOLD_F32}, {device + 7, 70000, ALLFOLD_F32}, {device + 1, 1, ALLFOLD_F32}};
    const allfold_fold folds[] = {ALLFOLD_NORM2, ALLFOLD_ARGMAX, ALLFOLD_VARIANCE, ALLFOLD_LOGSUMEXP};
    for (size_t f = 0; f < sizeof folds / sizeof *folds; f++) {
        allfold_result found[3], due;
        bool right = allfold_reduce_many(test.ctx, folds[f], arrays, 3, NULL, found) == ALLFOLD_OK;
        for (int k = 0; k < 3 && right; k++)
            right = allfold_reduce(test.ctx, folds[f], &arrays[k], NULL, &due) == ALLFOLD_OK
                    && is_same(&found[k], &due, test.ctx->level == ALLFOLD_LEVEL_EXACT || !test.ctx->device->backend->own_memory);
        tap_ok(all_ranks(right), "%s of %d elements: %s", allfold_fold_name(folds[f]), (int)count, right ? "as of each" : allfold_message(test.ctx));
    }
    device_block_free(test.ctx, device, sizeof *x);
    free(x);
}

static void test_context(const char *backend, allfold_level level, allfold_exchange exchange)
{
    test.ctx = open_or_skip(backend, (allfold_options){.threads = 2, .level = level, .exchange = exchange});
    if (test.ctx == NULL)
        return;
    test.device = device_block(test.ctx, BYTES, 16);
    for (int fold = 0; fold < ALLFOLD_FOLD_COUNT; fold++)
        for (int type = 1; type < ALLFOLD_TYPE_COUNT; type++)
            if (allfold_result_count((allfold_fold)fold) == 1
                && ((level == ALLFOLD_LEVEL_EXACT && exchange == ALLFOLD_EXCHANGE_AUTO) || (fold + type) % (exchange == ALLFOLD_EXCHANGE_AUTO ? 3 : 7) == 0))
                test_fold((allfold_fold)fold, (allfold_type)type);
    test_types(false);
    test_types(true);
    if (exchange == ALLFOLD_EXCHANGE_AUTO)
        test_long();
    for (int failing = 0; failing < test.size && level == ALLFOLD_LEVEL_EXACT; failing += test.size > 1 ? test.size - 1 : 1)
        test_refusals(failing);
    device_block_free(test.ctx, test.device, 16);
    allfold_close(test.ctx);
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    test.rank = world_rank();
    test.size = world_size();
    test.memory = host_block(BYTES, 16);
    for (int level = 0; level <= ALLFOLD_LEVEL_FAST; level++)
        for (int exchange = 0; exchange <= ALLFOLD_EXCHANGE_MPI; exchange++)
            test_context(argc > 1 ? argv[1] : "cpu", (allfold_level)level, (allfold_exchange)exchange);
    host_block_free(test.memory, 16);
    const int failures = tap_done();
    MPI_Finalize();
    return failures;
}
