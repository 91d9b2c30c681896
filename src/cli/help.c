/* The texts of --help and --version; commands and options come from their tables. */
#include "cli/help.h"

#include "cli/options.h"

#include <stdio.h>

static const char inputs[] =
    "INPUT is one of\n"
    "  FILE.npy                  NumPy's format, versions 1 to 3; of several dimensions all elements count\n"
    "  FILE                      raw elements, little-endian: needs --dtype\n"
    "  gen:DISTRIBUTION?n=COUNT  elements made up where they are needed, without a file\n";

static const char exits[] = "Exit status: 0 done, 1 failed, 2 wrong usage, 75 stopped by a signal.\n";

void help_version(void)
{
    printf("allfold %s\n", allfold_version());
}

void help_program(void)
{
    fputs("Usage: allfold COMMAND [OPTION]... INPUT\n"
          "Folds (reduces) an array that is spread over MPI ranks, on GPUs or CPUs, or takes its softmax.\n"
          "\nCommands:\n", stdout);
    for (size_t i = 0; i < command_count; i++)
        printf("  %-12s  %s\n", commands[i].name, commands[i].text);
    printf("\n%s\n", inputs);
    fputs("Options of every command:\n", stdout);
    options_print(stdout, &(struct command){.takes = TAKES_COMMON});
    fputs("allfold COMMAND --help tells the others; allfold --version the version.\n\n", stdout);
    fputs(exits, stdout);
    fputs("\nExamples:\n"
          "  allfold generate 'normal?n=1e8&seed=1' -o x.npy\n"
          "  mpirun -n 4 allfold sum x.npy\n"
          "  srun --mpi=pmix allfold stats --json x.npy\n"
          "  mpirun -n 4 allfold softmax x.npy -o y.npy\n", stdout);
}

void help_command(const struct command *command)
{
    const unsigned takes = command_takes(command);
    const bool writes = (takes & TAKES_OUTPUT) != 0, reads = (takes & TAKES_RAW) != 0,
               generates = (takes & TAKES_TYPE) != 0;
    const char *const operand = command->operand;
    printf("Usage: allfold %s [OPTION]...%s%s%s\n", command->name, operand != NULL ? " " : "",
           operand != NULL ? operand : "", writes ? " -o FILE" : "");
    printf("%s: %s.\n\nOptions:\n", command->name, command->text);
    options_print(stdout, command);
    putchar('\n');
    options_print_words(stdout);
    if ((takes & TAKES_LADDER) != 0) {
        putchar('\n');
        ladder_topics_print(stdout);
    }
    if (reads)
        printf("\n%s", inputs);
    if (generates)
        printf("\n%s", generator_help());
    printf("\n%s", exits);
}
