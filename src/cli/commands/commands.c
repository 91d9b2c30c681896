/* The table of commands. */
#include "cli/commands/commands.h"

#include "cli/commands/option_rows.h"

typedef const struct option *const options[];
static options fold_options = {type_options, raw_options, missing_options, nan_options, level_options, partial_options, result_type_options,
                               checkpoint_options, device_options, common_options, NULL};
static options merge_options = {nan_options, partial_options, result_type_options, common_options, NULL};
static options softmax_options = {type_options, raw_options, missing_options, level_options, output_options, output_type_options,
                                  checkpoint_options, device_options, common_options, NULL};
static options generate_options = {type_options, output_options, common_options, NULL};
static options info_options = {binding_options, device_options, common_options, NULL};
static options climb_options = {ladder_options, common_options, NULL};
static options measure_options = {bench_options, device_options, common_options, NULL};

/* The fold itself says which choices it has. */
static bool fold_takes(const struct command *command, const struct option *group)
{
    const allfold_fold fold = (allfold_fold)command->which;
    return (group != nan_options || fold_has_nan_choice(fold)) && (group != level_options || fold_has_level_choice(fold));
}

static void explain_generators(FILE *file) { fputs(generator_help(), file); }

#define FOLD(ID, name, monoid, results, text) \
    {#name, "INPUT", text, fold_options, fold_takes, WORKS_ON_DEVICE, ALLFOLD_##ID, explain_generators, fold_run},

/* In the order of --help. */
static const struct command commands[] = {
    ALLFOLD_FOLDS(FOLD)
    {"merge", "FILE...", "the fold of several arrays, from what --partial kept of each", merge_options, NULL, WORKS_ON_CPU, 0,
     NULL, merge_run},
    {"softmax", "INPUT", "exp(x) / sum of exp(x), without overflow", softmax_options, NULL, WORKS_ON_DEVICE, 0,
     explain_generators, softmax_run},
    {"log-softmax", "INPUT", "logarithm of softmax", softmax_options, NULL, WORKS_ON_DEVICE, 1, explain_generators, softmax_run},
    {"generate", "DISTRIBUTION?n=COUNT", "write an array of a named distribution", generate_options, NULL, WORKS_ON_CPU, 0,
     explain_generators, generate_run},
    {"info", "[FILE]", "version, build, MPI library, and the device of each rank; or the arrays that a file holds", info_options, NULL,
     WORKS_ON_CPU_IF_OPERAND, 0, NULL, info_run},
    {"ladder", "[TOPIC]", "the classic reduction kernels, checked and timed on a GPU", climb_options, NULL, WORKS_ON_OWN_GPU, 0,
     ladder_topics_print, ladder_command_run},
    {"bench", NULL, "the speed of folds and softmax beside their peers and the ceilings", measure_options, NULL,
     WORKS_ON_DEVICE, 0, NULL, bench_command_run},
};

const struct command_table command_table = {commands, sizeof commands / sizeof *commands, common_options};
