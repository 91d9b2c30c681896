/* Prints --help and --version. On rank 0 only; nothing here is collective. */
#ifndef ALLFOLD_CLI_HELP_H
#define ALLFOLD_CLI_HELP_H

#include "cli/cli.h"

void help_program(const struct command_table *table);
void help_command(const struct command *command);
void help_version(void);

#endif
