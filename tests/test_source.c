/* Sources in place of arrays in memory: every call gives what it gives of the same elements in memory; and what is refused. */
#include "allfold_files.h"
#include "tests/support.h"

enum { PLANES = 6, LINES = 5, COLUMNS = 70, COUNT = PLANES * LINES * COLUMNS };

static struct {
    allfold_context *ctx;
    int rank, size;
    char path[64];
    float all[COUNT];
    allfold_array part, source; /* this rank's part in memory; the file */
} test;

static const uint64_t shape[] = {PLANES, LINES, COLUMNS};

static void write_file(void)
{
    FILE *const file = test.rank == 0 ? fopen(test.path, "wb") : NULL;
    must(test.rank != 0 || (file != NULL && fwrite(test.all, sizeof test.all, 1, file) == 1 && fclose(file) == 0), "cannot write a file");
    MPI_Barrier(MPI_COMM_WORLD);
}

static allfold_status open_file(const char *slice, allfold_source **source)
{
    allfold_source_options options = ALLFOLD_SOURCE_OPTIONS_INIT;
    options.type = ALLFOLD_F32;
    options.shape = "6,5,70";
    options.slice = slice;
    return allfold_source_open(test.ctx, test.path, &options, source);
}

static bool refused(allfold_status status, const char *text)
{
    return status != ALLFOLD_OK && strstr(allfold_message(test.ctx), text) != NULL;
}

static bool same(const void *a, const void *b, size_t bytes) { return memcmp(a, b, bytes) == 0; }

/* Products alone are not those of any cut. */
static bool same_results(const struct fold_results *a, const struct fold_results *b, bool to_the_bit)
{
    bool same = a->field_count == b->field_count && a->count == b->count;
    for (int i = 0; i < a->field_count; i++) {
        const struct fold_field *const x = &a->fields[i], *const y = &b->fields[i];
        same = same && x->index == y->index && strcmp(x->name, y->name) == 0
               && (x->value.u64 == y->value.u64 || (!to_the_bit && fabs(x->value.f64 / y->value.f64 - 1) < 1e-12));
    }
    return same;
}

static void check_flat(void)
{
    struct fold_results of_file, of_memory;
    allfold_result both[2][2];
    const allfold_array pair[2][2] = {{test.source, test.part}, {test.part, test.part}};
    for (int fold = 0; fold < ALLFOLD_FOLD_COUNT; fold++) {
        memset(&of_file, 0, sizeof of_file);
        memset(&of_memory, 0, sizeof of_memory);
        const bool folded = reduce_all(test.ctx, (allfold_fold)fold, &test.source, NULL, &of_file) == ALLFOLD_OK
                            && reduce_all(test.ctx, (allfold_fold)fold, &test.part, NULL, &of_memory) == ALLFOLD_OK;
        tap_ok(folded && of_file.count == COUNT && same_results(&of_file, &of_memory, fold != ALLFOLD_PROD), "%s of all elements",
               allfold_fold_name((allfold_fold)fold));
    }
    bool equal = allfold_dot(test.ctx, &test.source, &test.source, NULL, &both[0][0]) == ALLFOLD_OK
                 && allfold_dot(test.ctx, &test.part, &test.part, NULL, &both[1][0]) == ALLFOLD_OK;
    tap_ok(equal && both[0][0].value.u64 == both[1][0].value.u64, "dot product");
    for (int total = 0; total < 2; total++) {
        const allfold_call call = {.size = sizeof call, .total = (uint64_t)total};
        memset(both, 0, sizeof both);
        equal = allfold_reduce_many(test.ctx, ALLFOLD_ARGMAX, pair[0], 2, &call, both[0]) == ALLFOLD_OK
                && allfold_reduce_many(test.ctx, ALLFOLD_ARGMAX, pair[1], 2, &call, both[1]) == ALLFOLD_OK;
        tap_ok(equal && both[0][0].index == both[1][0].index && both[0][1].index == both[1][1].index && both[0][0].count == both[1][0].count,
               "many arrays, of which one is a source%s", total ? ": a total" : "");
    }
}

static void check_order(void)
{
    const double q[] = {0.25, 0.9};
    const allfold_quantiles quantiles = {.size = sizeof quantiles, .q = q, .count = 2};
    const allfold_top top = {.size = sizeof top, .k = 5};
    const allfold_bins bins = {.size = sizeof bins, .count = 7};
    allfold_comparison found = ALLFOLD_COMPARISON_INIT;
    allfold_result results[2][2];
    float values[2][5];
    int64_t indices[2][5], counts[2][7];
    bool done = true;
    for (int k = 0; k < 2; k++) {
        const allfold_array *const array = k == 0 ? &test.source : &test.part;
        done = done && allfold_quantile(test.ctx, array, &quantiles, results[k]) == ALLFOLD_OK
               && allfold_topk(test.ctx, array, &top, values[k], indices[k]) == ALLFOLD_OK
               && allfold_histogram(test.ctx, array, &bins, counts[k], NULL, NULL) == ALLFOLD_OK;
    }
    tap_ok(done && results[0][0].value.u64 == results[1][0].value.u64 && results[0][1].value.u64 == results[1][1].value.u64, "quantiles");
    tap_ok(done && same(values[0], values[1], sizeof values[0]) && same(indices[0], indices[1], sizeof indices[0]), "largest elements");
    tap_ok(done && same(counts[0], counts[1], sizeof counts[0]), "histogram");
    done = allfold_compare(test.ctx, &test.source, &test.source, NULL, &found) == ALLFOLD_OK;
    tap_ok(done && found.within && found.count == COUNT && found.different == 0, "comparison with itself");
}

/* Views of the file, and of this rank's planes in memory. */
static void check_axes(void)
{
    static double results[2][COUNT], weights[COUNT];
    static float y[2][COUNT];
    static int64_t indices[2][COUNT];
    const struct range planes = range_part(PLANES, (uint64_t)test.rank, (uint64_t)test.size);
    const uint64_t part[] = {planes.count, LINES, COLUMNS}, first = planes.first * LINES * COLUMNS;
    for (int i = 0; i < COUNT; i++)
        weights[i] = (double)(i % 5);
    for (uint64_t axes = 1; axes < 8; axes++) {
        uint64_t rows = 1;
        for (int d = 0; d < 3; d++)
            rows *= (axes >> d & 1) != 0 ? 1 : shape[d];
        bool done = true;
        for (int kind = 0; kind < 3; kind++) {
            for (int k = 0; k < 2; k++) {
                allfold_view_nd view = {.size = sizeof view, .data = test.source.data, .axes = axes, .type = ALLFOLD_SOURCE};
                if (k == 1)
                    view = (allfold_view_nd){.size = sizeof view, .data = test.all + first, .rank = 3, .shape = part, .axes = axes, .type = ALLFOLD_F32};
                if (kind == 2) {
                    view.weights = k == 0 ? weights : weights + first;
                    view.weights_type = ALLFOLD_F64;
                }
                const allfold_output output = {results[k], kind == 1 ? indices[k] : NULL};
                done = done && allfold_reduce_nd(test.ctx, kind == 1 ? ALLFOLD_ARGMIN : ALLFOLD_MEAN, &view, NULL, &(allfold_outputs){&output, 1}) == ALLFOLD_OK;
            }
            done = done && same(results[0], results[1], rows * sizeof **results) && (kind != 1 || same(indices[0], indices[1], rows * sizeof **indices));
        }
        tap_ok(done, "mean, argmin and a weighted mean along axes %d", (int)axes);
        const allfold_view_nd whole = {.size = sizeof whole, .data = test.source.data, .axes = axes, .type = ALLFOLD_SOURCE};
        const allfold_view_nd own = {.size = sizeof own, .data = test.all + first, .rank = 3, .shape = part, .axes = axes, .type = ALLFOLD_F32};
        done = allfold_softmax_nd(test.ctx, &whole, y[0], ALLFOLD_F32, NULL) == ALLFOLD_OK
               && allfold_softmax_nd(test.ctx, &own, y[1], ALLFOLD_F32, NULL) == ALLFOLD_OK;
        tap_ok(done && same(y[0] + first, y[1], planes.count * LINES * COLUMNS * sizeof **y), "softmax along them");
    }
    bool done = allfold_softmax(test.ctx, &test.source, y[0], ALLFOLD_F32, NULL) == ALLFOLD_OK
                && allfold_softmax(test.ctx, &test.part, y[1], ALLFOLD_F32, NULL) == ALLFOLD_OK;
    tap_ok(done && same(y[0] + ((const float *)test.part.data - test.all), y[1], test.part.count * sizeof **y), "softmax of all elements");
}

static void check_slices(void)
{
    allfold_source *part, *inner, *direct;
    allfold_result results[3];
    char message[ALLFOLD_ERROR_BYTES];
    float sum = 0;
    for (int p = 2; p < 4; p++)
        for (int c = 10; c < 60; c++)
            sum += test.all[(p * LINES + 3) * COLUMNS + c];
    must(allfold_source_slice(test.source.data, "0=1:-1,2=10:60", &part, message, sizeof message) == ALLFOLD_OK
         && allfold_source_slice(part, "0=1:3,1=3", &inner, message, sizeof message) == ALLFOLD_OK
         && open_file("0=2:4,1=3,2=10:60", &direct) == ALLFOLD_OK, message);
    const allfold_array arrays[] = {{inner, 0, ALLFOLD_SOURCE}, {direct, 0, ALLFOLD_SOURCE}};
    const bool done = allfold_reduce(test.ctx, ALLFOLD_SUM, &arrays[0], NULL, &results[0]) == ALLFOLD_OK
                      && allfold_reduce(test.ctx, ALLFOLD_SUM, &arrays[1], NULL, &results[1]) == ALLFOLD_OK;
    tap_ok(done && results[0].count == 100 && results[0].value.u64 == results[1].value.u64 && fabs(results[0].value.f64 - (double)sum) < 1e-3,
           "a slice of a slice");
    allfold_source *none = inner;
    tap_ok(allfold_source_slice(part, "1=7", &none, message, sizeof message) == ALLFOLD_BAD_ARGUMENT && none == NULL
           && strstr(message, "extent of 5") != NULL, "an index beyond it is refused");
    allfold_source_close(direct);
    allfold_source_close(inner);
    allfold_source_close(part);
}

static void check_refused(void)
{
    double value;
    allfold_result result;
    allfold_request request;
    allfold_results one = {.results = &result, .capacity = 1};
    allfold_comparison found = ALLFOLD_COMPARISON_INIT;
    allfold_source *other = NULL;
    const allfold_view view = {.data = test.source.data, .outer = 1, .length = COUNT, .inner = 1, .type = ALLFOLD_SOURCE};
    allfold_view_nd view_nd = {.size = sizeof view_nd, .data = test.source.data, .axes = 8, .type = ALLFOLD_SOURCE};
    const allfold_output output = {&value, NULL};
    const allfold_outputs outputs = {&output, 1};
    tap_ok(refused(allfold_source_open(test.ctx, "no-such-file.npy", NULL, &other), "cannot find the file") && other == NULL, "no such file");
    tap_ok(refused(allfold_dot(test.ctx, &test.source, &test.part, NULL, &result), "two of one kind"), "dot product of a source and memory");
    tap_ok(refused(allfold_compare(test.ctx, &test.part, &test.source, NULL, &found), "two of one kind"), "comparison of both");
    tap_ok(refused(allfold_reduce_axis(test.ctx, ALLFOLD_SUM, &view, NULL, &outputs), "is a source"), "a view of three dimensions");
    tap_ok(refused(allfold_reduce_nd(test.ctx, ALLFOLD_SUM, &view_nd, NULL, &outputs), "bits of dimensions 0 to 2"), "axes that it does not have");
    view_nd.axes = 7;
    const allfold_call own = {.size = sizeof own, .own_results = 1};
    tap_ok(refused(allfold_reduce_nd(test.ctx, ALLFOLD_SUM, &view_nd, &own, &outputs), "own_results"), "own results");
    const bool begun = allfold_reduce_begin(test.ctx, ALLFOLD_SUM, &test.source, NULL, &request) == ALLFOLD_OK;
    tap_ok(begun && refused(allfold_reduce_end(test.ctx, request, &one), "nothing to begin"), "a fold in two phases");
    if (test.size > 1) {
        must(open_file("0=1:", &other) == ALLFOLD_OK, "cannot open a slice");
        const allfold_array mixed = test.rank == 0 ? test.source : (allfold_array){other, 0, ALLFOLD_SOURCE};
        tap_ok(refused(allfold_reduce(test.ctx, ALLFOLD_SUM, &mixed, NULL, &result), "different calls"), "ranks with different sources");
        tap_ok(refused(allfold_reduce(test.ctx, ALLFOLD_SUM, test.rank == 0 ? &test.source : &test.part, NULL, &result), "different calls"),
               "a source on one rank, memory on the others");
        view_nd.data = mixed.data;
        tap_ok(refused(allfold_reduce_nd(test.ctx, ALLFOLD_SUM, &view_nd, NULL, &outputs), "different calls"), "likewise along axes");
        allfold_source_close(other);
    }
    test.all[0] += 1;
    write_file();
    tap_ok(refused(allfold_reduce(test.ctx, ALLFOLD_SUM, &test.source, NULL, &result), "has changed"), "a file that was written to");
}

static void run(void)
{
    allfold_source *source;
    snprintf(test.path, sizeof test.path, "test_source.%d.raw", test.size);
    for (uint64_t i = 0; i < COUNT; i++)
        test.all[i] = (float)(unit_of(i, 1) < 0.5 ? unit_of(i, 1) - 1.25 : unit_of(i, 1) + 0.25);
    write_file();
    const struct range own = range_part(COUNT, (uint64_t)test.rank, (uint64_t)test.size);
    test.part = (allfold_array){test.all + own.first, own.count, ALLFOLD_F32};
    must(open_file(NULL, &source) == ALLFOLD_OK, allfold_message(test.ctx));
    test.source = (allfold_array){source, 0, ALLFOLD_SOURCE};
    check_flat();
    check_order();
    check_axes();
    check_slices();
    check_refused();
    allfold_source_close(source);
    MPI_Barrier(MPI_COMM_WORLD);
    if (test.rank == 0)
        remove(test.path);
}

int main(int argc, char **argv)
{
    const char *const backend = argc > 1 ? argv[1] : "cpu";
    MPI_Init(&argc, &argv);
    test.rank = world_rank();
    test.size = world_size();
    const allfold_options options = {.threads = 2};
    test.ctx = open_or_skip(backend, options);
    if (test.ctx != NULL)
        run();
    allfold_close(test.ctx);
    const int status = tap_done();
    MPI_Finalize();
    return status;
}
