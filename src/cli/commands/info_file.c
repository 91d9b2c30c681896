/* info FILE: lists the arrays that a file holds. Only rank 0 reads the file. */
#include "cli/commands/commands.h"
#include "cli/report.h"

#include "cli/text.h"

#include <inttypes.h>
#include <stdlib.h>

#define SHAPE_BYTES (21 * ARRAY_DIMENSIONS_MAX)

/* The text of a report. It is printed as a whole, or not at all. */
struct text {
    FILE *file; /* in memory */
    uint64_t arrays;
    bool quiet;
};

static void put_dimension_names(const struct array_entry *entry, FILE *file)
{
    for (uint32_t i = 0; i < entry->info.dimensions; i++) {
        fputs(i == 0 ? " (" : ", ", file);
        text_print(file, entry->dimension_names[i]);
    }
    if (entry->info.dimensions > 0)
        putc(')', file);
}

/* ", WORDS TEXT" if there is a text. */
static void put_more(FILE *file, const char *words, const char *text)
{
    if (text == NULL || text[0] == '\0')
        return;
    fprintf(file, ", %s", words);
    text_print(file, text);
}

static void put_details(const struct array_entry *entry, FILE *file)
{
    const struct array_info *const info = &entry->info;
    char shape[SHAPE_BYTES], slice[2 * SHAPE_BYTES], chunk[SHAPE_BYTES], missing[ENCODING_TEXT_BYTES], packing[ENCODING_TEXT_BYTES];
    array_entry_shape(entry, shape, sizeof shape);
    array_slice_text(info, slice, sizeof slice);
    array_shape_text(entry->chunk, info->dimensions, chunk, sizeof chunk);
    encoding_missing_text(&info->encoding, missing);
    encoding_packing_text(&info->encoding, packing);
    fprintf(file, "%s%s%s%s", entry->name != NULL ? "  " : "", array_entry_type(entry), shape[0] != '\0' ? " " : "", shape);
    if (entry->dimension_names != NULL)
        put_dimension_names(entry, file);
    put_more(file, "slice ", slice);
    put_more(file, "chunks of ", chunk);
    put_more(file, "", entry->filters);
    put_more(file, "missing: ", missing);
    put_more(file, "packed: ", packing);
    put_more(file, "", info->layout.swapped ? "big-endian" : NULL);
    put_more(file, "", info->fortran_order ? "Fortran order" : NULL);
    put_more(file, "cannot be read: ", entry->refused.text);
}

static void put_entry(void *user, const struct array_entry *entry)
{
    struct text *const text = user;
    text->arrays++;
    fputs(text->quiet ? "" : "  ", text->file);
    text_print(text->file, entry->name == NULL ? "" : entry->name[0] == '\0' && !text->quiet ? "''" : entry->name);
    if (!text->quiet)
        put_details(entry, text->file);
    putc('\n', text->file);
}

static struct json_object *names(const char *const *texts, uint32_t count)
{
    struct json_object *array = json_object_new_array();
    for (uint32_t i = 0; i < count; i++)
        json_object_array_add(array, report_string(texts[i]));
    return array;
}

static struct json_object *text_or_null(const char *text) { return text != NULL && text[0] != '\0' ? report_string(text) : NULL; }

static void add_entry(void *user, const struct array_entry *entry)
{
    const struct array_info *const info = &entry->info;
    const allfold_type type = array_stored_type(info);
    char missing[ENCODING_TEXT_BYTES], packing[ENCODING_TEXT_BYTES];
    struct json_object *object = json_object_new_object();
    encoding_missing_text(&info->encoding, missing);
    encoding_packing_text(&info->encoding, packing);
    json_object_object_add(object, "name", entry->name != NULL ? report_string(entry->name) : NULL);
    json_object_object_add(object, "dtype", type != ALLFOLD_TYPE_NONE ? json_object_new_string(allfold_type_name(type)) : NULL);
    json_object_object_add(object, "file_type", report_string(array_entry_type(entry)));
    json_object_object_add(object, "shape", !entry->shapeless ? report_counts(info->shape, info->dimensions) : NULL);
    report_slice(info, object);
    json_object_object_add(object, "dimensions",
                           entry->dimension_names != NULL ? names(entry->dimension_names, info->dimensions) : NULL);
    json_object_object_add(object, "chunks", entry->chunk != NULL ? report_counts(entry->chunk, info->dimensions) : NULL);
    json_object_object_add(object, "filters", text_or_null(entry->filters));
    json_object_object_add(object, "missing", text_or_null(missing));
    json_object_object_add(object, "packing", text_or_null(packing));
    json_object_object_add(object, "byte_order", json_object_new_string(info->layout.swapped ? "big" : "little"));
    json_object_object_add(object, "fortran_order", json_object_new_boolean(info->fortran_order != 0));
    json_object_object_add(object, "refused", text_or_null(entry->refused.text));
    json_object_array_add(user, object);
}

static void print_json(const struct settings *settings, struct error *error)
{
    const char *format = NULL;
    struct json_object *report = json_object_new_object(), *arrays = json_object_new_array();
    array_entries(settings->operand, settings->hints.slice, add_entry, arrays, &format, error);
    json_object_object_add(report, "command", json_object_new_string(settings->command->name));
    json_object_object_add(report, "input", report_string(settings->operand));
    json_object_object_add(report, "format", format != NULL ? json_object_new_string(format) : NULL);
    json_object_object_add(report, "arrays", arrays);
    if (error->status == ALLFOLD_OK)
        report_print(report);
    else
        json_object_put(report);
}

static void print_text(const struct settings *settings, struct error *error)
{
    char *lines = NULL;
    size_t bytes;
    const char *format = NULL;
    struct text text = {.file = open_memstream(&lines, &bytes), .quiet = settings->quiet};
    if (text.file == NULL) {
        error_set(error, ALLFOLD_NO_MEMORY, "no memory for a list of arrays");
        return;
    }
    array_entries(settings->operand, settings->hints.slice, put_entry, &text, &format, error);
    if (fclose(text.file) != 0)
        error_set(error, ALLFOLD_NO_MEMORY, "no memory for a list of %" PRIu64 " arrays", text.arrays);
    if (error->status == ALLFOLD_OK && !text.quiet) {
        text_print(stdout, settings->operand);
        printf(": %s, %" PRIu64 " array%s\n", format, text.arrays, text.arrays == 1 ? "" : "s");
    }
    if (error->status == ALLFOLD_OK)
        fputs(lines, stdout);
    free(lines);
}

void info_file_run(struct session *session)
{
    const struct settings *const settings = session->settings;
    struct error *const error = &session->error;
    if (settings->check)
        error_set(error, ALLFOLD_BAD_ARGUMENT, "info: expected --check without a FILE: it is about ranks and devices");
    else if (session_comm(session)->rank == 0 && settings->json)
        print_json(settings, error);
    else if (session_comm(session)->rank == 0)
        print_text(settings, error);
    session_agree(session);
}
