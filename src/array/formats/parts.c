/* The table of the files that make up one array: see parts.h. */
#include "array/formats/parts.h"

#include <stdlib.h>
#include <string.h>

/* Makes room for `bytes` more. */
static bool grow(void **memory, uint64_t used, uint64_t *capacity, uint64_t bytes)
{
    if (bytes <= *capacity - used)
        return true;
    const uint64_t wanted = 2 * *capacity + bytes;
    void *const larger = realloc(*memory, (size_t)wanted);
    if (larger == NULL)
        return false;
    *memory = larger;
    *capacity = wanted;
    return true;
}

allfold_status parts_add(struct parts_list *list, const struct array_info *info, struct error *error)
{
    const uint64_t length = strlen(info->path) + 1, used = list->count * sizeof *list->parts;
    void *parts = list->parts, *names = list->names;
    const bool grown = grow(&parts, used, &list->capacity, sizeof *list->parts)
                       && grow(&names, list->names_bytes, &list->names_capacity, length);
    list->parts = parts;
    list->names = names;
    if (!grown)
        return error_set(error, ALLFOLD_NO_MEMORY, "%s: no memory for a list of files", file_shown(info->path));
    struct array_part_place *const part = &list->parts[list->count];
    memset(part, 0, sizeof *part); /* the padding too */
    part->range.first = list->count > 0 ? part[-1].range.first + part[-1].range.count : 0;
    part->range.count = info->count;
    part->name = list->names_bytes;
    part->file_bytes = info->file_bytes;
    part->file_time = info->file_time;
    part->layout = info->layout;
    memcpy(list->names + list->names_bytes, info->path, length);
    list->names_bytes += length;
    list->count++;
    return ALLFOLD_OK;
}

allfold_status parts_finish(struct parts_list *list, struct array_info *info, struct error *error)
{
    const uint64_t parts = list->count * sizeof *list->parts, names = sizeof(struct parts_table) + parts;
    struct parts_table *const table = malloc((size_t)(names + list->names_bytes));
    if (table == NULL) {
        parts_free(list);
        return error_set(error, ALLFOLD_NO_MEMORY, "%s: no memory for a list of files", file_shown(info->path));
    }
    table->count = list->count;
    memcpy(table->parts, list->parts, (size_t)parts);
    memcpy((char *)table + names, list->names, (size_t)list->names_bytes);
    info->file_bytes = info->file_time = 0;
    for (uint64_t i = 0; i < table->count; i++) {
        table->parts[i].name += names;
        info->file_bytes += table->parts[i].file_bytes;
        info->file_time = u64_max(info->file_time, table->parts[i].file_time);
    }
    info->details = table;
    info->details_bytes = names + list->names_bytes;
    parts_free(list);
    return ALLFOLD_OK;
}

void parts_free(struct parts_list *list)
{
    free(list->parts);
    free(list->names);
    *list = (struct parts_list){.count = 0};
}
