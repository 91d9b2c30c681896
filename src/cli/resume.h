/* Opens what --checkpoint names, and finds what a run goes on from. session.c calls it. */
#pragma once

#include "cli/session.h"

/* Names this rank's checkpoint, which must not be another file of the run. What fails goes to session->error. Local. */
void resume_begin(struct session *session);

/* Loads the checkpoint of work along an axis, before its outputs are opened: *key is then of those that it belongs to. If these are gone,
   the work begins anew. Collective. */
void resume_load(struct session *session, const struct session_outputs *outputs, struct replacement_key *key);

/* After a failure: unfinished outputs are kept if a rank's checkpoint needs them. Collective. */
void resume_judge(struct session *session, const struct session_outputs *outputs);
