/* Reads the coordinate variable of a dimension: see array.h. */
#include "array/array.h"
#include "array/formats/parts.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    COORDINATE_BYTES_MAX = 256 << 20,   /* longer ones are left out */
    NAME_ROOM = 2 * ARRAY_PATH_BYTES
};

void array_coordinate_name(const char *member, const char *dimension, bool in_group, char *name, size_t bytes)
{
    const char *const slash = in_group ? strrchr(member, '/') : NULL;
    snprintf(name, bytes, "%.*s%s", slash != NULL ? (int)(slash + 1 - member) : 0, member, dimension);
}

/* All elements, unpacked. NULL: they cannot be read. */
static void *read_all(const struct array_info *info)
{
    struct error ignored = {.status = ALLFOLD_OK};
    struct source *source = NULL;
    uint64_t count = 0;
    void *all = NULL;
    if (source_open(info, &source, &ignored) == ALLFOLD_OK)
        all = source_read_all(source, array_is_chunked(info) ? info->positions : info->count, &count, &ignored);
    source_close(source);
    if (count == info->count)
        return all;
    free(all);
    return NULL;
}

/* The coordinate of a dimension in some files, joined. */
static bool read_values(const char *const *names, int count, const struct array_info *input, uint32_t dimension, struct array_coordinate *values)
{
    struct error ignored = {.status = ALLFOLD_OK};
    struct array_info *const info = malloc(sizeof *info);
    char slice[64];
    bool done = false;
    snprintf(slice, sizeof slice, "0=%" PRIu64 ":%" PRIu64, input->first[dimension], input->first[dimension] + input->shape[dimension]);
    const struct array_hints hints = {.missing = MISSING_KEEP, .slice = slice};
    if (info == NULL || array_describe_all(names, count, &hints, info, &ignored) != ALLFOLD_OK) {
        free(info);
        return false;
    }
    if (info->dimensions == 1 && info->whole[0] == array_whole(input)[dimension] && info->count <= COORDINATE_BYTES_MAX / sizeof(double)) {
        values->type = info->type;
        values->count = info->count;
        values->elements = read_all(info);
        done = values->elements != NULL;
    }
    array_release(info);
    free(info);
    return done;
}

/* The names by which the coordinate is read, of all files that are joined. Returns how many; 0: no memory. */
static int coordinate_names(const struct array_info *input, uint32_t dimension, bool in_group, char ***names)
{
    const int count = (int)array_files(input);
    char name[NAME_ROOM], *const all = calloc((size_t)count, sizeof *names + ARRAY_PATH_BYTES + NAME_ROOM);
    if (all == NULL)
        return 0;
    *names = (char **)(void *)all;
    for (int i = 0; i < count; i++) {
        (*names)[i] = all + (size_t)count * sizeof *names + (size_t)i * (ARRAY_PATH_BYTES + NAME_ROOM);
        array_coordinate_name(array_member(input, (uint64_t)i), array_dimension_name(input, dimension), in_group, name, sizeof name);
        snprintf((*names)[i], ARRAY_PATH_BYTES + NAME_ROOM, "%s:%s", array_file(input, (uint64_t)i), name);
    }
    return count;
}

bool array_coordinate_read(const struct array_info *input, uint32_t dimension, bool in_group, struct array_coordinate *found)
{
    char **names;
    const int count = coordinate_names(input, dimension, in_group, &names), joined = dimension == 0 ? count : 1;
    const bool done = count > 0 && read_values((const char *const *)names, joined, input, dimension, found);
    found->differs = false;
    for (int i = joined; done && i < count && !found->differs; i++) { /* a file that has none says nothing else */
        struct array_coordinate other = {.elements = NULL};
        if (read_values((const char *const *)&names[i], 1, input, dimension, &other))
            found->differs = other.type != found->type || memcmp(other.elements, found->elements, found->count * allfold_type_bytes(found->type)) != 0;
        free(other.elements);
    }
    if (count > 0)
        free(names);
    return done;
}
