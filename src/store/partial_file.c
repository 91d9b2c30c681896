/* Writes and reads partials in files: see partial_file.h. */
#include "store/partial_file.h"

#include "array/file.h"
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

static size_t partial_bytes(const struct total *total)
{
    return monoid_bytes(fold_monoid(total->fold, total->level, total->type), total->type);
}

allfold_status partial_file_create(const char *path, struct replacement *replacement, struct error *error)
{
    return record_file_create(path, &kind, replacement, error);
}

allfold_status partial_file_write(const struct replacement *replacement, const struct total *total, struct error *error)
{
    struct contents contents;
    memset(&contents, 0, sizeof contents);
    contents.version = PARTIAL_VERSION;
    snprintf(contents.fold, sizeof contents.fold, "%s", allfold_fold_name(total->fold));
    snprintf(contents.type, sizeof contents.type, "%s", allfold_type_name(total->type));
    snprintf(contents.level, sizeof contents.level, "%s", level_name(fold_level(total->fold, total->level)));
    contents.count = total->count;
    contents.length = total->length;
    contents.bytes = partial_bytes(total);
    memcpy(contents.partial, total->partial.bytes, contents.bytes);
    return record_file_write(replacement, &kind, &contents, NULL, error);
}

/* Whether the contents, of which *total has all but the partial's length, are one; of version 2 what later versions have in their place. */
static bool is_partial(const struct contents *contents, struct total *total)
{
    const bool other_terms = contents->version < 4 && total->fold == ALLFOLD_LOGSUMEXP && total->level == ALLFOLD_LEVEL_EXACT;
    if (contents->version == 2)
        return !other_terms && partial_from_version_2(total, contents->bytes);
    return (contents->version == 3 || contents->version == PARTIAL_VERSION) && !other_terms && contents->bytes == partial_bytes(total);
}

allfold_status partial_file_read(const char *path, struct total *total, struct error *error)
{
    struct contents contents;
    if (record_file_read(path, &kind, &contents, NULL, error) != ALLFOLD_OK)
        return error->status;
    contents.fold[sizeof contents.fold - 1] = contents.type[sizeof contents.type - 1] = '\0';
    contents.level[sizeof contents.level - 1] = '\0';
    total->level = strcmp(contents.level, "exact") == 0 ? ALLFOLD_LEVEL_EXACT : ALLFOLD_LEVEL_FAST;
    total->count = contents.count;
    total->length = contents.length;
    memset(&total->partial, 0, sizeof total->partial);
    memcpy(total->partial.bytes, contents.partial, sizeof contents.partial);
    if (!fold_by_name(contents.fold, &total->fold) || !type_by_name(contents.type, &total->type) || contents.count > contents.length
        || !is_partial(&contents, total))
        return error_set(error, ALLFOLD_BAD_INPUT,
                         "%s: expected a partial of version %d, found one of version %" PRIu64 " (%s of %s, %s, %" PRIu64
                         " bytes): it was written by another version of the program", file_shown(path), PARTIAL_VERSION,
                         contents.version, contents.fold, contents.type, contents.level, contents.bytes);
    return ALLFOLD_OK;
}
