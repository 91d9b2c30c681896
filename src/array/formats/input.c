/* What formats do with an input: open it, and tell in an error message which arrays it holds. */
#include "array/formats/formats.h"

#include "array/formats/parts.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define SHOWN_MAX 20
#define LIST_BYTES 240 /* so that the message has room for the file's name */
#define ENTRY_BYTES 80

/* When it was last modified, in ns. */
static uint64_t time_of(const struct stat *status)
{
    return (uint64_t)status->st_mtim.tv_sec * 1000000000u + (uint64_t)status->st_mtim.tv_nsec;
}

allfold_status input_open(struct input_file *file, struct array_info *info, struct error *error)
{
    struct stat status;
    file->fd = file_open(file->name, &file->bytes, error);
    if (file->fd < 0)
        return error->status;
    if (fstat(file->fd, &status) != 0)
        return error_errno(error, ALLFOLD_IO_ERROR, errno, "%s: cannot tell the file's time", file_shown(file->name));
    info->file_time = time_of(&status);
    info->file_bytes = file->bytes;
    file->head_bytes = (size_t)u64_min(file->bytes, sizeof file->head);
    return file_read(&(struct file_range){file->fd, file->name, 0, file->head_bytes}, file->head, error);
}

static allfold_status check_time(const char *path, uint64_t time, struct error *error)
{
    struct stat status;
    if (stat(path, &status) == 0 && time_of(&status) == time)
        return ALLFOLD_OK;
    return error_set(error, ALLFOLD_BAD_INPUT, "%s: the file has changed since its header was read: expected the same time of its last "
                     "modification, found another", file_shown(path));
}

allfold_status array_check_times(const struct array_info *info, struct error *error)
{
    const struct parts_table *const table = info->plain && info->details_bytes > 0 ? parts_of(info) : NULL;
    if (info->file_time == 0 || error->status != ALLFOLD_OK)
        return error->status;
    if (table == NULL)
        return check_time(info->path, info->file_time, error);
    for (uint64_t i = 0; i < table->count; i++)
        if (check_time(parts_file(table, &table->parts[i]), table->parts[i].file_time, error) != ALLFOLD_OK)
            break;
    return error->status;
}

/* The arrays that have been visited. */
struct listing {
    char *only; /* takes the name of the first; NULL: not wanted */
    uint64_t count, shown;
    size_t length;
    bool fits; /* the name */
    char text[LIST_BYTES];
};

void array_shape_text(const uint64_t *shape, uint32_t dimensions, char *text, size_t bytes)
{
    size_t length = 0;
    snprintf(text, bytes, "%s", shape != NULL ? "scalar" : "");
    for (uint32_t i = 0; shape != NULL && i < dimensions && length < bytes; i++)
        length += (size_t)snprintf(text + length, bytes - length, "%s%" PRIu64, i > 0 ? "x" : "", shape[i]);
}

static const char *type_text(const struct array_entry *entry)
{
    return entry->type_text != NULL ? entry->type_text : allfold_type_name(entry->type);
}

static void list_entry(void *user, const struct array_entry *entry)
{
    struct listing *const listing = user;
    char shape[ENTRY_BYTES], text[2 * ENTRY_BYTES];
    if (listing->count++ == 0 && listing->only != NULL) {
        listing->fits = strlen(entry->name) < ARRAY_PATH_BYTES;
        snprintf(listing->only, ARRAY_PATH_BYTES, "%s", entry->name);
    }
    array_shape_text(entry->shape, entry->dimensions, shape, sizeof shape);
    const int length = snprintf(text, sizeof text, "%s%s (%s%s%s)", listing->shown > 0 ? ", " : "", entry->name[0] != '\0' ? entry->name : "''",
                                type_text(entry), entry->shape != NULL ? " " : "", shape);
    if (listing->shown + 1 < listing->count || listing->shown == SHOWN_MAX || (size_t)length >= sizeof text
        || listing->length + (size_t)length >= sizeof listing->text)
        return; /* it and all that follow are counted only */
    memcpy(listing->text + listing->length, text, (size_t)length + 1);
    listing->length += (size_t)length;
    listing->shown++;
}

/* Fails with what was expected, what was found, and the list. */
static allfold_status refuse(const struct input_file *file, const struct listing *listing, const char *found, struct error *error)
{
    const char *const shown = file_shown(file->name);
    char more[64] = "";
    if (listing->count == 0)
        return error_set(error, ALLFOLD_BAD_INPUT, "%s: expected a file that holds an array, found one that holds none", shown);
    if (listing->shown < listing->count)
        snprintf(more, sizeof more, "%s%" PRIu64 " %s: allfold info FILE lists them", listing->shown > 0 ? " and " : "",
                 listing->count - listing->shown, listing->shown > 0 ? "more" : "arrays");
    return error_set(error, ALLFOLD_BAD_ARGUMENT, "%s: expected FILE:NAME with the name of an array in it, found %s; it holds %s%s",
                     shown, found, listing->text, more);
}

allfold_status input_refuse_member(const struct input_file *file, const struct format *format, struct error *error)
{
    struct listing listing = {.only = NULL};
    char found[ENTRY_BYTES];
    snprintf(found, sizeof found, "'%.*s'", ENTRY_BYTES - 3, file->member);
    if (format->list(file, list_entry, &listing, error) != ALLFOLD_OK)
        return error->status;
    return refuse(file, &listing, found, error);
}

allfold_status input_only_member(const struct input_file *file, const struct format *format, char name[ARRAY_PATH_BYTES],
                                 struct error *error)
{
    struct listing listing = {.only = name};
    if (format->list(file, list_entry, &listing, error) != ALLFOLD_OK)
        return error->status;
    return listing.count == 1 && listing.fits ? ALLFOLD_OK : refuse(file, &listing, "no name", error);
}
