/* safetensors: 8 bytes of length, a header in JSON, and the tensors' elements, little-endian, without gaps:
   https://huggingface.co/docs/safetensors. */
#include "array/formats/safetensors.h"

#include "array/formats/npy.h"

#include <inttypes.h>
#include <json-c/json.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LENGTH_BYTES 8

static const struct {
    const char *name;
    allfold_type type;
} types[] = {{"F64", ALLFOLD_F64},     {"F32", ALLFOLD_F32},     {"F16", ALLFOLD_F16},   {"BF16", ALLFOLD_BF16},  {"I64", ALLFOLD_INT64},
             {"I32", ALLFOLD_INT32},   {"I16", ALLFOLD_INT16},   {"I8", ALLFOLD_INT8},   {"U64", ALLFOLD_UINT64}, {"U32", ALLFOLD_UINT32},
             {"U16", ALLFOLD_UINT16}, {"U8", ALLFOLD_UINT8}, {"BOOL", ALLFOLD_BOOL}};

struct tensor {
    const char *name, *type_text; /* of the JSON object */
    allfold_type type;            /* ALLFOLD_TYPE_NONE: not a type of ours */
    uint32_t dimensions;
    uint64_t shape[ARRAY_DIMENSIONS_MAX];
    uint64_t count, begin, end; /* elements; bytes, from the first of all tensors on */
};

/* A file's tensors, in the order in which they lie there. */
struct tensors {
    struct json_object *header;
    struct tensor *tensors;
    uint64_t count, data; /* the byte of the file at which the tensors begin */
};

static void free_tensors(struct tensors *all)
{
    json_object_put(all->header);
    free(all->tensors);
}

bool safetensors_expected(const struct input_file *file, struct error *error, const char *format, ...)
{
    char text[ALLFOLD_ERROR_BYTES];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    error_set(error, ALLFOLD_BAD_INPUT, "%s: safetensors: expected %s", file_shown(file->name), text);
    return false;
}

/* The names in the objects of a text of JSON: each has a colon behind it. */
static uint64_t count_colons(const char *text, uint64_t bytes)
{
    uint64_t colons = 0;
    bool quoted = false;
    for (uint64_t i = 0; i < bytes; i++) {
        if (quoted && text[i] == '\\')
            i++;
        else if (text[i] == '"')
            quoted = !quoted;
        else
            colons += !quoted && text[i] == ':';
    }
    return colons;
}

/* The names that json-c has kept: of equal ones in an object the last. */
static uint64_t count_names(struct json_object *value)
{
    uint64_t names = 0;
    if (json_object_is_type(value, json_type_array))
        for (size_t i = 0; i < json_object_array_length(value); i++)
            names += count_names(json_object_array_get_idx(value, i));
    if (json_object_is_type(value, json_type_object)) {
        json_object_object_foreach (value, name, inner)
            names += (name != NULL) + count_names(inner);
    }
    return names;
}

struct json_object *safetensors_read_json(const struct input_file *file, struct range place, struct error *error)
{
    char *const text = malloc((size_t)place.count + 1);
    struct json_tokener *const tokener = json_tokener_new();
    struct json_object *object = NULL;
    if (text == NULL || tokener == NULL)
        error_set(error, ALLFOLD_NO_MEMORY, "%s: no memory for a header of %" PRIu64 " bytes", file_shown(file->name), place.count);
    else if (file_read(&(struct file_range){file->fd, file->name, place.first, place.count}, text, error) == ALLFOLD_OK) {
        json_tokener_set_flags(tokener, JSON_TOKENER_STRICT | JSON_TOKENER_ALLOW_TRAILING_CHARS | JSON_TOKENER_VALIDATE_UTF8);
        object = json_tokener_parse_ex(tokener, text, (int)place.count);
        const enum json_tokener_error failure = json_tokener_get_error(tokener);
        uint64_t end = json_tokener_get_parse_end(tokener);
        while (failure == json_tokener_success && end < place.count && strchr(" \t\r\n", text[end]) != NULL && text[end] != '\0')
            end++;
        if (failure != json_tokener_success || end < place.count || !json_object_is_type(object, json_type_object))
            safetensors_expected(file, error, "one JSON object in %" PRIu64 " bytes, found %s at byte %" PRIu64, place.count,
                                 failure == json_tokener_success    ? "something else"
                                 : failure == json_tokener_continue ? "that it does not end"
                                                                    : json_tokener_error_desc(failure),
                                 place.first + end);
        else if (count_colons(text, place.count) != count_names(object))
            safetensors_expected(file, error, "each name once in an object of JSON, found one twice");
        if (error->status != ALLFOLD_OK) {
            json_object_put(object);
            object = NULL;
        }
    }
    if (tokener != NULL)
        json_tokener_free(tokener);
    free(text);
    return object;
}

#define FOUND_BYTES 64

/* Puts a value in words. json-c cuts integers to 64 bits. Returns false. */
static bool say(struct json_object *value, char found[FOUND_BYTES])
{
    const bool integer = json_object_is_type(value, json_type_int);
    snprintf(found, FOUND_BYTES, "%.40s%s", value != NULL ? json_object_to_json_string(value) : "none",
             integer && json_object_get_uint64(value) == UINT64_MAX  ? " or more"
             : integer && json_object_get_int64(value) == INT64_MIN ? " or less"
                                                                    : "");
    return false;
}

/* Takes `least` to `most` whole numbers, not negative and below 2^63. False: found says what is there instead. */
static bool get_numbers(struct json_object *list, size_t least, size_t most, uint64_t *numbers, uint32_t *count, char found[FOUND_BYTES])
{
    if (!json_object_is_type(list, json_type_array))
        return say(list, found);
    const size_t length = json_object_array_length(list);
    if (length < least || length > most) {
        snprintf(found, FOUND_BYTES, "%zu of them", length);
        return false;
    }
    *count = (uint32_t)length;
    for (size_t i = 0; i < length; i++) {
        struct json_object *const number = json_object_array_get_idx(list, i);
        if (!json_object_is_type(number, json_type_int) || json_object_get_int64(number) < 0
            || json_object_get_uint64(number) > FILE_BYTES_MAX)
            return say(number, found);
        numbers[i] = json_object_get_uint64(number);
    }
    return true;
}

static bool parse_tensor(const struct input_file *file, const char *name, struct json_object *value, struct tensor *tensor,
                         struct error *error)
{
    struct json_object *const type = json_object_object_get(value, "dtype");
    uint64_t ends[2];
    uint32_t end_count;
    char found[FOUND_BYTES];
    const char *const shown = file_shown(name);
    if (!json_object_is_type(type, json_type_string) && !say(type, found))
        return safetensors_expected(file, error, "a dtype of tensor '%s', a text, found %s", shown, found);
    if (!get_numbers(json_object_object_get(value, "shape"), 0, ARRAY_DIMENSIONS_MAX, tensor->shape, &tensor->dimensions, found))
        return safetensors_expected(file, error, "a shape of tensor '%s', a list of at most %d whole numbers, not negative and below 2^63, "
                                    "found %s", shown, ARRAY_DIMENSIONS_MAX, found);
    if (!get_numbers(json_object_object_get(value, "data_offsets"), 2, 2, ends, &end_count, found))
        return safetensors_expected(file, error, "data_offsets of tensor '%s', two whole numbers, not negative and below 2^63, found %s", shown,
                                    found);
    if (ends[0] > ends[1])
        return safetensors_expected(file, error, "data_offsets of tensor '%s' in order, found %" PRIu64 " and %" PRIu64, shown, ends[0], ends[1]);
    tensor->name = name;
    tensor->type_text = json_object_get_string(type);
    tensor->begin = ends[0];
    tensor->end = ends[1];
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (strcmp(types[i].name, tensor->type_text) == 0)
            tensor->type = types[i].type;
    const size_t bytes = tensor->type != ALLFOLD_TYPE_NONE ? allfold_type_bytes(tensor->type) : 1;
    if (!array_count(tensor->shape, tensor->dimensions, bytes, &tensor->count))
        return safetensors_expected(file, error, "a shape of " ARRAY_COUNT_RULE " of tensor '%s', found a larger one", shown);
    if (tensor->type != ALLFOLD_TYPE_NONE && tensor->count * bytes != ends[1] - ends[0])
        return safetensors_expected(file, error, "the data_offsets of tensor '%s' to span its %" PRIu64 " %s elements, found %" PRIu64
                                    " bytes", shown, tensor->count, tensor->type_text, ends[1] - ends[0]);
    return true;
}

static int by_place(const void *a, const void *b)
{
    const struct tensor *const x = a, *const y = b;
    return x->begin != y->begin ? (x->begin < y->begin ? -1 : 1) : x->end != y->end ? (x->end < y->end ? -1 : 1) : 0;
}

/* The tensors must lie one behind the other and fill the file. */
static bool check_places(const struct input_file *file, const struct tensors *all, struct error *error)
{
    uint64_t end = 0;
    const uint64_t bytes = file->bytes - all->data;
    for (uint64_t i = 0; i < all->count; i++) {
        const struct tensor *const t = &all->tensors[i];
        if (t->begin != end)
            return safetensors_expected(file, error, "tensor '%s' to begin at byte %" PRIu64 " of the data, behind the one before, found %"
                                        PRIu64, file_shown(t->name), end, t->begin);
        end = t->end;
    }
    return end == bytes
           || safetensors_expected(file, error, "tensors of %" PRIu64 " bytes together, found %" PRIu64 " bytes behind the header", end, bytes);
}

static bool parse_tensors(const struct input_file *file, struct tensors *all, struct error *error)
{
    const uint64_t most = (uint64_t)json_object_object_length(all->header);
    all->tensors = calloc(most + 1, sizeof *all->tensors);
    if (all->tensors == NULL) {
        error_set(error, ALLFOLD_NO_MEMORY, "%s: no memory for %" PRIu64 " tensors", file_shown(file->name), most);
        return false;
    }
    json_object_object_foreach (all->header, name, value)
        if (strcmp(name, "__metadata__") != 0 && !parse_tensor(file, name, value, &all->tensors[all->count++], error))
            return false;
    qsort(all->tensors, all->count, sizeof *all->tensors, by_place);
    return check_places(file, all, error);
}

/* Reads the header. On success the caller frees *all. */
static allfold_status read_tensors(const struct input_file *file, struct tensors *all, struct error *error)
{
    unsigned char length[LENGTH_BYTES];
    uint64_t bytes = 0;
    *all = (struct tensors){.count = 0};
    if (file->bytes >= LENGTH_BYTES
        && file_read(&(struct file_range){file->fd, file->name, 0, LENGTH_BYTES}, length, error) != ALLFOLD_OK)
        return error->status;
    for (int i = LENGTH_BYTES; i-- > 0 && file->bytes >= LENGTH_BYTES;)
        bytes = bytes << 8 | length[i];
    if (file->bytes < LENGTH_BYTES || bytes > file->bytes - LENGTH_BYTES || bytes > SAFETENSORS_HEADER_BYTES_MAX)
        safetensors_expected(file, error, "a header of at most %" PRIu64 " bytes, and within the file of %" PRIu64 ", found %" PRIu64,
                             SAFETENSORS_HEADER_BYTES_MAX, file->bytes, bytes);
    else if ((all->header = safetensors_read_json(file, (struct range){LENGTH_BYTES, bytes}, error)) != NULL) {
        all->data = LENGTH_BYTES + bytes;
        if (!parse_tensors(file, all, error))
            free_tensors(all);
    }
    return error->status;
}

static bool recognises_safetensors(const struct input_file *file) { return file_name_ends(file->name, ".safetensors"); }

static void visit_tensor(const struct tensor *t, array_visit *visit, void *user)
{
    const bool readable = t->type != ALLFOLD_TYPE_NONE;
    const struct array_entry entry = {.name = t->name,
                                      .type = t->type,
                                      .type_text = readable ? NULL : t->type_text,
                                      .refused = readable ? NULL : "not a type of elements that allfold has",
                                      .dimensions = t->dimensions,
                                      .shape = t->shape};
    visit(user, &entry);
}

static allfold_status list_safetensors(const struct input_file *file, array_visit *visit, void *user, struct error *error)
{
    struct tensors all;
    if (read_tensors(file, &all, error) != ALLFOLD_OK)
        return error->status;
    for (uint64_t i = 0; i < all.count; i++)
        visit_tensor(&all.tensors[i], visit, user);
    free_tensors(&all);
    return ALLFOLD_OK;
}

static allfold_status take_tensor(const struct input_file *file, const struct tensor *t, uint64_t data, struct array_info *info,
                                  struct error *error)
{
    if (t->type == ALLFOLD_TYPE_NONE)
        return error_set(error, ALLFOLD_UNSUPPORTED, "%s: tensor '%s': expected elements of type F64, F32, F16, BF16, I64 to I8, U64 to U8 "
                         "or BOOL, found %.20s", file_shown(file->name), file_shown(t->name), t->type_text);
    info->type = t->type;
    info->count = t->count;
    info->dimensions = t->dimensions;
    memcpy(info->shape, t->shape, sizeof t->shape);
    info->layout.offset = data + t->begin;
    return ALLFOLD_OK;
}

static allfold_status describe_safetensors(const struct input_file *file, const struct array_hints *hints, struct array_info *info,
                                           struct error *error)
{
    struct tensors all;
    uint64_t i = 0;
    if (read_tensors(file, &all, error) != ALLFOLD_OK)
        return error->status;
    while (i < all.count && strcmp(all.tensors[i].name, file->member) != 0)
        i++;
    if (i == all.count)
        input_refuse_member(file, &format_safetensors, error);
    else if (take_tensor(file, &all.tensors[i], all.data, info, error) == ALLFOLD_OK)
        plain_cut(hints, info, error);
    free_tensors(&all);
    return error->status;
}

const struct format format_safetensors = {.name = "safetensors",
                                          .recognises = recognises_safetensors,
                                          .list = list_safetensors,
                                          .describe = describe_safetensors};
