/* The options of all commands, from one table: parsing them and explaining them. */
#ifndef ALLFOLD_CLI_OPTIONS_H
#define ALLFOLD_CLI_OPTIONS_H

#include "cli/cli.h"

#include <stdio.h>

/* Parses argv[1 ..] of a command (argv[0] is the command's own name) into *settings. Without side effects but getopt's:
   on ALLFOLD_BAD_ARGUMENT error says what was expected. Operands are not checked where --help is asked for. */
allfold_status options_parse(const struct command *command, int argc, char **argv, struct settings *settings,
                             struct error *error);

/* The options that a command takes, a line or more each. */
void options_print(FILE *file, const struct command *command);
/* What their arguments TYPE, SIZE and COUNT may be. */
void options_print_words(FILE *file);

/* " (did you mean X?)" for the name among `names` that is nearest to `found`, or nothing where none is near. */
struct suggestion {
    char text[80];
};
struct suggestion suggest(const char *found, const char *const *names, size_t count, const char *prefix);

#endif
