/* Failures in the middle of the work: of a source, a sink, or a function of the backend, along every way through the pipelines. */
#include "core/view.h"
#include "tests/failures/failures.h"

/* The ways through the pipelines that the planted failures are carried along. */
enum route { REDUCE_MEMORY, REDUCE_SOURCE, DOT_MEMORY, DOT_SOURCES, DOT_MIXED, SOFTMAX_MEMORY, LOG_SOFTMAX_MEMORY, SOFTMAX_TO_MEMORY, SOFTMAX_SOURCE, MANY_ARRAYS, SUM_AXIS, SOFTMAX_AXIS,
             SUM_APART, SOFTMAX_APART, ROUTE_COUNT };
static const char *const route_names[] = {"a sum of device memory",       "a sum of a source",
                                          "a dot product of device memory", "a dot product of sources",
                                          "a dot product of device memory and a source",
                                          "softmax of device memory",     "log-softmax of device memory",
                                          "softmax to device memory",     "softmax to a sink",
                                          "sums of many arrays",
                                          "sums along an axis that ranks cut", "softmax along an axis that ranks cut",
                                          "sums along axes that are not adjacent", "softmax along axes that are not adjacent"};

/* Rows of which each rank has a part. apart: in runs of 8. */
static allfold_status run_axis(bool softmax, bool apart, struct error *error)
{
    enum { ROWS = 3, LENGTH = 40 };
    struct layout layout = {.count = 3, .dimensions = {{LENGTH / 8, ROWS * 8, COORDINATE_AXIS}, {ROWS, 8, COORDINATE_OUTER}, {8, 1, COORDINATE_AXIS}}};
    const struct axis_input input = {.x = test.device_x, .box = {ROWS, LENGTH, 1, LENGTH, 1}, .type = ALLFOLD_F32, .cut = ALLFOLD_CUT_AXIS,
                                     .layout = apart ? &layout : NULL, .call = softmax, .outputs = softmax ? 0 : 1};
    double sums[ROWS];
    void *const outputs[RESULT_ARRAYS_MAX] = {sums};
    struct test_sink sink = sink_of(test.y, (struct range){0, COUNT}, ALLFOLD_F32);
    sink.sink.memory = test.device_y;
    if (softmax)
        return core_softmax_axis(test.ctx, false, &input, &sink.sink, error);
    return core_reduce_axis(test.ctx, &(struct fold_call){.fold = ALLFOLD_SUM}, &input, outputs, error);
}

/* So many that a device begins with some; the last lies in host memory. */
static allfold_status run_many(struct error *error)
{
    enum { MANY = 33 };
    allfold_array arrays[MANY] = {{test.device_x, COUNT, ALLFOLD_F32}};
    allfold_result sums[MANY];
    for (int i = 1; i < MANY; i++)
        arrays[i] = i + 1 < MANY ? (allfold_array){(float *)test.device_x + i, 1, ALLFOLD_F32} : (allfold_array){test.x, COUNT, ALLFOLD_F32};
    allfold_reduce_many(test.ctx, ALLFOLD_SUM, arrays, MANY, NULL, sums);
    *error = test.ctx->error;
    return error->status;
}

static allfold_status run_route(enum route route, struct error *error, int read_fails, int write_fails)
{
    if (route >= SUM_AXIS)
        return run_axis(route == SOFTMAX_AXIS || route == SOFTMAX_APART, route >= SUM_APART, error);
    if (route == MANY_ARRAYS)
        return run_many(error);
    const struct range part = {(uint64_t)test.rank * COUNT, COUNT};
    struct test_source source = source_of(test.x, part, ALLFOLD_F32);
    struct test_sink sink = sink_of(test.y, part, ALLFOLD_F32);
    struct test_source second = source_of(test.x, part, ALLFOLD_F32);
    const bool dot = route == DOT_MEMORY || route == DOT_SOURCES || route == DOT_MIXED;
    const struct job job = {
        .type = ALLFOLD_F32, .source = &source.filled.source, .second = dot ? &second.filled.source : NULL, .range = part};
    struct fold_results result;
    *(dot ? &second.fail_at : &source.fail_at) = read_fails;
    if (route == DOT_MEMORY)
        second.filled.source.memory = test.device_x;
    sink.fail_at = write_fails;
    if (route == REDUCE_MEMORY || route == DOT_MEMORY || route == DOT_MIXED || route == SOFTMAX_MEMORY || route == LOG_SOFTMAX_MEMORY)
        source.filled.source.memory = test.device_x;
    if (route == SOFTMAX_MEMORY || route == LOG_SOFTMAX_MEMORY || route == SOFTMAX_TO_MEMORY)
        sink.sink.memory = test.device_y;
    if (route == REDUCE_MEMORY || route == REDUCE_SOURCE || dot)
        core_reduce(test.ctx, &(struct fold_call){.fold = dot ? (allfold_fold)FOLD_DOT : ALLFOLD_SUM}, &job, &result, error);
    else
        core_softmax(test.ctx, route == LOG_SOFTMAX_MEMORY, &job, &sink.sink, error);
    const int calls[2] = {dot ? second.calls : source.calls, sink.calls};
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

void test_streams(void)
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
                must_fail(route_names[route], error.status, error.text,
                          &(struct due){ALLFOLD_IO_ERROR, writes ? "the sink fails as planned" : "the source fails as planned", true});
            }
}

void test_backend(enum operation operation)
{
    char text[64];
    const bool along_axis = operation >= IN_fold_axis && operation <= IN_copy_strided;
    snprintf(text, sizeof text, "%s fails as planned", operation_names[operation]);
    for (int route = along_axis ? SUM_AXIS : 0; route < ROUTE_COUNT; route++)
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
                must_fail(route_names[route], error.status, error.text, &(struct due){ALLFOLD_DEVICE_ERROR, text, true});
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
void test_two(void)
{
    struct error error = {0};
    planted.calls = 0;
    planted.at = 1;
    planted.operation = test.rank >= test.failing ? IN_fold : NOWHERE;
    run_route(REDUCE_SOURCE, &error, 0, 0);
    planted.operation = NOWHERE;
    must_fail("failures on several ranks", error.status, error.text,
              &(struct due){ALLFOLD_DEVICE_ERROR, "fold fails as planned", true});
    must_work("failures on several ranks");
}
