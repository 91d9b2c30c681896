/* The ladder: the classic reduction kernels for learning, each one idea faster than the last, checked and measured on the user's
   GPU. Called by src/cli/commands/ladder.c. C, without CUDA and without MPI. The library, libladder.a, belongs to the program: the
   engine (libcore.a) never links it.

   To add a rung: one file that defines it (rung.cuh, softmax.h, lines.h), a line in its list below, and its name in local.mk. To
   add an experiment: one function of the type ladder_run, and a line in LADDER_EXPERIMENTS (ladder_experiments.h). */
#pragma once

#include "measure/gpu.h"
#include "measure/table.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The rungs, from the ground up: X(ID, name, idea). */
#define LADDER_RUNGS(X)                                                                                    \
    X(host_recursion, "host-recursion", "pairs, on one CPU thread")                                        \
    X(neighboured, "neighboured", "global memory; thread t adds its neighbour")                            \
    X(neighboured_packed, "neighboured-packed", "global memory; working threads side by side")             \
    X(interleaved, "interleaved", "global memory; stride from half the block down")                        \
    X(unrolled_global, "unrolled-global", "global memory; loop unrolled, last warp apart")                 \
    X(modulo, "modulo", "shared memory; thread t adds its neighbour")                                      \
    X(strided_index, "strided-index", "shared memory; working threads side by side")                       \
    X(sequential, "sequential", "shared memory; stride from half the block down")                          \
    X(first_add, "first-add", "each thread adds two as it loads")                                          \
    X(last_warp, "last-warp", "no block barrier below 32 threads")                                         \
    X(unrolled, "unrolled", "block size known to the compiler")                                            \
    X(four_blocks, "four-blocks", "four loads in flight a thread")                                         \
    X(four_blocks_dynamic, "four-blocks-dynamic", "shared memory's size given at launch")                  \
    X(many_elements, "many-elements", "grid-stride loop, one wave of blocks")                              \
    X(shuffles, "shuffles", "warps add through registers")                                                 \
    X(engine, "engine", "vector loads, many in flight, one launch: allfold itself")                        \
    X(cub, "cub", "the library everybody has: the yardstick")

#define LADDER_SOFTMAX_RUNGS(X)                                                                               \
    X(one_block, "one-block", "three kernels of one block: maximum; exponentials and their sum; division")    \
    X(many_blocks, "many-blocks", "the same three over the whole GPU, partials reduced by launches between")   \
    X(fused, "fused", "maximum and sum in one pass; the exponentials made again when they are written")       \
    X(engine, "engine", "allfold's two kernels: tiles, vectors, backwards through the second pass")

/* Sums along the rows of a matrix, and along its columns. */
#define LADDER_ROW_RUNGS(X)                                                                      \
    X(thread_a_row, "thread-a-row", "a thread walks along a row, its neighbours along others")   \
    X(block_a_row, "block-a-row", "a block a row, a tree in shared memory")                      \
    X(warp_a_row, "warp-a-row", "a warp a row, shuffles, no barrier")                            \
    X(row_vectors, "row-vectors", "loads of 16 bytes, four in flight")                           \
    X(rows_a_warp, "rows-a-warp", "short rows share a warp")                                     \
    X(split_rows, "split-rows", "long rows are split over blocks, partials summed as rows again") \
    X(row_engine, "engine", "the shape decides how many threads take a row: allfold itself")
#define LADDER_COLUMN_RUNGS(X)                                                                      \
    X(block_a_column, "block-a-column", "a block a column, as is right for rows")                   \
    X(thread_a_column, "thread-a-column", "a thread a column: neighbours read neighbours")          \
    X(column_vectors, "column-vectors", "a thread takes four columns in one load, four in flight")  \
    X(split_columns, "split-columns", "columns are split over blocks, partials summed as columns again") \
    X(column_engine, "engine", "threads side by side and below one another: allfold itself")

struct ladder_rung {
    const char *name, *idea;
};
struct ladder_rung_list {
    const struct ladder_rung *rungs;
    int count;
};
extern const struct ladder_rung_list ladder_rungs, ladder_softmax_rungs, ladder_row_rungs, ladder_column_rungs;

struct ladder_shape {
    uint64_t rows, columns;
};

/* What one table is asked to be about. */
struct ladder_request {
    allfold_type type; /* ALLFOLD_INT32, ALLFOLD_F32 or ALLFOLD_F64 */
    allfold_fold fold; /* ALLFOLD_SUM or ALLFOLD_MAX */
    uint64_t count;
    int block;         /* threads: 64, 128, 256, 512 or 1024 */
    int rung;          /* of the topic's; -1: all */
    uint64_t columns;  /* of the matrix, coalescing only; 0: as many as rows, or nearly */
    int part;          /* of the topic's parts */
    struct ladder_shape shape; /* of the matrix, for topics that have shapes; count is its elements */
};

/* Fills one empty table, on this rank's GPU, with the same columns and as many rows on all ranks. */
typedef allfold_status ladder_run(struct gpu *gpu, const struct ladder_request *request, struct table *table, struct error *error);

ladder_run ladder_rungs_run, ladder_softmax_run, ladder_rows_run, ladder_columns_run;

/* Run rungs without timing them. Each result is compared with the oracle, and the input with its original contents. *table, made by
   ladder_check_begin, collects the findings of all calls. */
ladder_run ladder_rungs_check, ladder_rows_check, ladder_columns_check;

/* What `allfold ladder TOPIC` may name; the first, without a name, is the ladder itself. */
enum { LADDER_TAKES_TYPE = 1, LADDER_TAKES_FOLD = 2, LADDER_TAKES_BLOCK = 4, LADDER_TAKES_RUNG = 8,
       LADDER_TAKES_COLUMNS = 16, LADDER_TAKES_CHECK = 32 };
struct ladder_topic {
    const char *name;   /* "" for the ladder itself */
    const char *text;   /* what it shows, one line */
    const struct ladder_rung_list *rungs; /* NULL: it has none */
    unsigned takes;     /* which options are valid; the others must not be given */
    int parts;          /* tables it makes for each combination asked for: request.part is 0 .. parts - 1 */
    const char *counts; /* default of --count: "2^24,2^28"; NULL: it has shapes instead */
    const char *shapes; /* default of --shape: "2^18,2^10 2^8,2^20" */
    ladder_run *run;    /* NULL where the machine cannot, */
    ladder_run *check;  /* as this, which is also NULL without LADDER_TAKES_CHECK */
};

/* What runs the topics. The program's own has GPUs, or in a build without CUDA nothing that opens. Another, of the same name, is in a
   shared object that the program loads where there is no GPU: the emulation (tests/emulation/machine.cpp). */
struct ladder_machine {
    const char *version; /* of allfold, on which all that follows depends */
    const struct ladder_topic *topics;
    int topic_count;
    const char *check_counts, *check_shapes; /* defaults of --count and --shape with --check */
    allfold_status (*open)(int local_rank, struct gpu **gpu, struct error *error);
    void (*close)(struct gpu *gpu);
    const struct gpu_device *(*device)(const struct gpu *gpu);
};
extern const struct ladder_machine ladder_machine;

/* The empty table of a check. */
void ladder_check_begin(struct table *table);
/* Counts a check of a rung in its row. why: NULL or empty if it was right; of several failures the first is kept. */
allfold_status ladder_check_note(struct table *table, const struct ladder_rung *rung, const char *why, struct error *error);

#ifdef __cplusplus
}
#endif
