/* The options of all commands, in groups. A command lists the groups that it takes (commands.c). A nameless row ends a group. */
#pragma once

#include "cli/options.h"

extern const struct option common_options[];      /* every command's */
extern const struct option device_options[];      /* of work on the backend's device */
extern const struct option type_options[];        /* the element type may be given */
extern const struct option raw_options[];         /* of an input that may be a raw file */
extern const struct option missing_options[];     /* what becomes of missing values */
extern const struct option nan_options[];         /* what NaN does */
extern const struct option level_options[];       /* how sums are computed */
extern const struct option partial_options[];     /* the partial may be left in a file */
extern const struct option checkpoint_options[];  /* progress is saved */
extern const struct option result_type_options[]; /* a fold's values may be rounded */
extern const struct option output_options[];      /* a file is written */
extern const struct option output_type_options[]; /* the output's element type may be given */
extern const struct option binding_options[];     /* the binding of ranks is checked */
extern const struct option ladder_options[];
extern const struct option bench_options[];
