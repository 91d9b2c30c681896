/* The table of formats, and the steps that take them from it. */
#include "array/formats/formats.h"

#include "array/encoded.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The first that recognises the input takes it. */
static const struct format *const formats[] = {
    &format_generated, &format_npy,     &format_npz,  &format_safetensors, &format_safetensors_index,
    &format_netcdf,    &format_netcdf4, &format_hdf5, &format_raw};
enum { FORMAT_COUNT = sizeof formats / sizeof *formats };

const char *array_format_name(const struct array_info *info) { return formats[info->format]->name; }

const char *array_name(const struct array_info *info, char name[ARRAY_NAME_BYTES])
{
    snprintf(name, ARRAY_NAME_BYTES, "%s%s%s", info->path, info->member[0] != '\0' ? ":" : "", info->member);
    return name;
}

bool format_is_generated(const char *name) { return format_generated.recognises(&(struct input_file){.name = name}); }

/* Opens the input and finds its format. The caller closes file->fd if it is not negative, also after an error. */
static allfold_status find_format(const struct input_name *name, struct input_file *file, struct array_info *info, struct error *error)
{
    *file = (struct input_file){.name = info->path, .fd = -1};
    memset(info, 0, sizeof *info); /* the padding too: descriptions are compared as bytes */
    info->granule = 1;
    strcpy(info->path, name->path);
    strcpy(info->member, name->member != NULL ? name->member : "");
    if (!format_generated.recognises(file) && input_open(file, info, error) != ALLFOLD_OK)
        return error->status;
    while (!formats[info->format]->recognises(file)) /* the last takes any */
        info->format++;
    if (name->member != NULL && formats[info->format]->list == NULL)
        return error_set(error, ALLFOLD_BAD_ARGUMENT, "%s: expected no name behind this file (format %s), which is one array, found ':%s'",
                         file_shown(info->path), formats[info->format]->name, file_shown(info->member));
    file->member = name->member != NULL ? info->member : NULL;
    return ALLFOLD_OK;
}

/* Describes the array that file->member names, or the only one of the file. */
static allfold_status describe(struct input_file *file, const struct array_hints *hints, struct array_info *info, struct error *error)
{
    const struct format *const format = formats[info->format];
    if (format->list != NULL && file->member == NULL) {
        if (input_only_member(file, format, info->member, error) != ALLFOLD_OK)
            return error->status;
        file->member = info->member;
    }
    info->missing = (uint32_t)hints->missing;
    return format->describe(file, hints, info, error);
}

allfold_status format_describe(const struct input_name *name, const struct array_hints *hints, struct array_info *info,
                               struct error *error)
{
    struct array_info described;
    struct input_file file;
    if (find_format(name, &file, &described, error) == ALLFOLD_OK)
        describe(&file, hints, &described, error);
    if (file.fd >= 0)
        close(file.fd);
    if (error->status == ALLFOLD_OK)
        memcpy(info, &described, sizeof described);
    else
        array_release(&described);
    return error->status;
}

bool array_is_file(const struct array_info *info)
{
    const struct format *const format = formats[info->format];
    const uint64_t end = info->layout.offset + info->count * allfold_type_bytes(info->type);
    return format->list == NULL && info->details_bytes == 0 && info->skipped == 0 && end == info->file_bytes
           && (format != &format_raw || info->layout.offset == 0);
}

void array_release(struct array_info *info)
{
    free(info->details);
    info->details = NULL;
    info->details_bytes = 0;
}

void format_visit(const struct array_info *info, array_visit *visit, void *user)
{
    const struct array_entry entry = {.name = formats[info->format]->list != NULL ? info->member : NULL,
                                      .type = info->type,
                                      .dimensions = info->dimensions,
                                      .shape = info->shape,
                                      .fortran_order = info->fortran_order != 0,
                                      .big_endian = info->layout.swapped != 0};
    visit(user, &entry);
}

struct one_visit {
    const char *name;
    array_visit *visit;
    void *user;
};

static void visit_one(void *user, const struct array_entry *entry)
{
    const struct one_visit *const one = user;
    if (strcmp(entry->name, one->name) == 0)
        one->visit(one->user, entry);
}

/* The entries of an open file. */
static allfold_status list(struct input_file *file, struct array_info *info, const struct one_visit *visit, struct error *error)
{
    static const struct array_hints listing = {.listing = true};
    const struct format *const format = formats[info->format];
    if (format->list != NULL && file->member == NULL)
        return format->list(file, visit->visit, visit->user, error);
    if (describe(file, &listing, info, error) != ALLFOLD_OK)
        return error->status;
    if (format->list == NULL)
        format_visit(info, visit->visit, visit->user);
    else
        format->list(file, visit_one, &(struct one_visit){info->member, visit->visit, visit->user}, error);
    array_release(info);
    return error->status;
}

allfold_status format_entries(const struct input_name *name, array_visit *visit, void *user, const char **format, struct error *error)
{
    struct array_info info;
    struct input_file file;
    if (find_format(name, &file, &info, error) == ALLFOLD_OK)
        list(&file, &info, &(struct one_visit){.visit = visit, .user = user}, error);
    if (file.fd >= 0)
        close(file.fd);
    if (error->status == ALLFOLD_OK)
        *format = array_format_name(&info);
    return error->status;
}

struct range array_part(const struct array_info *info, uint64_t part, uint64_t parts)
{
    const uint64_t positions = info->positions > 0 ? info->positions : info->count;
    const uint64_t granules = positions / info->granule + (positions % info->granule != 0);
    const struct range range = range_part(granules, part, parts);
    const uint64_t first = u64_min(range.first * info->granule, positions);
    return (struct range){first, u64_min(range.count * info->granule, positions - first)};
}

static allfold_status open_stored(const struct array_info *info, struct source **source, struct error *error)
{
    return info->plain ? plain_open(info, source, error) : formats[info->format]->open(info, source, error);
}

allfold_status source_open(const struct array_info *info, struct source **source, struct error *error)
{
    struct source *opened = NULL;
    struct array_info stored;
    char name[ARRAY_NAME_BYTES];
    if (!encoded_needed(info)) {
        if (open_stored(info, &opened, error) != ALLFOLD_OK)
            return error->status;
    } else {
        memcpy(&stored, info, sizeof stored);
        stored.type = info->encoding.stored;
        if (open_stored(&stored, &opened, error) != ALLFOLD_OK
            || encoded_open(array_name(info, name), info, &opened, error) != ALLFOLD_OK)
            return error->status;
    }
    opened->granule = info->granule;
    *source = opened;
    return ALLFOLD_OK;
}
