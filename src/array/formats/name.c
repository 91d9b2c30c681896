/* What an array's name means, and several files as one array: 'part-*.npy' is the arrays of all files of such a name, in the order of
   their names, and several names are those of all, in the order given. They are joined along the first axis (in Fortran order along the
   last: the one that varies slowest). */
#include "array/formats/formats.h"

#include "array/formats/joined.h"
#include "array/formats/parts.h"
#include "array/slice.h"

#include <errno.h>
#include <glob.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <sys/stat.h>

#define SHAPE_BYTES 128
#define WORDS_BYTES (2 * SHAPE_BYTES + 256)

/* Expands a pattern into the names of its files, sorted. If no file matches, found->gl_pathc is 0. */
static allfold_status expand(const char *pattern, glob_t *found, struct error *error)
{
    const int failure = glob(pattern, GLOB_ERR, NULL, found);
    if (failure == GLOB_NOSPACE)
        return error_set(error, ALLFOLD_NO_MEMORY, "%s: no memory for the names of files", file_shown(pattern));
    if (failure == GLOB_ABORTED)
        return error_errno(error, ALLFOLD_IO_ERROR, errno, "%s: cannot read the folder", file_shown(pattern));
    return ALLFOLD_OK;
}

static bool is_regular(const char *path)
{
    struct stat status;
    return stat(path, &status) == 0 && S_ISREG(status.st_mode);
}

/* Of files or of arrays; NULL is none. */
static bool is_pattern(const char *name) { return name != NULL && strpbrk(name, "*?[") != NULL; }

static bool matches(const char *pattern)
{
    struct error ignored = {.status = ALLFOLD_OK};
    glob_t found = {.gl_pathc = 0};
    const bool any = expand(pattern, &found, &ignored) == ALLFOLD_OK && found.gl_pathc > 0;
    globfree(&found);
    return any;
}

/* Cuts the path at the last ':' behind the name of what `is` says it must be. */
static bool cut_member(const char *text, struct input_name *name, bool (*is)(const char *path))
{
    for (char *colon; (colon = strrchr(name->path, ':')) != NULL;) {
        *colon = '\0';
        if (is(name->path)) {
            name->member = text + (colon - name->path) + 1;
            return true;
        }
    }
    strcpy(name->path, text);
    return false;
}

/* What a name means. name->member points into text. */
static allfold_status parse_name(const char *text, struct input_name *name, struct error *error)
{
    struct stat status;
    *name = (struct input_name){.member = NULL};
    if (text[0] == '\0')
        return error_set(error, ALLFOLD_BAD_ARGUMENT, "expected the name of an array, found an empty one");
    if (strlen(text) >= sizeof name->path)
        return error_set(error, ALLFOLD_BAD_ARGUMENT, "%s: expected a name of less than %zu bytes, found %zu", file_shown(text),
                         sizeof name->path, strlen(text));
    strcpy(name->path, text);
    if (format_is_generated(text) || stat(text, &status) == 0 || cut_member(text, name, is_regular) || strpbrk(text, "*?[") == NULL)
        return ALLFOLD_OK;
    name->pattern = true;
    if (!matches(text))
        cut_member(text, name, matches);
    return ALLFOLD_OK;
}

/* The axis that varies slowest. */
static uint32_t joined_axis(const struct array_info *info) { return info->fortran_order ? info->dimensions - 1 : 0; }

/* Whether both have names of dimensions, and not the same. */
static bool differ_in_names(const struct array_info *a, const struct array_info *b)
{
    return a->names[0] != '\0' && b->names[0] != '\0' && memcmp(a->names, b->names, sizeof a->names) != 0;
}

/* What differs of two arrays that must be the same to join them; NULL: nothing. */
static const char *difference(const struct array_info *a, const struct array_info *b)
{
    const struct encoding *const one = &a->encoding, *const other = &b->encoding;
    bool same = a->dimensions == b->dimensions;
    for (uint32_t i = 0; same && i < a->dimensions; i++)
        same = i == joined_axis(a) || a->shape[i] == b->shape[i];
    if (array_stored_type(a) != array_stored_type(b))
        return "types";
    if (!same)
        return "shapes";
    if (a->fortran_order != b->fortran_order)
        return "orders";
    if (differ_in_names(a, b))
        return "names of dimensions";
    if (one->packed != other->packed || memcmp(&one->packing, &other->packing, sizeof one->packing) != 0)
        return "packings";
    if (memcmp(one, other, sizeof *one) != 0)
        return "missing values";
    const bool lie = a->count > 0 && b->count > 0; /* what has no elements lies nowhere */
    return lie && (a->plain != b->plain || (!a->plain && a->format != b->format)) ? "layouts" : NULL;
}

/* Whether the elements lie in the same places in either order, as those of a single column do. Files then say C order. */
static bool is_of_either_order(const struct array_info *info)
{
    uint32_t longer = 0;
    for (uint32_t i = 0; i < info->dimensions; i++)
        longer += info->shape[i] != 1;
    return info->count == 0 || longer <= 1;
}

/* What `difference` compares. */
static const char *words_of(const struct array_info *info, char text[WORDS_BYTES])
{
    char shape[SHAPE_BYTES], names[SHAPE_BYTES], missing[ENCODING_TEXT_BYTES], packing[ENCODING_TEXT_BYTES];
    array_shape_text(info->shape, info->dimensions, shape, sizeof shape);
    array_names_text(info, names, sizeof names);
    encoding_missing_text(&info->encoding, missing);
    encoding_packing_text(&info->encoding, packing);
    snprintf(text, WORDS_BYTES, "%s %s%s%s%s%s%s%.60s%s%.60s%s", allfold_type_name(array_stored_type(info)), shape, names[0] != '\0' ? " (" : "", names,
             names[0] != '\0' ? ")" : "", info->fortran_order ? ", Fortran order" : "", missing[0] != '\0' ? ", missing: " : "", missing,
             packing[0] != '\0' ? ", packed: " : "", packing, array_is_chunked(info) ? ", in chunks" : "");
    return text;
}

/* Puts the array of the next file behind those in *all. */
static allfold_status join(struct array_info *all, const struct array_info *next, const struct parts_list *list, struct error *error)
{
    char wanted[WORDS_BYTES], found[WORDS_BYTES];
    const char *const shown = file_shown(next->path);
    if (!next->plain && !array_is_chunked(next))
        return error_set(error, ALLFOLD_UNSUPPORTED, "%s: expected files whose elements lie there as they are, or in chunks, to be joined, found "
                         "others (%s)", shown, array_format_name(next));
    if (next->dimensions == 0)
        return error_set(error, ALLFOLD_BAD_INPUT, "%s: expected an array of at least one dimension, to be joined, found a scalar", shown);
    const char *const differs = list->count > 0 ? difference(all, next) : NULL;
    if (differs != NULL)
        return error_set(error, ALLFOLD_BAD_INPUT, "%s: expected what can be joined to the files before along the %s axis, %s so far, "
                         "found %s: the %s differ", shown, all->fortran_order ? "last" : "first", words_of(all, wanted), words_of(next, found), differs);
    if (list->count == 0 || (all->count == 0 && next->count > 0)) {
        memcpy(all, next, sizeof *all);
        return ALLFOLD_OK;
    }
    const uint32_t axis = joined_axis(all);
    if (next->count > 0)
        all->granule = u64_max(all->granule, next->granule);
    if (__builtin_add_overflow(all->shape[axis], next->shape[axis], &all->shape[axis])
        || !array_count(all->shape, all->dimensions, allfold_type_bytes(all->type), &all->count))
        return error_set(error, ALLFOLD_BAD_INPUT, "%s: expected a joined shape of " ARRAY_COUNT_RULE ", found a larger one", shown);
    return ALLFOLD_OK;
}

/* ---- several files */

/* What the user gave. */
struct input_names {
    const char *const *names;
    int count;
};

/* Calls take for the files of a pattern, until it returns false. */
static void take_pattern(const struct input_name *name, bool (*take)(void *user, const struct input_name *file, struct error *error),
                         void *user, struct error *error)
{
    struct input_name file = {.member = name->member};
    glob_t found = {.gl_pathc = 0};
    bool more = true;
    if (expand(name->path, &found, error) == ALLFOLD_OK && found.gl_pathc == 0)
        error_set(error, ALLFOLD_IO_ERROR, "%s: expected a file, or a pattern of files, found no file %s", file_shown(name->path),
                  is_pattern(name->path) ? "that matches it" : "of such a name");
    for (size_t i = 0; i < found.gl_pathc && more && error->status == ALLFOLD_OK; i++)
        if (snprintf(file.path, sizeof file.path, "%s", found.gl_pathv[i]) >= (int)sizeof file.path)
            error_set(error, ALLFOLD_BAD_ARGUMENT, "%s: expected a name of less than %zu bytes", file_shown(found.gl_pathv[i]),
                      sizeof file.path);
        else
            more = take(user, &file, error);
    globfree(&found);
}

/* Calls take for each file that the names mean, in their order. It returns false if it wants no more. */
static allfold_status take_files(const struct input_names *names, bool (*take)(void *user, const struct input_name *file, struct error *error),
                                 void *user, struct error *error)
{
    struct input_name name;
    bool more = true;
    for (int i = 0; i < names->count && more && parse_name(names->names[i], &name, error) == ALLFOLD_OK; i++) {
        if (name.pattern)
            take_pattern(&name, take, user, error);
        else
            more = take(user, &name, error);
        more = more && error->status == ALLFOLD_OK;
    }
    return error->status;
}

/* Files that are joined. */
struct joining {
    struct array_hints hints; /* of each */
    uint32_t fortran_order;   /* that of the first array that has one */
    struct parts_list list;
    struct array_info info;   /* of those so far */
};

static bool find_order(void *user, const struct input_name *file, struct error *error)
{
    struct joining *const j = user;
    struct array_info next;
    if (format_describe(file, &j->hints, &next, error) != ALLFOLD_OK)
        return false;
    const bool either = is_of_either_order(&next);
    j->fortran_order = either ? 0 : next.fortran_order;
    array_release(&next);
    return either;
}

static bool join_file(void *user, const struct input_name *file, struct error *error)
{
    struct joining *const j = user;
    struct array_info next;
    if (format_describe(file, &j->hints, &next, error) != ALLFOLD_OK)
        return false;
    if (is_of_either_order(&next))
        next.fortran_order = j->fortran_order;
    if (join(&j->info, &next, &j->list, error) == ALLFOLD_OK && parts_add(&j->list, &next, error) == ALLFOLD_OK)
        return true;
    array_release(&next);
    return false;
}

/* What several are called: 'part-*.npy', or "a.npy and 2 more". */
static void name_joined(const struct input_names *names, const struct input_name *first, struct array_info *info)
{
    if (names->count == 1) {
        strcpy(info->path, first->path);
        return;
    }
    snprintf(info->path, sizeof info->path, "%.*s and %d more", (int)sizeof info->path - 32, names->names[0], names->count - 1);
    info->member[0] = '\0';
}

/* Describes each of the files. *info becomes that of all of them. */
static allfold_status describe_files(const struct input_names *names, const struct input_name *first, const struct array_hints *hints,
                                     struct array_info *info, struct error *error)
{
    struct joining *const j = calloc(1, sizeof *j);
    if (j == NULL)
        return error_set(error, ALLFOLD_NO_MEMORY, "%s: no memory to join it to others", file_shown(first->path));
    j->hints = (struct array_hints){.type = hints->type, .missing = hints->missing, .listing = hints->listing};
    if (take_files(names, find_order, j, error) == ALLFOLD_OK && take_files(names, join_file, j, error) == ALLFOLD_OK
        && parts_finish(&j->list, &j->info, error) == ALLFOLD_OK) {
        name_joined(names, first, &j->info);
        if (array_is_chunked(&j->info) && !joined_count(&j->info))
            error_set(error, ALLFOLD_UNSUPPORTED, "%s: expected files that are together, in whole chunks of the largest of them, " ARRAY_COUNT_RULE
                      " of f64, found more", file_shown(j->info.path));
        if (hints->has_offset && strcmp(array_format_name(&j->info), format_raw.name) == 0)
            error_set(error, ALLFOLD_BAD_ARGUMENT, "%s: expected no --offset, which counts bytes of one raw file, with several files",
                      file_shown(j->info.path));
        if (error->status == ALLFOLD_OK && format_cut(hints, &j->info, error) == ALLFOLD_OK)
            memcpy(info, &j->info, sizeof *info);
        else
            array_release(&j->info);
    }
    parts_free(&j->list);
    free(j);
    return error->status;
}

static allfold_status describe(const struct input_names *names, const struct array_hints *hints, struct array_info *info, struct error *error)
{
    struct input_name first;
    if (parse_name(names->names[0], &first, error) != ALLFOLD_OK)
        return error->status;
    return names->count == 1 && !first.pattern ? format_describe(&first, hints, info, error)
                                               : describe_files(names, &first, hints, info, error);
}

allfold_status array_describe_all(const char *const *names, int count, const struct array_hints *hints, struct array_info *info,
                                  struct error *error)
{
    static const struct array_hints none;
    const struct array_hints *const said = hints != NULL ? hints : &none;
    if (describe(&(struct input_names){names, count}, said, info, error) != ALLFOLD_OK)
        return error->status;
    if ((said->shape != NULL && shape_give(said->shape, info, error) != ALLFOLD_OK)
        || (said->slice != NULL && slice_take(said->slice, info, error) != ALLFOLD_OK))
        array_release(info);
    return error->status;
}

allfold_status array_describe(const char *name, const struct array_hints *hints, struct array_info *info, struct error *error)
{
    return array_describe_all(&name, 1, hints, info, error);
}

/* ---- several arrays, each for itself */


/* Looks at the first file alone. */
static bool find_several(void *user, const struct input_name *file, struct error *error)
{
    (void)error;
    *(bool *)user = !format_holds(file);
    return false;
}

bool array_names_several(const char *const *names, int count)
{
    bool several = false;
    for (int i = 0; i < count && !several; i++) {
        struct error ignored = {.status = ALLFOLD_OK};
        struct input_name name;
        if (parse_name(names[i], &name, &ignored) == ALLFOLD_OK && is_pattern(name.member))
            take_files(&(struct input_names){&names[i], 1}, find_several, &several, &ignored);
    }
    return several;
}

struct describing_each {
    const struct array_hints *hints;
    array_take *take;
    void *user;
    uint64_t *files;
};

static bool describe_each(void *user, const struct input_name *file, struct error *error)
{
    const struct describing_each *const d = user;
    struct array_entry *entry;
    ++*d->files;
    if (is_pattern(file->member))
        return format_describe_each(file, d->hints, d->take, d->user, error) == ALLFOLD_OK;
    if ((entry = calloc(1, sizeof *entry)) == NULL)
        error_set(error, ALLFOLD_NO_MEMORY, "%s: no memory to describe it", file_shown(file->path));
    else if (format_describe(file, d->hints, &entry->info, error) == ALLFOLD_OK) {
        d->take(d->user, entry);
        array_release(&entry->info);
    }
    free(entry);
    return error->status == ALLFOLD_OK;
}

allfold_status array_describe_each(const char *const *names, int count, const struct array_hints *hints, array_take *take, void *user,
                                   uint64_t *files, struct error *error)
{
    *files = 0;
    return take_files(&(struct input_names){names, count}, describe_each, &(struct describing_each){hints, take, user, files}, error);
}

allfold_status array_entries(const char *name, const char *slice, array_visit *visit, void *user, const char **format, struct error *error)
{
    const struct array_hints listing = {.listing = true, .slice = slice};
    struct input_name parsed;
    struct array_info info;
    if (parse_name(name, &parsed, error) != ALLFOLD_OK)
        return error->status;
    parsed.several = is_pattern(parsed.member) && !format_holds(&parsed);
    if (!parsed.pattern && slice == NULL)
        return format_entries(&parsed, visit, user, format, error);
    if (array_describe(name, &listing, &info, error) == ALLFOLD_OK) {
        format_visit(&info, visit, user);
        *format = array_format_name(&info);
        array_release(&info);
    }
    return error->status;
}

/* ---- names of files */

static bool is_called(const struct input_names *called, const char *name)
{
    struct input_name parsed;
    struct error ignored = {0};
    for (int i = 0; i < called->count; i++)
        if (parse_name(called->names[i], &parsed, &ignored) == ALLFOLD_OK && file_same(name, parsed.path))
            return true;
    return false;
}

bool array_has_file(const struct array_info *info, const char *const *called, int count, const char *name)
{
    if (format_is_generated(info->path))
        return false;
    bool has = is_called(&(struct input_names){called, count}, name);
    for (uint64_t i = 0; i < array_files(info) && !has; i++)
        has = file_same(name, array_file(info, i));
    return has;
}
