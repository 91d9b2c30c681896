/* A context that one rank cannot open, and choices in which the ranks differ. */
#include "tests/failures/failures.h"

static void must_not_open(const allfold_options *options, allfold_status expected, const char *text)
{
    static char nothing;
    allfold_context *ctx = (allfold_context *)(void *)&nothing;
    char message[ALLFOLD_ERROR_BYTES];
    const allfold_status status = allfold_open(MPI_COMM_WORLD, options, &ctx, message, sizeof message);
    must_fail("allfold_open", status, message, &(struct due){expected, text, true});
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
    must_fail("allfold_open at two levels", status, message, &(struct due){ALLFOLD_BAD_ARGUMENT, "ask for level exact", false});
    options.level = ALLFOLD_LEVEL_EXACT;
    options.exchange = test.rank == test.failing ? ALLFOLD_EXCHANGE_AUTO : ALLFOLD_EXCHANGE_MPI;
    status = allfold_open(MPI_COMM_WORLD, &options, &mixed, message, sizeof message);
    must_fail("allfold_open with two exchanges", status, message, &(struct due){ALLFOLD_BAD_ARGUMENT, "ask for exchange mpi", false});
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

/* The failing rank opens with `wrong`, the others with `right`. */
static void must_refuse(const allfold_options *right, const allfold_options *wrong, allfold_status expected, const char *text)
{
    must_not_open(test.rank == test.failing ? wrong : right, expected, text);
}

static void test_options(const allfold_options *right)
{
    static const size_t sizes[] = {0, 8, 99999};
    struct error why = {0};
    allfold_options wrong = *right;
    wrong.backend = (allfold_backend)7;
    must_refuse(right, &wrong, ALLFOLD_BAD_ARGUMENT, "backend 7");
    wrong = *right;
    wrong.exchange = (allfold_exchange)7;
    must_refuse(right, &wrong, ALLFOLD_BAD_ARGUMENT, "exchange 7");
    wrong = *right;
    wrong.staging_bytes = UINT64_MAX - 255; /* rounding it up to lines of memory would wrap */
    must_refuse(right, &wrong, ALLFOLD_NO_MEMORY, "staging buffers");
    wrong = *right;
    wrong.device_memory = UINT64_MAX;
    must_refuse(right, &wrong, ALLFOLD_NO_MEMORY, "device memory");
    wrong = *right;
    wrong.threads = INT32_MAX;
    must_refuse(right, &wrong, ALLFOLD_BAD_ARGUMENT, "threads: expected 1 to 4096");
    wrong = *right;
    wrong.level = (allfold_level)7;
    must_refuse(right, &wrong, ALLFOLD_BAD_ARGUMENT, "level 7");
    wrong = *right;
    wrong.backend = ALLFOLD_BACKEND_CUDA;
    if (backend_cuda.visible(&why).count == 0)
        must_refuse(right, &wrong, ALLFOLD_UNSUPPORTED, "no CUDA device to use");
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        wrong = *right;
        wrong.size = sizes[i];
        must_refuse(right, &wrong, ALLFOLD_BAD_ARGUMENT, "expected sizeof(allfold_options)");
    }
}

/* A later version's options, of which this library knows all that are set, and one of which it does not. */
static void test_later_options(const allfold_options *right)
{
    allfold_context *ctx = NULL;
    struct {
        allfold_options known;
        uint64_t later;
    } longer = {*right, test.rank == test.failing};
    longer.known.size = sizeof longer;
    must_not_open(&longer.known, ALLFOLD_UNSUPPORTED, "allfold_options sets a field that allfold");
    longer.later = 0;
    if (allfold_open(MPI_COMM_WORLD, &longer.known, &ctx, NULL, 0) != ALLFOLD_OK)
        found("allfold_open no longer succeeds");
    allfold_close(ctx);
}

/* test.ctx has made its device the thread's current one. Contexts of one rank, and of the other ranks, work there if one of these devices
   is not device 0. */
static void test_device(const allfold_options *options)
{
    allfold_context *ctx = NULL;
    char message[ALLFOLD_ERROR_BYTES];
    MPI_Comm some;
    int last;
    must_work("the context before");
    const struct device_info before = test.ctx->device->info;
    MPI_Comm_split(MPI_COMM_WORLD, test.rank == test.failing, 0, &some);
    MPI_Allreduce(&before.index, &last, 1, MPI_INT, MPI_MAX, some);
    must(allfold_open(some, options, &ctx, message, sizeof message) == ALLFOLD_OK, message);
    const int index = ctx->device->info.index;
    if (index != (last > 0 ? before.index : ctx->comm.local_rank % before.visible))
        found("device %d is current, but local rank %d of some ranks works on %d", before.index, ctx->comm.local_rank, index);
    allfold_close(ctx);
    MPI_Comm_free(&some);
}

void test_open(void)
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
    test_options(&right);
    if (test.size > 1)
        test_choices(right);
    test_later_options(&right);
    test_device(&right);
    must_work("opening another context");
}
