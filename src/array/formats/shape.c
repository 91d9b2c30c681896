/* The shape that the user gives elements that have none: --shape. */
#include "array/formats/formats.h"
#include "array/formats/npy.h"
#include "base/parse.h"

#include <inttypes.h>
#include <stdio.h>

/* Reads "3,4"; false: it is something else. */
static bool read_extents(const char *text, uint64_t shape[ARRAY_DIMENSIONS_MAX], uint32_t *dimensions)
{
    for (*dimensions = 0; *dimensions < ARRAY_DIMENSIONS_MAX;) {
        char word[64];
        const size_t length = strcspn(text, ",");
        if (length >= sizeof word)
            return false;
        memcpy(word, text, length);
        word[length] = '\0';
        if (!parse_count(word, &shape[(*dimensions)++]))
            return false;
        if (text[length] == '\0')
            return true;
        text += length + 1;
    }
    return false;
}

allfold_status shape_give(const char *text, struct array_info *info, struct error *error)
{
    uint64_t shape[ARRAY_DIMENSIONS_MAX], count;
    uint32_t dimensions;
    if (info->dimensions != 1)
        return error_set(error, ALLFOLD_BAD_ARGUMENT, "%s: expected no --shape: the array has a shape of %" PRIu32 " dimensions (--shape is for "
                         "raw files and other rows of elements)", file_shown(info->path), info->dimensions);
    if (!read_extents(text, shape, &dimensions) || !npy_count(shape, dimensions, &count))
        return error_set(error, ALLFOLD_BAD_ARGUMENT, "--shape: expected up to %d counts with commas between them, such as 4096,131072, found "
                         "'%.100s'", ARRAY_DIMENSIONS_MAX, text);
    if (count != info->count)
        return error_set(error, ALLFOLD_BAD_ARGUMENT, "%s: expected as many elements as --shape=%.100s has, %" PRIu64 ", found %" PRIu64,
                         file_shown(info->path), text, count, info->count);
    info->dimensions = dimensions;
    memcpy(info->shape, shape, dimensions * sizeof *shape);
    return ALLFOLD_OK;
}
