/* The calls of allfold_files.h. */
#include "allfold_files.h"

#include "array/slice.h"
#include "core/input.h"
#include "core/pipeline.h"
#include "files/describe.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A number for some bytes (FNV-1a). */
static uint64_t mix(uint64_t key, const void *bytes, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++)
        key = (key ^ ((const unsigned char *)bytes)[i]) * UINT64_C(0x100000001b3);
    return key;
}

/* What follows from the description, the same on all ranks. */
static void complete(struct allfold_source *s)
{
    struct array_info *const info = &s->info;
    void *const details = info->details;
    uint64_t key = UINT64_C(0xcbf29ce484222325);
    info->details = NULL; /* the address is this rank's own */
    key = mix(mix(key, info, sizeof *info), details, info->details_bytes);
    info->details = details;
    s->key = (key | 1) << CALL_DDOF_SHIFT & ~COMM_WHOLE_INDICES;
    s->open = describe_open;
    s->keep_packed = array_keep_packed;
    s->place = describe_place;
    for (uint32_t i = 0; i < info->dimensions; i++)
        s->names[i] = array_dimension_name(info, i);
    array_name(info, s->name);
}

/* Both libraries know each other's structs. */
static void check_version(struct error *error)
{
    if (strcmp(allfold_version(), ALLFOLD_VERSION) != 0)
        error_set(error, ALLFOLD_UNSUPPORTED, "liballfold-files %s works with liballfold " ALLFOLD_VERSION ", found %s: install both of one version",
                  ALLFOLD_VERSION, allfold_version());
}

static void take_options(const allfold_source_options *given, struct array_hints *hints, struct error *error)
{
    allfold_source_options known = ALLFOLD_SOURCE_OPTIONS_INIT;
    if (given != NULL && given->size != sizeof known)
        error_set(error, ALLFOLD_BAD_ARGUMENT, "allfold_source_options.size is %zu: expected %zu, sizeof(allfold_source_options) of this library's "
                  "version", given->size, sizeof known);
    else if (given != NULL)
        known = *given;
    if ((unsigned)known.missing > ALLFOLD_MISSING_ERROR)
        error_set(error, ALLFOLD_BAD_ARGUMENT, "missing policy %d does not exist", (int)known.missing);
    if (known.type != ALLFOLD_TYPE_NONE && !type_exists(known.type))
        error_set(error, ALLFOLD_BAD_ARGUMENT, "element type %d does not exist", (int)known.type);
    *hints = (struct array_hints){.missing = (enum missing)known.missing, .type = known.type, .has_offset = known.offset != 0, .offset = known.offset,
                                  .has_count = known.count != 0, .count = known.count, .shape = known.shape, .slice = known.slice};
}

allfold_status allfold_source_open(allfold_context *context, const char *name, const allfold_source_options *options, allfold_source **source)
{
    struct error error = {0};
    struct array_hints hints;
    struct allfold_source *const s = calloc(1, sizeof *s);
    *source = NULL;
    if (s == NULL)
        error_set(&error, ALLFOLD_NO_MEMORY, "no memory for a source");
    if (name == NULL)
        error_set(&error, ALLFOLD_BAD_ARGUMENT, "the name is NULL");
    check_version(&error);
    take_options(options, &hints, &error);
    if (error.status == ALLFOLD_OK && context->comm.rank == 0)
        array_describe(name, &hints, &s->info, &error);
    describe_share(context, s != NULL ? &s->info : NULL, &error);
    if (error.status != ALLFOLD_OK) {
        allfold_source_close(s);
        return error.status;
    }
    complete(s);
    *source = s;
    return ALLFOLD_OK;
}

allfold_status allfold_source_slice(const allfold_source *source, const char *slice, allfold_source **part, char *message, size_t message_bytes)
{
    struct error error = {0};
    struct allfold_source *const s = malloc(sizeof *s);
    void *const details = malloc((size_t)source->info.details_bytes + 1);
    *part = NULL;
    if (s == NULL || details == NULL) {
        free(details);
        error_set(&error, ALLFOLD_NO_MEMORY, "no memory for a slice");
    } else {
        memcpy(s, source, sizeof *s);
        memcpy(details, source->info.details != NULL ? source->info.details : "", (size_t)source->info.details_bytes);
        s->info.details = details;
        slice_take(slice, &s->info, &error);
    }
    if (error.status == ALLFOLD_OK) {
        complete(s);
        *part = s;
    } else if (s != NULL && details != NULL) {
        allfold_source_close(s);
    } else {
        free(s);
    }
    if (message != NULL && message_bytes > 0)
        snprintf(message, message_bytes, "%s", error.text);
    return error.status;
}

void allfold_source_describe(const allfold_source *source, allfold_source_facts *facts)
{
    const struct array_info *const info = &source->info;
    const allfold_source_facts known = {.size = facts->size, .name = source->name, .type = info->type, .count = info->count,
                                        .rank = (int)info->dimensions, .fortran_order = info->fortran_order != 0, .shape = info->shape,
                                        .dimensions = info->names[0] != '\0' ? source->names : NULL};
    memcpy(facts, &known, facts->size < sizeof known ? facts->size : sizeof known);
}

void allfold_source_close(allfold_source *source)
{
    if (source != NULL)
        array_release(&source->info);
    free(source);
}

/* ---- names */

struct name_list {
    const char *file;
    char *names;
    size_t count, bytes;
    struct error *error;
};

static void list_entry(void *user, const struct array_entry *entry)
{
    struct name_list *const l = user;
    if (entry->name == NULL || strcmp(entry->info.path, l->file) != 0 || l->error->status != ALLFOLD_OK)
        return; /* not a file of arrays that have names, or the name is of one of them */
    const size_t bytes = entry->refused.status == ALLFOLD_OK ? strlen(entry->name) + 1 : 0;
    char *const larger = realloc(l->names, l->bytes + bytes + 1);
    if (larger == NULL) {
        error_set(l->error, ALLFOLD_NO_MEMORY, "no memory for the names of arrays");
        return;
    }
    l->names = larger;
    memcpy(l->names + l->bytes, entry->name, bytes);
    l->bytes += bytes;
    l->count += bytes > 0;
}

allfold_status allfold_source_list(allfold_context *context, const char *file, char **names, size_t *count)
{
    struct error error = {0};
    const char *format;
    struct name_list l = {.file = file, .error = &error};
    *names = NULL;
    check_version(&error);
    if (file == NULL)
        error_set(&error, ALLFOLD_BAD_ARGUMENT, "the name is NULL");
    if (error.status == ALLFOLD_OK && context->comm.rank == 0)
        array_entries(file, NULL, list_entry, &l, &format, &error);
    uint64_t sizes[] = {l.bytes, l.count, l.names != NULL};
    if (allfold_share(context, sizes, sizeof sizes, error.status, error.text) == ALLFOLD_OK && sizes[2] != 0) {
        if (l.names == NULL && (l.names = malloc(sizes[0] + 1)) == NULL)
            error_set(&error, ALLFOLD_NO_MEMORY, "no memory for the names of arrays");
        allfold_share(context, l.names, sizes[0], error.status, error.text);
    }
    if (context->error.status != ALLFOLD_OK) {
        free(l.names);
        return context->error.status;
    }
    *names = l.names;
    *count = sizes[1];
    return ALLFOLD_OK;
}
