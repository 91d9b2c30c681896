/* Writes, combines and reads records: see record.h. */
#include "comm/record.h"

#include "fold/table.h"

#include <string.h>

size_t record_write(struct record *record, const struct comm_part *part, int failed_rank)
{
    const size_t bytes = part_bytes(part), length = HEADER_BYTES + bytes;
    record->header = (struct header){.count = part->count, .call = part->call, .failed_rank = failed_rank, .monoid = (uint8_t)part->monoid,
                                     .type = (uint8_t)part->type, .records = 1, .length = (uint16_t)length, .bytes = (uint16_t)bytes};
    if (bytes > 0)
        memcpy(&record->partial, part->partial, bytes);
    return length;
}

void record_read(const struct record *record, struct comm_part *part)
{
    part->count = record->header.count;
    if (record->header.bytes > 0)
        memcpy(part->partial, &record->partial, record->header.bytes);
}

void record_append(struct record *a, struct record *b)
{
    struct header *const mine = &a->header;
    const struct header *const next = &b->header;
    if (mine->failed_rank >= 0 || next->failed_rank >= 0) {
        mine->failed_rank = mine->failed_rank >= 0 ? mine->failed_rank : next->failed_rank;
        return;
    }
    mine->mismatch |= next->mismatch || mine->monoid != next->monoid || mine->type != next->type || mine->call != next->call;
    if (!mine->mismatch && mine->bytes > 0)
        monoid_append((enum monoid)mine->monoid, (allfold_type)mine->type, &a->partial,
                      (mine->call & COMM_WHOLE_INDICES) == 0 ? mine->count : 0, &b->partial);
    mine->count += next->count;
}

allfold_status record_refuse(struct error *error)
{
    error->shared = true;
    return error_set(error, ALLFOLD_BAD_ARGUMENT, "the ranks made different calls: all must make the same calls in the same order, with the same operation, "
                     "element types, cut and options");
}
