/* Shapes: in words, how many elements they have, and those that the user gives elements that have none (--shape). */
#include "array/formats/formats.h"
#include "base/parse.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

void array_shape_text(const uint64_t *shape, uint32_t dimensions, char *text, size_t bytes)
{
    size_t length = 0;
    snprintf(text, bytes, "%s", shape != NULL ? "scalar" : "");
    for (uint32_t i = 0; shape != NULL && i < dimensions && length < bytes; i++)
        length += (size_t)snprintf(text + length, bytes - length, "%s%" PRIu64, i > 0 ? "x" : "", shape[i]);
}

bool array_count(const uint64_t *shape, uint32_t dimensions, size_t element_bytes, uint64_t *count)
{
    uint64_t bytes = element_bytes;
    bool empty = false;
    for (uint32_t i = 0; i < dimensions; i++) {
        empty = empty || shape[i] == 0;
        if (shape[i] != 0 && (__builtin_mul_overflow(bytes, shape[i], &bytes) || bytes > FILE_BYTES_MAX))
            return false;
    }
    *count = empty ? 0 : bytes / element_bytes;
    return true;
}

const char *array_dimension_name(const struct array_info *info, uint32_t dimension)
{
    const char *name = info->names;
    while (dimension-- > 0)
        name += strlen(name) + 1;
    return name;
}

void array_names_text(const struct array_info *info, char *text, size_t bytes)
{
    size_t length = 0;
    text[0] = '\0';
    for (uint32_t i = 0; i < info->dimensions && info->names[0] != '\0' && length < bytes; i++)
        length += (size_t)snprintf(text + length, bytes - length, "%s%s", i > 0 ? ", " : "", array_dimension_name(info, i));
}

bool array_find_dimension(const struct array_info *info, const char *word, size_t length, long *number)
{
    const char first = word[0] == '-' ? word[1] : word[0];
    char *end;
    for (uint32_t i = 0; i < info->dimensions && length > 0; i++) {
        const char *const name = array_dimension_name(info, i);
        if (strlen(name) == length && memcmp(name, word, length) == 0) {
            *number = (long)i;
            return true;
        }
    }
    *number = strtol(word, &end, 10);
    return first >= '0' && first <= '9' && end == word + length;
}

void array_slice_text(const struct array_info *info, char *text, size_t bytes)
{
    size_t length = 0;
    text[0] = '\0';
    for (uint32_t i = 0; i < info->dimensions && info->sliced && length < bytes; i++) {
        char range[48] = ":";
        if (info->shape[i] != info->whole[i])
            snprintf(range, sizeof range, "%" PRIu64 ":%" PRIu64, info->first[i], info->first[i] + info->shape[i]);
        length += (size_t)snprintf(text + length, bytes - length, "%s%s%s", i == 0 ? "[" : ", ", range, i + 1 == info->dimensions ? "]" : "");
    }
}

void array_place(const struct array_info *info, uint64_t index, uint64_t place[ARRAY_DIMENSIONS_MAX])
{
    for (uint32_t i = 0; i < info->dimensions; i++) {
        const uint32_t dimension = info->fortran_order ? i : info->dimensions - 1 - i;
        place[dimension] = index % info->shape[dimension];
        index /= info->shape[dimension];
    }
}

void array_place_text(const struct array_info *info, uint64_t index, char text[ARRAY_PLACE_BYTES])
{
    uint64_t place[ARRAY_DIMENSIONS_MAX];
    const uint32_t dimensions = info->dimensions > 1 ? info->dimensions : 0;
    size_t length = 0;
    text[0] = '\0';
    array_place(info, index, place);
    for (uint32_t i = 0; i < dimensions && info->names[0] != '\0' && length < ARRAY_PLACE_BYTES; i++)
        length += (size_t)snprintf(text + length, ARRAY_PLACE_BYTES - length, "%s%s%s", i == 0 ? "(" : ", ", array_dimension_name(info, i),
                                   i + 1 == dimensions ? ") = " : "");
    for (uint32_t i = 0; i < dimensions && length < ARRAY_PLACE_BYTES; i++)
        length += (size_t)snprintf(text + length, ARRAY_PLACE_BYTES - length, "%s%" PRIu64 "%s", i == 0 ? "(" : ", ", place[i],
                                   i + 1 == dimensions ? ")" : "");
}

/* The shape as it is asked for. */
struct asked {
    uint64_t shape[ARRAY_DIMENSIONS_MAX];
    uint32_t dimensions;
    uint64_t *inferred; /* the extent that -1 stands for; NULL: none */
};

/* Reads "3,4" or "-1,4"; false: it is something else. */
static bool read_shape(const char *text, struct asked *asked)
{
    char word[64];
    for (asked->dimensions = 0; text != NULL;) {
        if (asked->dimensions == ARRAY_DIMENSIONS_MAX || !parse_item(&text, ',', word, sizeof word))
            return false;
        uint64_t *const extent = &asked->shape[asked->dimensions++];
        if (strcmp(word, "-1") == 0 && asked->inferred == NULL)
            *(asked->inferred = extent) = 1;
        else if (!parse_count(word, extent))
            return false;
    }
    return true;
}

allfold_status shape_give(const char *text, struct array_info *info, struct error *error)
{
    struct asked asked = {.inferred = NULL};
    uint64_t count; /* of the elements; of those along the other dimensions if one is inferred */
    if (info->dimensions != 1)
        return error_set(error, ALLFOLD_BAD_ARGUMENT, "%s: expected no --shape: the array has a shape of %" PRIu32 " dimensions (--shape is for "
                         "raw files and other rows of elements)", file_shown(info->path), info->dimensions);
    if (!read_shape(text, &asked))
        return error_set(error, ALLFOLD_BAD_ARGUMENT, "--shape: expected up to %d counts with commas between them, such as 4096,131072, of which "
                         "one may be -1, found '%.100s'", ARRAY_DIMENSIONS_MAX, text);
    if (!array_count(asked.shape, asked.dimensions, allfold_type_bytes(info->type), &count))
        return error_set(error, ALLFOLD_BAD_ARGUMENT, "--shape: expected a shape of " ARRAY_COUNT_RULE ", found %.100s of %s elements", text,
                         allfold_type_name(info->type));
    if (asked.inferred != NULL && (count == 0 || info->count % count != 0))
        return error_set(error, ALLFOLD_BAD_ARGUMENT, "%s: expected a multiple of the %" PRIu64 " elements that --shape=%.100s has beside -1, found %"
                         PRIu64 " elements", file_shown(info->path), count, text, info->count);
    if (asked.inferred != NULL)
        *asked.inferred = info->count / count;
    else if (count != info->count)
        return error_set(error, ALLFOLD_BAD_ARGUMENT, "%s: expected as many elements as --shape=%.100s has, %" PRIu64 ", found %" PRIu64,
                         file_shown(info->path), text, count, info->count);
    memset(info->names, 0, sizeof info->names);
    info->dimensions = asked.dimensions;
    memcpy(info->shape, asked.shape, asked.dimensions * sizeof *asked.shape);
    return ALLFOLD_OK;
}
