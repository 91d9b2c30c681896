/* Every result goes through MPI_Allreduce: this program has one of its own around MPI's, which keeps what a call gave, and gives
   it again in the next call, of other elements. All ranks must then find the first call's result. All folds and softmax, at both
   levels, through memory on one host and on hosts of two ranks, and through MPI alone. argv[1] names the backend. */
#include "tests/support.h"

enum { ELEMENTS = 100, CALLS_MOST = 4 };
static enum { PASS, KEEP, REPLAY } mode;
static struct {
    int bytes;
    unsigned char result[sizeof(struct partial) + 64];
} kept[CALLS_MOST];
static int calls; /* since the mode was set */
static bool pairs; /* hosts of two ranks */

int MPI_Comm_split_type(MPI_Comm comm, int type, int key, MPI_Info info, MPI_Comm *local)
{
    return pairs ? PMPI_Comm_split(comm, world_rank() / 2, key, local) : PMPI_Comm_split_type(comm, type, key, info, local);
}

int MPI_Allreduce(const void *send, void *receive, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm)
{
    const int code = PMPI_Allreduce(send, receive, count, type, op, comm);
    int size;
    if (mode == PASS)
        return code;
    MPI_Type_size(type, &size);
    must(calls < CALLS_MOST && size * count <= (int)sizeof kept[calls].result, "more calls than a fold should make, or longer");
    if (mode == KEEP) {
        kept[calls].bytes = size * count;
        memcpy(kept[calls].result, receive, (size_t)(size * count));
    } else if (kept[calls].bytes == size * count)
        memcpy(receive, kept[calls].result, (size_t)(size * count));
    calls++;
    return code;
}

/* x[i] = 1 + i mod 7 + more; softmax of them does not depend on more. */
static void fill(allfold_type type, double more, void *x)
{
    for (int i = 0; i < ELEMENTS; i++)
        element_put(type, x, (uint64_t)i, 1 + i % 7 + more);
}

static allfold_status fold(allfold_context *ctx, int which, allfold_type type, void *x, struct fold_results *found)
{
    const allfold_array part = {x, ELEMENTS, type};
    memset(found, 0, sizeof *found);
    calls = 0;
    const allfold_status status = which < ALLFOLD_FOLD_COUNT ? reduce_all(ctx, (allfold_fold)which, &part, NULL, found)
                                                             : allfold_softmax(ctx, &part, x, type, NULL);
    mode = PASS;
    return status;
}

static double value_of(allfold_type type, const void *x) { return type == ALLFOLD_F32 ? *(const float *)x : *(const double *)x; }

/* Whether the second call found what the first one did. Softmax: e times as much as it should be. */
static bool replayed(allfold_context *ctx, int which, allfold_type type)
{
    _Alignas(64) double x[ELEMENTS];
    struct fold_results first, second;
    bool good = true;
    fill(type, 0, x);
    mode = KEEP;
    good = fold(ctx, which, type, x, &first) == ALLFOLD_OK;
    const double y = value_of(type, x);
    const int expected = calls;
    fill(type, 1, x);
    mode = REPLAY;
    good = fold(ctx, which, type, x, &second) == ALLFOLD_OK && good && calls == expected;
    const bool joins = ctx->comm.hosts == 1 || (pairs ? world_rank() % 2 == 0 : ctx->comm.hosts == world_size());
    good = good && (joins ? calls > 0 : calls == 0);
    if (which == ALLFOLD_FOLD_COUNT) /* one rank may finish softmax on its device */
        return good && (world_size() == 1 || fabs(value_of(type, x) / y - exp(1)) < 1e-5);
    for (int i = 0; i < first.field_count; i++)
        good = good && first.fields[i].value.kind == second.fields[i].value.kind && first.fields[i].value.u64 == second.fields[i].value.u64;
    return good && first.count == second.count;
}

static void test_layout(const char *backend, allfold_exchange exchange, allfold_level level, const char *layout)
{
    if (tap.skipped)
        return;
    allfold_context *const ctx = open_or_skip(backend, (allfold_options){.exchange = exchange, .level = level, .threads = 1});
    int wrong = 0;
    if (ctx == NULL)
        return;
    for (int which = 0; which <= ALLFOLD_FOLD_COUNT; which++)
        for (int f64 = 0; f64 < 2; f64++)
            if (!replayed(ctx, which, f64 ? ALLFOLD_F64 : ALLFOLD_F32) && wrong++ == 0)
                printf("# rank %d: %s of %s\n", world_rank(), which < ALLFOLD_FOLD_COUNT ? allfold_fold_name((allfold_fold)which) : "softmax",
                       f64 ? "f64" : "f32");
    tap_ok(wrong == 0, "%s, level %s, %d hosts: results are those of MPI_Allreduce", layout,
           level == ALLFOLD_LEVEL_EXACT ? "exact" : "fast", ctx->comm.hosts);
    allfold_close(ctx);
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    must(argc == 2, "usage: test_allreduce BACKEND");
    for (int level = ALLFOLD_LEVEL_EXACT; level <= ALLFOLD_LEVEL_FAST; level++) {
        test_layout(argv[1], ALLFOLD_EXCHANGE_AUTO, (allfold_level)level, "one host");
        test_layout(argv[1], ALLFOLD_EXCHANGE_MPI, (allfold_level)level, "MPI alone");
        pairs = true;
        test_layout(argv[1], ALLFOLD_EXCHANGE_AUTO, (allfold_level)level, "hosts of two ranks");
        pairs = false;
    }
    const int status = tap_done();
    MPI_Finalize();
    return status;
}
