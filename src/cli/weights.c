/* Reads what --weights names: rank 0 does, and gives the weights to the others. See weights.h. */
#include "cli/weights.h"

#include "base/cosine.h"
#include "base/elements.h"
#include "cli/names.h"
#include "cli/session.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* What is read on rank 0. */
struct reading {
    struct session *session;
    const struct array_info *input;
    allfold_fold fold; /* with weights */
    double *values;
    uint64_t count;
    int64_t strides[ARRAY_DIMENSIONS_MAX];
    struct error *error;
};

/* ---- an array of weights */

static allfold_status open_values(struct reading *r, uint64_t count)
{
    r->count = count;
    if (count > SIZE_MAX / sizeof(double) / 2 || (r->values = malloc((size_t)(count + 1) * sizeof(double))) == NULL)
        error_set(r->error, ALLFOLD_NO_MEMORY, "no memory for %" PRIu64 " weights", count);
    return r->error->status;
}

/* All, in the order of indices, as f64. */
static void read_array(struct reading *r, const struct array_info *info)
{
    const bool wide = info->type == ALLFOLD_INT64 || info->type == ALLFOLD_UINT64;
    char name[ARRAY_NAME_BYTES];
    struct source *source = NULL, *linear = NULL;
    uint64_t found = 0;
    r->count = info->count;
    if (source_open(info, &source, r->error) == ALLFOLD_OK
        && linear_open(source, ALLFOLD_F64, linear_granule(source, source, ALLFOLD_F64), &linear, r->error) == ALLFOLD_OK)
        r->values = source_read_all(linear, r->count, &found, r->error);
    if (r->error->status == ALLFOLD_OK && found < r->count)
        error_set(r->error, ALLFOLD_NO_VALUE, "--weights: %s: weights are missing: all are needed", file_shown(array_name(info, name)));
    if (linear != NULL)
        source_check(linear, r->error);
    source_close(linear);
    source_close(source);
    for (uint64_t i = 0; wide && i < r->count && r->error->status == ALLFOLD_OK; i++)
        if (fabs(r->values[i]) >= 0x1p53)
            error_set(r->error, ALLFOLD_UNSUPPORTED, "--weights: %s: expected weights that are exact in f64, found about %.17g",
                      file_shown(array_name(info, name)), r->values[i]);
}

/* NumPy's rule: extents from the last on are equal, or 1. */
static allfold_status broadcast(struct reading *r, const struct array_info *info)
{
    const struct array_info *const input = r->input;
    char shapes[2][200], name[ARRAY_NAME_BYTES];
    bool fits = info->dimensions <= input->dimensions;
    uint64_t below = 1;
    for (uint32_t i = 0; fits && i < info->dimensions; i++) {
        const uint32_t own = info->fortran_order ? i : info->dimensions - 1 - i, dimension = own + input->dimensions - info->dimensions;
        fits = info->shape[own] == input->shape[dimension] || info->shape[own] == 1;
        r->strides[dimension] = info->shape[own] > 1 ? (int64_t)below : 0;
        below *= info->shape[own];
    }
    array_shape_text(info->shape, info->dimensions, shapes[0], sizeof shapes[0]);
    array_shape_text(input->shape, input->dimensions, shapes[1], sizeof shapes[1]);
    if (!fits)
        error_set(r->error, ALLFOLD_BAD_ARGUMENT, "--weights: %s is %.80s, which does not broadcast to %.80s: from the last dimension on, expected "
                  "equal lengths or 1 (DIM=W: weights of one dimension)", file_shown(array_name(info, name)), shapes[0], shapes[1]);
    return r->error->status;
}

static void check_array(const struct reading *r, const struct array_info *info)
{
    const uint64_t refused = r->error->status == ALLFOLD_OK ? weights_refused(r->fold, r->values, r->count) : r->count;
    char name[ARRAY_NAME_BYTES], place[ARRAY_PLACE_BYTES];
    if (refused == r->count)
        return;
    array_place_text(info, refused, place);
    error_set(r->error, ALLFOLD_BAD_INPUT, "--weights: %s: the weight at index %" PRIu64 "%s%s is %.17g: " WEIGHTS_EXPECTED,
              file_shown(array_name(info, name)), refused, place[0] != '\0' ? ", " : "", place, r->values[refused]);
}

/* dimension: the one that it is for; -1: it broadcasts. */
static void take_array(struct reading *r, const char *text, long dimension)
{
    const struct array_hints hints = {.missing = MISSING_ERROR};
    struct array_info *const info = calloc(1, sizeof *info);
    if (info == NULL) {
        error_set(r->error, ALLFOLD_NO_MEMORY, "no memory to describe weights");
        return;
    }
    if (array_describe(text, &hints, info, r->error) == ALLFOLD_OK) {
        names_refuse_read(r->session, info, text, "the weights");
        if (dimension < 0) {
            broadcast(r, info);
        } else {
            r->strides[dimension] = info->count > 1;
            if (info->dimensions != 1 || info->count != r->input->shape[dimension])
                error_set(r->error, ALLFOLD_BAD_ARGUMENT, "--weights: %s: expected one dimension of %" PRIu64 " weights, found %" PRIu32 " of %"
                          PRIu64, file_shown(text), r->input->shape[dimension], info->dimensions, info->count);
        }
        if (r->error->status == ALLFOLD_OK)
            read_array(r, info);
        check_array(r, info);
        array_release(info);
    }
    free(info);
}

/* ---- the cosine of a coordinate */

static double number_at(allfold_type type, const void *elements, uint64_t i)
{
    switch (type) {
#define CASE(ID, name, ...) \
    case ALLFOLD_##ID: return (double)load_##name(((const element_##name *)elements)[i]);
        ALLFOLD_TYPES(CASE)
#undef CASE
    default: return NAN;
    }
}

static void take_cosine(struct reading *r, const char *word, long dimension)
{
    struct array_coordinate found = {.elements = NULL};
    if (!array_coordinate_read(r->input, (uint32_t)dimension, true, &found) && !array_coordinate_read(r->input, (uint32_t)dimension, false, &found)) {
        error_set(r->error, ALLFOLD_BAD_INPUT, "--weights: the input has no coordinate variable %s of %" PRIu64 " numbers", file_shown(word),
                  r->input->shape[dimension]);
        return;
    }
    if (found.differs)
        error_set(r->error, ALLFOLD_BAD_INPUT, "--weights: %s is not the same in all files that are joined", file_shown(word));
    r->strides[dimension] = found.count > 1;
    open_values(r, found.count);
    for (uint64_t i = 0; r->error->status == ALLFOLD_OK && i < found.count; i++) {
        const double degrees = number_at(found.type, found.elements, i);
        r->values[i] = cosine_of_degrees(degrees);
        if (weights_refused(r->fold, &r->values[i], 1) == 0)
            error_set(r->error, ALLFOLD_BAD_INPUT, "--weights: %s[%" PRIu64 "] is %.17g degrees, whose cosine is %.17g: " WEIGHTS_EXPECTED,
                      file_shown(word), i, degrees, r->values[i]);
    }
    free(found.elements);
}

/* ---- the option */

static bool is_dimension(const struct array_info *input, const char *word, size_t length, long *dimension)
{
    if (!array_find_dimension(input, word, length, dimension))
        return false;
    *dimension += *dimension < 0 ? (long)input->dimensions : 0;
    return *dimension >= 0 && *dimension < (long)input->dimensions;
}

static void read_weights(struct reading *r, const char *text)
{
    static const char cosine[] = "cos:";
    const char *const equals = strchr(text, '='), *const word = text + strlen(cosine);
    long dimension;
    if (strncmp(text, cosine, strlen(cosine)) == 0) {
        if (is_dimension(r->input, word, strlen(word), &dimension))
            take_cosine(r, word, dimension);
        else
            error_set(r->error, ALLFOLD_BAD_ARGUMENT, "--weights: expected a dimension of the input behind cos:, found '%.100s'", word);
    } else if (equals != NULL && is_dimension(r->input, text, (size_t)(equals - text), &dimension)) {
        take_array(r, equals + 1, dimension);
    } else {
        take_array(r, text, -1);
    }
}

/* Options that do not go with weights. */
static void check(const struct session *session, struct error *error)
{
    const struct settings *const settings = session->settings;
    const char *const other = settings->checkpoint != NULL ? "checkpoint" : settings->partial != NULL ? "partial" : settings->total ? "total"
                              : settings->ddof != 0 ? "ddof" : settings->nan != ALLFOLD_NAN_PROPAGATE ? "nan" : NULL;
    if (other != NULL)
        error->shared = error_set(error, ALLFOLD_BAD_ARGUMENT, "%s: expected no --%s beside --weights", settings->command->name, other) != ALLFOLD_OK;
}

void session_weights_read(struct session *session, struct session_weights *weights)
{
    const uint64_t piece = UINT64_C(1) << 27; /* MPI counts bytes in an int */
    struct comm *const comm = session_comm(session);
    struct error *const error = &session->error;
    struct reading r = {.session = session, .input = &session->input, .fold = weights_fold((allfold_fold)session->settings->command->which), .error = error};
    check(session, error);
    if (error->status == ALLFOLD_OK)
        error->shared = weights_check_type(session->input.type, error) != ALLFOLD_OK;
    if (error->status != ALLFOLD_OK)
        return;
    if (comm->rank == 0)
        read_weights(&r, session->settings->weights);
    if (comm_broadcast(comm, 0, &r.count, sizeof r.count, error) == ALLFOLD_OK && comm->rank != 0)
        open_values(&r, r.count);
    comm_broadcast(comm, 0, r.strides, sizeof r.strides, error);
    for (uint64_t at = 0; session_agree(session) && at < r.count; at += piece)
        comm_broadcast(comm, 0, r.values + at, (size_t)u64_min(piece, r.count - at) * sizeof *r.values, error);
    memcpy(weights->strides, r.strides, sizeof r.strides);
    weights->values = r.values;
    weights->weights.values = r.values;
    weights->weights.strides = weights->strides;
}
