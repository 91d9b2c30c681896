/* Compares two arrays: a call of allfold.h. */
#include "api.h"
#include "core/compare.h"

#include <inttypes.h>
#include <string.h>

/* What makes two arrays no pair. */
static void check_pair(const allfold_array *a, const allfold_array *b, struct error *error)
{
    if (error->status != ALLFOLD_OK)
        return;
    if (compare_type(a->type, b->type) == ALLFOLD_TYPE_NONE)
        error_set(error, ALLFOLD_BAD_ARGUMENT, "expected two floating-point arrays, or two of integers, found %s and %s: convert one of them",
                  allfold_type_name(a->type), allfold_type_name(b->type));
    else if (a->count != b->count)
        error_set(error, ALLFOLD_BAD_ARGUMENT, "expected as many elements in b as in a on each rank, found %" PRIu64 " in a and %" PRIu64 " in b", a->count,
                  b->count);
}

static void check_tolerance(const allfold_tolerance *tolerance, struct error *error)
{
    if (!(tolerance->atol >= 0 && tolerance->rtol >= 0))
        error_set(error, ALLFOLD_BAD_ARGUMENT, "atol is %g and rtol is %g: expected numbers that are not negative", tolerance->atol,
                  tolerance->rtol);
}

/* The converting reader is the host's. */
static void refuse_device(struct allfold_context *ctx, const allfold_array *array, struct error *error)
{
    enum place place = PLACE_HOST;
    if (error->status != ALLFOLD_OK || array->count == 0 || !ctx->device->backend->own_memory
        || ctx->device->backend->locate(ctx->device, array->data, &place, error) != ALLFOLD_OK)
        return;
    if (place == PLACE_DEVICE)
        error_set(error, ALLFOLD_UNSUPPORTED, "arrays of two types cannot lie in device memory: convert one of them to the other's type");
}

allfold_status allfold_compare(allfold_context *context, const allfold_array *a, const allfold_array *b, const allfold_tolerance *tolerance,
                               allfold_comparison *comparison)
{
    struct error *const error = api_enter(context);
    allfold_tolerance known = ALLFOLD_TOLERANCE_INIT;
    allfold_comparison found;
    api_check_part(a, error);
    api_check_part(b, error);
    check_pair(a, b, error);
    api_take_tolerance(tolerance, &known, error);
    check_tolerance(&known, error);
    if (comparison == NULL || comparison->size < sizeof comparison->size)
        error_set(error, ALLFOLD_BAD_ARGUMENT, "the comparison is NULL, or its size is not set: begin with ALLFOLD_COMPARISON_INIT");
    if (error->status == ALLFOLD_OK && a->type != b->type) {
        refuse_device(context, a, error);
        refuse_device(context, b, error);
    }
    struct source of_a = api_part_source(a, error), of_b = api_part_source(b, error);
    const bool usable = error->status == ALLFOLD_OK;
    const struct compare_input input = {.a = &of_a, .b = &of_b, .a_type = of_a.type, .b_type = of_b.type, .range = {0, usable ? a->count : 0},
                                        .has_part = true, .stream = known.stream, .atol = known.atol, .rtol = known.rtol,
                                        .equal_nan = known.equal_nan != 0};
    api_checked(context);
    if (core_compare(context, &input, &found, error) != ALLFOLD_OK)
        return error->status;
    const size_t size = comparison->size;
    memcpy(comparison, &found, size < sizeof found ? size : sizeof found);
    comparison->size = size;
    return ALLFOLD_OK;
}
