/* Defines a command of the program, the user's settings for it, and the session that it runs in. */
#pragma once

#include "allfold.h"
#include "array/array.h"
#include "core/core.h"
#include "store/checkpoint.h"
#include "store/partial_file.h"

#include <stdio.h>

struct session;
struct launch; /* launch.h */
struct start;  /* start.h */

/* The most elements of a measurement: their bytes can be counted for every type. */
#define MEASURED_COUNT_MAX (UINT64_C(1) << 59)

/* The program's exit codes. */
enum { EXIT_DONE = 0, EXIT_FAILED = 1, EXIT_USAGE = 2, EXIT_OUTSIDE = 3 /* compare: differences */, EXIT_STOPPED = 75 /* as EX_TEMPFAIL: try again */ };

struct option; /* options.h */

/* What a command works on. The ladder opens its own GPU; info needs no device to list what a file holds. */
enum works_on { WORKS_ON_DEVICE, WORKS_ON_CPU, WORKS_ON_OWN_GPU, WORKS_ON_CPU_IF_OPERAND };

/* One line of the table in commands/commands.c. */
struct command {
    const char *name;
    const char *operand; /* "INPUT"; "A B" for two; "FILE..." for several; "[TOPIC]" if it is optional; NULL if there is none */
    const char *text;    /* what it does, one line */
    unsigned options;    /* groups (options.h) that it takes, */
    unsigned (*refused)(const struct command *command); /* but for these; NULL: all of them */
    enum works_on works_on;
    int which;           /* distinguishes the commands of one file: the allfold_fold; 1 for log-softmax */
    void (*explain)(FILE *file); /* prints the end of its --help; NULL: nothing */
    /* Collective. Does the work and prints the report on rank 0. On return session->error is agreed upon. */
    void (*run)(struct session *session);
};

struct command_table {
    const struct command *commands;
    size_t count;
    const struct option *options; /* of all commands */
};

/* The ladder's options. */
struct ladder_settings {
    const char *counts, *shapes, *type, *fold, *block, *rung; /* NULL if not given */
    uint64_t columns;                                         /* 0 if not given */
    bool list;
};

/* The benchmark's options: lists with commas between their items, or "all"; NULL if not given. */
struct bench_settings {
    const char *counts, *types, *folds, *ranks, *lengths, *axes;
    const char *range;    /* one number */
    bool cut_axis;        /* rows are spread over the ranks */
    const char *baseline; /* a file that --json wrote before */
    double tolerance;     /* the slowdown that is allowed, in percent; 0 if not given */
    double seconds;       /* for one measurement; 0 if not given */
    double slow;          /* a rank below this percentage of the ranks' median is an error; 0 if not given */
    bool total;           /* counts are of all ranks together */
    bool survey;          /* measure the machines only */
    int place;            /* enum bench_place */
    bool warm, list;
};

/* The options of compare. */
enum { COMPARE_FIRST_MOST = 1000 };
struct compare_settings {
    double atol, rtol;
    bool equal_nan;
    int first; /* places to list; 0: none */
};

/* The options of order statistics. */
enum order_command { ORDER_QUANTILE, ORDER_MEDIAN, ORDER_TOPK, ORDER_HISTOGRAM };
struct order_settings {
    const char *q, *range, *edges; /* NULL if not given */
    int method;                    /* allfold_quantile_method */
    uint64_t k, bins;              /* bins: 0 if not given */
    bool smallest;
};

/* What the user asked for, equal on all ranks. options.h fills it in. Texts are argv's own. */
#define SETTINGS_DEFAULT {.context = ALLFOLD_OPTIONS_INIT, .timeout = 300, .checkpoint_every = 30}
struct settings {
    const struct command *command;
    bool help, json, quiet, verbose, check, total;
    allfold_options context;
    allfold_nan nan;
    struct array_hints hints;
    allfold_type output_type; /* ALLFOLD_TYPE_NONE: not given */
    const char *output;
    const char *axis;   /* as it was given; NULL if not */
    const char *weights; /* the same */
    bool keepdims;
    const char *values; /* argmin, argmax along an axis: the file for the elements; NULL: none */
    uint64_t ddof;      /* of stats, variance and std */
    const char *checkpoint; /* NULL if not given */
    double checkpoint_every, timeout; /* seconds */
    const char *operand; /* the first; NULL if none is given */
    const char *const *operands; /* all, if the command takes several */
    int operand_count;
    const char *const *words; /* argv, as it was given */
    int word_count;
    const char *partial; /* the file to leave it in; NULL: none */
    struct ladder_settings ladder;
    struct bench_settings bench;
    struct compare_settings compare;
    struct order_settings order;
};

/* A command under way. */
struct session {
    const struct settings *settings;
    const struct launch *launch;
    struct start *start;
    allfold_context *context;
    struct array_info input;
    struct range range; /* this rank's part of the input */
    uint64_t missing;   /* elements of the input that were left out */
    bool input_read;    /* the input's elements are read: merge has only their number */
    double input_bytes; /* of them, in the files */
    const char *name;   /* of the fold that is reported; NULL: the command's */
    double started;     /* when the input was about to be opened */
    double phases[PHASE_COUNT]; /* rank 0, --json: seconds in each phase, of the rank that spent most there */
    struct checkpoint checkpoint;
    struct replacement partial; /* the file that --partial names */
    bool outside;       /* compare: not all differences are allowed. The same on all ranks */
    struct error error; /* this rank's, or the one agreed upon */
};

static inline struct comm *session_comm(struct session *session) { return &session->context->comm; }

/* Collective. Makes session->error that of all ranks; true if none has failed. After a failure of MPI itself there is no way to
   agree: the program aborts. */
static inline bool session_agree(struct session *session)
{
    if (session->error.status != ALLFOLD_MPI_ERROR)
        comm_agree(session_comm(session), &session->error);
    return session->error.status == ALLFOLD_OK;
}
