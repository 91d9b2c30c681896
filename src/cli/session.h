/* What the commands' runs have in common: opening the context and the input, writing an output, stopping. All functions
   are collective, do nothing where session->error holds an agreed error, and leave an agreed one behind. */
#ifndef ALLFOLD_CLI_SESSION_H
#define ALLFOLD_CLI_SESSION_H

#include "cli/cli.h"

#include <stdio.h>

void session_open(struct session *session);
void session_close(struct session *session);

/* Describes the array called name on rank 0 and hands the description to all: session->input and ->range. */
void session_describe(struct session *session, const char *name);

/* This rank's part of the input, opened. On an error job->source is NULL and session->error, not yet agreed upon,
   tells; closing is the caller's. */
void session_source(struct session *session, struct job *job);

/* Makes the output file, described by info, whole or not at all. fill writes this rank's part to the sink; the sink is
   NULL, and session->error set, on a rank that could not open it. */
void session_write(struct session *session, const struct array_info *info,
                   void (*fill)(struct session *session, struct sink *sink));

/* The file that --partial names, if it is given: made before the work, so that a name which cannot be written is refused then;
   written and given its name after it, or removed if session->error, agreed upon, says so. */
void session_partial_begin(struct session *session);
void session_partial_end(struct session *session, const struct partial_file *partial);

/* The run has ended: removes what was kept for the case that it fails, if it has not. */
void session_end(struct session *session);

/* Where the time went, for a report in JSON: session->phases. */
void session_phases(struct session *session);

/* Seconds since the input was about to be opened. */
double session_seconds(const struct session *session);

#endif
