/* Does the steps that commands share: opens the context and the input, writes an output, stops. All functions are
   collective, do nothing if session->error holds an agreed error, and set an agreed one if they fail. */
#pragma once

#include "cli/cli.h"
#include "core/pieces.h"

void session_open(struct session *session);
void session_close(struct session *session);

/* Describes the array of these names on rank 0 and sends the description to all ranks: session->input, which session_close frees, and
   ->range. */
void session_describe(struct session *session, const char *const *names, int count);
/* Its two steps, for descriptions that rank 0 makes otherwise. Of several arrays each is shared in turn; what was there is released. */
void session_begin_input(struct session *session);
void session_share_input(struct session *session);
/* Sends rank 0's description to all ranks, of an input beside session->input: the caller releases it on all. */
void session_share(struct session *session, struct array_info *info);

/* Opens this rank's part of the input. On an error job->source is NULL and session->error, not yet agreed upon, says why. The
   caller closes the source. */
void session_source(struct session *session, struct job *job);

/* An output file: an array, or an archive or a NetCDF file (arrays.about) of several of one shape. */
struct session_output {
    const char *path;
    bool archive;
    struct output_arrays arrays;
    struct sink *sinks[OUTPUT_ARRAYS_MAX]; /* while it is written; all NULL on a rank that could not open it */
    struct output outputs[OUTPUT_ARRAYS_MAX];
    bool created; /* by this rank */
};

/* The file of one array, of --output. */
struct session_output session_output_of(const struct session *session, const struct array_info *info);

/* Writes output files, at most two: each whole or not at all, and none if one fails before its name is given. fill writes this rank's
   part to the sinks. On a rank that could not open all, session->error is set. progress: of work along an axis, which is loaded before
   fill is called, with monoid and type set; or NULL. */
struct session_outputs {
    struct session_output *files;
    int count;
    void (*fill)(struct session *session, void *user);
    void *user;
    struct resumable *progress; /* session->checkpoint's */
    bool in_place; /* the first may take the place of the input, if that is one file and nothing else is in it */
};
void session_write(struct session *session, const struct session_outputs *outputs);

/* The file of --partial, if it is given. It is created before the work, so that a name that cannot be written is refused at once.
   After the work it is written and renamed, or removed if session->error, agreed upon, holds an error. */
void session_partial_begin(struct session *session);
void session_partial_end(struct session *session, const struct total *total);

/* Ends the run: removes what was kept in case of a failure, if the run has not failed. */
void session_end(struct session *session);

/* Collects the seconds of each phase, for a report in JSON: session->phases. */
void session_phases(struct session *session);

/* Seconds since just before the input was opened. */
double session_seconds(const struct session *session);
