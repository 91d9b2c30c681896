/* Prints reports as text and as JSON: see report.h. */
#include "cli/report.h"

#include "cli/number.h"
#include "cli/progress.h"
#include "cli/text.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

struct json_object *report_string(const char *text)
{
    static const char replacement[] = "\xef\xbf\xbd"; /* U+FFFD */
    char *valid = malloc(3 * strlen(text) + 1), *end = valid;
    if (valid == NULL)
        return NULL;
    while (*text != '\0') {
        const size_t length = text_utf8_length(text);
        memcpy(end, length > 0 ? text : replacement, length > 0 ? length : 3);
        end += length > 0 ? length : 3;
        text += length > 0 ? length : 1;
    }
    *end = '\0';
    struct json_object *string = json_object_new_string(valid);
    free(valid);
    return string;
}

struct json_object *report_measured(double number)
{
    char text[40];
    snprintf(text, sizeof text, "%.6g", number);
    return isfinite(number) ? json_object_new_double_s(number, text) : NULL;
}

void report_print(struct json_object *object)
{
    puts(json_object_to_json_string_ext(object, JSON_C_TO_STRING_SPACED | JSON_C_TO_STRING_NOSLASHESCAPE));
    json_object_put(object);
}

struct json_object *report_value(allfold_value value)
{
    switch (value.kind) {
    case ALLFOLD_VALUE_I64: return json_object_new_int64(value.i64);
    case ALLFOLD_VALUE_U64: return json_object_new_uint64(value.u64);
    case ALLFOLD_VALUE_F64: break;
    }
    return isfinite(value.f64) ? json_object_new_double_s(value.f64, number_shortest(value.f64).text) : NULL;
}

struct json_object *report_counts(const uint64_t *counts, uint32_t count)
{
    struct json_object *const list = json_object_new_array();
    for (uint32_t i = 0; i < count; i++)
        json_object_array_add(list, json_object_new_uint64(counts[i]));
    return list;
}

struct json_object *report_place(const struct array_info *input, uint64_t index)
{
    uint64_t place[ARRAY_DIMENSIONS_MAX];
    array_place(input, index, place);
    return input->dimensions > 0 ? report_counts(place, input->dimensions) : NULL;
}

void report_add_value(struct json_object *object, const struct array_info *input, const struct fold_field *field)
{
    const allfold_value value = field->value;
    const bool real = value.kind == ALLFOLD_VALUE_F64;
    json_object_object_add(object, "value", report_value(value));
    json_object_object_add(object, "text", json_object_new_string(number_value(value).text));
    json_object_object_add(object, "hex", real ? json_object_new_string(number_hex(value.f64).text) : NULL);
    if (field->index != ALLFOLD_NO_INDEX) {
        json_object_object_add(object, "index", json_object_new_uint64(field->index));
        if (input->dimensions > 0)
            json_object_object_add(object, "place", report_place(input, field->index));
    }
}

/* The name in the report: the fold's, or the command's. */
static const char *name_of(const struct session *session)
{
    return session->name != NULL ? session->name : session->settings->command->name;
}

/* The type of the values for which elements of the file stand. */
static allfold_type value_type(const struct array_info *input) { return input->encoding.packed ? ALLFOLD_F64 : input->type; }

/* Whether the report says how many elements were missing: if the input can have any, and they are looked for. Along an axis each row has
   a number of its own. */
static bool counts_missing(const struct session *session, const struct array_info *input, uint64_t missing)
{
    if (session->settings->axis != NULL)
        return false;
    return missing > 0 || (encoding_has_missing(&input->encoding) && input->missing != MISSING_KEEP);
}

/* Bytes of the input a second; NAN if it was not read. */
static double input_rate(const struct session *session, double seconds)
{
    return session->input_read ? session->input_bytes / seconds : NAN;
}

const char *report_exchange_name(const struct session *session)
{
    return session->settings->context.exchange == ALLFOLD_EXCHANGE_MPI ? "mpi" : "auto";
}

void report_exchange(const struct session *session, struct json_object *report)
{
    json_object_object_add(report, "exchange", json_object_new_string(report_exchange_name(session)));
    json_object_object_add(report, "hosts", json_object_new_int(session->context->comm.hosts));
}

static void add_input(const struct session *session, const struct array_info *input, uint64_t missing, struct json_object *report)
{
    char name[ARRAY_NAME_BYTES];
    json_object_object_add(report, "input", report_string(array_name(input, name)));
    json_object_object_add(report, "dtype", json_object_new_string(allfold_type_name(value_type(input))));
    if (input->encoding.packed)
        json_object_object_add(report, "stored_dtype", json_object_new_string(allfold_type_name(array_stored_type(input))));
    json_object_object_add(report, "count", json_object_new_uint64(input->count));
    if (input->sliced)
        json_object_object_add(report, "input_shape", report_counts(input->shape, input->dimensions));
    report_slice(input, report);
    if (counts_missing(session, input, missing))
        json_object_object_add(report, "missing", json_object_new_uint64(missing));
}

static void add_run(const struct session *session, allfold_level level, struct json_object *report)
{
    json_object_object_add(report, "ranks", json_object_new_int(session->context->comm.size));
    json_object_object_add(report, "backend", json_object_new_string(session->context->device->backend->name));
    report_exchange(session, report);
    json_object_object_add(report, "level", json_object_new_string(level_name(level)));
}

struct json_object *report_begin(const struct session *session, allfold_level level)
{
    struct json_object *report = json_object_new_object();
    json_object_object_add(report, "command", json_object_new_string(session->settings->command->name));
    if (session->name != NULL)
        json_object_object_add(report, "fold", json_object_new_string(session->name));
    add_input(session, &session->input, session->missing, report);
    add_run(session, level, report);
    return report;
}

/* Seconds of those phases that took any. */
static struct json_object *phases_json(const struct session *session)
{
    struct json_object *phases = json_object_new_object();
    for (int i = 0; i < PHASE_COUNT; i++)
        if (session->phases[i] > 0)
            json_object_object_add(phases, phase_name((enum phase)i), report_measured(session->phases[i]));
    return phases;
}

void report_end(const struct session *session, struct json_object *report, double seconds)
{
    json_object_object_add(report, "seconds", report_measured(seconds));
    json_object_object_add(report, "bytes_per_second", report_measured(input_rate(session, seconds)));
    json_object_object_add(report, "phases", phases_json(session));
    report_print(report);
}

void report_circumstances(const struct session *session, allfold_level level, double seconds)
{
    char name[ARRAY_NAME_BYTES], slice[256];
    const int ranks = session->context->comm.size;
    array_slice_text(&session->input, slice, sizeof slice);
    printf("  (%" PRIu64 " %s", session->input.count, allfold_type_name(value_type(&session->input)));
    if (session->input.encoding.packed)
        printf(" packed as %s", allfold_type_name(array_stored_type(&session->input)));
    if (counts_missing(session, &session->input, session->missing))
        printf(", %" PRIu64 " missing,", session->missing);
    fputs(" from ", stdout);
    text_print(stdout, array_name(&session->input, name));
    printf("%s, %d rank%s, %s, %s, %.3g s", slice, ranks, ranks == 1 ? "" : "s", session->context->device->backend->name,
           level_name(level), seconds);
    if (session->input_read)
        printf(", %s/s", number_bytes(input_rate(session, seconds)).text);
    puts(")");
}

/* Several statistics are printed as a table of names and values, a single one as its value alone. */
static bool is_table(const struct fold_results *result) { return result->field_count != 1; }

static void add_results(const struct session *session, const struct array_info *input, const struct fold_results *result,
                        struct json_object *report)
{
    struct json_object *table = is_table(result) ? json_object_new_object() : NULL;
    for (int i = 0; i < result->field_count; i++) {
        struct json_object *object = table != NULL ? json_object_new_object() : report;
        report_add_value(object, input, &result->fields[i]);
        if (table != NULL)
            json_object_object_add(table, result->fields[i].name, object);
    }
    if (table != NULL)
        json_object_object_add(report, name_of(session), table);
}

static void fold_json(const struct session *session, const struct fold_results *result, double seconds)
{
    struct json_object *report = report_begin(session, result->level);
    add_results(session, &session->input, result, report);
    report_end(session, report, seconds);
}

void report_index(const struct array_info *input, uint64_t index)
{
    char place[ARRAY_PLACE_BYTES];
    if (index == ALLFOLD_NO_INDEX)
        return;
    printf(" at index %" PRIu64, index);
    array_place_text(input, index, place);
    fputs(place[0] != '\0' ? ", " : "", stdout);
    text_print(stdout, place);
}

static void print_fields(const struct session *session, const struct array_info *input, const struct fold_results *result)
{
    for (int i = 0; i < result->field_count; i++) {
        printf("%s%-9s  %s", session->settings->quiet ? "" : "  ", result->fields[i].name,
               number_value(result->fields[i].value).text);
        report_index(input, result->fields[i].index);
        putchar('\n');
    }
}

static void fold_table(const struct session *session, const struct fold_results *result, double seconds)
{
    if (!session->settings->quiet) {
        fputs(name_of(session), stdout);
        report_circumstances(session, result->level, seconds);
    }
    print_fields(session, &session->input, result);
}

/* "sum = 3.0", or the value alone. */
static void print_value(const struct session *session, const char *name, const struct array_info *input, const struct fold_results *result)
{
    const bool quiet = session->settings->quiet;
    const uint64_t index = result->fields[0].index;
    if (!quiet) {
        text_print(stdout, name);
        fputs(" = ", stdout);
    }
    fputs(number_value(result->fields[0].value).text, stdout);
    if (!quiet)
        report_index(input, index);
    else if (index != ALLFOLD_NO_INDEX)
        printf(" %" PRIu64, index);
}

static void fold_line(const struct session *session, const struct fold_results *result, double seconds)
{
    print_value(session, name_of(session), &session->input, result);
    if (session->settings->quiet)
        putchar('\n');
    else
        report_circumstances(session, result->level, seconds);
}

void report_fold(const struct session *session, const struct fold_results *result, double seconds)
{
    progress_end();
    if (session->settings->json)
        fold_json(session, result, seconds);
    else if (is_table(result))
        fold_table(session, result, seconds);
    else
        fold_line(session, result, seconds);
}

static void each_json(const struct session *session, const struct report_items *all, double seconds)
{
    struct json_object *const report = json_object_new_object(), *const arrays = json_object_new_array();
    const allfold_fold fold = (allfold_fold)session->settings->command->which;
    json_object_object_add(report, "command", json_object_new_string(name_of(session)));
    for (uint64_t i = 0; i < all->count; i++) {
        const struct report_item *const item = &all->items[i];
        struct json_object *const array = json_object_new_object();
        json_object_object_add(array, "name", item->input->member[0] != '\0' ? report_string(item->input->member) : NULL);
        add_input(session, item->input, item->missing, array);
        json_object_object_add(array, "level", json_object_new_string(level_name(item->result.level)));
        add_results(session, item->input, &item->result, array);
        json_object_array_add(arrays, array);
    }
    json_object_object_add(report, "arrays", arrays);
    add_run(session, fold_level(fold, session->context->level), report);
    report_end(session, report, seconds);
}

static void print_item(const struct session *session, const struct report_item *item, bool one_file)
{
    char whole[ARRAY_NAME_BYTES];
    const char *const name = one_file && item->input->member[0] != '\0' ? item->input->member : array_name(item->input, whole);
    if (is_table(&item->result)) {
        if (!session->settings->quiet) {
            text_print(stdout, name);
            putchar('\n');
        }
        print_fields(session, item->input, &item->result);
        return;
    }
    print_value(session, name, item->input, &item->result);
    if (!session->settings->quiet && counts_missing(session, item->input, item->missing))
        printf("  (%" PRIu64 " missing)", item->missing);
    putchar('\n');
}

void report_each(const struct session *session, const struct report_items *all, double seconds)
{
    progress_end();
    if (session->settings->json)
        each_json(session, all, seconds);
    for (uint64_t i = 0; i < all->count && !session->settings->json; i++)
        print_item(session, &all->items[i], all->one_file);
}

void report_slice(const struct array_info *info, struct json_object *report)
{
    struct json_object *const slice = info->sliced ? json_object_new_array() : NULL;
    if (slice == NULL)
        return;
    for (uint32_t i = 0; i < info->dimensions; i++) {
        const uint64_t ends[] = {info->first[i], info->first[i] + info->shape[i]};
        json_object_array_add(slice, report_counts(ends, 2));
    }
    json_object_object_add(report, "slice", slice);
}

void report_left_out(const struct array_entry *entry)
{
    char name[ARRAY_NAME_BYTES], words[ALLFOLD_ERROR_BYTES + 16];
    snprintf(words, sizeof words, "left out: %s", entry->refused.text);
    text_tell(file_shown(array_name(&entry->info, name)), words);
}

void report_output(const struct session *session, const struct report_output *output, double seconds)
{
    const struct settings *const settings = session->settings;
    progress_end();
    if (settings->json) {
        struct json_object *report = report_begin(session, session->context->level);
        if (output->axes != NULL) {
            axes_report(output->axes, output->array, report);
            json_object_object_add(report, "shape", report_counts(session->input.shape, session->input.dimensions));
        }
        json_object_object_add(report, "output", report_string(settings->output));
        json_object_object_add(report, "output_dtype", json_object_new_string(allfold_type_name(output->type)));
        report_end(session, report, seconds);
    } else if (!settings->quiet) {
        printf("%s%s%s: %s in ", settings->command->name, output->axes != NULL ? " along axis " : "",
               output->axes != NULL ? settings->axis : "", allfold_type_name(output->type));
        text_print(stdout, settings->output);
        report_circumstances(session, session->context->level, seconds);
    }
}
