/* Lists the topics of `allfold ladder TOPIC`. In every build, also in one without CUDA. */
#include "kernels/ladder/ladder.h"
#include "kernels/ladder/ladder_experiments.h"

#ifdef ALLFOLD_HAVE_CUDA
#define RUN(function) function
#else
#define RUN(function) NULL
#endif

enum { ALL = LADDER_TAKES_TYPE | LADDER_TAKES_FOLD | LADDER_TAKES_BLOCK | LADDER_TAKES_RUNG | LADDER_TAKES_CHECK };

/* Short, middling and long rows; wide and tall matrices for columns: as many elements each. */
#define ROW_SHAPES "2^23,2^5 2^18,2^10 2^8,2^20"
#define COLUMN_SHAPES "2^10,2^18 2^18,2^10"

const struct ladder_topic ladder_topics[] = {
    {"", "every rung over the same elements", &ladder_rungs, ALL, 1, "2^24,2^28", NULL, RUN(ladder_rungs_run), RUN(ladder_rungs_check)},
    {"softmax", "from three kernels of one block to the engine's two", &ladder_softmax_rungs, 0, 1, "2^24,2^28", NULL,
     RUN(ladder_softmax_run), NULL},
    {"rows", "sums along the rows of a matrix, short and long", &ladder_row_rungs, LADDER_TAKES_RUNG | LADDER_TAKES_CHECK, 1, NULL,
     ROW_SHAPES, RUN(ladder_rows_run), RUN(ladder_rows_check)},
    {"columns", "sums along the columns of a matrix, wide and tall", &ladder_column_rungs, LADDER_TAKES_RUNG | LADDER_TAKES_CHECK, 1,
     NULL, COLUMN_SHAPES, RUN(ladder_columns_run), RUN(ladder_columns_check)},
#define ROW(ID, takes, parts, counts, text) {#ID, text, NULL, takes, parts, counts, NULL, RUN(ladder_##ID), NULL},
    LADDER_EXPERIMENTS(ROW)
#undef ROW
};
const int ladder_topic_count = sizeof ladder_topics / sizeof *ladder_topics;
