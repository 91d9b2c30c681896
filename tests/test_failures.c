/* One rank fails and no rank may wait for it: all get the same status and the same message, which names the rank, and the
   context works again. Failures are planted in arguments, sources, sinks, and in every function of the backend, at its
   first, second, ... call until one is no longer reached; on the first, a middle and the last rank. */
#include "tests/support.h"

#include <unistd.h>

/* The library links with this file's backend_choose, which wraps what the real one chooses. */
#define backend_choose real_backend_choose
#include "device/backends.c"
#undef backend_choose

#define OPERATIONS(X) \
    X(open) X(locate) X(allocate) X(queues_open) X(enter) X(follow) X(upload) X(download) X(fold) X(softmax_begin) \
    X(softmax_partial) X(softmax_finish) X(normalise) X(wait)
#define ENUM(name) IN_##name,
enum operation { NOWHERE, OPERATIONS(ENUM) OPERATION_COUNT };
#undef ENUM
#define NAME(name) #name,
static const char *const operation_names[] = {"nowhere", OPERATIONS(NAME)};
#undef NAME

/* The failure that is planted on this rank: in an operation's call number `at`, from 1. */
static struct {
    const struct backend *real;
    struct backend faulty;
    enum operation operation;
    int calls, at;
} planted;

static bool strikes(enum operation operation, struct error *error)
{
    if (planted.operation != operation || ++planted.calls != planted.at)
        return false;
    error_set(error, ALLFOLD_DEVICE_ERROR, "%s fails as planned", operation_names[operation]);
    return true;
}

#define FAULTY(name, arguments, ...)                               \
    static allfold_status faulty_##name(__VA_ARGS__, struct error *error) \
    {                                                              \
        return strikes(IN_##name, error) ? error->status : planted.real->name arguments; \
    }
FAULTY(locate, (device, memory, place, error), struct device *device, const void *memory, enum place *place)
FAULTY(allocate, (device, bytes, memory, error), struct device *device, size_t bytes, void **memory)
FAULTY(queues_open, (device, bytes, count, queues, error), struct device *device, size_t bytes, int count, struct queue **queues)
FAULTY(enter, (queue, stream, error), struct queue *queue, void *stream)
FAULTY(follow, (queue, stream, error), struct queue *queue, void *stream)
FAULTY(upload, (queue, from, to, bytes, error), struct queue *queue, const void *from, void *to, size_t bytes)
FAULTY(download, (queue, from, bytes, host, error), struct queue *queue, const void *from, size_t bytes,
       const void **host)
FAULTY(fold, (queue, work, error), struct queue *queue, const struct work *work)
FAULTY(softmax_begin, (queue, work, single_rank, error), struct queue *queue, const struct softmax_work *work, bool single_rank)
FAULTY(softmax_partial, (queue, error), struct queue *queue)
FAULTY(softmax_finish, (queue, constants, error), struct queue *queue, const struct softmax_constants *constants)
FAULTY(normalise, (queue, work, constants, error), struct queue *queue, const struct softmax_work *work,
       const struct softmax_constants *constants)
FAULTY(wait, (queue, error), struct queue *queue)

static allfold_status faulty_open(int local_rank, int local_size, const allfold_options *options, struct device **device,
                                  struct error *error)
{
    if (strikes(IN_open, error) || planted.real->open(local_rank, local_size, options, device, error) != ALLFOLD_OK)
        return error->status;
    (*device)->backend = &planted.faulty;
    return ALLFOLD_OK;
}

allfold_status backend_choose(allfold_backend choice, const struct backend **backend, struct error *error)
{
    if (real_backend_choose(choice, &planted.real, error) != ALLFOLD_OK)
        return error->status;
    planted.faulty = *planted.real;
#define REPLACE(name) planted.faulty.name = faulty_##name;
    OPERATIONS(REPLACE)
#undef REPLACE
    *backend = &planted.faulty;
    return ALLFOLD_OK;
}

/* A GPU keeps one shard between the passes of softmax. */
enum { SHARD = 4096 / sizeof(float), COUNT = 3 * SHARD + 17 }; /* elements of each rank: four shards */

static struct {
    allfold_context *ctx;
    allfold_backend backend;
    int rank, size, failing;
    float x[COUNT], y[COUNT];
    void *device_x, *device_y; /* the same in device memory */
    char fault[400]; /* the first since the last report */
    int failures;    /* seen since then */
} test;

__attribute__((format(printf, 1, 2))) static void found(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    if (test.fault[0] == '\0')
        vsnprintf(test.fault, sizeof test.fault, format, arguments);
    va_end(arguments);
}

/* One check for all that happened since the last. */
static void report(const char *what)
{
    const int failures = test.failures;
    char fault[sizeof test.fault];
    const int bad = tap_first_failing(test.fault[0] == '\0');
    tap_ok(bad < 0 && failures > 0, "%s (%d failures)", what, failures);
    if (bad >= 0) {
        memcpy(fault, test.fault, sizeof fault);
        MPI_Bcast(fault, sizeof fault, MPI_BYTE, bad, MPI_COMM_WORLD);
        tap_note("%s", fault);
    }
    test.fault[0] = '\0';
    test.failures = 0;
}

/* The context is as good as new: all ranks' elements, 0, 1, 2, ..., are summed. */
static void must_work(const char *after)
{
    allfold_result sum;
    const double n = COUNT * (double)test.size;
    if (allfold_reduce(test.ctx, ALLFOLD_SUM, &(allfold_array){test.x, COUNT, ALLFOLD_F32}, NULL, &sum) != ALLFOLD_OK)
        found("after %s a sum fails: %s", after, allfold_message(test.ctx));
    else if (sum.value.f64 != n * (n - 1) / 2 || sum.count != (uint64_t)n)
        found("after %s a sum is %.17g", after, sum.value.f64);
}

/* status and message: the same on all ranks, those expected; *one_rank: the message must name test.failing. */
static void must_fail(const char *what, allfold_status status, const char *message, allfold_status expected,
                      const char *text, bool one_rank)
{
    uint64_t hashes[2] = {(uint64_t)status, bytes_hash(HASH_START, message, strlen(message))};
    char prefix[32];
    snprintf(prefix, sizeof prefix, "rank %d on ", test.failing);
    if (first_difference(hashes, 2) >= 0)
        found("%s: not the same on all ranks: rank %d has %s (%s)", what, test.rank, allfold_status_text(status),
              message);
    else if (status != expected || strstr(message, text) == NULL)
        found("%s: %s (%s), where %s (%s) was due", what, allfold_status_text(status), message,
              allfold_status_text(expected), text);
    else if (one_rank && test.size > 1 && strncmp(message, prefix, strlen(prefix)) != 0)
        found("%s: \"%s\" does not begin with \"%s\"", what, message, prefix);
    test.failures++;
}

/* A call that one rank gets wrong. */
struct wrong {
    const char *text;
    allfold_fold fold;
    allfold_array part;
    allfold_call call;
    bool null_part, null_result, softmax, null_y, no_size;
    size_t capacity; /* not 0: through allfold_reduce_all, with room for so many results */
    allfold_type y_type;
    size_t y_offset;
    allfold_status status;
};

static void run_wrong(const struct wrong *w)
{
    static const allfold_array right = {test.x, COUNT, ALLFOLD_F32};
    const bool wrong = test.rank == test.failing;
    const allfold_array *const part = !wrong ? &right : w->null_part ? NULL : &w->part;
    allfold_call call = wrong ? w->call : (allfold_call){0};
    allfold_result results[FOLD_RESULTS_MAX];
    allfold_results all = {.results = results, .capacity = wrong ? w->capacity : FOLD_RESULTS_MAX};
    allfold_status status;
    call.size = wrong && w->call.size != 0 ? w->call.size : sizeof call;
    if (wrong && w->no_size)
        call.size = 0;
    void *const y = !wrong ? test.y : w->null_y ? NULL : (void *)((char *)test.y + w->y_offset);
    if (w->softmax)
        status = allfold_softmax(test.ctx, part, y, wrong ? w->y_type : ALLFOLD_F32, &call);
    else if (w->capacity > 0)
        status = allfold_reduce_all(test.ctx, ALLFOLD_STATS, part, &call, wrong && w->null_result ? NULL : &all);
    else
        status = allfold_reduce(test.ctx, wrong ? w->fold : ALLFOLD_SUM, part, &call,
                                wrong && w->null_result ? NULL : results);
    if (w->status == ALLFOLD_OK && status != ALLFOLD_OK)
        found("%s: %s", w->text, allfold_message(test.ctx));
    else if (w->status != ALLFOLD_OK)
        must_fail("a wrong argument", status, allfold_message(test.ctx), w->status, w->text, true);
    must_work(w->text);
}

static void test_arguments(void)
{
    const void *const odd = (const char *)test.x + 1;
    const allfold_array right = {test.x, COUNT, ALLFOLD_F32};
    const allfold_status bad = ALLFOLD_BAD_ARGUMENT;
    const struct wrong wrongs[] = {
        {.text = "the array is NULL", .null_part = true, .status = bad},
        {.text = "data is NULL", .part = {NULL, 3, ALLFOLD_F32}, .status = bad},
        {.text = "no element type: expected .type", .part = {.data = test.x, .count = 3}, .status = bad},
        {.text = "no element type: expected .type", .part = {0}, .status = bad},
        {.text = "element type 99", .part = {test.x, 3, (allfold_type)99}, .status = bad},
        {.text = "element type -1", .part = {test.x, 3, (allfold_type)-1}, .status = bad},
        {.text = "not aligned", .part = {odd, 3, ALLFOLD_F32}, .status = bad},
        {.text = "an empty part's data is not looked at", .part = {odd, COUNT, ALLFOLD_F32}, .status = ALLFOLD_OK},
        {.text = "larger than any memory", .part = {test.x, UINT64_MAX / 2, ALLFOLD_F32}, .status = bad},
        {.text = "fold 99", .part = right, .fold = (allfold_fold)99, .status = bad},
        {.text = "fold -1", .part = right, .fold = (allfold_fold)-1, .status = bad},
        {.text = "always propagates NaN", .part = right, .call = {.nan = ALLFOLD_NAN_OMIT}, .status = bad},
        {.text = "NaN policy 7", .part = right, .fold = ALLFOLD_MIN, .call = {.nan = (allfold_nan)7}, .status = bad},
        {.text = "result is NULL", .part = right, .null_result = true, .status = bad},
        {.text = "results are f16, bf16, f32 or f64, not int32", .part = right, .call = {.result_type = ALLFOLD_INT32}, .status = bad},
        {.text = "logarithm is for softmax", .part = right, .call = {.logarithm = 1}, .status = bad},
        {.text = "allfold_call.size is 0", .part = right, .no_size = true, .status = bad},
        {.text = "allfold_call.size is 7", .part = right, .call = {.size = 7}, .status = bad},
        {.text = "allfold_call.size is 99999", .part = right, .call = {.size = 99999}, .status = bad},
        {.text = "stats has up to 10 results, found room for 1", .part = right, .fold = ALLFOLD_STATS, .status = bad},
        {.text = "stats has up to 10 results, found room for 9", .part = right, .capacity = 9, .status = bad},
        {.text = "the results are NULL", .part = right, .capacity = 10, .null_result = true, .status = bad},
        {.text = "an empty part, and all statistics", .part = right, .capacity = 12, .status = ALLFOLD_OK},
        {.text = "the array is NULL", .softmax = true, .null_part = true, .y_type = ALLFOLD_F32, .status = bad},
        {.text = "output is NULL", .softmax = true, .part = right, .null_y = true, .y_type = ALLFOLD_F32, .status = bad},
        {.text = "not aligned", .softmax = true, .part = right, .y_type = ALLFOLD_F32, .y_offset = 2, .status = bad},
        {.text = "not int32", .softmax = true, .part = right, .y_type = ALLFOLD_INT32, .status = bad},
        {.text = "not no type", .softmax = true, .part = right, .y_type = (allfold_type)99, .status = bad},
        {.text = "expected no allfold_call.nan", .softmax = true, .part = right, .call = {.nan = ALLFOLD_NAN_OMIT}, .status = bad},
        {.text = "softmax takes y_type", .softmax = true, .part = right, .call = {.result_type = ALLFOLD_F32}, .status = bad},
        {.text = "not int32", .softmax = true, .part = {test.x, 3, ALLFOLD_INT32}, .status = bad},
        {.text = "y_type is that of the part", .softmax = true, .part = right, .status = ALLFOLD_OK},
        {.text = "at most 2^41 exponentials", .softmax = true, .part = {test.x, (UINT64_C(1) << 41) + 1, ALLFOLD_INT8},
         .call = {.logarithm = 1}, .y_type = ALLFOLD_F32, .status = ALLFOLD_UNSUPPORTED},
        {.text = "a CUDA stream", .part = right, .call = {.stream = test.x}, .status = bad},
    };
    const size_t count = sizeof wrongs / sizeof *wrongs - (test.backend == ALLFOLD_BACKEND_CPU ? 0 : 1);
    for (size_t i = 0; i < count; i++) {
        struct wrong w = wrongs[i];
        if (w.status == ALLFOLD_OK)
            w.part.count = 0;
        run_wrong(&w);
    }
}

/* What a rank may do while the others do something else. */
enum activity {
    SUM, SUM_TO_F32, MEAN, MAX, MIN, MIN_OMIT, SUM_F64, SUM_EMPTY_F64, LOGSUMEXP, SOFTMAX, LOG_SOFTMAX, SOFTMAX_F16, SOFTMAX_F64
};

static allfold_status act(enum activity activity)
{
    static double wide[COUNT], wide_y[COUNT];
    static const allfold_fold folds[] = {
        [SUM] = ALLFOLD_SUM, [SUM_TO_F32] = ALLFOLD_SUM, [MEAN] = ALLFOLD_MEAN, [MAX] = ALLFOLD_MAX, [MIN] = ALLFOLD_MIN, [MIN_OMIT] = ALLFOLD_MIN,
        [SUM_F64] = ALLFOLD_SUM, [SUM_EMPTY_F64] = ALLFOLD_SUM, [LOGSUMEXP] = ALLFOLD_LOGSUMEXP};
    const allfold_array x = {test.x, COUNT, ALLFOLD_F32}, x_f64 = {wide, COUNT, ALLFOLD_F64};
    const allfold_array empty = {NULL, 0, ALLFOLD_F64};
    const allfold_call call = {.size = sizeof call, .nan = activity == MIN_OMIT ? ALLFOLD_NAN_OMIT : ALLFOLD_NAN_PROPAGATE,
                               .logarithm = activity == LOG_SOFTMAX,
                               .result_type = activity == SUM_TO_F32 ? ALLFOLD_F32 : ALLFOLD_TYPE_NONE};
    allfold_result result;
    if (activity < SOFTMAX)
        return allfold_reduce(test.ctx, folds[activity],
                              activity == SUM_F64 ? &x_f64 : activity == SUM_EMPTY_F64 ? &empty : &x, &call, &result);
    const allfold_type y_type = activity == SOFTMAX_F16   ? ALLFOLD_F16
                                : activity == SOFTMAX_F64 ? ALLFOLD_F64
                                                          : ALLFOLD_F32;
    return allfold_softmax(test.ctx, &x, wide_y, y_type, &call);
}

static void test_disagreement(void)
{
    static const struct {
        enum activity one, others;
    } pairs[] = {{SUM, MAX}, {SUM, SUM_TO_F32}, {SUM, MEAN}, {MIN, MIN_OMIT}, {SUM, SUM_F64}, {SUM_EMPTY_F64, SUM}, {LOGSUMEXP, SOFTMAX},
                 {SOFTMAX, LOGSUMEXP}, {SOFTMAX, LOG_SOFTMAX}, {SOFTMAX_F16, SOFTMAX}, {SOFTMAX, SOFTMAX_F64},
                 {SOFTMAX, SUM}, {MEAN, SOFTMAX_F64}, {SOFTMAX_F64, LOGSUMEXP}};
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        const allfold_status status = act(test.rank == test.failing ? pairs[i].one : pairs[i].others);
        must_fail("different calls", status, allfold_message(test.ctx), ALLFOLD_BAD_ARGUMENT, "different calls", false);
        must_work("different calls");
    }
}

/* The ways through the pipelines that the planted failures are carried along. */
enum route { REDUCE_MEMORY, REDUCE_SOURCE, SOFTMAX_MEMORY, LOG_SOFTMAX_MEMORY, SOFTMAX_TO_MEMORY, SOFTMAX_SOURCE, ROUTE_COUNT };
static const char *const route_names[] = {"a sum of device memory",       "a sum of a source",
                                          "softmax of device memory",     "log-softmax of device memory",
                                          "softmax to device memory",     "softmax to a sink"};

static allfold_status run_route(enum route route, struct error *error, int read_fails, int write_fails)
{
    const struct range part = {(uint64_t)test.rank * COUNT, COUNT};
    struct test_source source = source_of(test.x, part, ALLFOLD_F32);
    struct test_sink sink = sink_of(test.y, part, ALLFOLD_F32);
    const struct job job = {.type = ALLFOLD_F32, .source = &source.filled.source, .range = part};
    struct fold_results result;
    source.fail_at = read_fails;
    sink.fail_at = write_fails;
    if (route == REDUCE_MEMORY || route == SOFTMAX_MEMORY || route == LOG_SOFTMAX_MEMORY)
        source.filled.source.memory = test.device_x;
    if (route == SOFTMAX_MEMORY || route == LOG_SOFTMAX_MEMORY || route == SOFTMAX_TO_MEMORY)
        sink.sink.memory = test.device_y;
    if (route == REDUCE_MEMORY || route == REDUCE_SOURCE)
        core_reduce(test.ctx, &(struct fold_call){.fold = ALLFOLD_SUM}, &job, &result, error);
    else
        core_softmax(test.ctx, route == LOG_SOFTMAX_MEMORY, &job, &sink.sink, error);
    const int calls[2] = {source.calls, sink.calls};
    planted.calls = read_fails > 0 ? calls[0] : write_fails > 0 ? calls[1] : planted.calls;
    return error->status;
}

/* Whether what was planted on the failing rank was reached: all ranks must know, to go on together. */
static bool was_reached(int at)
{
    int reached = planted.calls >= at;
    MPI_Bcast(&reached, 1, MPI_INT, test.failing, MPI_COMM_WORLD);
    return reached != 0;
}

static void test_streams(void)
{
    for (int route = 0; route < ROUTE_COUNT; route++)
        for (int writes = 0; writes < 2; writes++)
            for (int at = 1; at < 100; at++) {
                struct error error = {0};
                const int mine = test.rank == test.failing ? at : 0;
                planted.calls = 0;
                run_route((enum route)route, &error, writes ? 0 : mine, writes ? mine : 0);
                must_work(route_names[route]);
                if (!was_reached(at)) {
                    if (error.status != ALLFOLD_OK)
                        found("%s fails without a failure: %s", route_names[route], error.text);
                    break;
                }
                must_fail(route_names[route], error.status, error.text, ALLFOLD_IO_ERROR,
                          writes ? "the sink fails as planned" : "the source fails as planned", true);
            }
}

static void test_backend(enum operation operation)
{
    char text[64];
    snprintf(text, sizeof text, "%s fails as planned", operation_names[operation]);
    for (int route = 0; route < ROUTE_COUNT; route++)
        for (int at = 1; at < 100; at++) {
            struct error error = {0};
            planted.calls = 0;
            planted.at = at;
            planted.operation = test.rank == test.failing ? operation : NOWHERE;
            run_route((enum route)route, &error, 0, 0);
            planted.operation = NOWHERE;
            must_work(route_names[route]);
            const bool reached = was_reached(at);
            if (reached && operation != IN_allocate) { /* what cannot be kept on the device is read again */
                must_fail(route_names[route], error.status, error.text, ALLFOLD_DEVICE_ERROR, text, true);
                continue;
            }
            test.failures += reached;
            if (error.status != ALLFOLD_OK)
                found("%s fails without a failure: %s", route_names[route], error.text);
            if (!reached)
                break;
        }
}

/* Several ranks fail together: the lowest is named. */
static void test_two(void)
{
    struct error error = {0};
    planted.calls = 0;
    planted.at = 1;
    planted.operation = test.rank >= test.failing ? IN_fold : NOWHERE;
    run_route(REDUCE_SOURCE, &error, 0, 0);
    planted.operation = NOWHERE;
    must_fail("failures on several ranks", error.status, error.text, ALLFOLD_DEVICE_ERROR, "fold fails as planned", true);
    must_work("failures on several ranks");
}

static void must_not_open(const allfold_options *options, allfold_status expected, const char *text)
{
    static char nothing;
    allfold_context *ctx = (allfold_context *)(void *)&nothing;
    char message[ALLFOLD_ERROR_BYTES];
    const allfold_status status = allfold_open(MPI_COMM_WORLD, options, &ctx, message, sizeof message);
    must_fail("allfold_open", status, message, expected, text, true);
    if (ctx != NULL)
        found("allfold_open fails and yet gives a context");
}

/* What is right on each rank, and not the same on all. */
static void test_choices(allfold_options options)
{
    allfold_context *mixed = NULL;
    char message[ALLFOLD_ERROR_BYTES] = "";
    options.level = test.rank == test.failing ? ALLFOLD_LEVEL_EXACT : ALLFOLD_LEVEL_FAST;
    allfold_status status = allfold_open(MPI_COMM_WORLD, &options, &mixed, message, sizeof message);
    must_fail("allfold_open at two levels", status, message, ALLFOLD_BAD_ARGUMENT, "ask for level exact", false);
    options.level = ALLFOLD_LEVEL_EXACT;
    options.exchange = test.rank == test.failing ? ALLFOLD_EXCHANGE_AUTO : ALLFOLD_EXCHANGE_MPI;
    status = allfold_open(MPI_COMM_WORLD, &options, &mixed, message, sizeof message);
    must_fail("allfold_open with two exchanges", status, message, ALLFOLD_BAD_ARGUMENT, "ask for exchange mpi", false);
}

/* The queues that elements stream through are opened by the first call that needs them. */
static void test_lazy_queues(const allfold_options *options)
{
    allfold_context *const first = test.ctx;
    test.ctx = open_or_skip(options->backend == ALLFOLD_BACKEND_CUDA ? "cuda" : "cpu", *options);
    must(test.ctx != NULL, "no context");
    test_backend(IN_queues_open);
    allfold_close(test.ctx);
    test.ctx = first;
}

static void test_open(void)
{
    const allfold_options right = {.size = sizeof right, .backend = test.backend, .staging_bytes = 4096};
    for (int operation = IN_open; operation <= IN_queues_open; operation += IN_queues_open - IN_open) {
        char text[64];
        snprintf(text, sizeof text, "%s fails as planned", operation_names[operation]);
        planted.calls = 0;
        planted.at = 1;
        planted.operation = test.rank == test.failing ? (enum operation)operation : NOWHERE;
        must_not_open(&right, ALLFOLD_DEVICE_ERROR, text);
        planted.operation = NOWHERE;
    }
    test_lazy_queues(&right);
    allfold_options other = right;
    if (test.rank == test.failing)
        other.backend = (allfold_backend)7;
    must_not_open(&other, ALLFOLD_BAD_ARGUMENT, "backend 7");
    other = right;
    if (test.rank == test.failing)
        other.exchange = (allfold_exchange)7;
    must_not_open(&other, ALLFOLD_BAD_ARGUMENT, "exchange 7");
    other = right;
    if (test.rank == test.failing)
        other.staging_bytes = UINT64_MAX - 255; /* rounding it up to lines of memory would wrap */
    must_not_open(&other, ALLFOLD_NO_MEMORY, "staging buffers");
    other = right;
    if (test.rank == test.failing)
        other.device_memory = UINT64_MAX;
    must_not_open(&other, ALLFOLD_NO_MEMORY, "device memory");
    other = right;
    if (test.rank == test.failing)
        other.threads = INT32_MAX;
    must_not_open(&other, ALLFOLD_BAD_ARGUMENT, "threads: expected 1 to 4096");
    other = right;
    if (test.rank == test.failing)
        other.level = (allfold_level)7;
    must_not_open(&other, ALLFOLD_BAD_ARGUMENT, "level 7");
    if (test.size > 1)
        test_choices(right);
    other = right;
    struct error why = {0};
    if (backend_cuda.visible(&why) == 0) {
        if (test.rank == test.failing)
            other.backend = ALLFOLD_BACKEND_CUDA;
        must_not_open(&other, ALLFOLD_UNSUPPORTED, "no CUDA device to use");
    }
    static const size_t sizes[] = {0, 8, 99999};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        other = right;
        if (test.rank == test.failing)
            other.size = sizes[i];
        must_not_open(&other, ALLFOLD_BAD_ARGUMENT, "expected sizeof(allfold_options)");
    }
    /* a later version's options, of which this library knows all that are set, and one of which it does not */
    struct {
        allfold_options known;
        uint64_t later;
    } longer = {right, test.rank == test.failing};
    longer.known.size = sizeof longer;
    must_not_open(&longer.known, ALLFOLD_UNSUPPORTED, "allfold_options sets a field that allfold");
    longer.later = 0;
    allfold_context *ctx = NULL;
    if (allfold_open(MPI_COMM_WORLD, &longer.known, &ctx, NULL, 0) != ALLFOLD_OK)
        found("allfold_open no longer succeeds");
    allfold_close(ctx);
    must_work("opening another context");
}

/* Runs a test with the failure on the first, a middle and the last rank. */
static void on_ranks(void (*run)(void), const char *what)
{
    const int ranks[] = {0, test.size / 2, test.size - 1};
    for (int i = 0; i < 3; i++) {
        test.failing = ranks[i];
        if (i == 0 || ranks[i] != ranks[i - 1])
            run();
    }
    report(what);
}

static enum operation current;
static void test_current(void) { test_backend(current); }

int main(int argc, char **argv)
{
    alarm(60); /* a hang must not outlive this */
    MPI_Init(&argc, &argv);
    const char *const backend = argc > 1 ? argv[1] : "cpu";
    MPI_Comm_rank(MPI_COMM_WORLD, &test.rank);
    MPI_Comm_size(MPI_COMM_WORLD, &test.size);
    test.backend = strcmp(backend, "cuda") == 0 ? ALLFOLD_BACKEND_CUDA : ALLFOLD_BACKEND_CPU;
    for (int i = 0; i < COUNT; i++)
        test.x[i] = (float)(test.rank * COUNT + i);
    test.ctx = open_or_skip(backend, (allfold_options){.threads = 1, .staging_bytes = 4096, .device_memory = 4 * 4096, .level = ALLFOLD_LEVEL_FAST});
    if (test.ctx != NULL) {
        test.device_x = device_block(test.ctx, sizeof test.x, sizeof *test.x);
        test.device_y = device_block(test.ctx, sizeof test.y, sizeof *test.y);
        device_write(test.ctx, test.device_x, test.x, sizeof test.x);
        on_ranks(test_arguments, "wrong arguments on one rank");
        if (test.size > 1)
            on_ranks(test_disagreement, "one rank calls something else");
        else
            tap_skip("one rank calls something else: there is no other");
        on_ranks(test_streams, "a read or a write fails");
        for (current = IN_locate; current < OPERATION_COUNT; current = (enum operation)(current + 1)) {
            char what[64];
            snprintf(what, sizeof what, "the backend fails in %s", operation_names[current]);
            if (current == IN_queues_open)
                continue;
            if (current == IN_softmax_partial && test.size == 1) /* one rank exchanges none */
                continue;
            if (current == IN_upload && !test.ctx->device->backend->own_memory)
                tap_skip("upload: this backend works on the host's memory");
            else if (current == IN_allocate && test.ctx->device->memory == 0)
                tap_skip("allocate: this backend keeps nothing between the passes");
            else
                on_ranks(test_current, what);
        }
        on_ranks(test_two, "several ranks fail together");
        on_ranks(test_open, "allfold_open fails on one rank");
        allfold_context *const fast = test.ctx;
        test.ctx = open_or_skip(backend, (allfold_options){.threads = 1, .staging_bytes = 4096, .device_memory = 1 << 20,
                                                           .level = ALLFOLD_LEVEL_EXACT});
        must(test.ctx != NULL, "no context at level exact");
        on_ranks(test_arguments, "level exact: wrong arguments on one rank");
        if (test.size > 1)
            on_ranks(test_disagreement, "level exact: one rank calls something else");
        on_ranks(test_streams, "level exact: a read or a write fails");
        allfold_close(test.ctx);
        test.ctx = fast;
        device_block_free(test.ctx, test.device_x, sizeof *test.x);
        device_block_free(test.ctx, test.device_y, sizeof *test.y);
        allfold_close(test.ctx);
    }
    const int status = tap_done();
    MPI_Finalize();
    return status;
}
