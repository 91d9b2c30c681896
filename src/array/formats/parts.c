/* The table of the files that make up one array: see parts.h. */
#include "array/formats/parts.h"

#include <stdlib.h>
#include <string.h>

allfold_status parts_add(struct parts_list *list, const struct array_info *info, struct error *error)
{
    const uint64_t path = strlen(info->path) + 1, length = path + strlen(info->member) + 1;
    struct array_part_place *const parts = realloc(list->parts, (size_t)(list->count + 1) * sizeof *parts);
    list->parts = parts != NULL ? parts : list->parts;
    char *const names = realloc(list->names, (size_t)(list->names_bytes + length));
    list->names = names != NULL ? names : list->names;
    if (parts == NULL || names == NULL)
        return error_set(error, ALLFOLD_NO_MEMORY, "%s: no memory for a list of files", file_shown(info->path));
    struct array_part_place *const part = &list->parts[list->count];
    memset(part, 0, sizeof *part); /* the padding too */
    part->range.first = list->count > 0 ? part[-1].range.first + part[-1].range.count : 0;
    part->range.count = info->count;
    part->name = list->names_bytes;
    part->member = list->names_bytes + path;
    part->file_bytes = info->file_bytes;
    part->file_time = info->file_time;
    part->layout = info->layout;
    part->granule = info->granule;
    memcpy(part->chunk, info->chunk, sizeof part->chunk);
    memcpy(list->names + list->names_bytes, info->path, path);
    memcpy(list->names + list->names_bytes + path, info->member, length - path);
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
        table->parts[i].member += names;
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

/* ---- the files */

allfold_status parts_open(const struct parts_table *table, uint64_t part, const struct stat *opened, struct data_file *file, struct error *error)
{
    const struct array_part_place *const place = &table->parts[part];
    if (data_file_open(parts_file(table, place), place->file_bytes, file, error) != ALLFOLD_OK)
        return error->status;
    if (opened != NULL)
        file->opened = opened[part];
    if (data_file_check(file, error) != ALLFOLD_OK)
        data_file_close(file);
    return error->status;
}

struct stat *parts_look(const struct parts_table *table, struct error *error)
{
    struct stat *const opened = calloc(table->count, sizeof *opened);
    if (opened == NULL)
        error_set(error, ALLFOLD_NO_MEMORY, "%s: no memory to open it", file_shown(parts_file(table, table->parts)));
    for (uint64_t part = 0; part < table->count && error->status == ALLFOLD_OK; part++) {
        struct data_file file;
        if (parts_open(table, part, NULL, &file, error) != ALLFOLD_OK)
            break;
        opened[part] = file.opened;
        data_file_close(&file);
    }
    if (error->status == ALLFOLD_OK)
        return opened;
    free(opened);
    return NULL;
}

allfold_status parts_check(const struct parts_table *table, const struct stat *opened, struct error *error)
{
    struct data_file file;
    for (uint64_t part = 0; part < table->count && parts_open(table, part, opened, &file, error) == ALLFOLD_OK; part++)
        data_file_close(&file);
    return error->status;
}
