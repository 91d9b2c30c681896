/* Lists the topics of `allfold ladder TOPIC`, and what runs them. Compiled twice: for the program, and with LADDER_EMULATED for the
   emulation, which is some hundred thousand times slower than a GPU, and whose speed says nothing: it runs the rungs at small sizes,
   and no experiments. */
#include "kernels/ladder/ladder.h"
#include "kernels/ladder/ladder_experiments.h"

#ifdef LADDER_EMULATED
#define SIZES(gpu, emulation) emulation
#define RUN(function) function
#define RUN_ON_GPU(function) NULL
#else
#define SIZES(gpu, emulation) gpu
#define RUN RUN_ON_GPU
#ifdef ALLFOLD_HAVE_CUDA
#define RUN_ON_GPU(function) function
#else
#define RUN_ON_GPU(function) NULL
#endif
#endif

enum { ALL = LADDER_TAKES_TYPE | LADDER_TAKES_FOLD | LADDER_TAKES_BLOCK | LADDER_TAKES_RUNG | LADDER_TAKES_CHECK };

/* Short, middling and long rows; wide and tall matrices for columns: as many elements each. */
#define COUNTS SIZES("2^24,2^28", "2^12,2^20")
#define ROW_SHAPES SIZES("2^23,2^5 2^18,2^10 2^8,2^20", "2^15,2^5 2^10,2^10 2^2,2^18")
#define COLUMN_SHAPES SIZES("2^10,2^18 2^18,2^10", "2^6,2^14 2^14,2^6")

/* --check: every length up to two warps and more, lengths up to several levels of small blocks, and two of many levels. */
#define CHECK_COUNTS SIZES("0-70,71-4200:59,1048576,16777217", "0-70,71-4200:59,65537")
/* Empty ones, single lines, lengths around all by which the rungs cut, and lines that are split once and twice. */
#define CHECK_SHAPES                                                                                                              \
    "0,0 0,5 5,0 1,1 1,31 1,33 31,1 33,1 2,3 3,2 100,4 99,5 70,8 65,9 33,16 31,31 32,33 33,32 31,64 7,65 1000,37 37,1000 37,1001 " \
    "3,4096 5,4097 3,8193 129,255 128,1024 257,1025 300,2051 " SIZES("1,16777217 16777217,1", "1,65537 65537,1")

static const struct ladder_topic topics[] = {
    {"", "every rung over the same elements", &ladder_rungs, ALL, 1, COUNTS, NULL, RUN(ladder_rungs_run), RUN(ladder_rungs_check)},
    {"softmax", "from three kernels of one block to the engine's two", &ladder_softmax_rungs, 0, 1, COUNTS, NULL,
     RUN(ladder_softmax_run), NULL},
    {"rows", "sums along the rows of a matrix, short and long", &ladder_row_rungs, LADDER_TAKES_RUNG | LADDER_TAKES_CHECK, 1, NULL,
     ROW_SHAPES, RUN(ladder_rows_run), RUN(ladder_rows_check)},
    {"columns", "sums along the columns of a matrix, wide and tall", &ladder_column_rungs, LADDER_TAKES_RUNG | LADDER_TAKES_CHECK, 1,
     NULL, COLUMN_SHAPES, RUN(ladder_columns_run), RUN(ladder_columns_check)},
#define ROW(ID, takes, parts, counts, text) {#ID, text, NULL, takes, parts, counts, NULL, RUN_ON_GPU(ladder_##ID), NULL},
    LADDER_EXPERIMENTS(ROW)
#undef ROW
};
__attribute__((visibility("default"))) const struct ladder_machine ladder_machine = {
    ALLFOLD_VERSION, topics, sizeof topics / sizeof *topics, CHECK_COUNTS, CHECK_SHAPES, gpu_open, gpu_close, gpu_device_of,
};
