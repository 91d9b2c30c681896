/* Records: what a rank gives in an exchange. A record carries a partial and the rank's status, so agreement costs no message of its own. It also
   names its call: ranks that make different calls get an error, not a wrong result. comm.c exchanges them over MPI, beside.c without it. */
#pragma once

#include "comm/comm.h"

/* What comes before the partial. */
struct header {
    uint64_t count, call;
    int32_t failed_rank; /* -1 if no rank has failed */
    uint8_t mismatch;    /* 1: ranks made different calls */
    uint8_t monoid, type;
    uint16_t records;    /* of the first record: how many there are, one behind the other */
    uint16_t length;     /* of the first record: bytes of all */
    uint16_t bytes;      /* of the partial; 0: the record is an agreement */
};
_Static_assert((int)MONOID_COUNT <= UINT8_MAX && (int)ALLFOLD_TYPE_COUNT <= UINT8_MAX && COMM_BYTES_MOST <= UINT16_MAX,
               "a header has 8 bits for the monoid, 8 for the type, 16 for lengths");
struct record {
    struct header header;
    struct partial partial;
};
enum { HEADER_BYTES = offsetof(struct record, partial) };

/* Bytes of the part's partial. */
static inline size_t part_bytes(const struct comm_part *part) { return part->partial != NULL ? monoid_bytes(part->monoid, part->type) : 0; }
/* From one record of a message to the next. */
static inline size_t record_bytes(size_t partial_bytes) { return (HEADER_BYTES + partial_bytes + 15) / 16 * 16; }

/* Writes a record as a message of its own. Of several, the caller sets the first one's records and length. Returns its bytes. */
size_t record_write(struct record *record, const struct comm_part *part, int failed_rank);
/* *part gets what the ranks have in all. */
void record_read(const struct record *record, struct comm_part *part);

/* *a becomes *a followed by *b, of the next rank. *b is destroyed. */
void record_append(struct record *a, struct record *b);

/* The error of a mismatch, which is every rank's. */
allfold_status record_refuse(struct error *error);
