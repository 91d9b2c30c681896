/* One rank fails and no rank may wait for it: all get the same status and the same message, which names the rank, and the
   context works again. Failures are planted in arguments (failures/calls.c), in allfold_open (open.c), in sources, sinks and every function
   of the backend (pipelines.c), at its first, second, ... call until one is no longer reached; on the first, a middle and the last rank. */
#include "tests/failures/failures.h"

struct test test;

void found(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    if (test.fault[0] == '\0')
        vsnprintf(test.fault, sizeof test.fault, format, arguments);
    va_end(arguments);
}

void must_work(const char *after)
{
    allfold_result sum;
    const double n = COUNT * (double)test.size;
    if (allfold_reduce(test.ctx, ALLFOLD_SUM, &(allfold_array){test.x, COUNT, ALLFOLD_F32}, NULL, &sum) != ALLFOLD_OK)
        found("after %s a sum fails: %s", after, allfold_message(test.ctx));
    else if (sum.value.f64 != n * (n - 1) / 2 || sum.count != (uint64_t)n)
        found("after %s a sum is %.17g", after, sum.value.f64);
}

void must_fail(const char *what, allfold_status status, const char *message, const struct due *due)
{
    uint64_t hashes[2] = {(uint64_t)status, bytes_hash(HASH_START, message, strlen(message))};
    char prefix[32];
    snprintf(prefix, sizeof prefix, "rank %d on ", test.failing);
    if (first_difference(hashes, 2) >= 0)
        found("%s: not the same on all ranks: rank %d has %s (%s)", what, test.rank, allfold_status_text(status),
              message);
    else if (status != due->status || strstr(message, due->text) == NULL)
        found("%s: %s (%s), where %s (%s) was due", what, allfold_status_text(status), message,
              allfold_status_text(due->status), due->text);
    else if (due->one_rank && test.size > 1 && strncmp(message, prefix, strlen(prefix)) != 0)
        found("%s: \"%s\" does not begin with \"%s\"", what, message, prefix);
    test.failures++;
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

/* Runs a test with the failure on the first, a middle and the last rank. */
static void on_ranks(void (*run)(void), const char *what)
{
    const int ranks[] = {0, test.size / 2, test.size - 1};
    if (!tap_wanted("%s", what))
        return;
    for (int i = 0; i < 3; i++) {
        test.failing = ranks[i];
        if (i == 0 || ranks[i] != ranks[i - 1])
            run();
    }
    report(what);
}

static enum operation current;
static void test_current(void) { test_backend(current); }

static void test_operations(void)
{
    for (current = IN_locate; current < OPERATION_COUNT; current = (enum operation)(current + 1)) {
        char what[64];
        snprintf(what, sizeof what, "the backend fails in %s", operation_names[current]);
        if (current == IN_queues_open)
            continue; /* test_open has it */
        if (!operation_exists(current))
            tap_skip("%s: this backend has none", operation_names[current]);
        else if (current == IN_allocate && test.ctx->device->memory == 0)
            tap_skip("allocate: this backend keeps nothing between the passes");
        else
            on_ranks(test_current, what);
    }
}

/* What depends on the level: the length of the records that are exchanged. */
static void test_level(const char *level)
{
    char what[80];
    snprintf(what, sizeof what, "%sone rank calls something else", level);
    if (test.size > 1)
        on_ranks(test_disagreement, what);
    else
        tap_skip("%s: there is no other", what);
    snprintf(what, sizeof what, "%sa read or a write fails", level);
    on_ranks(test_streams, what);
}

static void test_all(const char *backend)
{
    allfold_context *const fast = test.ctx;
    test.device_x = device_block(test.ctx, sizeof test.x, sizeof *test.x);
    test.device_y = device_block(test.ctx, sizeof test.y, sizeof *test.y);
    device_write(test.ctx, test.device_x, test.x, sizeof test.x);
    on_ranks(test_arguments, "wrong arguments on one rank");
    test_level("");
    test_operations();
    on_ranks(test_two, "several ranks fail together");
    on_ranks(test_open, "allfold_open fails on one rank");
    test.ctx = open_or_skip(backend, (allfold_options){.threads = 1, .staging_bytes = 4096, .device_memory = 1 << 20,
                                                       .level = ALLFOLD_LEVEL_EXACT});
    must(test.ctx != NULL, "no context at level exact");
    test_level("level exact: ");
    allfold_close(test.ctx);
    test.ctx = fast;
    device_block_free(test.ctx, test.device_x, sizeof *test.x);
    device_block_free(test.ctx, test.device_y, sizeof *test.y);
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    const char *const backend = argc > 1 ? argv[1] : "cpu";
    MPI_Comm_rank(MPI_COMM_WORLD, &test.rank);
    MPI_Comm_size(MPI_COMM_WORLD, &test.size);
    test.backend = backend_named(backend);
    for (int i = 0; i < COUNT; i++)
        test.x[i] = (float)(test.rank * COUNT + i);
    test.ctx = open_or_skip(backend, (allfold_options){.threads = 1, .staging_bytes = 4096, .device_memory = 4 * 4096,
                                                       .level = ALLFOLD_LEVEL_FAST});
    if (test.ctx != NULL) {
        test_all(backend);
        allfold_close(test.ctx);
    }
    const int status = tap_done();
    MPI_Finalize();
    return status;
}
