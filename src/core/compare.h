/* The comparison of two arrays. Used by the C library (api_compare.c) and the command. */
#pragma once

#include "core/core.h"

/* Two arrays of one shape, and how they are compared. */
struct compare_input {
    struct source *a, *b;      /* NULL on a rank that failed before (error then says why) */
    allfold_type a_type, b_type;
    uint64_t count;            /* elements of the whole array */
    struct range range;        /* this rank's part, in the order of a */
    bool has_part;             /* it is the caller's: not to be cut anew */
    uint64_t key;              /* as in struct job */
    void *stream;
    double atol, rtol;
    bool equal_nan;
};

/* The type as which elements of two types are compared; ALLFOLD_TYPE_NONE: they cannot be. */
allfold_type compare_type(allfold_type a, allfold_type b);

/* Sources of such arrays that are read alike, and this rank's part of them. linear: in the order of indices, whatever the order of the inputs
   is. Local. They are closed whatever the outcome is, before the inputs. */
struct compare_alike {
    struct source *a, *b;
    struct range range;
};
allfold_status compare_open(struct allfold_context *ctx, const struct compare_input *input, bool linear, struct compare_alike *alike, struct error *error);
void compare_close(const struct compare_input *input, const struct compare_alike *alike);

/* See allfold_compare. Collective. */
allfold_status core_compare(struct allfold_context *ctx, const struct compare_input *input, allfold_comparison *result, struct error *error);

/* A place that is outside, and both values: the bits of an f64 or of a 64-bit integer, for compare_value. */
struct compare_place {
    uint64_t index, a, b;
    bool missing_a, missing_b;
};
allfold_value compare_value(allfold_type type, uint64_t bits);

/* The first places outside, `most` at most, of arrays that the host can read: *count of them in `list`, on rank 0. Reads the ranks' parts
   again, as far as there are not enough. Collective. */
allfold_status core_compare_list(struct allfold_context *ctx, const struct compare_input *input, uint64_t most, struct compare_place *list,
                                 uint64_t *count, struct error *error);
