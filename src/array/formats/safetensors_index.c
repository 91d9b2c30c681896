/* The index of a model in several safetensors files: model.safetensors.index.json. Its weight_map says in which file, of the same
   folder, a tensor lies. The array is then one of that file. */
#include "array/formats/safetensors.h"

#include <inttypes.h>
#include <json-c/json.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static bool recognises_index(const struct input_file *file) { return file_name_ends(file->name, SAFETENSORS_INDEX_ENDING); }

/* Parses the index; *map is its weight_map. The caller frees what is returned. */
static struct json_object *read_index(const struct input_file *file, struct json_object **map, struct error *error)
{
    if (file->bytes > SAFETENSORS_HEADER_BYTES_MAX) {
        safetensors_expected(file, error, "an index of at most %" PRIu64 " bytes, found %" PRIu64, SAFETENSORS_HEADER_BYTES_MAX, file->bytes);
        return NULL;
    }
    struct json_object *const index = safetensors_read_json(file, (struct range){0, file->bytes}, error);
    if (index == NULL)
        return NULL;
    if (json_object_object_get_ex(index, "weight_map", map) && json_object_is_type(*map, json_type_object))
        return index;
    safetensors_expected(file, error, "an object called weight_map, found none");
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
        return safetensors_expected(index, error, "names of files in the index's own folder, found '%s'", file_shown(name));
    if (snprintf(path, ARRAY_PATH_BYTES, "%.*s%s", folder, index->name, name) >= ARRAY_PATH_BYTES)
        return safetensors_expected(index, error, "shorter names of files, found '%s'", file_shown(name));
    return true;
}

/* A call of a function of format_safetensors for one of the files. */
static allfold_status describe_in(const char *path, const struct input_file *index, const struct array_hints *hints,
                                  struct array_info *info, struct error *error)
{
    struct input_file file = {.name = path, .member = index->member, .fd = -1};
    if (input_open(&file, info, error) == ALLFOLD_OK)
        format_safetensors.describe(&file, hints, info, error);
    if (file.fd >= 0)
        close(file.fd);
    return error->status;
}

static allfold_status describe_index(const struct input_file *file, const struct array_hints *hints, struct array_info *info,
                                     struct error *error)
{
    char path[ARRAY_PATH_BYTES];
    struct json_object *map, *value, *const index = read_index(file, &map, error);
    if (index == NULL)
        return error->status;
    if (!json_object_object_get_ex(map, file->member, &value))
        input_refuse_member(file, &format_safetensors_index, error);
    else if (locate(file, text_of(value), path, error) && describe_in(path, file, hints, info, error) == ALLFOLD_OK)
        strcpy(info->path, path);
    json_object_put(index);
    return error->status;
}

struct index_listing {
    struct json_object *map;
    const char *file; /* that is being listed */
    array_visit *visit;
    void *user;
};

/* Passes on the tensors that the index says to be in this file. */
static void visit_mapped(void *user, const struct array_entry *entry)
{
    const struct index_listing *const listing = user;
    struct json_object *value;
    if (json_object_object_get_ex(listing->map, entry->name, &value) && strcmp(text_of(value), listing->file) == 0)
        listing->visit(listing->user, entry);
}

static int by_name(const void *a, const void *b) { return strcmp(*(const char *const *)a, *(const char *const *)b); }

/* The names of the files, sorted, each once; the caller frees the list. */
static const char **list_files(const struct input_file *file, struct json_object *map, size_t *count, struct error *error)
{
    char path[ARRAY_PATH_BYTES];
    const char **const names = calloc((size_t)json_object_object_length(map) + 1, sizeof *names);
    if (names == NULL) {
        error_set(error, ALLFOLD_NO_MEMORY, "%s: no memory for the names of files", file_shown(file->name));
        return NULL;
    }
    size_t all = 0;
    *count = 0;
    json_object_object_foreach (map, tensor, value)
        if (locate(file, text_of(value), path, error) && tensor != NULL)
            names[all++] = text_of(value);
    qsort(names, all, sizeof *names, by_name);
    for (size_t i = 0; i < all; i++)
        if (i == 0 || strcmp(names[i], names[i - 1]) != 0)
            names[(*count)++] = names[i];
    return names;
}

static allfold_status list_one(const struct input_file *index, struct index_listing *listing, struct error *error)
{
    char path[ARRAY_PATH_BYTES];
    struct array_info info;
    struct input_file file = {.name = path, .fd = -1};
    if (locate(index, listing->file, path, error) && input_open(&file, &info, error) == ALLFOLD_OK)
        format_safetensors.list(&file, visit_mapped, listing, error);
    if (file.fd >= 0)
        close(file.fd);
    return error->status;
}

static allfold_status list_index(const struct input_file *file, array_visit *visit, void *user, struct error *error)
{
    size_t count;
    struct json_object *map, *const index = read_index(file, &map, error);
    const char **const names = index != NULL ? list_files(file, map, &count, error) : NULL;
    struct index_listing listing = {.map = map, .visit = visit, .user = user};
    for (size_t i = 0; names != NULL && i < count && error->status == ALLFOLD_OK; i++) {
        listing.file = names[i];
        list_one(file, &listing, error);
    }
    free(names);
    json_object_put(index);
    return error->status;
}

const struct format format_safetensors_index = {
    .name = "safetensors index", .recognises = recognises_index, .list = list_index, .describe = describe_index};
