/* What `allfold ladder TOPIC` may name. In every build, also in one without CUDA. */
#include "kernels/ladder/ladder.h"
#include "kernels/ladder/ladder_experiments.h"

#ifdef ALLFOLD_HAVE_CUDA
#define RUN(function) function
#else
#define RUN(function) NULL
#endif

enum { ALL = LADDER_TAKES_TYPE | LADDER_TAKES_FOLD | LADDER_TAKES_BLOCK | LADDER_TAKES_RUNG };

const struct ladder_topic ladder_topics[] = {
    {"", "every rung over the same elements", ALL, 1, "2^24,2^28", RUN(ladder_rungs_run)},
    {"softmax", "from three kernels of one block to the engine's two", 0, 1, "2^24,2^28", RUN(ladder_softmax_run)},
#define ROW(ID, takes, parts, counts, text) {#ID, text, takes, parts, counts, RUN(ladder_##ID)},
    LADDER_EXPERIMENTS(ROW)
#undef ROW
};
const int ladder_topic_count = sizeof ladder_topics / sizeof *ladder_topics;
