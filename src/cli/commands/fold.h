/* The steps of folds that are not along an axis (fold_input.c), and folds of several arrays (fold_many.c). */
#pragma once

#include "cli/session.h"

/* Folds session->input, which every rank has. Collective; session->error is agreed upon. On success *total and
   session->missing are set. */
void fold_input(struct session *session, struct total *total);

/* The result of such a total: the same on all ranks, or the same error. */
void fold_input_result(struct session *session, const struct total *total, struct fold_results *result);

/* Folds the arrays that the operands mean each for itself, or with --total one after the other. */
void fold_many_run(struct session *session);
