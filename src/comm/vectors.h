/* Exchanges many partials, or many results, in messages of bounded size. Collective, and with the same status on every rank,
   as in comm.h. */
#pragma once

#include "comm/comm.h"

/* Zeros that all ranks share, the same pages, if they are one host and have room for them: else *memory is NULL, which is no error. The
   same on all ranks. */
allfold_status comm_window_open(struct comm *comm, size_t bytes, void **memory, struct error *error);
/* Local. Ignores NULL. */
void comm_window_close(void *memory, size_t bytes);

/* Partials of results that every rank has a part of. */
struct comm_partials {
    enum monoid monoid;
    allfold_type type;
    const unsigned char *partials; /* this rank's: partial_stride bytes each */
    const struct range *parts;     /* of each rank: which of the results it gets */
};

/* Agrees on *error. Then `combined` gets this rank's part of the results, each of all ranks' partials combined in rank order. It has
   room for comm->size times the part, of at most INT_MAX bytes, as have all parts together; the rest is undefined afterwards. Indices
   in the partials are those of the whole axis. */
allfold_status comm_combine_partials(struct comm *comm, const struct comm_partials *partials, unsigned char *combined, struct error *error);

/* Agrees on *error. Then `sums` gets this rank's part of the ranks' counts, added up. parts: as in comm_partials, one behind the other. */
allfold_status comm_add_counts(struct comm *comm, const uint64_t *counts, const struct range *parts, uint64_t *sums, struct error *error);

/* Agrees on *error. Then every rank's counts, of 4 or 8 bytes each, become the sums of all ranks'. */
allfold_status comm_sum(struct comm *comm, void *counts, uint64_t n, size_t bytes, struct error *error);

/* Agrees on *error. Then all ranks have what one of them has: where it is not known to the others, these have zeros. */
allfold_status comm_unite(struct comm *comm, void *memory, uint64_t bytes, struct error *error);

/* Rows of elements of `bytes` bytes, of which each rank has a part of every row. */
struct comm_rows {
    void *memory;
    uint64_t rows, width;
    size_t bytes;
    const struct range *parts; /* of a row, of each rank */
};

/* Agrees on *error. Then every rank's memory gets the elements of all. */
allfold_status comm_gather_rows(struct comm *comm, const struct comm_rows *rows, struct error *error);
