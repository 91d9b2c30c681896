/* The table of formats, and the steps that take them from it. */
#include "array/formats/formats.h"

#include "array/encoded.h"
#include "array/formats/joined.h"
#include "array/formats/parts.h"
#include "array/kept_chunks.h"
#include "array/slice.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* The first that recognises the input takes it. */
static const struct format *const formats[] = {
    &format_generated, &format_npy,     &format_npz,  &format_safetensors, &format_safetensors_index,
    &format_netcdf,    &format_netcdf4, &format_hdf5, &format_raw};

const char *array_format_name(const struct array_info *info) { return formats[info->format]->name; }

const char *array_name(const struct array_info *info, char name[ARRAY_NAME_BYTES])
{
    snprintf(name, ARRAY_NAME_BYTES, "%s%s%s", info->path, info->member[0] != '\0' ? ":" : "", info->member);
    return name;
}

bool format_is_generated(const char *name) { return format_generated.recognises(&(struct input_file){.name = name}); }

/* Opens the input and finds its format. The caller closes it, also after an error. */
static allfold_status find_format(const char *path, const struct array_hints *hints, struct input_file *file, uint32_t *format,
                                  struct error *error)
{
    *file = (struct input_file){.name = path, .hints = hints, .fd = -1};
    *format = 0;
    if (!format_generated.recognises(file) && input_open(file, error) != ALLFOLD_OK)
        return error->status;
    while (!formats[*format]->recognises(file)) /* the last takes any */
        ++*format;
    return ALLFOLD_OK;
}

allfold_status format_cut(const struct array_hints *hints, struct array_info *info, struct error *error)
{
    const uint64_t offset = hints->has_offset ? hints->offset : 0;
    const char *const shown = file_shown(info->path);
    if (hints->type != ALLFOLD_TYPE_NONE && hints->type != info->type)
        return error_set(error, ALLFOLD_BAD_ARGUMENT, "%s: the file says that its elements are %s: expected no --dtype, or that one, "
                         "found %s", shown, allfold_type_name(info->type), allfold_type_name(hints->type));
    if (!hints->has_offset && !hints->has_count)
        return ALLFOLD_OK;
    if (!info->plain && !formats[info->format]->opens_parts)
        return error_set(error, ALLFOLD_BAD_ARGUMENT, "%s: expected no --offset and no --count, found --%s: the elements do not lie in the "
                         "file as they are", shown, hints->has_offset ? "offset" : "count");
    if (offset > info->count || (hints->has_count && hints->count > info->count - offset))
        return error_set(error, ALLFOLD_BAD_INPUT, "%s: expected --offset and --count within its %" PRIu64
                         " elements, found %" PRIu64 " elements from %" PRIu64, shown, info->count,
                         hints->has_count ? hints->count : 0, offset);
    info->skipped = offset;
    info->count = hints->has_count ? hints->count : info->count - offset;
    memset(info->shape, 0, sizeof info->shape);
    memset(info->names, 0, sizeof info->names);
    info->shape[0] = info->count;
    info->dimensions = 1;
    info->fortran_order = 0;
    return ALLFOLD_OK;
}

/* Describes the array of that name in an open file. */
static allfold_status describe(uint32_t format, const struct input_file *file, const char *name, struct array_info *info,
                               struct error *error)
{
    if (directory_find(formats[format], file, name, info, error) != ALLFOLD_OK)
        return error->status;
    info->format = format;
    info->missing = (uint32_t)file->hints->missing;
    if (!formats[format]->headless && format_cut(file->hints, info, error) != ALLFOLD_OK)
        array_release(info);
    return error->status;
}

allfold_status format_describe(const struct input_name *name, const struct array_hints *hints, struct array_info *info,
                               struct error *error)
{
    uint32_t format;
    struct array_info described;
    struct input_file file;
    if (find_format(name->path, hints, &file, &format, error) == ALLFOLD_OK
        && describe(format, &file, name->member, &described, error) == ALLFOLD_OK)
        memcpy(info, &described, sizeof described);
    input_close(&file);
    return error->status;
}

static void take_nothing(void *user, struct array_entry *entry) { (void)user, (void)entry; }

bool format_holds(const struct input_name *name)
{
    static const struct array_hints none;
    uint32_t row;
    struct input_file file;
    struct error ignored = {.status = ALLFOLD_OK};
    struct directory d = {.name = name->member, .take = take_nothing};
    const bool holds = find_format(name->path, &none, &file, &row, &ignored) == ALLFOLD_OK && formats[row]->named
                       && formats[row]->read_directory(&file, &d, &ignored) == ALLFOLD_OK && d.count > 0;
    input_close(&file);
    return holds;
}

/* Arrays of a file that are described one by one. */
struct describing {
    const struct input_file *file;
    uint32_t format;
    array_take *take;
    void *user;
    struct error *error;
};

static void take_described(void *user, struct array_entry *entry)
{
    const struct describing *const d = user;
    struct array_info *const info = &entry->info;
    info->format = d->format;
    info->missing = (uint32_t)d->file->hints->missing;
    if (d->error->status == ALLFOLD_OK && entry->refused.status != ALLFOLD_OK && !array_entry_is_strange(entry))
        error_within(d->error, &entry->refused, "%s:%s", file_shown(info->path), file_shown(info->member));
    if (d->error->status == ALLFOLD_OK && (entry->refused.status != ALLFOLD_OK || format_cut(d->file->hints, info, d->error) == ALLFOLD_OK))
        d->take(d->user, entry);
}

allfold_status format_describe_each(const struct input_name *name, const struct array_hints *hints, array_take *take, void *user,
                                    struct error *error)
{
    uint32_t row;
    struct input_file file;
    if (find_format(name->path, hints, &file, &row, error) == ALLFOLD_OK) {
        struct describing each = {&file, row, take, user, error};
        struct directory d = {.name = name->member, .pattern = true, .most = UINT64_MAX, .take = take_described, .user = &each};
        directory_read(formats[row], &file, &d, error);
    }
    input_close(&file);
    return error->status;
}

allfold_status array_attributes(const char *path, const char *array, attribute_visit *visit, void *user, struct error *error)
{
    static const struct array_hints none;
    uint32_t row;
    struct input_file file;
    struct error why = {.status = ALLFOLD_OK};
    if (find_format(path, &none, &file, &row, error) == ALLFOLD_OK && formats[row]->visit_attributes != NULL
        && formats[row]->visit_attributes(&file, array, visit, user, &why) != ALLFOLD_OK)
        error_within(error, &why, "%s", file_shown(path));
    input_close(&file);
    return error->status;
}

bool array_is_file(const struct array_info *info)
{
    const struct format *const format = formats[info->format];
    const uint64_t end = info->layout.offset + info->count * allfold_type_bytes(info->type);
    return !format->named && info->details_bytes == 0 && info->skipped == 0 && end == info->file_bytes
           && (format != &format_raw || info->layout.offset == 0);
}

void format_visit(const struct array_info *info, array_visit *visit, void *user)
{
    struct array_entry entry = {.name = formats[info->format]->named ? info->member : NULL};
    const char *names[ARRAY_DIMENSIONS_MAX];
    memcpy(&entry.info, info, sizeof *info);
    for (uint32_t i = 0; i < info->dimensions; i++)
        names[i] = array_dimension_name(info, i);
    entry.dimension_names = info->names[0] != '\0' ? names : NULL;
    visit(user, &entry);
}

allfold_status format_entries(const struct input_name *name, array_visit *visit, void *user, const char **format, struct error *error)
{
    static const struct array_hints listing = {.listing = true};
    uint32_t row;
    struct input_file file;
    if (find_format(name->path, &listing, &file, &row, error) == ALLFOLD_OK
        && directory_list(formats[row], &file, name, visit, user, error) == ALLFOLD_OK)
        *format = formats[row]->name;
    input_close(&file);
    return error->status;
}

static allfold_status open_whole(const struct array_info *info, struct source **source, struct error *error)
{
    return info->plain ? plain_open(info, source, error) : formats[info->format]->open(info, source, error);
}

static allfold_status open_stored(const struct array_info *info, struct source **source, struct error *error)
{
    struct array_info whole;
    if (array_is_chunked(info) && parts_of(info) != NULL)
        return joined_open(info, formats[info->format]->open, source, error);
    if (!info->sliced || array_is_chunked(info))
        return open_whole(info, source, error);
    slice_whole(info, &whole);
    return open_whole(&whole, source, error) == ALLFOLD_OK ? slice_open(info, source, error) : error->status;
}

allfold_status source_open(const struct array_info *info, struct source **source, struct error *error)
{
    const bool encoded = encoded_needed(info);
    struct source *opened = NULL;
    struct array_info stored;
    char name[ARRAY_NAME_BYTES];
    memcpy(&stored, info, sizeof stored);
    stored.type = encoded ? info->encoding.stored : info->type;
    array_name(info, name);
    if (open_stored(&stored, &opened, error) != ALLFOLD_OK
        || (opened->chunking != NULL && kept_chunks_open(name, &opened, error) != ALLFOLD_OK)
        || (encoded && encoded_open(name, info, &opened, error) != ALLFOLD_OK))
        return error->status;
    opened->granule = info->granule;
    *source = opened;
    return ALLFOLD_OK;
}
