/* Lists the commands. */
#include "cli/commands/commands.h"

#include "cli/commands/option_rows.h"
#include "core/pieces.h"
#include "fold/rows.h"

enum {
    INPUT_OPTIONS = OPTIONS_TYPE | OPTIONS_RAW | OPTIONS_SLICE | OPTIONS_MISSING | OPTIONS_LEVEL | OPTIONS_CHECKPOINT | OPTIONS_DEVICE
                    | OPTIONS_COMMON,
    FOLD_OPTIONS = INPUT_OPTIONS | OPTIONS_NAN | OPTIONS_PARTIAL | OPTIONS_RESULT_TYPE | OPTIONS_AXIS | OPTIONS_ROWS | OPTIONS_VALUES
                   | OPTIONS_DDOF | OPTIONS_WEIGHTS | OPTIONS_MANY,
    SOFTMAX_OPTIONS = INPUT_OPTIONS | OPTIONS_AXIS | OPTIONS_OUTPUT | OPTIONS_OUTPUT_TYPE,
    MERGE_OPTIONS = OPTIONS_NAN | OPTIONS_PARTIAL | OPTIONS_RESULT_TYPE | OPTIONS_DDOF | OPTIONS_COMMON,
    COMPARE_OPTIONS = OPTIONS_TYPE | OPTIONS_RAW | OPTIONS_SLICE | OPTIONS_MISSING | OPTIONS_COMPARE | OPTIONS_DEVICE | OPTIONS_COMMON,
    ORDER_OPTIONS = OPTIONS_TYPE | OPTIONS_RAW | OPTIONS_SLICE | OPTIONS_MISSING | OPTIONS_CHECKPOINT | OPTIONS_DEVICE | OPTIONS_COMMON,
    GENERATE_OPTIONS = OPTIONS_TYPE | OPTIONS_OUTPUT | OPTIONS_COMMON,
    INFO_OPTIONS = OPTIONS_SLICE | OPTIONS_BINDING | OPTIONS_DEVICE | OPTIONS_COMMON,
};

/* The fold itself says which choices it has. */
static unsigned fold_refused(const struct command *command)
{
    const allfold_fold fold = (allfold_fold)command->which;
    return (fold_has_nan_choice(fold) ? 0 : OPTIONS_NAN) | (fold_has_level_choice(fold) ? 0 : OPTIONS_LEVEL)
           | (rows_indexed(fold, 0) ? 0 : OPTIONS_VALUES) | (fold_has_variance(fold) ? 0 : OPTIONS_DDOF)
           | (weights_fold(fold) != ALLFOLD_FOLD_COUNT ? 0 : OPTIONS_WEIGHTS);
}

static void explain_generators(FILE *file) { fputs(generator_help(), file); }

#define FOLD(ID, name, monoid, results, text) \
    {#name, "INPUT...", text, FOLD_OPTIONS, fold_refused, WORKS_ON_DEVICE, ALLFOLD_##ID, explain_generators, fold_run},

/* In the order of --help. */
static const struct command commands[] = {
    ALLFOLD_FOLDS(FOLD)
    {"merge", "FILE...", "the fold of several arrays, from what --partial kept of each", MERGE_OPTIONS, NULL, WORKS_ON_CPU, 0,
     NULL, merge_run},
    {"softmax", "INPUT...", "exp(x) / sum of exp(x), without overflow", SOFTMAX_OPTIONS, NULL, WORKS_ON_DEVICE, 0,
     explain_generators, softmax_run},
    {"log-softmax", "INPUT...", "logarithm of softmax", SOFTMAX_OPTIONS, NULL, WORKS_ON_DEVICE, 1, explain_generators, softmax_run},
    {"compare", "A B", "how two arrays differ: exactly, over all ranks, with a status for scripts", COMPARE_OPTIONS, NULL, WORKS_ON_DEVICE, 0,
     explain_generators, compare_run},
    {"quantile", "INPUT...", "quantiles, exactly", ORDER_OPTIONS | OPTIONS_NAN | OPTIONS_QUANTILE, NULL, WORKS_ON_DEVICE, ORDER_QUANTILE,
     explain_generators, order_run},
    {"median", "INPUT...", "the median, exactly", ORDER_OPTIONS | OPTIONS_NAN, NULL, WORKS_ON_DEVICE, ORDER_MEDIAN, explain_generators, order_run},
    {"topk", "INPUT...", "the largest elements and their indices", ORDER_OPTIONS | OPTIONS_NAN | OPTIONS_TOPK, NULL, WORKS_ON_DEVICE, ORDER_TOPK,
     explain_generators, order_run},
    {"histogram", "INPUT...", "how many elements are in each bin, exactly", ORDER_OPTIONS | OPTIONS_BINS, NULL, WORKS_ON_DEVICE, ORDER_HISTOGRAM,
     explain_generators, order_run},
    {"generate", "DISTRIBUTION?n=COUNT", "write an array of a named distribution", GENERATE_OPTIONS, NULL, WORKS_ON_CPU, 0,
     explain_generators, generate_run},
    {"info", "[FILE]", "version, build, MPI library, and the device of each rank; or the arrays that a file holds", INFO_OPTIONS, NULL,
     WORKS_ON_CPU_IF_OPERAND, 0, NULL, info_run},
    {"ladder", "[TOPIC]", "the classic reduction kernels, checked and timed on a GPU, or checked without one", OPTIONS_LADDER | OPTIONS_COMMON, NULL, WORKS_ON_OWN_GPU, 0,
     ladder_topics_print, ladder_command_run},
    {"bench", NULL, "the speed of folds and softmax beside their peers and the ceilings", OPTIONS_BENCH | OPTIONS_DEVICE | OPTIONS_COMMON, NULL,
     WORKS_ON_DEVICE, 0, NULL, bench_command_run},
};

const struct command_table command_table = {commands, sizeof commands / sizeof *commands, option_rows};
