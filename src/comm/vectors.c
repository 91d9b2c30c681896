/* Exchanges vectors of partials and results: see vectors.h. */
#include "comm/vectors.h"

#include "comm/handle.h"
#include "comm/shared_memory.h"

#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

enum { PIECE_BYTES = 8 << 20 }; /* of all ranks, in one call of MPI */

allfold_status comm_window_open(struct comm *comm, size_t bytes, void **memory, struct error *error)
{
    struct error none = {0};
    *memory = NULL;
    if (comm_agree(comm, error) == ALLFOLD_OK && comm->hosts == 1)
        shared_memory_open(comm_handle(comm), bytes, memory, &none);
    return error->status;
}

void comm_window_close(void *memory, size_t bytes) { shared_memory_close(memory, bytes); }

/* Counts and places of the ranks' messages, in bytes. */
struct messages {
    int *send, *send_at, *receive, *receive_at;
};

static bool messages_open(struct messages *messages, int size)
{
    messages->send = calloc((size_t)size * 4, sizeof *messages->send);
    messages->send_at = messages->send + size;
    messages->receive = messages->send + 2 * size;
    messages->receive_at = messages->send + 3 * size;
    return messages->send != NULL;
}

/* Combines what each rank has sent, one after the other, in the first. */
static void combine_received(const struct comm *comm, const struct comm_partials *partials, unsigned char *received)
{
    const size_t stride = partial_stride(partials->monoid, partials->type);
    const uint64_t count = partials->parts[comm->rank].count;
    for (int rank = 1; rank < comm->size; rank++)
        for (uint64_t r = 0; r < count; r++)
            monoid_combine(partials->monoid, partials->type, (struct partial *)(received + r * stride),
                           (const struct partial *)(received + ((uint64_t)rank * count + r) * stride));
}

allfold_status comm_combine_partials(struct comm *comm, const struct comm_partials *partials, unsigned char *combined, struct error *error)
{
    const size_t stride = partial_stride(partials->monoid, partials->type);
    struct messages messages = {0};
    const struct range *const last = &partials->parts[comm->size - 1];
    const uint64_t mine = partials->parts[comm->rank].count * stride;
    if (u64_max((uint64_t)comm->size * mine, (last->first + last->count) * stride) > INT_MAX)
        error_set(error, ALLFOLD_UNSUPPORTED, "%d ranks exchange %" PRIu64 " bytes each, more than MPI counts: use fewer ranks", comm->size, mine);
    if (!messages_open(&messages, comm->size))
        error_set(error, ALLFOLD_NO_MEMORY, "no memory for an exchange among %d ranks", comm->size);
    if (comm_agree(comm, error) == ALLFOLD_OK) {
        const enum phase before = phase_enter(comm->progress, PHASE_EXCHANGE);
        for (int rank = 0; rank < comm->size; rank++) {
            messages.send[rank] = (int)(partials->parts[rank].count * stride);
            messages.send_at[rank] = (int)(partials->parts[rank].first * stride);
            messages.receive[rank] = (int)mine;
            messages.receive_at[rank] = (int)((uint64_t)rank * mine);
        }
        const int code = MPI_Alltoallv(partials->partials, messages.send, messages.send_at, MPI_BYTE, combined, messages.receive,
                                       messages.receive_at, MPI_BYTE, comm_handle(comm));
        if (code != MPI_SUCCESS)
            comm_failed(code, "MPI_Alltoallv", error);
        else
            combine_received(comm, partials, combined);
        phase_enter(comm->progress, before);
    }
    free(messages.send);
    return error->status;
}

allfold_status comm_add_counts(struct comm *comm, const uint64_t *counts, const struct range *parts, uint64_t *sums, struct error *error)
{
    struct messages messages = {0};
    if (!messages_open(&messages, comm->size))
        error_set(error, ALLFOLD_NO_MEMORY, "no memory for an exchange among %d ranks", comm->size);
    if (comm_agree(comm, error) == ALLFOLD_OK) {
        const enum phase before = phase_enter(comm->progress, PHASE_EXCHANGE);
        for (int rank = 0; rank < comm->size; rank++)
            messages.receive[rank] = (int)parts[rank].count;
        const int code = MPI_Reduce_scatter(counts, sums, messages.receive, MPI_UINT64_T, MPI_SUM, comm_handle(comm));
        if (code != MPI_SUCCESS)
            comm_failed(code, "MPI_Reduce_scatter", error);
        phase_enter(comm->progress, before);
    }
    free(messages.send);
    return error->status;
}

allfold_status comm_sum(struct comm *comm, void *counts, uint64_t n, size_t bytes, struct error *error)
{
    if (comm_agree(comm, error) != ALLFOLD_OK || comm->size == 1)
        return error->status;
    const enum phase before = phase_enter(comm->progress, PHASE_EXCHANGE);
    const MPI_Datatype type = bytes == sizeof(uint32_t) ? MPI_UINT32_T : MPI_UINT64_T;
    const int code = n > INT_MAX ? MPI_ERR_COUNT : MPI_Allreduce(MPI_IN_PLACE, counts, (int)n, type, MPI_SUM, comm_handle(comm));
    if (code != MPI_SUCCESS)
        comm_failed(code, "MPI_Allreduce", error);
    phase_enter(comm->progress, before);
    return error->status;
}

allfold_status comm_unite(struct comm *comm, void *memory, uint64_t bytes, struct error *error)
{
    const uint64_t most = 1 << 30;
    if (comm_agree(comm, error) != ALLFOLD_OK || comm->size == 1)
        return error->status;
    const enum phase before = phase_enter(comm->progress, PHASE_EXCHANGE);
    for (uint64_t at = 0; at < bytes && error->status == ALLFOLD_OK; at += most) {
        const int code = MPI_Allreduce(MPI_IN_PLACE, (char *)memory + at, (int)u64_min(most, bytes - at), MPI_BYTE, MPI_BOR, comm_handle(comm));
        if (code != MPI_SUCCESS)
            comm_failed(code, "MPI_Allreduce", error);
    }
    phase_enter(comm->progress, before);
    return error->status;
}

/* The ranks' parts of columns [first, first + count) of one row, in place. */
static int gather_run(const struct comm *comm, const struct comm_rows *rows, const struct messages *messages, unsigned char *row,
                      struct range run)
{
    for (int rank = 0; rank < comm->size; rank++) {
        const struct range *const part = &rows->parts[rank];
        const uint64_t begin = u64_max(part->first, run.first), end = u64_min(part->first + part->count, run.first + run.count);
        messages->receive[rank] = end > begin ? (int)((end - begin) * rows->bytes) : 0;
        messages->receive_at[rank] = end > begin ? (int)((begin - run.first) * rows->bytes) : 0;
    }
    return MPI_Allgatherv(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, row + run.first * rows->bytes, messages->receive, messages->receive_at,
                          MPI_BYTE, comm_handle(comm));
}

/* Long rows, or one: pieces of a row. */
static int gather_long(const struct comm *comm, const struct comm_rows *rows, const struct messages *messages)
{
    const uint64_t most = PIECE_BYTES / rows->bytes;
    int code = MPI_SUCCESS;
    for (uint64_t row = 0; row < rows->rows; row++)
        for (uint64_t first = 0; first < rows->width && code == MPI_SUCCESS; first += most)
            code = gather_run(comm, rows, messages, (unsigned char *)rows->memory + row * rows->width * rows->bytes,
                              (struct range){first, u64_min(most, rows->width - first)});
    return code;
}

/* Short rows: several at a time, each rank's part of them packed together. */
static int gather_short(const struct comm *comm, const struct comm_rows *rows, const struct messages *messages, unsigned char *packed)
{
    const uint64_t row_bytes = rows->width * rows->bytes, most = PIECE_BYTES / row_bytes;
    for (uint64_t row = 0; row < rows->rows; row += most) {
        const uint64_t count = u64_min(most, rows->rows - row);
        unsigned char *const first = (unsigned char *)rows->memory + row * row_bytes;
        for (int pass = 0; pass < 2; pass++) { /* this rank's into packed; all out of it */
            for (int rank = 0; rank < comm->size; rank++) {
                const size_t bytes = rows->parts[rank].count * rows->bytes, at = rows->parts[rank].first * rows->bytes;
                messages->receive[rank] = (int)(count * bytes);
                messages->receive_at[rank] = (int)(count * at);
                for (uint64_t r = 0; r < count && (pass == 1 || rank == comm->rank); r++) {
                    unsigned char *const element = first + r * row_bytes + at, *const copy = packed + count * at + r * bytes;
                    memcpy(pass == 0 ? copy : element, pass == 0 ? element : copy, bytes);
                }
            }
            const int code = pass == 1 ? MPI_SUCCESS
                                       : MPI_Allgatherv(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, packed, messages->receive,
                                                        messages->receive_at, MPI_BYTE, comm_handle(comm));
            if (code != MPI_SUCCESS)
                return code;
        }
    }
    return MPI_SUCCESS;
}

allfold_status comm_gather_rows(struct comm *comm, const struct comm_rows *rows, struct error *error)
{
    const bool is_short = rows->rows > 1 && rows->width * rows->bytes <= PIECE_BYTES;
    struct messages messages = {0};
    unsigned char *const packed = is_short ? malloc(PIECE_BYTES) : NULL;
    if (!messages_open(&messages, comm->size) || (is_short && packed == NULL))
        error_set(error, ALLFOLD_NO_MEMORY, "no memory for an exchange among %d ranks", comm->size);
    if (comm_agree(comm, error) == ALLFOLD_OK && rows->width > 0) {
        const enum phase before = phase_enter(comm->progress, PHASE_EXCHANGE);
        const int code = is_short ? gather_short(comm, rows, &messages, packed) : gather_long(comm, rows, &messages);
        if (code != MPI_SUCCESS)
            comm_failed(code, "MPI_Allgatherv", error);
        phase_enter(comm->progress, before);
    }
    free(packed);
    free(messages.send);
    return error->status;
}
