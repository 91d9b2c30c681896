/* Options are rows of data, in groups. This file defines both, parses a command's rows into the settings, and prints them for
   --help. The rows themselves: commands/option_rows.c. */
#pragma once

#include "cli/cli.h"

/* The groups. A command names those that it takes. */
enum {
    OPTIONS_TYPE = 1 << 0,        /* the element type may be given */
    OPTIONS_RAW = 1 << 1,         /* of an input that may be a raw file */
    OPTIONS_MISSING = 1 << 2,     /* what becomes of missing values */
    OPTIONS_NAN = 1 << 3,         /* what NaN does */
    OPTIONS_LEVEL = 1 << 4,       /* how sums are computed */
    OPTIONS_PARTIAL = 1 << 5,     /* the partial may be left in a file */
    OPTIONS_RESULT_TYPE = 1 << 6, /* a fold's values may be rounded */
    OPTIONS_OUTPUT = 1 << 7,      /* a file is written */
    OPTIONS_OUTPUT_TYPE = 1 << 8, /* the output's element type may be given */
    OPTIONS_CHECKPOINT = 1 << 9,  /* progress is saved */
    OPTIONS_BINDING = 1 << 10,    /* the binding of ranks is checked */
    OPTIONS_LADDER = 1 << 11,
    OPTIONS_BENCH = 1 << 12,
    OPTIONS_DEVICE = 1 << 13,     /* of work on the backend's device */
    OPTIONS_COMMON = 1 << 14,     /* every command's */
    OPTIONS_AXIS = 1 << 15,       /* work may be along an axis */
    OPTIONS_ROWS = 1 << 16,       /* a fold along an axis has many results */
    OPTIONS_VALUES = 1 << 17,     /* which are indices */
    OPTIONS_DDOF = 1 << 18,       /* a variance is computed */
    OPTIONS_MANY = 1 << 19,       /* there may be several arrays, each for itself */
    OPTIONS_SLICE = 1 << 20,      /* part of an array may be taken */
    OPTIONS_COMPARE = 1 << 21,    /* two arrays are compared */
    OPTIONS_WEIGHTS = 1 << 22,    /* elements may have weights */
    OPTIONS_QUANTILE = 1 << 23,   /* which quantiles */
    OPTIONS_TOPK = 1 << 24,       /* which elements */
    OPTIONS_BINS = 1 << 25        /* which bins */
};

/* The kind of an option's argument. It decides the type of its place in struct settings. */
enum option_kind {
    OPTION_FLAG,        /* none: bool */
    OPTION_CHOICE,      /* a word of `argument`: an enum, the word's number there */
    OPTION_WORD,        /* the same: const char * */
    OPTION_TEXT,        /* any text, which the command parses: const char * */
    OPTION_FILE,        /* a file's name: const char * */
    OPTION_TYPE,        /* allfold_type */
    OPTION_FLOAT_TYPE,  /* allfold_type, floating point */
    OPTION_COUNT,       /* uint64_t */
    OPTION_SIZE,        /* uint64_t, bytes */
    OPTION_INTEGER,     /* int */
    OPTION_NUMBER,      /* double */
    OPTION_NUMBER_OR_0, /* double: 0, or a number within the bounds */
};

struct option {
    const char *name;     /* NULL: a row that begins the group `group`; 0 ends the table */
    const char *argument; /* its name in --help; for choices all words: "auto|cuda|cpu" */
    const char *text;
    enum option_kind kind;
    char letter;          /* 0: none */
    bool required;
    size_t place;         /* in struct settings */
    size_t given;         /* the place of a bool that says that it was given; 0: none */
    double least, most;   /* bounds of integers and numbers; counts and sizes have only a least, 0 or 1 */
    const char *needs;    /* the option without which this one has no effect; NULL: none */
    unsigned group;
};

/* Parses argv[1 ..] of settings->command (argv[0] is its own name) into *settings, which holds the defaults. Reorders argv:
   operands first. On ALLFOLD_BAD_ARGUMENT error says what was expected. Operands are not checked, and required options may be
   missing, if --help is asked for. table: for messages about options that other commands take. */
allfold_status options_parse(const struct command_table *table, int argc, char **argv, struct settings *settings,
                             struct error *error);

/* The option that the command requires, for its usage line; NULL: none. */
const struct option *options_required(const struct command_table *table, const struct command *command);
/* Prints the command's options, a line each; without a command those that all take. */
void options_print(FILE *file, const struct command_table *table, const struct command *command);
/* Prints what their arguments TYPE, SIZE and COUNT may be. */
void options_print_words(FILE *file);
