/* Folds in two phases: the results of folds at once, one exchange for all, and what goes wrong. */
#include "tests/support.h"

enum { COUNT = 3001 }; /* elements of each rank */

static struct {
    allfold_context *ctx;
    int rank, size, allreduces;
    double x[COUNT], y[COUNT];
    allfold_array of_x, of_y; /* in device memory, if there is some */
} test;

/* MPI_Allreduce carries every exchange (two a long one): the library's calls are counted. */
int MPI_Allreduce(const void *from, void *to, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm)
{
    test.allreduces++;
    return PMPI_Allreduce(from, to, count, type, op, comm);
}

static bool all_ranks(bool mine)
{
    int own = mine, all;
    PMPI_Allreduce(&own, &all, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
    return all != 0;
}

static allfold_request begin(allfold_fold fold)
{
    allfold_request request = 0;
    const allfold_status status = fold < ALLFOLD_FOLD_COUNT ? allfold_reduce_begin(test.ctx, fold, &test.of_x, NULL, &request)
                                                            : allfold_dot_begin(test.ctx, &test.of_x, &test.of_y, NULL, &request);
    must(status == ALLFOLD_OK && request != 0, allfold_message(test.ctx));
    return request;
}

static allfold_status end(allfold_request request, struct fold_results *found)
{
    allfold_result results[FOLD_RESULTS_MAX];
    allfold_results all = {.results = results, .capacity = FOLD_RESULTS_MAX};
    const allfold_status status = allfold_reduce_end(test.ctx, request, &all);
    found->count = status == ALLFOLD_OK ? results->count : 0;
    found->field_count = status == ALLFOLD_OK ? (int)all.count : 0;
    for (int i = 0; i < found->field_count; i++) {
        found->fields[i].value = results[i].value;
        found->fields[i].index = results[i].index;
    }
    return status;
}

/* The same at once. */
static void at_once(allfold_fold fold, struct fold_results *found)
{
    allfold_result result;
    if (fold < ALLFOLD_FOLD_COUNT) {
        must(reduce_all(test.ctx, fold, &test.of_x, NULL, found) == ALLFOLD_OK, allfold_message(test.ctx));
        return;
    }
    must(allfold_dot(test.ctx, &test.of_x, &test.of_y, NULL, &result) == ALLFOLD_OK, allfold_message(test.ctx));
    *found = (struct fold_results){.count = result.count, .field_count = 1, .fields = {{.value = result.value, .index = result.index}}};
}

static bool same(const struct fold_results *a, const struct fold_results *b)
{
    bool equal = a->count == b->count && a->field_count == b->field_count;
    for (int i = 0; equal && i < a->field_count; i++)
        equal = a->fields[i].value.u64 == b->fields[i].value.u64 && a->fields[i].index == b->fields[i].index;
    return equal;
}

static void test_results(void)
{
    const allfold_fold dot = ALLFOLD_FOLD_COUNT;
    const allfold_fold lists[][5] = {{ALLFOLD_SUM, ALLFOLD_MAX, ALLFOLD_ARGMIN, ALLFOLD_MEAN, ALLFOLD_MIN},
                                     {dot, ALLFOLD_STATS, dot, ALLFOLD_STATS, ALLFOLD_LOGSUMEXP},
                                     {ALLFOLD_STATS, ALLFOLD_STATS, ALLFOLD_STATS, ALLFOLD_STATS, ALLFOLD_NORM2}};
    for (size_t list = 0; list < sizeof lists / sizeof *lists; list++) {
        allfold_request requests[5];
        struct fold_results found[5], due = {0};
        int calls[5];
        bool right = true;
        for (int i = 0; i < 5; i++)
            requests[i] = begin(lists[list][i]);
        for (int i = 0; i < 5; i++) {
            const int which = (i * 3 + 2) % 5; /* in another order */
            const int before = test.allreduces;
            right = right && end(requests[which], &found[which]) == ALLFOLD_OK;
            calls[i] = test.allreduces - before;
        }
        for (int i = 0; i < 5; i++) {
            at_once(lists[list][i], &due);
            right = right && same(&found[i], &due);
        }
        tap_ok(all_ranks(right), "five folds, list %zu, are those at once", list);
        tap_ok(all_ranks(calls[0] <= (list < 2 ? 2 : 4) && calls[1] + calls[2] + calls[3] + calls[4] == 0),
               "the first end exchanges for all: %d calls of MPI_Allreduce", calls[0]);
    }
}

/* Ranks end folds in different orders, so that those begun next have other places in each rank's context. */
static void test_order(void)
{
    struct fold_results found[3], due[2];
    const allfold_request old[2] = {begin(ALLFOLD_SUM), begin(ALLFOLD_SUM)};
    const int first = test.rank % 2;
    bool right = end(old[first], &found[2]) == ALLFOLD_OK;
    const allfold_request sum = begin(ALLFOLD_SUM);
    right = end(old[1 - first], &found[2]) == ALLFOLD_OK && right;
    const allfold_request max = begin(ALLFOLD_MAX);
    right = end(sum, &found[0]) == ALLFOLD_OK && end(max, &found[1]) == ALLFOLD_OK && right;
    at_once(ALLFOLD_SUM, &due[0]);
    at_once(ALLFOLD_MAX, &due[1]);
    tap_ok(all_ranks(right && same(&found[0], &due[0]) && same(&found[1], &due[1])), "ranks end folds in different orders, and begin two more");
}

/* Where results are delivered: a value and an index of each, in device memory if there is some. */
enum { DELIVERED = FOLD_RESULTS_MAX };
struct delivered_memory {
    double values[DELIVERED];
    int64_t indices[DELIVERED];
};

static allfold_status deliver(allfold_request request, struct delivered_memory *to, size_t count, bool indexed)
{
    allfold_output outputs[DELIVERED] = {{NULL, NULL}};
    for (size_t i = 0; i < count; i++)
        outputs[i] = (allfold_output){&to->values[i], indexed && (count == 1 || i == 5 || i == 6) ? &to->indices[i] : NULL};
    return allfold_reduce_deliver(test.ctx, request, &(allfold_outputs){outputs, count}, NULL);
}

/* What has been delivered: a fold in the same stream ends after it was stored there. */
static struct delivered_memory delivered(const struct delivered_memory *at)
{
    struct delivered_memory found;
    struct fold_results behind = {0};
    at_once(ALLFOLD_SUM, &behind);
    device_read(test.ctx, &found, at, sizeof found);
    return found;
}

/* Several folds are delivered, some of them exchanged before by the end of another; ends give the same. */
static void test_delivery(struct delivered_memory *at)
{
    const allfold_fold folds[] = {ALLFOLD_SUM, ALLFOLD_FOLD_COUNT, ALLFOLD_ARGMIN, ALLFOLD_STATS, ALLFOLD_LOGSUMEXP};
    for (int before = 0; before < 2; before++) {
        allfold_request requests[5], first = begin(ALLFOLD_MAX);
        struct fold_results found = {0}, due = {0};
        bool right = true;
        for (int i = 0; i < 5; i++)
            requests[i] = begin(folds[i]);
        if (before)
            must(end(first, &found) == ALLFOLD_OK, "end");
        for (int i = 4; i >= 0; i--)
            right = right && deliver(requests[i], at + i, folds[i] == ALLFOLD_STATS ? 10 : 1, i == 2 || i == 3) == ALLFOLD_OK;
        for (int i = 0; i < 5; i++) {
            right = right && end(requests[i], &found) == ALLFOLD_OK;
            at_once(folds[i], &due);
            right = right && same(&found, &due);
            const struct delivered_memory there = delivered(at + i);
            for (int k = 0; k < due.field_count; k++) {
                const bool is_count = due.field_count > 1 && k < 2, indexed = i == 2 || (i == 3 && (k == 5 || k == 6));
                right = right && memcmp(&there.values[k], &due.fields[k].value.u64, 8) == 0;
                right = right && (!indexed || (uint64_t)there.indices[k] == due.fields[k].index) && (!is_count || due.fields[k].value.kind != ALLFOLD_VALUE_F64);
            }
        }
        right = right && (before || end(first, &found) == ALLFOLD_OK);
        tap_ok(all_ranks(right), "results in device memory are those of the ends%s", before ? ", if an end has exchanged them" : "");
    }
}

/* Statistics of integers whose sum is delivered as int64, which cannot hold it, and without it. */
static void test_delivered_overflow(struct delivered_memory *at)
{
    enum { SUM = 2, MEAN = 3, COUNT = 4 };
    static const int64_t large[] = {INT64_C(1) << 62, INT64_C(1) << 62, INT64_C(1) << 62};
    for (int with_sum = 0; with_sum < 2; with_sum++) {
        const allfold_array part = {large, 3, ALLFOLD_INT64};
        allfold_output outputs[COUNT] = {[SUM] = {.values = with_sum ? &at->values[SUM] : NULL}, [MEAN] = {.values = &at->values[MEAN]}};
        allfold_request request = 0;
        struct fold_results found = {0};
        must(allfold_reduce_begin(test.ctx, ALLFOLD_STATS, &part, NULL, &request) == ALLFOLD_OK, "begin");
        bool right = allfold_reduce_deliver(test.ctx, request, &(allfold_outputs){outputs, COUNT}, NULL) == ALLFOLD_OK;
        const double mean = delivered(at).values[MEAN];
        const allfold_status status = end(request, &found);
        right = right && (with_sum ? status == ALLFOLD_OVERFLOW && isnan(mean) : status == ALLFOLD_OK && mean == 0x1p62);
        tap_ok(all_ranks(right), "statistics are delivered %s: %s", with_sum ? "with a sum that does not fit" : "without a sum that does not fit",
               status == ALLFOLD_OK ? "done" : allfold_message(test.ctx));
    }
}

/* The status on every rank, and then a fold that works. */
static void must_be(const char *what, bool right)
{
    struct fold_results found = {0}, due = {0};
    const bool works = end(begin(ALLFOLD_SUM), &found) == ALLFOLD_OK;
    at_once(ALLFOLD_SUM, &due);
    tap_ok(all_ranks(right && works && same(&found, &due)), "%s", what);
}

static void test_errors(int failing)
{
    const bool bad = test.rank == failing;
    const allfold_status wrong = ALLFOLD_BAD_ARGUMENT;
    const allfold_array odd = {(const char *)test.x + 1, 3, ALLFOLD_F64}, right = test.of_x;
    struct fold_results found;
    allfold_request first, second;
    must(allfold_reduce_begin(test.ctx, ALLFOLD_SUM, bad ? &odd : &right, NULL, &first) == ALLFOLD_OK, "begin");
    second = begin(ALLFOLD_MAX);
    bool all = end(second, &found) == wrong && strstr(allfold_message(test.ctx), "not aligned") != NULL;
    all = end(first, &found) == wrong && all;
    must_be("one rank begins with a wrong argument: folds that share the exchange fail", all);

    if (bad)
        must(allfold_fail_begin(test.ctx, ALLFOLD_NO_MEMORY, "no room", &first) == ALLFOLD_OK, "begin");
    else
        first = begin(ALLFOLD_SUM);
    second = begin(ALLFOLD_MAX);
    all = end(first, &found) == ALLFOLD_NO_MEMORY && strstr(allfold_message(test.ctx), "no room") != NULL;
    all = end(second, &found) == ALLFOLD_NO_MEMORY && all;
    must_be("one rank could not begin", all);

    first = begin(ALLFOLD_SUM);
    all = end(bad ? 12345 : first, &found) == wrong && strstr(allfold_message(test.ctx), "not open") != NULL;
    all = all && (!bad || end(first, &found) == wrong);
    must_be("one rank ends what is not open", all);

    first = begin(ALLFOLD_SUM);
    all = end(first, &found) == ALLFOLD_OK;
    all = end(first, &found) == wrong && end(0, &found) == wrong && all;
    must_be("ended twice", all);

    first = begin(bad ? ALLFOLD_MAX : ALLFOLD_SUM);
    second = begin(bad ? ALLFOLD_SUM : ALLFOLD_MAX);
    all = end(first, &found) == wrong && strstr(allfold_message(test.ctx), "different calls") != NULL;
    all = (end(second, &found) == wrong && all) || test.size == 1;
    must_be("begun in different orders", all);

    first = begin(ALLFOLD_SUM);
    second = bad ? begin(ALLFOLD_MAX) : 0;
    all = end(first, &found) == wrong;
    second = bad ? second : begin(ALLFOLD_MAX);
    const allfold_status status = end(second, &found);
    must_be("one rank begins another before the end of the first", (status == wrong && all) || test.size == 1);

    allfold_request many[BEGUN_MOST], more = 7;
    for (int i = 0; i < BEGUN_MOST; i++)
        many[i] = begin(ALLFOLD_SUM);
    all = allfold_reduce_begin(test.ctx, ALLFOLD_SUM, &right, NULL, &more) == wrong && more == 0
          && strstr(allfold_message(test.ctx), "16 folds are begun") != NULL;
    for (int i = BEGUN_MOST; i-- > 0;)
        all = end(many[i], &found) == ALLFOLD_OK && all;
    must_be("sixteen folds, and no more", all);

    allfold_result one[1];
    allfold_results room = {.results = one, .capacity = 1};
    first = begin(ALLFOLD_STATS);
    must_be("no room for the results", allfold_reduce_end(test.ctx, first, &room) == wrong);
    must_be("no request", allfold_reduce_begin(test.ctx, ALLFOLD_SUM, &right, NULL, NULL) == wrong);
}

/* One rank's mistakes fail the fold on all, and none waits. */
static void test_delivery_errors(struct delivered_memory *at, int failing)
{
    const bool bad = test.rank == failing;
    const allfold_status wrong = ALLFOLD_BAD_ARGUMENT;
    struct fold_results found;
    const allfold_array odd = {(const char *)test.x + 1, 3, ALLFOLD_F64}, right = test.of_x;
    allfold_request first;
    must(allfold_reduce_begin(test.ctx, ALLFOLD_ARGMAX, bad ? &odd : &right, NULL, &first) == ALLFOLD_OK, "begin");
    bool all = deliver(first, at, 1, true) == ALLFOLD_OK && end(first, &found) == wrong
               && strstr(allfold_message(test.ctx), "not aligned") != NULL;
    const struct delivered_memory nothing = delivered(at);
    all = all && isnan(nothing.values[0]) && nothing.indices[0] == -1;
    must_be("a fold that failed on one rank is delivered as NaN, its index as -1", all);

    first = begin(ALLFOLD_SUM);
    const allfold_status status = bad ? allfold_reduce_deliver(test.ctx, first, NULL, NULL) : deliver(first, at, 1, false);
    all = status == (bad ? wrong : ALLFOLD_OK) && end(first, &found) == wrong && strstr(allfold_message(test.ctx), "NULL") != NULL;
    must_be("one rank has no outputs", all);

    first = bad ? 12345 : begin(ALLFOLD_SUM);
    all = deliver(first, at, 1, false) == (bad ? wrong : ALLFOLD_OK);
    all = all && (bad || (end(first, &found) == wrong && strstr(allfold_message(test.ctx), "not open") != NULL));
    must_be("one rank delivers what is not open", all);
    all = deliver(0, at, 1, false) == wrong;
    first = begin(ALLFOLD_SUM);
    all = all && deliver(first, at, 1, true) == wrong && end(first, &found) == wrong;
    must_be("an index of a sum", all);
    first = begin(ALLFOLD_SUM);
    all = deliver(first, at, 1, false) == ALLFOLD_OK && deliver(first, at, 1, false) == wrong && end(first, &found) == ALLFOLD_OK;
    must_be("delivered twice", all);
}

/* Ranks that share no memory cannot. */
static void test_delivery_refused(struct delivered_memory *at)
{
    struct fold_results found;
    const allfold_request first = begin(ALLFOLD_SUM);
    const bool all = deliver(first, at, 1, false) == ALLFOLD_UNSUPPORTED && strstr(allfold_message(test.ctx), "share memory") != NULL
                     && end(first, &found) == ALLFOLD_OK;
    must_be("ranks that share no memory", all);
}

static void test_deliveries(struct delivered_memory *at, bool supported)
{
    if (supported) {
        test_delivery(at);
        test_delivered_overflow(at);
    } else
        test_delivery_refused(at);
    for (int failing = 0; supported && failing < test.size; failing += test.size > 1 ? test.size - 1 : 1)
        test_delivery_errors(at, failing);
}

static void test_exchange(const char *backend, allfold_exchange exchange)
{
    test.ctx = open_or_skip(backend, (allfold_options){.threads = 2, .exchange = exchange});
    if (test.ctx == NULL)
        return;
    void *const device_x = device_block(test.ctx, sizeof test.x, 8), *const device_y = device_block(test.ctx, sizeof test.y, 8);
    device_write(test.ctx, device_x, test.x, sizeof test.x);
    device_write(test.ctx, device_y, test.y, sizeof test.y);
    for (int device = 0; device < 2; device++) {
        test.of_x = (allfold_array){device ? device_x : test.x, COUNT, ALLFOLD_F64};
        test.of_y = (allfold_array){device ? device_y : test.y, COUNT, ALLFOLD_F64};
        test_results();
        test_order();
    }
    struct delivered_memory *const at = device_block(test.ctx, 5 * sizeof *at, 8);
    test_deliveries(at, test.size == 1 || exchange == ALLFOLD_EXCHANGE_AUTO || !test.ctx->device->backend->own_memory);
    device_block_free(test.ctx, at, 8);
    for (int failing = 0; failing < test.size; failing += test.size > 1 ? test.size - 1 : 1)
        test_errors(failing);
    begin(ALLFOLD_SUM); /* and never ended: closing drops it */
    device_block_free(test.ctx, device_x, 8);
    device_block_free(test.ctx, device_y, 8);
    const int before = test.allreduces;
    allfold_close(test.ctx);
    tap_ok(all_ranks(test.allreduces == before), "closing exchanges nothing for a fold that has not ended");
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    test.rank = world_rank();
    test.size = world_size();
    for (uint64_t i = 0; i < COUNT; i++) {
        test.x[i] = unit_of(i + (uint64_t)test.rank * COUNT, 1) - 0.5;
        test.y[i] = unit_of(i + (uint64_t)test.rank * COUNT, 2) - 0.5;
    }
    for (int exchange = 0; exchange <= ALLFOLD_EXCHANGE_MPI; exchange++)
        test_exchange(argc > 1 ? argv[1] : "cpu", (allfold_exchange)exchange);
    const int failures = tap_done();
    MPI_Finalize();
    return failures;
}
