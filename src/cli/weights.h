/* Reads what --weights names. */
#pragma once

#include "cli/cli.h"
#include "core/pieces.h"

struct session_weights {
    struct weights weights;
    double *values; /* the same, to be freed by the caller */
    int64_t strides[ARRAY_DIMENSIONS_MAX];
};

/* Weights of the session's input, on all ranks: an input that broadcasts ("w.npy"), one for a dimension ("lat=w.npy"), or the cosine of a
   dimension's coordinate ("cos:lat"). Refuses options that do not go with them, and weights that the fold does not take. Collective. */
void session_weights_read(struct session *session, struct session_weights *weights);
