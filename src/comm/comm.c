/* Exchanges records (record.h) and agrees on errors, over MPI: see comm.h. */
#include "comm/comm.h"

#include "base/elements.h"
#include "comm/handle.h"
#include "comm/in_host.h"
#include "comm/record.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* One record or several: what a rank sends in an exchange. */
union message {
    struct record record; /* the first */
    _Alignas(16) unsigned char bytes[COMM_BYTES_MOST];
};

/* The call of an agreement. */
#define CALL_AGREE UINT64_MAX
/* In place of a failed rank, within a host only: MPI has failed between hosts, and count is its error code. */
#define FAILED_IN_MPI (-2)

/* The bytes of a record that MPI sends, whatever the monoid: ranks that make different calls must still exchange messages that
   match. A sum at level exact fits. Wider partials are sent once all ranks are known to make the same call. */
enum { RECORD_BYTES = 640 };

struct comm_mpi {
    MPI_Comm comm;          /* a duplicate of the caller's */
    struct in_host in_host; /* the ranks of this one's host */
    MPI_Comm hosts;         /* one rank of each host; if there is one host, each rank alone; MPI_COMM_NULL on the others */
    MPI_Datatype record, wide_record, message;
    MPI_Op append;
    union message all, agreed; /* results; zero at first, not on a stack, so that no unset byte is sent */
};

/* Combines messages record by record. A record of another call may have another length: those behind it are not looked at. */
static void append_message(union message *a, union message *b)
{
    struct header *const first = &a->record.header;
    if (first->records != b->record.header.records && first->failed_rank < 0 && b->record.header.failed_rank < 0) {
        first->mismatch = 1;
        return;
    }
    size_t at = 0;
    for (int i = 0; i < first->records; i++) {
        struct record *const mine = (struct record *)(a->bytes + at);
        record_append(mine, (struct record *)(b->bytes + at));
        if (mine->header.failed_rank >= 0 || mine->header.mismatch) {
            first->failed_rank = mine->header.failed_rank;
            first->mismatch = mine->header.mismatch;
            return;
        }
        at += record_bytes(mine->header.bytes);
    }
}

/* b = a followed by b: the order in which MPI passes the operands of a non-commutative operation. The bytes may be unaligned. */
static void append_records(void *a_bytes, void *b_bytes, int *length, MPI_Datatype *datatype)
{
    int bytes;
    MPI_Type_size(*datatype, &bytes);
    for (int i = 0; i < *length; i++) {
        union message a, b;
        memcpy(&a, (char *)a_bytes + (ptrdiff_t)i * bytes, (size_t)bytes);
        memcpy(&b, (char *)b_bytes + (ptrdiff_t)i * bytes, (size_t)bytes);
        append_message(&a, &b);
        memcpy((char *)b_bytes + (ptrdiff_t)i * bytes, &a, (size_t)bytes);
    }
}

MPI_Comm comm_handle(const struct comm *comm) { return comm->mpi->comm; }

allfold_status comm_failed(int code, const char *call, struct error *error)
{
    char text[MPI_MAX_ERROR_STRING] = "";
    int length = 0;
    MPI_Error_string(code, text, &length);
    return error_set(error, ALLFOLD_MPI_ERROR, "%s: %s", call, text);
}

/* ---- opening */

/* Makes the error of rank `failed` every rank's. It says where it happened, and in which phase. */
static allfold_status share_error(struct comm *comm, MPI_Comm mpi, int failed, enum phase phase, struct error *error)
{
    if (comm->rank == failed && !error->shared && comm->size > 1) {
        const struct error own = *error;
        error->status = ALLFOLD_OK;
        error_set(error, own.status, "rank %d on %.64s%s%s in phase %s: %.*s", comm->rank, comm->host,
                  comm->device[0] != '\0' ? ", " : "", comm->device, phase_name(phase), ALLFOLD_ERROR_BYTES / 4 * 3, own.text);
    }
    struct error message = *error;
    message.shared = true;
    const int code = MPI_Bcast(&message, (int)sizeof message, MPI_BYTE, failed, mpi);
    if (code != MPI_SUCCESS) {
        error->status = ALLFOLD_OK;
        return comm_failed(code, "MPI_Bcast", error);
    }
    *error = message;
    return error->status;
}

/* Before there is an exchange: the error of the lowest rank that failed becomes every rank's. */
static allfold_status agree_to_open(struct comm *comm, MPI_Comm mpi, struct error *error)
{
    const int mine = error->status != ALLFOLD_OK ? comm->rank : comm->size;
    int failed;
    const int code = MPI_Allreduce(&mine, &failed, 1, MPI_INT, MPI_MIN, mpi);
    if (code != MPI_SUCCESS)
        return comm_failed(code, "MPI_Allreduce", error);
    return failed < comm->size ? share_error(comm, mpi, failed, PHASE_START, error) : ALLFOLD_OK;
}

/* The host of this rank: neighbours in rank order that share memory, at most IN_HOST_RANKS_MOST. Ranks of one machine that are
   not neighbours (cyclic placement) belong to different hosts, so that hosts follow one another as their ranks do. */
static int split_host(const struct comm *comm, MPI_Comm local, bool share, MPI_Comm *host)
{
    int lower = -1, first, code;
    const int known = share ? comm->rank : -1;
    if ((code = MPI_Exscan(&known, &lower, 1, MPI_INT, MPI_MAX, local)) != MPI_SUCCESS)
        return code;
    const bool goes_on = share && comm->local_rank > 0 && lower == comm->rank - 1;
    const int begins = goes_on ? 0 : comm->local_rank;
    if ((code = MPI_Scan(&begins, &first, 1, MPI_INT, MPI_MAX, local)) != MPI_SUCCESS)
        return code;
    return MPI_Comm_split(local, comm->local_rank - (comm->local_rank - first) % IN_HOST_RANKS_MOST, 0, host);
}

/* The two stages: the host's memory, and the communicator between hosts. Ranks without memory to share are hosts of their own. */
static int open_stages(struct comm *comm, MPI_Comm local, bool share, struct error *error)
{
    struct comm_mpi *const mpi = comm->mpi;
    MPI_Comm host;
    int code = split_host(comm, local, share, &host);
    if (code != MPI_SUCCESS)
        return code;
    struct error ignored = {0};
    if (in_host_open(&mpi->in_host, host, mpi->comm, sizeof(union message), &ignored) != ALLFOLD_OK)
        in_host_open(&mpi->in_host, MPI_COMM_SELF, mpi->comm, sizeof(union message), error);
    MPI_Comm_free(&host);
    const int leads = mpi->in_host.rank == 0;
    if ((code = MPI_Allreduce(&leads, &comm->hosts, 1, MPI_INT, MPI_SUM, mpi->comm)) != MPI_SUCCESS)
        return code;
    return MPI_Comm_split(mpi->comm, comm->hosts == 1 ? comm->rank : leads ? 0 : MPI_UNDEFINED, 0, &mpi->hosts);
}

static int open_record(size_t bytes, MPI_Datatype *record)
{
    const int code = MPI_Type_contiguous((int)bytes, MPI_BYTE, record);
    return code != MPI_SUCCESS ? code : MPI_Type_commit(record);
}

/* Everything that needs memory or a message. On failure comm_close undoes it. */
static allfold_status open_mpi(MPI_Comm caller, bool share, struct comm *comm, struct error *error)
{
    struct comm_mpi *const mpi = comm->mpi;
    int code;
    MPI_Comm local;
    if ((code = MPI_Comm_dup(caller, &mpi->comm)) != MPI_SUCCESS)
        return comm_failed(code, "MPI_Comm_dup", error);
    MPI_Comm_set_errhandler(mpi->comm, MPI_ERRORS_RETURN); /* communicators made from it inherit this */
    if ((code = MPI_Comm_split_type(mpi->comm, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &local)) != MPI_SUCCESS)
        return comm_failed(code, "MPI_Comm_split_type", error);
    MPI_Comm_rank(local, &comm->local_rank);
    MPI_Comm_size(local, &comm->local_size);
    code = open_stages(comm, local, share, error);
    MPI_Comm_free(&local);
    if (code != MPI_SUCCESS)
        return comm_failed(code, "MPI_Comm_split", error);
    if ((code = open_record(RECORD_BYTES, &mpi->record)) != MPI_SUCCESS
        || (code = open_record(sizeof(struct record), &mpi->wide_record)) != MPI_SUCCESS
        || (code = open_record(sizeof(union message), &mpi->message)) != MPI_SUCCESS)
        comm_failed(code, "MPI_Type_contiguous", error);
    if ((code = MPI_Op_create(append_records, 0, &mpi->append)) != MPI_SUCCESS)
        comm_failed(code, "MPI_Op_create", error);
    return agree_to_open(comm, mpi->comm, error);
}

allfold_status comm_open(const void *mpi, allfold_exchange exchange, struct comm *comm, struct error *error)
{
    const MPI_Comm caller = *(const MPI_Comm *)mpi;
    char host[MPI_MAX_PROCESSOR_NAME] = "";
    int length;
    memset(comm, 0, sizeof *comm);
    comm->progress = &comm->own;
    MPI_Comm_rank(caller, &comm->rank);
    MPI_Comm_size(caller, &comm->size);
    MPI_Get_processor_name(host, &length);
    snprintf(comm->host, sizeof comm->host, "%s", host);
    comm->mpi = calloc(1, sizeof *comm->mpi);
    if (comm->mpi == NULL)
        error_set(error, ALLFOLD_NO_MEMORY, "no memory for a communicator");
    else
        *comm->mpi = (struct comm_mpi){.comm = MPI_COMM_NULL, .hosts = MPI_COMM_NULL, .record = MPI_DATATYPE_NULL,
                                       .wide_record = MPI_DATATYPE_NULL, .message = MPI_DATATYPE_NULL, .append = MPI_OP_NULL};
    if (agree_to_open(comm, caller, error) != ALLFOLD_OK
        || open_mpi(caller, exchange == ALLFOLD_EXCHANGE_AUTO, comm, error) != ALLFOLD_OK)
        comm_close(comm);
    return error->status;
}

void comm_close(struct comm *comm)
{
    struct comm_mpi *const mpi = comm->mpi;
    if (mpi == NULL)
        return;
    in_host_close(&mpi->in_host);
    if (mpi->append != MPI_OP_NULL)
        MPI_Op_free(&mpi->append);
    if (mpi->record != MPI_DATATYPE_NULL)
        MPI_Type_free(&mpi->record);
    if (mpi->wide_record != MPI_DATATYPE_NULL)
        MPI_Type_free(&mpi->wide_record);
    if (mpi->message != MPI_DATATYPE_NULL)
        MPI_Type_free(&mpi->message);
    if (mpi->hosts != MPI_COMM_NULL)
        MPI_Comm_free(&mpi->hosts);
    if (mpi->comm != MPI_COMM_NULL)
        MPI_Comm_free(&mpi->comm);
    free(mpi);
    comm->mpi = NULL;
}

/* ---- the exchange */

static void message_copy(union message *to, const void *from) { memcpy(to, from, ((const struct header *)from)->length); }

/* Combines the messages of the host's ranks, in rank order, in mpi->all. Those of other calls may have other lengths. */
static int append_host(struct comm_mpi *mpi)
{
    const void *message;
    union message next;
    int code = in_host_take(&mpi->in_host, 0, &message);
    if (code != MPI_SUCCESS)
        return code;
    message_copy(&mpi->all, message);
    for (int rank = 1; rank < mpi->in_host.size; rank++) {
        if ((code = in_host_take(&mpi->in_host, rank, &message)) != MPI_SUCCESS)
            return code;
        message_copy(&next, message);
        append_message(&mpi->all, &next);
    }
    return MPI_SUCCESS;
}

/* A number for all calls of a message: that of the only one. */
static uint64_t calls_of(const union message *message)
{
    uint64_t calls = message->record.header.call;
    size_t at = record_bytes(message->record.header.bytes);
    for (int i = 1; i < message->record.header.records; i++) {
        const struct header *const header = (const struct header *)(message->bytes + at);
        calls = ((calls * 31 + header->call) * 31 + header->monoid) * 31 + header->type;
        at += record_bytes(header->bytes);
    }
    return calls;
}

/* Combines the hosts' messages, in order, in mpi->all. For a long one the hosts agree first. */
static int append_hosts(struct comm_mpi *mpi, size_t bytes)
{
    if (bytes <= RECORD_BYTES)
        return MPI_Allreduce(MPI_IN_PLACE, &mpi->all, 1, mpi->record, mpi->append, mpi->hosts);
    struct header *const header = &mpi->all.record.header;
    const struct header own = *header;
    header->call = calls_of(&mpi->all);
    header->bytes = 0;
    header->records = 1;
    const int code = MPI_Allreduce(&mpi->all, &mpi->agreed, 1, mpi->record, mpi->append, mpi->hosts);
    *header = mpi->agreed.record.header;
    if (code != MPI_SUCCESS || header->failed_rank >= 0 || header->mismatch)
        return code;
    *header = own;
    return MPI_Allreduce(MPI_IN_PLACE, &mpi->all, 1, bytes <= sizeof(struct record) ? mpi->wide_record : mpi->message, mpi->append,
                         mpi->hosts);
}

/* The host's first rank gives the others the result, or the MPI error code that it met: they wait for either. */
static int pass_back(struct comm_mpi *mpi, size_t bytes, int code)
{
    const void *result;
    struct header *const header = &mpi->all.record.header;
    void *const message = in_host_begin(&mpi->in_host);
    if (mpi->in_host.rank == 0) {
        if (code != MPI_SUCCESS)
            *header = (struct header){.failed_rank = FAILED_IN_MPI, .count = (uint64_t)code};
        header->length = (uint16_t)bytes;
        memcpy(message, &mpi->all, bytes);
        in_host_give(&mpi->in_host);
        return code;
    }
    if ((code = in_host_take(&mpi->in_host, 0, &result)) != MPI_SUCCESS)
        return code;
    message_copy(&mpi->all, result);
    return header->failed_rank == FAILED_IN_MPI ? (int)header->count : MPI_SUCCESS;
}

/* Combines all ranks' records, in rank order, in mpi->all: through the host's memory, by MPI_Allreduce between hosts, and through
   the host's memory again. With one host each rank combines the records itself and calls MPI_Allreduce alone, which saves the way
   back. */
static int append_all(struct comm *comm, size_t bytes)
{
    struct comm_mpi *const mpi = comm->mpi;
    int code = MPI_SUCCESS;
    in_host_give(&mpi->in_host);
    if (mpi->hosts != MPI_COMM_NULL && (code = append_host(mpi)) == MPI_SUCCESS)
        code = append_hosts(mpi, bytes);
    return comm->hosts == 1 ? code : pass_back(mpi, bytes, code);
}

size_t comm_bytes(const struct comm_part *part) { return record_bytes(part_bytes(part)); }

/* Writes the parts to a message. Returns its bytes. */
static size_t message_write(const struct comm *comm, const struct comm_part *parts, int count, bool failed, union message *message)
{
    size_t at = 0, end = 0;
    for (int i = 0; i < count; i++) {
        end = at + record_write((struct record *)(message->bytes + at), &parts[i], failed ? comm->rank : -1);
        at += comm_bytes(&parts[i]);
    }
    message->record.header.records = (uint16_t)count;
    message->record.header.length = (uint16_t)end;
    return end;
}

static void message_read(const union message *message, struct comm_part *parts, int count)
{
    size_t at = 0;
    for (int i = 0; i < count; i++) {
        record_read((const struct record *)(message->bytes + at), &parts[i]);
        at += comm_bytes(&parts[i]);
    }
}

/* One exchange. The phase is exchange meanwhile, and the one before on return. */
allfold_status comm_combine_all(struct comm *comm, struct comm_part *parts, int count, struct error *error)
{
    const enum phase before = phase_enter(comm->progress, PHASE_EXCHANGE);
    union message *const mine = in_host_begin(&comm->mpi->in_host), *const all = &comm->mpi->all;
    const int code = append_all(comm, message_write(comm, parts, count, error->status != ALLFOLD_OK, mine));
    comm->different_calls = code == MPI_SUCCESS && all->record.header.failed_rank < 0 && all->record.header.mismatch;
    if (code != MPI_SUCCESS)
        comm_failed(code, "MPI_Allreduce", error);
    else if (all->record.header.failed_rank >= 0)
        share_error(comm, comm->mpi->comm, all->record.header.failed_rank, before, error);
    else if (comm->different_calls)
        record_refuse(error);
    else
        message_read(all, parts, count);
    phase_enter(comm->progress, before);
    return error->status;
}

allfold_status comm_combine(struct comm *comm, struct comm_part *part, struct error *error)
{
    return comm_combine_all(comm, part, 1, error);
}

allfold_status comm_agree_call(struct comm *comm, uint64_t call, struct error *error)
{
    return comm_combine(comm, &(struct comm_part){.call = call}, error);
}

allfold_status comm_agree(struct comm *comm, struct error *error) { return comm_agree_call(comm, CALL_AGREE, error); }

int comm_fit(const struct comm_part *parts, int count)
{
    size_t bytes = 0;
    int fit = 0;
    while (fit < count && (bytes += comm_bytes(&parts[fit])) <= COMM_BYTES_MOST)
        fit++;
    return fit;
}

allfold_status comm_combine_many(struct comm *comm, struct comm_part *parts, uint64_t count, struct error *error)
{
    if (count == 0 || error->status != ALLFOLD_OK)
        return comm_agree(comm, error);
    for (uint64_t first = 0; first < count && error->status == ALLFOLD_OK;) {
        const int fit = comm_fit(parts + first, (int)u64_min(count - first, INT_MAX));
        comm_combine_all(comm, parts + first, fit, error);
        first += (uint64_t)fit;
    }
    return error->status;
}

/* ---- other collectives */

allfold_status comm_broadcast(struct comm *comm, int root, void *memory, size_t bytes, struct error *error)
{
    const enum phase before = phase_enter(comm->progress, PHASE_EXCHANGE);
    int failed = error->status != ALLFOLD_OK;
    int code = MPI_Bcast(&failed, 1, MPI_INT, root, comm->mpi->comm);
    if (code == MPI_SUCCESS && !failed)
        code = MPI_Bcast(memory, (int)bytes, MPI_BYTE, root, comm->mpi->comm);
    if (code != MPI_SUCCESS)
        comm_failed(code, "MPI_Bcast", error);
    else if (failed)
        share_error(comm, comm->mpi->comm, root, before, error);
    phase_enter(comm->progress, before);
    return error->status;
}

static void *gather(struct comm *comm, uint64_t call, const void *memory, size_t bytes, bool everywhere, struct error *error)
{
    const bool takes = everywhere || comm->rank == 0;
    void *all = takes ? malloc((size_t)comm->size * bytes) : NULL;
    if (takes && all == NULL)
        error_set(error, ALLFOLD_NO_MEMORY, "no memory for %zu bytes from each of %d ranks", bytes, comm->size);
    if (comm_agree_call(comm, call, error) == ALLFOLD_OK && comm->size == 1)
        return memcpy(all, memory, bytes);
    if (error->status == ALLFOLD_OK) {
        const int n = (int)bytes;
        const enum phase before = phase_enter(comm->progress, PHASE_EXCHANGE);
        const int code = everywhere ? MPI_Allgather(memory, n, MPI_BYTE, all, n, MPI_BYTE, comm->mpi->comm)
                                    : MPI_Gather(memory, n, MPI_BYTE, all, n, MPI_BYTE, 0, comm->mpi->comm);
        phase_enter(comm->progress, before);
        if (code == MPI_SUCCESS)
            return all;
        comm_failed(code, everywhere ? "MPI_Allgather" : "MPI_Gather", error);
    }
    free(all);
    return NULL;
}

void *comm_gather(struct comm *comm, const void *memory, size_t bytes, struct error *error)
{
    return gather(comm, CALL_AGREE, memory, bytes, false, error);
}

void *comm_gather_all(struct comm *comm, const void *memory, size_t bytes, struct error *error)
{
    return gather(comm, CALL_AGREE, memory, bytes, true, error);
}

void *comm_gather_call(struct comm *comm, uint64_t call, const void *memory, size_t bytes, struct error *error)
{
    return gather(comm, call, memory, bytes, true, error);
}

allfold_status comm_count(struct comm *comm, bool yes, int *count, struct error *error)
{
    const enum phase before = phase_enter(comm->progress, PHASE_EXCHANGE);
    const int mine = yes, code = MPI_Allreduce(&mine, count, 1, MPI_INT, MPI_SUM, comm->mpi->comm);
    phase_enter(comm->progress, before);
    return code != MPI_SUCCESS ? comm_failed(code, "MPI_Allreduce", error) : ALLFOLD_OK;
}

allfold_status comm_same(struct comm *comm, uint64_t key, int *same, int *before, struct error *error)
{
    uint64_t *const keys = comm_gather_all(comm, &key, sizeof key, error);
    *same = keys == NULL;
    *before = 0;
    for (int i = 0; keys != NULL && i < comm->size; i++) {
        *same += keys[i] == key;
        *before += i < comm->rank && keys[i] == key;
    }
    free(keys);
    return error->status;
}
