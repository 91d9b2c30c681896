/* Reads a file's directory, of whatever format: what is passed on of each array, how one is found by its name, how all are listed,
   and how a message says what there is. */
#include "array/formats/formats.h"

#include <fnmatch.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#define SHOWN_MAX 20
#define LIST_BYTES 240 /* so that the message has room for the file's name */
#define WORDS_BYTES 80

void array_release(struct array_info *info)
{
    free(info->details);
    info->details = NULL;
    info->details_bytes = 0;
}

/* ---- for formats */

static bool is_wanted(const struct directory *d, const char *name)
{
    return d->name == NULL || strcmp(name, d->name) == 0 || (d->pattern && fnmatch(d->name, name, 0) == 0);
}

struct array_entry *directory_entry(struct directory *d, const struct input_file *file, const char *name, const char *other)
{
    struct array_entry *const entry = &d->entry;
    if (!is_wanted(d, name) && (other == NULL || !is_wanted(d, other)))
        return NULL;
    if (d->count++ >= d->most)
        return NULL;
    memset(entry, 0, sizeof *entry); /* the padding too: descriptions are compared as bytes */
    entry->name = name;
    entry->info.granule = 1;
    entry->info.file_bytes = file->bytes;
    entry->info.file_time = file->time;
    snprintf(entry->info.path, sizeof entry->info.path, "%s", file->name);
    snprintf(entry->info.member, sizeof entry->info.member, "%s", name != NULL ? name : "");
    return entry;
}

/* The byte of the file at which elements end that lie there as they are; UINT64_MAX: beyond 64 bits. */
static uint64_t end_of(const struct array_info *info)
{
    const uint64_t run = info->layout.run != 0 ? info->layout.run : info->count, bytes = allfold_type_bytes(array_stored_type(info));
    uint64_t end;
    if (info->count == 0)
        return 0;
    const bool over = __builtin_mul_overflow(info->count / run - 1, info->layout.stride, &end)
                      || __builtin_add_overflow(end, info->layout.offset, &end) || __builtin_add_overflow(end, run * bytes, &end);
    return over ? UINT64_MAX : end;
}

/* What must be true of an array of any format. */
static allfold_status check(struct array_entry *entry)
{
    struct array_info *const info = &entry->info;
    struct error *const why = &entry->refused;
    char shape[WORDS_BYTES];
    if (entry->name != NULL && strlen(entry->name) >= sizeof info->member)
        return error_set(why, ALLFOLD_UNSUPPORTED, "expected a name of less than %zu bytes, found %zu", sizeof info->member,
                         strlen(entry->name));
    array_entry_shape(entry, shape, sizeof shape);
    if (!array_count(info->shape, info->dimensions, allfold_type_bytes(info->type), &info->count))
        return error_set(why, ALLFOLD_BAD_INPUT, "expected a shape of " ARRAY_COUNT_RULE ", found %s elements of type %s", shape,
                         allfold_type_name(info->type));
    if (info->plain && end_of(info) > info->file_bytes)
        return error_set(why, ALLFOLD_BAD_INPUT, "expected its elements (%s) from byte %" PRIu64 " on within the file of %" PRIu64
                         " bytes, found that they end at byte %" PRIu64 ": the file is cut short or damaged", shape, info->layout.offset,
                         info->file_bytes, end_of(info));
    return ALLFOLD_OK;
}

/* The names become the array's own, if they fit. */
static void keep_names(const struct array_entry *entry, char names[ARRAY_NAMES_BYTES])
{
    size_t length = 0;
    for (uint32_t i = 0; entry->dimension_names != NULL && i < entry->info.dimensions; i++) {
        const size_t bytes = strlen(entry->dimension_names[i]);
        if (bytes + 1 > ARRAY_NAMES_BYTES - length) {
            memset(names, 0, ARRAY_NAMES_BYTES);
            return;
        }
        memcpy(names + length, entry->dimension_names[i], bytes);
        length += bytes + 1;
    }
}

void directory_add(struct directory *d)
{
    struct array_entry *const entry = &d->entry;
    keep_names(entry, entry->info.names);
    if (entry->refused.status == ALLFOLD_OK)
        check(entry);
    d->take(d->user, entry);
    array_release(&entry->info);
}

/* ---- entries in words */

const char *array_entry_type(const struct array_entry *entry)
{
    const allfold_type type = array_stored_type(&entry->info);
    return entry->type_text != NULL ? entry->type_text : type != ALLFOLD_TYPE_NONE ? allfold_type_name(type) : "unknown";
}

bool array_entry_is_strange(const struct array_entry *entry) { return entry->refused.status != ALLFOLD_OK && entry->type_text != NULL; }

void array_entry_shape(const struct array_entry *entry, char *text, size_t bytes)
{
    array_shape_text(entry->shapeless ? NULL : entry->info.shape, entry->info.dimensions, text, bytes);
}

/* ---- for all formats */

/* The arrays that were found. */
struct finding {
    struct array_info *info; /* takes that of the first */
    struct error refused;    /* that one */
    uint64_t taken, shown;   /* arrays; of these in the text */
    size_t length;
    char text[LIST_BYTES];
};

static void add_words(struct finding *f, const struct array_entry *entry)
{
    char shape[WORDS_BYTES], words[2 * WORDS_BYTES];
    const char *const name = entry->name == NULL || entry->name[0] == '\0' ? "''" : entry->name;
    array_entry_shape(entry, shape, sizeof shape);
    const int length = snprintf(words, sizeof words, "%s%s (%s%s%s)", f->shown > 0 ? ", " : "", name, array_entry_type(entry),
                                shape[0] != '\0' ? " " : "", shape);
    if (f->shown + 1 < f->taken || (size_t)length >= sizeof words || f->length + (size_t)length >= sizeof f->text)
        return; /* it and all that follow are counted only */
    memcpy(f->text + f->length, words, (size_t)length + 1);
    f->length += (size_t)length;
    f->shown++;
}

static void take_found(void *user, struct array_entry *entry)
{
    struct finding *const f = user;
    if (f->taken++ == 0) {
        memcpy(f->info, &entry->info, sizeof entry->info);
        f->refused = entry->refused;
        entry->info.details = NULL;
    }
    add_words(f, entry);
}

/* Fails with what was found where the name of one of `count` arrays was expected. */
static allfold_status refuse(const struct input_file *file, const struct finding *f, uint64_t count, const char *found, struct error *error)
{
    const char *const shown = file_shown(file->name);
    char more[64] = "";
    if (count == 0)
        return error_set(error, ALLFOLD_BAD_INPUT, "%s: expected a file that holds an array, found one that holds none", shown);
    if (f->shown < count)
        snprintf(more, sizeof more, "%s%" PRIu64 " %s: allfold info FILE lists them", f->shown > 0 ? " and " : "", count - f->shown,
                 f->shown > 0 ? "more" : "arrays");
    return error_set(error, ALLFOLD_BAD_ARGUMENT, "%s: expected FILE:NAME with the name of an array in it, found %s; it holds %s%s",
                     shown, found, f->text, more);
}

static void pass_over(void *user, struct array_entry *entry) { (void)user, (void)entry; }

/* What a name that no array has may be besides: a pattern. */
static const char *pattern_words(const struct format *format, const struct input_file *file, const char *name)
{
    struct directory d = {.name = name, .pattern = true, .take = pass_over};
    struct error ignored = {.status = ALLFOLD_OK};
    if (strpbrk(name, "*?[") == NULL || format->read_directory(file, &d, &ignored) != ALLFOLD_OK)
        return "";
    return d.count == 0 ? ", which matches none" : d.count == 1 ? ", which means one" : ", which means several";
}

/* Fails: no array is called so. */
static allfold_status refuse_name(const struct format *format, const struct input_file *file, const char *name, struct error *error)
{
    struct array_info first;
    struct finding f = {.info = &first};
    struct directory d = {.most = SHOWN_MAX, .take = take_found, .user = &f};
    struct error why = {.status = ALLFOLD_OK};
    char found[WORDS_BYTES];
    snprintf(found, sizeof found, "'%.*s'%s", WORDS_BYTES - 32, name, pattern_words(format, file, name));
    format->read_directory(file, &d, &why);
    if (f.taken > 0)
        array_release(&first);
    return why.status != ALLFOLD_OK ? error_within(error, &why, "%s", file_shown(file->name)) : refuse(file, &f, d.count, found, error);
}

allfold_status directory_read(const struct format *format, const struct input_file *file, struct directory *d, struct error *error)
{
    struct error why = {.status = ALLFOLD_OK};
    const char *const shown = file_shown(file->name);
    if (d->name != NULL && !format->named)
        return error_set(error, ALLFOLD_BAD_ARGUMENT, "%s: expected no name behind this file (format %s), which is one array, found ':%s'",
                         shown, format->name, file_shown(d->name));
    if (format->read_directory(file, d, &why) != ALLFOLD_OK)
        return error_within(error, &why, "%s", shown);
    if (d->name != NULL && !d->pattern && d->count > 1)
        return error_set(error, ALLFOLD_BAD_INPUT, "%s: expected one array called '%s', found %" PRIu64, shown, file_shown(d->name),
                         d->count);
    return d->name != NULL && d->count == 0 ? refuse_name(format, file, d->name, error) : ALLFOLD_OK;
}

static allfold_status refuse_entry(const struct input_file *file, const char *name, const struct error *why, struct error *error)
{
    return error_within(error, why, "%s%s%s", file_shown(file->name), name != NULL ? ":" : "", name != NULL ? file_shown(name) : "");
}

allfold_status directory_find(const struct format *format, const struct input_file *file, const char *name, struct array_info *info,
                              struct error *error)
{
    struct finding f = {.info = info};
    struct directory d = {.name = name, .most = SHOWN_MAX, .take = take_found, .user = &f};
    if (directory_read(format, file, &d, error) == ALLFOLD_OK && d.count != 1)
        refuse(file, &f, d.count, "no name", error);
    else if (error->status == ALLFOLD_OK)
        refuse_entry(file, format->named ? info->member : NULL, &f.refused, error);
    if (f.taken > 0 && error->status != ALLFOLD_OK)
        array_release(info);
    return error->status;
}

struct listing {
    const struct format *format;
    const struct input_file *file;
    array_visit *visit;
    void *user;
    struct error *error;
};

/* A file that is one array, and cannot be read, is an error. */
static void take_listed(void *user, struct array_entry *entry)
{
    const struct listing *const l = user;
    if (l->format->named || refuse_entry(l->file, NULL, &entry->refused, l->error) == ALLFOLD_OK)
        l->visit(l->user, entry);
}

allfold_status directory_list(const struct format *format, const struct input_file *file, const struct input_name *name, array_visit *visit,
                              void *user, struct error *error)
{
    struct listing l = {format, file, visit, user, error};
    struct directory d = {.name = name->member, .pattern = name->several, .most = UINT64_MAX, .take = take_listed, .user = &l};
    return directory_read(format, file, &d, error);
}
