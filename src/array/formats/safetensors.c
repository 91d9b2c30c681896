/* safetensors: 8 bytes of length, a header in JSON, and the tensors' elements, little-endian, without gaps:
   https://huggingface.co/docs/safetensors. And the index of a model in several such files, model.safetensors.index.json: its weight_map
   says in which file, of the same folder, a tensor lies. */
#include "array/formats/formats.h"

#include <inttypes.h>
#include <json-c/json.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#define LENGTH_BYTES 8
#define HEADER_BYTES_MAX ((uint64_t)100 << 20)

static const struct {
    const char *name;
    allfold_type type;
} types[] = {{"F64", ALLFOLD_F64},     {"F32", ALLFOLD_F32},     {"F16", ALLFOLD_F16},   {"BF16", ALLFOLD_BF16},  {"I64", ALLFOLD_INT64},
             {"I32", ALLFOLD_INT32},   {"I16", ALLFOLD_INT16},   {"I8", ALLFOLD_INT8},   {"U64", ALLFOLD_UINT64}, {"U32", ALLFOLD_UINT32},
             {"U16", ALLFOLD_UINT16}, {"U8", ALLFOLD_UINT8}, {"BOOL", ALLFOLD_BOOL}};

/* Fails with "safetensors: expected ...". Returns false. */
__attribute__((format(printf, 2, 3)))
static bool expected(struct error *error, const char *format, ...)
{
    char text[ALLFOLD_ERROR_BYTES];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    error_set(error, ALLFOLD_BAD_INPUT, "safetensors: expected %s", text);
    return false;
}

/* ---- JSON */

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

/* One JSON object and spaces, in which no name stands twice. */
static struct json_object *parse_json(const char *text, struct range place, struct json_tokener *tokener, struct error *error)
{
    json_tokener_set_flags(tokener, JSON_TOKENER_STRICT | JSON_TOKENER_ALLOW_TRAILING_CHARS | JSON_TOKENER_VALIDATE_UTF8);
    struct json_object *const object = json_tokener_parse_ex(tokener, text, (int)place.count);
    const enum json_tokener_error failure = json_tokener_get_error(tokener);
    uint64_t end = json_tokener_get_parse_end(tokener);
    while (failure == json_tokener_success && end < place.count && strchr(" \t\r\n", text[end]) != NULL && text[end] != '\0')
        end++;
    if (failure != json_tokener_success || end < place.count || !json_object_is_type(object, json_type_object))
        expected(error, "one JSON object in %" PRIu64 " bytes, found %s at byte %" PRIu64, place.count,
                 failure == json_tokener_success    ? "something else"
                 : failure == json_tokener_continue ? "that it does not end"
                                                    : json_tokener_error_desc(failure),
                 place.first + end);
    else if (count_colons(text, place.count) != count_names(object))
        expected(error, "each name once in an object of JSON, found one twice");
    if (error->status == ALLFOLD_OK)
        return object;
    json_object_put(object);
    return NULL;
}

/* The object in these bytes of the file. The caller frees it (json_object_put). NULL: *error says why. */
static struct json_object *read_json(const struct input_file *file, struct range place, struct error *error)
{
    char *const text = malloc((size_t)place.count + 1);
    struct json_tokener *const tokener = json_tokener_new();
    struct json_object *object = NULL;
    if (text == NULL || tokener == NULL)
        error_set(error, ALLFOLD_NO_MEMORY, "no memory for a header of %" PRIu64 " bytes", place.count);
    else if (input_read(file, place, text, error) == ALLFOLD_OK)
        object = parse_json(text, place, tokener, error);
    if (tokener != NULL)
        json_tokener_free(tokener);
    free(text);
    return object;
}

/* ---- a file */

struct tensor {
    const char *name, *type_text; /* of the JSON object */
    allfold_type type;            /* ALLFOLD_TYPE_NONE: not a type of ours */
    uint32_t dimensions;
    uint64_t shape[ARRAY_DIMENSIONS_MAX];
    uint64_t begin, end; /* bytes, from the first of all tensors on */
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

static bool parse_tensor(const char *name, struct json_object *value, struct tensor *tensor, struct error *error)
{
    struct json_object *const type = json_object_object_get(value, "dtype");
    uint64_t ends[2], count;
    uint32_t end_count;
    char found[FOUND_BYTES];
    const char *const shown = file_shown(name);
    if (!json_object_is_type(type, json_type_string) && !say(type, found))
        return expected(error, "a dtype of tensor '%s', a text, found %s", shown, found);
    if (!get_numbers(json_object_object_get(value, "shape"), 0, ARRAY_DIMENSIONS_MAX, tensor->shape, &tensor->dimensions, found))
        return expected(error, "a shape of tensor '%s', a list of at most %d whole numbers, not negative and below 2^63, found %s", shown,
                        ARRAY_DIMENSIONS_MAX, found);
    if (!get_numbers(json_object_object_get(value, "data_offsets"), 2, 2, ends, &end_count, found))
        return expected(error, "data_offsets of tensor '%s', two whole numbers, not negative and below 2^63, found %s", shown, found);
    if (ends[0] > ends[1])
        return expected(error, "data_offsets of tensor '%s' in order, found %" PRIu64 " and %" PRIu64, shown, ends[0], ends[1]);
    tensor->name = name;
    tensor->type_text = json_object_get_string(type);
    tensor->begin = ends[0];
    tensor->end = ends[1];
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (strcmp(types[i].name, tensor->type_text) == 0)
            tensor->type = types[i].type;
    const size_t bytes = tensor->type != ALLFOLD_TYPE_NONE ? allfold_type_bytes(tensor->type) : 1;
    if (!array_count(tensor->shape, tensor->dimensions, bytes, &count))
        return expected(error, "a shape of " ARRAY_COUNT_RULE " of tensor '%s', found a larger one", shown);
    if (tensor->type != ALLFOLD_TYPE_NONE && count * bytes != ends[1] - ends[0])
        return expected(error, "the data_offsets of tensor '%s' to span its %" PRIu64 " %s elements, found %" PRIu64 " bytes", shown, count,
                        tensor->type_text, ends[1] - ends[0]);
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
            return expected(error, "tensor '%s' to begin at byte %" PRIu64 " of the data, behind the one before, found %" PRIu64,
                            file_shown(t->name), end, t->begin);
        end = t->end;
    }
    return end == bytes || expected(error, "tensors of %" PRIu64 " bytes together, found %" PRIu64 " bytes behind the header", end, bytes);
}

static bool parse_tensors(const struct input_file *file, struct tensors *all, struct error *error)
{
    const uint64_t most = (uint64_t)json_object_object_length(all->header);
    all->tensors = calloc(most + 1, sizeof *all->tensors);
    if (all->tensors == NULL) {
        error_set(error, ALLFOLD_NO_MEMORY, "no memory for %" PRIu64 " tensors", most);
        return false;
    }
    json_object_object_foreach (all->header, name, value)
        if (strcmp(name, "__metadata__") != 0 && !parse_tensor(name, value, &all->tensors[all->count++], error))
            return false;
    qsort(all->tensors, all->count, sizeof *all->tensors, by_place);
    return check_places(file, all, error);
}

/* Reads the header. On success the caller frees *all. */
static allfold_status read_tensors(const struct input_file *file, struct tensors *all, struct error *error)
{
    unsigned char length[LENGTH_BYTES] = {0};
    uint64_t bytes = 0;
    *all = (struct tensors){.count = 0};
    if (file->bytes >= LENGTH_BYTES && input_read(file, (struct range){0, LENGTH_BYTES}, length, error) != ALLFOLD_OK)
        return error->status;
    for (int i = LENGTH_BYTES; i-- > 0;)
        bytes = bytes << 8 | length[i];
    if (file->bytes < LENGTH_BYTES || bytes > file->bytes - LENGTH_BYTES || bytes > HEADER_BYTES_MAX)
        expected(error, "a header of at most %" PRIu64 " bytes, and within the file of %" PRIu64 ", found %" PRIu64, HEADER_BYTES_MAX,
                 file->bytes, bytes);
    else if ((all->header = read_json(file, (struct range){LENGTH_BYTES, bytes}, error)) != NULL) {
        all->data = LENGTH_BYTES + bytes;
        if (!parse_tensors(file, all, error))
            free_tensors(all);
    }
    return error->status;
}

static bool recognises_safetensors(const struct input_file *file) { return file_name_ends(file->name, ".safetensors"); }

static allfold_status read_safetensors(const struct input_file *file, struct directory *directory, struct error *error)
{
    struct tensors all;
    if (read_tensors(file, &all, error) != ALLFOLD_OK)
        return error->status;
    for (uint64_t i = 0; i < all.count; i++) {
        const struct tensor *const t = &all.tensors[i];
        struct array_entry *const entry = directory_entry(directory, file, t->name, NULL);
        if (entry == NULL)
            continue;
        entry->type_text = t->type == ALLFOLD_TYPE_NONE ? t->type_text : NULL;
        entry->info.type = t->type;
        entry->info.dimensions = t->dimensions;
        memcpy(entry->info.shape, t->shape, sizeof t->shape);
        entry->info.plain = 1;
        entry->info.layout.offset = all.data + t->begin;
        if (t->type == ALLFOLD_TYPE_NONE)
            error_set(&entry->refused, ALLFOLD_UNSUPPORTED, "expected elements of type F64, F32, F16, BF16, I64 to I8, U64 to U8 or BOOL, found "
                      "%.20s", t->type_text);
        directory_add(directory);
    }
    free_tensors(&all);
    return ALLFOLD_OK;
}

const struct format format_safetensors = {
    .name = "safetensors", .recognises = recognises_safetensors, .read_directory = read_safetensors, .named = true};

/* ---- the index of several */

static bool recognises_index(const struct input_file *file) { return file_name_ends(file->name, ".safetensors.index.json"); }

/* Parses the index; *map is its weight_map. The caller frees what is returned. */
static struct json_object *read_index(const struct input_file *file, struct json_object **map, struct error *error)
{
    if (file->bytes > HEADER_BYTES_MAX) {
        expected(error, "an index of at most %" PRIu64 " bytes, found %" PRIu64, HEADER_BYTES_MAX, file->bytes);
        return NULL;
    }
    struct json_object *const index = read_json(file, (struct range){0, file->bytes}, error);
    if (index == NULL)
        return NULL;
    if (json_object_object_get_ex(index, "weight_map", map) && json_object_is_type(*map, json_type_object))
        return index;
    expected(error, "an object called weight_map, found none");
    json_object_put(index);
    return NULL;
}

static const char *text_of(struct json_object *value)
{
    return json_object_is_type(value, json_type_string) ? json_object_get_string(value) : "";
}

/* The path of a file that the index names: in the index's own folder. */
static bool locate(const struct input_file *index, const char *name, char path[ARRAY_PATH_BYTES], struct error *error)
{
    const char *const slash = strrchr(index->name, '/');
    const int folder = slash != NULL ? (int)(slash + 1 - index->name) : 0;
    if (name[0] == '\0' || strchr(name, '/') != NULL)
        return expected(error, "names of files in the index's own folder, found '%s'", file_shown(name));
    if (snprintf(path, ARRAY_PATH_BYTES, "%.*s%s", folder, index->name, name) >= ARRAY_PATH_BYTES)
        return expected(error, "shorter names of files, found '%s'", file_shown(name));
    return true;
}

/* One of the files. */
struct index_part {
    struct json_object *map;
    const char *name;
    struct directory *directory; /* of the index */
};

/* Passes on the tensors that the index says to be in this file. */
static void take_mapped(void *user, struct array_entry *entry)
{
    const struct index_part *const part = user;
    struct directory *const d = part->directory;
    struct json_object *value;
    if (json_object_object_get_ex(part->map, entry->name, &value) && strcmp(text_of(value), part->name) == 0 && d->count++ < d->most)
        d->take(d->user, entry);
}

static allfold_status read_part(const struct input_file *index, const struct index_part *part, struct error *error)
{
    char path[ARRAY_PATH_BYTES];
    struct error why = {.status = ALLFOLD_OK};
    struct input_file file = {.name = path, .hints = index->hints, .fd = -1};
    struct directory inner = {.name = part->directory->name, .pattern = part->directory->pattern, .most = UINT64_MAX, .take = take_mapped, .user = (void *)part};
    if (locate(index, part->name, path, error) && input_open(&file, error) == ALLFOLD_OK
        && read_safetensors(&file, &inner, &why) != ALLFOLD_OK)
        error_within(error, &why, "%s", file_shown(path));
    input_close(&file);
    return error->status;
}

static int by_name(const void *a, const void *b) { return strcmp(*(const char *const *)a, *(const char *const *)b); }

/* All files, sorted by their names, each once. */
static allfold_status read_parts(const struct input_file *file, struct index_part *part, struct error *error)
{
    size_t count = 0;
    const char **const names = calloc((size_t)json_object_object_length(part->map) + 1, sizeof *names);
    if (names == NULL)
        return error_set(error, ALLFOLD_NO_MEMORY, "no memory for the names of files");
    json_object_object_foreach (part->map, tensor, value)
        if (tensor != NULL)
            names[count++] = text_of(value);
    qsort(names, count, sizeof *names, by_name);
    for (size_t i = 0; i < count && error->status == ALLFOLD_OK; i++) {
        part->name = names[i];
        if (i == 0 || strcmp(names[i], names[i - 1]) != 0)
            read_part(file, part, error);
    }
    free(names);
    return error->status;
}

static allfold_status read_index_directory(const struct input_file *file, struct directory *directory, struct error *error)
{
    struct json_object *map, *value, *const index = read_index(file, &map, error);
    struct index_part part = {.map = map, .directory = directory};
    if (index == NULL)
        return error->status;
    if (directory->name == NULL || directory->pattern)
        read_parts(file, &part, error);
    else if (json_object_object_get_ex(map, directory->name, &value)) {
        part.name = text_of(value);
        read_part(file, &part, error);
    }
    json_object_put(index);
    return error->status;
}

const struct format format_safetensors_index = {
    .name = "safetensors index", .recognises = recognises_index, .read_directory = read_index_directory, .named = true};
