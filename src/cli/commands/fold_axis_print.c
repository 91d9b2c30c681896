/* Prints the report of a fold along an axis and, if no file is named, its results. */
#include "cli/commands/fold_axis.h"

#include "base/elements.h"
#include "cli/number.h"
#include "cli/progress.h"
#include "cli/report.h"
#include "cli/text.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static allfold_value value_at(const struct fold_axis *f, int array, uint64_t place)
{
    const char *const elements = f->memory[array].elements;
    const allfold_type type = f->arrays[array].type;
    allfold_value value = {.kind = ALLFOLD_VALUE_F64};
    if (!real_load(elements, place, type, &value.f64)) {
        value.kind = type_kind(type) == 'i' ? ALLFOLD_VALUE_I64 : ALLFOLD_VALUE_U64;
        memcpy(&value.u64, elements + place * sizeof value.u64, sizeof value.u64);
    }
    return value;
}

/* "[1][2]" of the place of a result, in the array's own order. */
static void print_index(const struct array_info *shape, uint64_t place)
{
    uint64_t index[ARRAY_DIMENSIONS_MAX];
    array_place(shape, place, index);
    for (uint32_t i = 0; i < shape->dimensions; i++)
        printf("[%" PRIu64 "]", index[i]);
    fputs(shape->dimensions > 0 ? "  " : "", stdout);
}

/* The results of an array as lists in lists, from a dimension on; place: of the first. */
static struct json_object *lists(const struct fold_axis *f, int array, uint32_t dimension, uint64_t place)
{
    const struct array_info *const shape = f->shape;
    uint64_t step = 1;
    if (dimension == shape->dimensions)
        return report_value(value_at(f, array, place));
    for (uint32_t i = 0; i < shape->dimensions; i++)
        step *= (shape->fortran_order ? i < dimension : i > dimension) ? shape->shape[i] : 1;
    struct json_object *const list = json_object_new_array();
    for (uint64_t i = 0; i < shape->shape[dimension]; i++)
        json_object_array_add(list, lists(f, array, dimension + 1, place + i * step));
    return list;
}

static void print_json(const struct session *session, const struct fold_axis *f, double seconds)
{
    const struct settings *const settings = session->settings;
    struct json_object *const report = report_begin(session, fold_level(f->call.fold, f->call.level));
    struct json_object *const types = json_object_new_object(), *const results = json_object_new_object();
    axes_report(&f->axes, &f->array, report);
    json_object_object_add(report, "shape", report_counts(f->shape->shape, f->shape->dimensions));
    for (int k = 0; k < f->count; k++) {
        json_object_object_add(types, f->arrays[k].name, json_object_new_string(allfold_type_name(f->arrays[k].type)));
        if (f->file_count == 0)
            json_object_object_add(results, f->arrays[k].name, lists(f, k, 0, 0));
    }
    json_object_object_add(report, "dtypes", types);
    if (f->file_count == 0) {
        json_object_object_add(report, "results", results);
    } else {
        json_object_put(results);
        json_object_object_add(report, "output", report_string(settings->output));
    }
    if (settings->values != NULL)
        json_object_object_add(report, "values", report_string(settings->values));
    report_end(session, report, seconds);
}

/* A line for each result: "[1][2]  name value  name value". The value comes before the index, which is the first array. */
static void print_results(const struct session *session, const struct fold_axis *f)
{
    for (uint64_t place = 0; place < f->shape->count; place++) {
        if (!session->settings->quiet) {
            fputs("  ", stdout);
            print_index(f->shape, place);
        }
        for (int i = 0; i < f->count; i++) {
            const int k = f->arrays[0].indices ? f->count - 1 - i : i;
            if (f->count > 1 && !session->settings->quiet)
                printf("%s%s ", i > 0 ? "  " : "", f->arrays[k].name);
            printf("%s%s", session->settings->quiet && i > 0 ? " " : "", number_value(value_at(f, k, place)).text);
        }
        putchar('\n');
    }
}

/* The value of all elements. */
static void print_one(const struct session *session, const struct fold_axis *f, double seconds)
{
    const struct fold_results result = {.count = session->input.count - session->missing, .level = fold_level(f->call.fold, f->call.level),
                                        .field_count = 1, .fields = {{0, "value", value_at(f, 0, 0), ALLFOLD_NO_INDEX}}};
    report_fold(session, &result, seconds);
}

void fold_axis_print(const struct session *session, const struct fold_axis *f, double seconds)
{
    const struct settings *const settings = session->settings;
    const allfold_level level = fold_level(f->call.fold, f->call.level);
    char shape[256];
    progress_end();
    if (settings->axis == NULL) {
        print_one(session, f, seconds);
        return;
    }
    if (settings->json) {
        print_json(session, f, seconds);
        return;
    }
    array_shape_text(f->shape->shape, f->shape->dimensions, shape, sizeof shape);
    if (!settings->quiet) {
        printf("%s along axis %s: %s %s", settings->command->name, settings->axis, f->count == 1 ? allfold_type_name(f->arrays[0].type) : "results", shape);
        if (f->file_count > 0) {
            fputs(" in ", stdout);
            text_print(stdout, settings->output);
        }
        if (settings->values != NULL) {
            fputs(" and ", stdout);
            text_print(stdout, settings->values);
        }
        report_circumstances(session, level, seconds);
    }
    if (f->file_count == 0)
        print_results(session, f);
}
