/* What all sources and readers have in common: see array.h. */
#include "array/array.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { BLOCK_ELEMENTS = 1 << 16 }; /* read at a time */

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

void *source_read_all(struct source *source, uint64_t positions, uint64_t *count, struct error *error)
{
    const size_t bytes = allfold_type_bytes(source->type);
    const uint64_t step = u64_max(source->granule, BLOCK_ELEMENTS / source->granule * source->granule);
    struct reader *reader = NULL;
    char *const all = positions < SIZE_MAX / bytes ? malloc((size_t)(positions * bytes) + 1) : NULL, *const buffer = aligned_alloc(4096, (reader_room(step, bytes) / 4096 + 1) * 4096);
    *count = 0;
    if (all == NULL || buffer == NULL)
        error_set(error, ALLFOLD_NO_MEMORY, "no memory for %" PRIu64 " elements", positions);
    else
        source_open_reader(source, &reader, error);
    for (uint64_t at = 0; at < positions && error->status == ALLFOLD_OK; at += step) {
        const struct read_request request = {{at, u64_min(step, positions - at)}, 0, buffer, false};
        struct piece piece = {.count = 0};
        if (reader_read(reader, &request, &piece, error) != ALLFOLD_OK)
            break;
        memcpy(all + *count * bytes, piece.elements, (size_t)(piece.count * bytes));
        *count += piece.count;
    }
    reader_close(reader);
    free(buffer);
    if (error->status == ALLFOLD_OK)
        return all;
    free(all);
    *count = 0;
    return NULL;
}
