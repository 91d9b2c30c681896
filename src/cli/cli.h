/* The program's commands: what one is, what the user asked of it, and the state it runs in. */
#ifndef ALLFOLD_CLI_H
#define ALLFOLD_CLI_H

#include "allfold.h"
#include "array/array.h"
#include "core/core.h"
#include "store/checkpoint.h"

#include <stdio.h>

struct session;

/* The program's exit codes. */
enum { EXIT_DONE = 0, EXIT_FAILED = 1, EXIT_USAGE = 2, EXIT_STOPPED = 75 /* as EX_TEMPFAIL: try again */ };

/* Which options a command takes: see the table in options.c. */
enum takes {
    TAKES_COMMON = 1 << 0,      /* every command's */
    TAKES_DEVICE = 1 << 1,      /* works on the backend's device; others work on the CPU */
    TAKES_TYPE = 1 << 2,        /* the element type may be said */
    TAKES_RAW = 1 << 3,         /* reads an input that may be a raw file */
    TAKES_NAN = 1 << 4,         /* has a choice of what NaN does */
    TAKES_OUTPUT = 1 << 5,      /* writes a file */
    TAKES_OUTPUT_TYPE = 1 << 6, /* whose element type may be said */
    TAKES_PARTIAL = 1 << 12,    /* can leave a partial in a file */
    TAKES_LEVEL = 1 << 10,      /* has a choice of how sums are computed */
    TAKES_RESULT_TYPE = 1 << 11,/* a fold, whose results may be rounded */
    TAKES_LADDER = 1 << 7,      /* the ladder: brings its own CUDA device, and options */
    TAKES_BENCH = 1 << 8,       /* the benchmark's options */
    TAKES_BINDING = 1 << 9,     /* judges how ranks are bound */
    TAKES_CHECKPOINT = 1 << 10, /* folds an input, and may keep how far it has come */
};

/* One line of the table in main.c. */
struct command {
    const char *name;
    const char *operand; /* "INPUT"; "FILE..." for several; "[TOPIC]" where it may be left out; NULL where there is none */
    unsigned takes;      /* of enum takes, but see command_takes */
    int which;           /* tells the commands of one file apart: the allfold_fold; 1 for log-softmax */
    const char *text;    /* what it does, one line */
    /* Collective. Does the work and prints the report on rank 0; session->error, agreed upon, says how it went. */
    void (*run)(struct session *session);
};

extern const struct command commands[];
extern const size_t command_count;
/* command->takes, and for a fold which choices it has, which the fold itself knows. */
unsigned command_takes(const struct command *command);

void fold_run(struct session *session);     /* commands/fold.c: every fold */
void softmax_run(struct session *session);  /* commands/softmax.c */
void generate_run(struct session *session); /* commands/generate.c */
void merge_run(struct session *session);    /* commands/merge.c */
void info_run(struct session *session);     /* commands/info.c */
void ladder_command_run(struct session *session); /* commands/ladder.c */
void bench_command_run(struct session *session);  /* commands/bench.c */

/* What TOPIC may be, a line each. */
void ladder_topics_print(FILE *file);

/* The ladder's options. */
struct ladder_settings {
    const char *counts, *type, *fold, *rung; /* NULL where not given */
    int block;                               /* 0 where not given, -1 for all */
    uint64_t columns;                        /* 0 where not given */
    bool list;
};

/* The benchmark's options: lists with commas between their items, or "all"; NULL where not given. */
struct bench_settings {
    const char *counts, *types, *folds, *ranks;
    const char *baseline; /* a file that --json wrote before */
    double tolerance;     /* how much slower than there, as a part; 0 where not given */
    double seconds;       /* for one measurement; 0 where not given */
    double slow;          /* a rank below this part of the ranks' median is an error; 0 where not given */
    bool total;           /* counts are of all ranks together */
    bool survey;          /* measure the machines only */
    bool in_host, warm, list;
};

/* What the user asked for, equal on all ranks. Texts are argv's own. */
struct settings {
    const struct command *command;
    bool help, json, quiet, verbose, check;
    allfold_options context;
    allfold_nan nan;
    struct array_hints hints;
    bool has_output_type;
    allfold_type output_type;
    const char *output;
    const char *checkpoint; /* NULL where not given */
    double checkpoint_every, timeout; /* seconds */
    const char *operand; /* the first; NULL where none is given */
    char **operands;     /* all, where the command takes several */
    int operand_count;
    const char *partial; /* the file to leave it in; NULL: none */
    struct ladder_settings ladder;
    struct bench_settings bench;
};

/* A command under way. */
struct session {
    const struct settings *settings;
    allfold_context *context;
    struct array_info input;
    struct range range; /* this rank's part of the input */
    const char *name;   /* of the fold that is reported; NULL: the command's */
    double started;     /* when the input was about to be opened */
    double phases[PHASE_COUNT]; /* rank 0, --json: seconds in each phase, of the rank that spent most there */
    struct checkpoint checkpoint;
    struct error error; /* this rank's, or the one agreed upon */
};

#endif
