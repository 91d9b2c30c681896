/* What all sources and readers have in common: see array.h. */
#include "array/array.h"

#include <stdlib.h>

void *source_around(struct source **inner, size_t bytes, const char *name, struct error *error)
{
    struct source *const source = calloc(1, bytes);
    if (source == NULL) {
        source_close(*inner);
        *inner = NULL;
        error_set(error, ALLFOLD_NO_MEMORY, "%s: no memory to open it", name);
        return NULL;
    }
    *source = (struct source){.inner = *inner, .type = (*inner)->type, .chunking = (*inner)->chunking, .note = (*inner)->note};
    *inner = source;
    return source;
}

allfold_status source_check(struct source *source, struct error *error)
{
    if (source->inner != NULL)
        source_check(source->inner, error);
    return source->check != NULL && error->status == ALLFOLD_OK ? source->check(source, error) : error->status;
}

void source_close(struct source *source)
{
    if (source == NULL)
        return;
    if (source->close != NULL)
        source->close(source);
    if (!source->borrows)
        source_close(source->inner);
    free(source);
}

allfold_status source_open_reader(struct source *source, struct reader **opened, struct error *error)
{
    struct reader *const reader = calloc(1, u64_max(source->reader_bytes, sizeof *reader));
    if (reader == NULL)
        return error_set(error, ALLFOLD_NO_MEMORY, "no memory for a reader");
    reader->source = source;
    if (source->inner != NULL && source_open_reader(source->inner, &reader->inner, error) != ALLFOLD_OK)
        free(reader);
    else
        *opened = reader;
    return error->status;
}

void reader_close(struct reader *reader)
{
    if (reader == NULL)
        return;
    if (reader->source->close_reader != NULL)
        reader->source->close_reader(reader);
    reader_close(reader->inner);
    free(reader);
}
