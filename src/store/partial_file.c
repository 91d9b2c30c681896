/* Writes and reads partials in files: see partial_file.h. */
#include "store/partial_file.h"

#include "array/file.h"
#include "fold/total.h"
#include "store/partial_version_2.h"
#include "store/record_file.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* The file's contents. Names are filled up with zeros, and so is a partial that is shorter than its field, whose length is the format's: all
   partials of ALLFOLD_FOLDS fit it. */
struct contents {
    uint64_t version;
    char fold[16], type[8], level[8];
    uint64_t count, bytes, length; /* elements in the partial; bytes of it in use; elements of the array */
    __attribute__((aligned(16))) unsigned char partial[2560];
};

static const struct record_kind kind = {"allfoldP", "the partial", sizeof(struct contents)};

static const char *const levels[] = {[ALLFOLD_LEVEL_FAST] = "fast", [ALLFOLD_LEVEL_EXACT] = "exact"};

static size_t partial_file_bytes(const struct partial_file *file)
{
    return monoid_bytes(fold_monoid(file->fold, file->level, file->type), file->type);
}

allfold_status partial_file_create(const char *path, struct replacement *replacement, struct error *error)
{
    return record_file_create(path, &kind, replacement, error);
}

allfold_status partial_file_write(const struct replacement *replacement, const struct partial_file *file, struct error *error)
{
    struct contents contents;
    memset(&contents, 0, sizeof contents);
    contents.version = PARTIAL_VERSION;
    snprintf(contents.fold, sizeof contents.fold, "%s", allfold_fold_name(file->fold));
    snprintf(contents.type, sizeof contents.type, "%s", allfold_type_name(file->type));
    snprintf(contents.level, sizeof contents.level, "%s", levels[fold_level(file->fold, file->level)]);
    contents.count = file->count;
    contents.length = file->length;
    contents.bytes = partial_file_bytes(file);
    memcpy(contents.partial, file->partial.bytes, contents.bytes);
    return record_file_write(replacement, &kind, &contents, NULL, error);
}

/* Whether the contents, of which *file has all but the partial's length, are one; of version 2 what later versions have in their place. */
static bool is_partial(const struct contents *contents, struct partial_file *file)
{
    const bool other_terms = contents->version < 4 && file->fold == ALLFOLD_LOGSUMEXP && file->level == ALLFOLD_LEVEL_EXACT;
    if (contents->version == 2)
        return !other_terms && partial_from_version_2(file, contents->bytes);
    return (contents->version == 3 || contents->version == PARTIAL_VERSION) && !other_terms && contents->bytes == partial_file_bytes(file);
}

allfold_status partial_file_read(const char *path, struct partial_file *file, struct error *error)
{
    struct contents contents;
    if (record_file_read(path, &kind, &contents, NULL, error) != ALLFOLD_OK)
        return error->status;
    contents.fold[sizeof contents.fold - 1] = contents.type[sizeof contents.type - 1] = '\0';
    contents.level[sizeof contents.level - 1] = '\0';
    file->level = strcmp(contents.level, "exact") == 0 ? ALLFOLD_LEVEL_EXACT : ALLFOLD_LEVEL_FAST;
    file->count = contents.count;
    file->length = contents.length;
    memset(&file->partial, 0, sizeof file->partial);
    memcpy(file->partial.bytes, contents.partial, sizeof contents.partial);
    if (!fold_by_name(contents.fold, &file->fold) || !type_by_name(contents.type, &file->type) || contents.count > contents.length
        || !is_partial(&contents, file))
        return error_set(error, ALLFOLD_BAD_INPUT,
                         "%s: expected a partial of version %d, found one of version %" PRIu64 " (%s of %s, %s, %" PRIu64
                         " bytes): it was written by another version of the program", file_shown(path), PARTIAL_VERSION,
                         contents.version, contents.fold, contents.type, contents.level, contents.bytes);
    return ALLFOLD_OK;
}

allfold_status partial_file_merge(struct partial_file *a, const struct partial_file *b, const char *path, struct error *error)
{
    const enum monoid monoid = fold_monoid(a->fold, a->level, a->type);
    struct partial next = b->partial;
    if (a->fold != b->fold || a->type != b->type || a->level != b->level)
        return error_set(error, ALLFOLD_BAD_INPUT, "%s: expected a partial of %s of %s, %s, as the first, found %s of %s, %s",
                         file_shown(path), allfold_fold_name(a->fold), allfold_type_name(a->type), levels[a->level],
                         allfold_fold_name(b->fold), allfold_type_name(b->type), levels[b->level]);
    if (a->length > INT64_MAX || b->length > INT64_MAX - a->length)
        return error_set(error, ALLFOLD_BAD_INPUT, "%s: expected no more than 2^63 - 1 elements in all, found %" PRIu64 " after %" PRIu64,
                         file_shown(path), b->length, a->length);
    monoid_append(monoid, a->type, &a->partial, a->length, &next);
    a->count += b->count;
    a->length += b->length;
    return ALLFOLD_OK;
}
