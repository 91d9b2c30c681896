/* Parses --axis: see axes.h. */
#include "cli/axes.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* The next number of a list, or name of a dimension; false: it is something else. */
static bool read_axis(const char **text, const struct array_info *info, long *axis)
{
    const size_t length = strcspn(*text, ",");
    const char *const word = *text;
    *text += length + (word[length] == ',');
    return !(word[length] == ',' && **text == '\0') && array_find_dimension(info, word, length, axis);
}

static allfold_status refuse_word(const char *text, const struct array_info *info, struct error *error)
{
    char names[200];
    array_names_text(info, names, sizeof names);
    return error_set(error, ALLFOLD_BAD_ARGUMENT, "--axis: expected a number%s%s%s, or several with commas between them, found '%.100s'",
                     names[0] != '\0' ? " or a dimension's name (" : "", names, names[0] != '\0' ? ")" : "", text);
}

/* Sets the bits of the dimensions that the text names. */
static allfold_status read_axes(const char *text, const struct array_info *info, uint64_t *named, struct error *error)
{
    const long dimensions = (long)info->dimensions;
    char shape[256], name[ARRAY_NAME_BYTES];
    const char *unparsed = text;
    array_shape_text(info->shape, info->dimensions, shape, sizeof shape);
    while (*unparsed != '\0') {
        long axis;
        if (!read_axis(&unparsed, info, &axis))
            return refuse_word(text, info, error);
        if (axis < -dimensions || axis >= dimensions)
            return error_set(error, ALLFOLD_BAD_ARGUMENT, "%s: --axis: expected an axis of an array of %ld dimension%s (%s)%s, found '%.100s'",
                             file_shown(array_name(info, name)), dimensions, dimensions == 1 ? "" : "s", shape,
                             dimensions <= 1 ? ", or --shape for another shape" : "", text);
        const long dimension = axis < 0 ? axis + dimensions : axis;
        if ((*named >> dimension & 1) != 0)
            return error_set(error, ALLFOLD_BAD_ARGUMENT, "--axis: expected each axis once, found '%.100s' of an array of %ld dimensions", text,
                             dimensions);
        *named |= UINT64_C(1) << dimension;
    }
    return ALLFOLD_OK;
}

void axes_result(const struct axes *axes, const struct array_info *input, bool keepdims, struct array_info *result)
{
    memset(result, 0, sizeof *result);
    result->fortran_order = input->fortran_order;
    result->count = 1;
    for (uint32_t i = 0; i < input->dimensions; i++)
        if (!axes_fold(axes, i)) {
            result->count *= input->shape[i]; /* array_count has checked the product */
            result->shape[result->dimensions++] = input->shape[i];
        } else if (keepdims) {
            result->shape[result->dimensions++] = 1;
        }
}

allfold_status axes_take(struct session *session, struct axes *axes, struct axis_array *array)
{
    const struct settings *const settings = session->settings;
    const struct array_info *const input = &session->input;
    struct error *const error = &session->error;
    if (settings->checkpoint != NULL && settings->output == NULL)
        return error_set(error, ALLFOLD_BAD_ARGUMENT, "%s: expected -o FILE beside --checkpoint: results along an axis are kept in the unfinished "
                         "output", settings->command->name);
    axes->folded = settings->axis != NULL ? 0 : input->dimensions < 64 ? (UINT64_C(1) << input->dimensions) - 1 : UINT64_MAX;
    if (settings->axis != NULL && read_axes(settings->axis, input, &axes->folded, error) != ALLFOLD_OK)
        return error->status;
    *array = axis_array_of(input, axes->folded);
    return ALLFOLD_OK;
}

void axes_report(const struct axes *axes, const struct axis_array *array, struct json_object *report)
{
    static const char *const cuts[] = {[ALLFOLD_CUT_OUTER] = "outer", [ALLFOLD_CUT_AXIS] = "axis", [ALLFOLD_CUT_INNER] = "inner"};
    struct json_object *const list = json_object_new_array();
    for (uint32_t i = 0; i < array->shape.dimensions; i++)
        if (axes_fold(axes, i))
            json_object_array_add(list, json_object_new_uint64(i));
    json_object_object_add(report, "axis", list);
    json_object_object_add(report, "outer", json_object_new_uint64(array->outer));
    json_object_object_add(report, "length", json_object_new_uint64(array->length));
    json_object_object_add(report, "inner", json_object_new_uint64(array->inner));
    json_object_object_add(report, "cut", json_object_new_string(cuts[array->cut]));
}
