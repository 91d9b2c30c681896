/* Folds and softmax along axes of sources in chunks, each of which has more results than a piece has room for: chunks are decoded once, and
   results are those of a source that is not in chunks. */
#include "tests/support.h"

#include "array/kept_chunks.h"
#include "core/pieces.h"

#include <limits.h>

enum { DIMENSIONS = 3, SHARD = 16 << 10 };

/* Elements by their index, some of them missing; in chunks, or one behind the other. */
struct chunked {
    struct source source;
    struct chunking chunking;
    struct chunk_grid grids[2];
    bool in_chunks, holes, fails; /* the first chunk */
    atomic_int *reads; /* of each chunk */
};

static double value_at(uint64_t index) { return (double)(index * 2654435761u % 1000003) * 0.37 - 1e5; }
static bool is_there(const struct chunked *c, uint64_t index) { return !c->holes || index * 40503u % 7 != 3; }

static allfold_status read_chunked(struct reader *reader, const struct read_request *request, struct piece *piece, struct error *error)
{
    struct chunked *const c = (struct chunked *)reader->source;
    double *const x = request->buffer;
    uint64_t *const kept = (uint64_t *)request->buffer + request->range.count, run, count = request->range.count;
    if (c->in_chunks) {
        const uint64_t number = request->range.first / c->source.granule;
        if (c->fails && number == 0)
            return error_set(error, ALLFOLD_IO_ERROR, "a chunk fails as planned");
        atomic_fetch_add(&c->reads[number], 1);
        count = chunking_box(&c->chunking, number).elements;
    }
    *piece = (struct piece){.elements = x};
    memset(kept, 0, (count + 63) / 64 * 8);
    for (uint64_t i = 0; i < count; i++) {
        const uint64_t position = request->range.first + i, index = c->in_chunks ? chunking_index(&c->chunking, position, &run) : position;
        kept[i / 64] |= (uint64_t)is_there(c, index) << i % 64;
        x[piece->count] = value_at(index);
        piece->count += is_there(c, index);
    }
    if (piece->count < count)
        piece->kept = kept;
    return ALLFOLD_OK;
}

static uint64_t product(const uint64_t *extents, int first, int end)
{
    uint64_t of_all = 1;
    for (int i = first; i < end; i++)
        of_all *= extents[i];
    return of_all;
}

static const struct the_case {
    const char *what;
    uint64_t shape[DIMENSIONS], chunk[DIMENSIONS];
    uint32_t axis;
    bool softmax, holes;
    int most; /* times that a chunk is decoded; 0: as often as the log says */
    uint64_t rows; /* of the first of two files; 0: there is one */
} cases[] = {
    {"whole rows", {6, 1, 40000}, {2, 1, 40000}, 0, false, false, 1, 0},
    {"whole rows, some with holes", {5, 60, 300}, {3, 7, 300}, 1, false, true, 1, 0},
    {"rows that are longer than a slab", {700, 1, 800}, {2, 1, 800}, 0, false, false, 1, 0},
    {"long rows with holes", {640, 1, 800}, {3, 1, 799}, 0, false, true, 1, 0},
    {"too many results for their partials", {200, 1, 3000}, {2, 1, 3000}, 0, false, false, 0, 0},
    {"softmax of whole rows", {60, 2, 2500}, {2, 1, 2500}, 0, true, false, 1, 0},
    {"softmax of long rows", {150, 1, 5000}, {2, 1, 5000}, 0, true, false, 2, 0},
    {"two files, the first of which ends in a chunk", {61, 4, 100}, {4, 2, 50}, 2, false, false, 1, 29},
};

/* Returns how many chunks it has. */
static uint64_t make_source(struct chunked *c, const struct the_case *the, bool in_chunks)
{
    static const uint64_t first[DIMENSIONS];
    const uint64_t granule = in_chunks ? product(the->chunk, 0, DIMENSIONS) : 1;
    uint64_t shape[DIMENSIONS];
    *c = (struct chunked){.source = {.read = read_chunked, .type = ALLFOLD_F64, .granule = granule, .leaves_out = the->holes},
                          .chunking = {.dimensions = DIMENSIONS, .granule = granule, .grid_count = the->rows > 0 ? 2 : 1, .grids = c->grids},
                          .in_chunks = in_chunks, .holes = the->holes};
    memcpy(shape, the->shape, sizeof shape);
    memcpy(c->chunking.shape, shape, sizeof shape);
    c->source.chunking = in_chunks ? &c->chunking : NULL;
    if (the->rows == 0)
        return chunk_grid_make(c->grids, DIMENSIONS, shape, first, the->chunk);
    shape[0] = the->rows;
    const uint64_t before = chunk_grid_make(&c->grids[0], DIMENSIONS, shape, first, the->chunk);
    shape[0] = the->shape[0] - the->rows;
    const uint64_t behind = chunk_grid_make(&c->grids[1], DIMENSIONS, shape, first, the->chunk);
    c->grids[1].rows = (struct range){the->rows, shape[0]};
    c->grids[1].before = before;
    return before + behind;
}

static int logged; /* how often chunks are decoded, as the log says */
static void take_line(void *user, const char *line)
{
    (void)user;
    sscanf(line, "chunks are decoded %d times", &logged);
}

/* Statistics, or softmax, and what they leave on all ranks, in so many arrays. */
enum { ARRAYS = 4 };
static uint64_t *run(allfold_context *ctx, const struct the_case *c, struct chunked *source)
{
    struct source *kept = &source->source; /* with two files around it one that keeps chunks */
    const uint64_t count = product(c->shape, 0, DIMENSIONS);
    const struct range all = {0, count};
    struct axis_array array = {.source = NULL, .type = ALLFOLD_F64, .outer = product(c->shape, 0, (int)c->axis), .length = c->shape[c->axis],
                               .inner = product(c->shape, (int)c->axis + 1, DIMENSIONS), .omits = c->holes,
                               .shape = {c->shape, DIMENSIONS, UINT64_C(1) << c->axis, false}};
    uint64_t *const results = calloc(ARRAYS * count, sizeof *results);
    struct error error = {0};
    must(results != NULL && (c->rows == 0 || !source->in_chunks || kept_chunks_open("two files", &kept, &error) == ALLFOLD_OK), "memory");
    kept->borrows = true;
    array.source = kept;
    struct test_sink sinks[ARRAYS];
    for (int i = 0; i < ARRAYS; i++)
        sinks[i] = sink_of(results + (uint64_t)i * count, all, i == 1 ? ALLFOLD_INT64 : ALLFOLD_F64);
    struct sink *const wanted[RESULT_ARRAYS_MAX] = {[8] = &sinks[0].sink, [10] = &sinks[2].sink, [11] = &sinks[1].sink, [16] = &sinks[3].sink};
    const struct fold_call call = {.fold = ALLFOLD_STATS, .level = ALLFOLD_LEVEL_EXACT};
    if (c->softmax)
        core_softmax_stream(ctx, false, &array, &sinks[0].sink, &error);
    else
        core_reduce_stream(ctx, &call, &array, wanted, &error);
    if (source->fails)
        tap_ok(error.status == ALLFOLD_IO_ERROR && strstr(error.text, "as planned") != NULL, "%s: a chunk that one rank cannot read fails on all", c->what);
    else
        must(error.status == ALLFOLD_OK, error.text);
    if (kept != &source->source)
        source_close(kept);
    MPI_Allreduce(MPI_IN_PLACE, results, (int)(ARRAYS * count), MPI_UINT64_T, MPI_MAX, MPI_COMM_WORLD);
    return results;
}

static void check(allfold_context *ctx, const struct the_case *c, const char *exchange)
{
    const uint64_t count = product(c->shape, 0, DIMENSIONS);
    struct chunked source, plain;
    const int chunks = (int)make_source(&source, c, true);
    int *const reads = calloc((size_t)chunks, sizeof *reads), least = INT_MAX, most = 0;
    make_source(&plain, c, false);
    source.reads = calloc((size_t)chunks, sizeof *source.reads);
    must(reads != NULL && source.reads != NULL, "memory");
    logged = 0;
    uint64_t *const found = run(ctx, c, &source), *const expected = run(ctx, c, &plain);
    for (int i = 0; i < chunks; i++)
        reads[i] = atomic_load(&source.reads[i]);
    MPI_Allreduce(MPI_IN_PLACE, reads, chunks, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    for (int i = 0; i < chunks; i++) {
        least = reads[i] < least ? reads[i] : least;
        most = reads[i] > most ? reads[i] : most;
    }
    tap_ok(memcmp(found, expected, ARRAYS * count * sizeof *found) == 0, "%s, %s: the results of a source that is not in chunks", c->what, exchange);
    tap_ok(least >= 1 && (c->most > 0 ? most <= c->most + (c->rows > 0 && world_size() > 1) && logged == 0 : most == (world_size() == 1 ? logged : 1) && (world_size() > 1 || logged > 1)), "%s, %s: each chunk is decoded %d to %d times",
           c->what, exchange, least, most);
    source.fails = true;
    free(run(ctx, c, &source));
    free(found);
    free(expected);
    free(reads);
    free(source.reads);
}

int main(int argc, char **argv)
{
    allfold_options options = ALLFOLD_OPTIONS_INIT;
    (void)argc;
    options.staging_bytes = SHARD;
    options.log = take_line;
    MPI_Init(NULL, NULL);
    for (int i = 0; i < 2 && (i == 0 || world_size() > 1); i++) { /* ranks share slabs, or exchange partials */
        options.exchange = i == 0 ? ALLFOLD_EXCHANGE_AUTO : ALLFOLD_EXCHANGE_MPI;
        allfold_context *const ctx = open_or_skip(argv[1], options);
        for (size_t k = 0; ctx != NULL && k < sizeof cases / sizeof *cases; k++)
            check(ctx, &cases[k], i == 0 ? "exchange auto" : "exchange mpi");
        if (ctx != NULL)
            allfold_close(ctx);
    }
    const int status = tap_done();
    MPI_Finalize();
    return status;
}
