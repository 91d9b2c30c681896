/* Leaves out missing elements and unpacks the others: see encoded.h. Each reader works in the caller's buffer:

       [ values, or stored elements that are compacted ... | bitmap ]
       [ ... room            | stored elements as read     | bitmap ]

   Stored elements are read to the end of the room, so that values, which are longer, can be written from its beginning on. */
#include "array/encoded.h"

#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct encoded_source {
    struct source source;
    struct encoding encoding;
    enum missing missing;
    bool unpacks;
    struct array_info info; /* of the array */
    char name[ARRAY_NAME_BYTES];
    atomic_ullong found, first; /* missing elements, and the lowest index of one */
};

bool encoded_needed(const struct array_info *info)
{
    const struct encoding *const encoding = &info->encoding;
    return (encoding->packed && info->type == ALLFOLD_F64) || (encoding_has_missing(encoding) && info->missing != MISSING_KEEP);
}

const struct packing *array_keep_packed(struct array_info *info)
{
    if (!info->encoding.packed || type_kind(info->encoding.stored) == 'f')
        return NULL;
    info->type = info->encoding.stored;
    return &info->encoding.packing;
}

static uint64_t align(uint64_t bytes, uint64_t unit) { return (bytes + unit - 1) / unit * unit; }

/* Counts what was left out of a piece, and where the first of it lies. */
static void count_missing(struct encoded_source *s, const struct range *range, uint64_t read, const struct piece *piece)
{
    if (piece->count == read)
        return;
    const uint64_t position = range->first + encoding_first_missing(piece->kept, read);
    uint64_t run, index = s->source.chunking != NULL ? chunking_index(s->source.chunking, position, &run) : position;
    unsigned long long before = atomic_load(&s->first);
    atomic_fetch_add(&s->found, read - piece->count);
    while (index < before && !atomic_compare_exchange_weak(&s->first, &before, index))
        ;
}

static allfold_status read_encoded(struct reader *reader, const struct read_request *request, struct piece *piece, struct error *error)
{
    struct encoded_source *const s = (struct encoded_source *)reader->source;
    const uint64_t n = request->range.count;
    const size_t stored_bytes = allfold_type_bytes(s->encoding.stored), bytes = allfold_type_bytes(s->source.type);
    char *const values = request->buffer, *const room = values + align(n * (bytes - stored_bytes), 4096);
    uint64_t *const kept = (uint64_t *)(void *)(values + align(n * bytes + 4096 + READER_SLACK, sizeof *kept));
    const struct read_request of_stored = {request->range, request->ahead, room, request->in_part};
    if (reader_read(reader->inner, &of_stored, piece, error) != ALLFOLD_OK)
        return error->status;
    if (s->source.leaves_out) {
        const char *const from = piece->elements;
        char *const to = from >= room && from <= room + READER_SLACK ? room + (from - room) : room;
        const uint64_t read = piece->count;
        piece->count = encoding_compact(&s->encoding, from, read, to, kept);
        piece->elements = to;
        piece->kept = kept;
        count_missing(s, &request->range, read, piece);
    }
    if (s->unpacks) {
        encoding_unpack(&s->encoding, piece->elements, piece->count, (double *)(void *)values);
        piece->elements = values;
    }
    return ALLFOLD_OK;
}

static allfold_status check_encoded(struct source *source, struct error *error)
{
    struct encoded_source *const s = (struct encoded_source *)source;
    const unsigned long long found = atomic_load(&s->found), first = atomic_load(&s->first);
    char values[ENCODING_TEXT_BYTES], place[ARRAY_PLACE_BYTES];
    if (found == 0 || s->missing == MISSING_OMIT)
        return error->status;
    encoding_missing_text(&s->encoding, values);
    array_place_text(&s->info, first, place);
    return error_set(error, ALLFOLD_NO_VALUE, "%s: %llu of the elements read so far are missing (%.100s), one of them at index %llu%s%.200s: %s",
                     file_shown(s->name), found, values, first, place[0] != '\0' ? ", " : "", place,
                     s->missing == MISSING_REFUSE
                         ? "all elements are needed here: use --missing=keep to take them as the numbers that they are"
                         : "they are refused here (--missing=omit leaves them out)");
}

allfold_status encoded_open(const char *name, const struct array_info *info, struct source **source, struct error *error)
{
    struct encoded_source *const s = source_around(source, sizeof *s, file_shown(name), error);
    if (s == NULL)
        return error->status;
    s->source.read = read_encoded;
    s->source.check = check_encoded;
    s->source.type = info->type;
    s->source.leaves_out = encoding_has_missing(&info->encoding) && info->missing != MISSING_KEEP;
    s->source.by_granule = info->missing != MISSING_OMIT; /* the place of the first that is missing is told */
    memcpy(&s->info, info, sizeof *info);
    s->encoding = info->encoding;
    s->missing = (enum missing)info->missing;
    s->unpacks = info->encoding.packed && info->type == ALLFOLD_F64;
    snprintf(s->name, sizeof s->name, "%s", name);
    atomic_init(&s->first, UINT64_MAX);
    return ALLFOLD_OK;
}
