/* Compares two arrays: a call of allfold.h. */
#include "api.h"
#include "core/compare.h"

#include <inttypes.h>
#include <string.h>

/* What makes two arrays no pair. */
static void check_pair(const struct api_operand *a, const struct api_operand *b, struct error *error)
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

allfold_status allfold_compare(allfold_context *context, const allfold_array *a, const allfold_array *b, const allfold_tolerance *tolerance,
                               allfold_comparison *comparison)
{
    struct error *const error = api_enter(context);
    allfold_tolerance known = ALLFOLD_TOLERANCE_INIT;
    allfold_comparison found;
    struct api_operand of_a, of_b;
    api_operand_take(a, &of_a, error);
    api_operand_take(b, &of_b, error);
    api_operands_check(&of_a, &of_b, error);
    check_pair(&of_a, &of_b, error);
    api_take_tolerance(tolerance, &known, error);
    check_tolerance(&known, error);
    if (comparison == NULL || comparison->size < sizeof comparison->size)
        error_set(error, ALLFOLD_BAD_ARGUMENT, "the comparison is NULL, or its size is not set: begin with ALLFOLD_COMPARISON_INIT");
    api_operand_open(context, API_READ, &of_a, error);
    api_operand_open(context, API_READ, &of_b, error);
    struct compare_input input = api_operand_pair(&of_a, &of_b, known.stream);
    input.atol = known.atol;
    input.rtol = known.rtol;
    input.equal_nan = known.equal_nan != 0;
    api_checked(context);
    core_compare(context, &input, &found, error);
    api_operand_close(&of_a);
    api_operand_close(&of_b);
    if (error->status != ALLFOLD_OK)
        return error->status;
    const size_t size = comparison->size;
    memcpy(comparison, &found, size < sizeof found ? size : sizeof found);
    comparison->size = size;
    return ALLFOLD_OK;
}
