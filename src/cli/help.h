/* Prints --help and --version. On rank 0 only; nothing here is collective. */
#pragma once

#include "cli/cli.h"

void help_program(const struct command_table *table);
void help_command(const struct command_table *table, const struct command *command);
void help_version(void);

/* The commit of the checkout that was built, with "-changed" behind it if files differed. Empty if it was no checkout. */
extern const char help_commit[];
