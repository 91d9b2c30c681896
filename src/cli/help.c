/* Prints --help and --version: see help.h. Commands and options come from their tables. */
#include "cli/help.h"

#include "cli/options.h"

#include <stdio.h>
#include <string.h>

/* As far as a command with these options takes them. */
static void print_inputs(unsigned options)
{
    const bool has_patterns = (options & (OPTIONS_MANY | OPTIONS_COMPARE)) != 0;
    printf("INPUT is one of\n"
           "  FILE.npy                  NumPy's format, versions 1 to 3; of several dimensions all elements count%s\n"
           "  FILE:NAME                 an array in an .npz, safetensors, NetCDF or HDF5 file: allfold info FILE lists them\n"
           "%s%s%s"
           "  'part-*.npy'              the arrays of several files, joined in the order of their names\n"
           "  INPUT INPUT...            the same, in the order given\n"
           "  FILE                      raw elements, little-endian: needs --dtype\n"
           "  gen:DISTRIBUTION?n=COUNT  elements generated on demand, without a file\n",
           (options & OPTIONS_AXIS) != 0 ? ", or --axis" : "",
           has_patterns ? "  'FILE:PATTERN'            each of a file's arrays of such a name, as in 'model.safetensors:*'" : "",
           (options & OPTIONS_MANY) != 0 ? "; or --total" : "", has_patterns ? "\n" : "");
}

static const char exits[] = "Exit status: 0 done, 1 failed, 2 wrong usage, 3 compare: differences outside, 75 stopped by a signal.\n";

void help_version(void)
{
    if (help_commit[0] != '\0')
        printf("allfold %s (commit %s)\n", allfold_version(), help_commit);
    else
        printf("allfold %s\n", allfold_version());
}

void help_program(const struct command_table *table)
{
    fputs("Usage: allfold COMMAND [OPTION]... INPUT...\n"
          "Folds (reduces) an array that is spread over MPI ranks, on GPUs or CPUs, or takes its softmax.\n"
          "\nCommands:\n", stdout);
    for (size_t i = 0; i < table->count; i++)
        printf("  %-12s  %s\n", table->commands[i].name, table->commands[i].text);
    putchar('\n');
    print_inputs(~0u);
    fputs("\nOptions of every command:\n", stdout);
    options_print(stdout, table, NULL);
    puts("allfold help COMMAND, or allfold COMMAND --help, tells the others; allfold --version, or -V, the version.\n");
    fputs(exits, stdout);
    fputs("\nExamples:\n"
          "  allfold generate 'normal?n=1e8&seed=1' -o x.npy\n"
          "  mpirun -n 4 allfold sum x.npy\n"
          "  srun --mpi=pmix allfold stats --json x.npy\n"
          "  mpirun -n 4 allfold softmax x.npy -o y.npy\n"
          "  mpirun -n 4 allfold mean --axis=0 x.npy -o m.npy\n", stdout);
}

void help_command(const struct command_table *table, const struct command *command)
{
    const char *const operand = command->operand != NULL ? command->operand : "";
    const struct option *const required = options_required(table, command);
    printf("Usage: allfold %s [OPTION]...%s%s", command->name, operand[0] != '\0' ? " " : "", operand);
    if (required != NULL)
        printf(required->letter != 0 ? " -%c%s %s" : " --%c%s=%s", required->letter != 0 ? required->letter : required->name[0],
               required->letter != 0 ? "" : required->name + 1, required->argument);
    printf("\n%s: %s.\n\nOptions:\n", command->name, command->text);
    options_print(stdout, table, command);
    putchar('\n');
    options_print_words(stdout);
    if (strcmp(operand, "INPUT...") == 0 || strcmp(operand, "A B") == 0) {
        printf("\n%s", operand[0] == 'A' ? "A and B are INPUTs. " : "");
        print_inputs(command->options);
    }
    if (command->explain != NULL) {
        putchar('\n');
        command->explain(stdout);
    }
    printf("\n%s", exits);
}
