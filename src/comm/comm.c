/* Ranks over MPI: see comm.h. Partials travel in records that carry the status with them, so agreement costs no message
   of its own; a record says which fold it belongs to, so ranks that call different ones are told, not misled. Where all ranks
   are on one host, records and agreements go through memory that they share (in_host.h), else MPI combines them. */
#include "comm/comm.h"

#include "base/elements.h"
#include "comm/in_host.h"

#include <limits.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct comm_mpi {
    MPI_Comm comm; /* a duplicate of the caller's */
    struct in_host in_host; /* not open where ranks are on several hosts, or there is no memory for it */
    MPI_Datatype record, wide_record, words;
    MPI_Op combine, combine_words;
};

/* What MPI sends of it ends behind ORDERED_BYTES_MAX of the partial, whatever the monoid: ranks that disagree about the call must
   still exchange messages that match. Wider partials are sent whole, after ranks have agreed. In shared memory lengths may
   differ: there it ends with the partial. */
struct record {
    uint64_t count;
    int32_t failed_rank; /* -1 while no rank has failed */
    int32_t mismatch;    /* ranks made different calls */
    int32_t monoid, type;
    uint32_t call, unused;
    struct partial partial;
};
enum { HEADER_BYTES = offsetof(struct record, partial), RECORD_BYTES = HEADER_BYTES + ORDERED_BYTES_MAX };

/* The call of a record without a partial, above all others: an agreement. */
#define CALL_AGREE (UINT32_C(1) << 22)

/* What exact folds send instead, added up word by word; of one size, too. Of partials that commute but are no words to be added
   the header is added up all the same, so that ranks that disagree are told. code: what the rank is doing, in two numbers of 16
   bits, each with its square. n ranks do the same where n times the sum of squares is the square of the sum, and only there
   (Cauchy and Schwarz); with less than 2^31 ranks none of these sums overflows. */
struct words {
    int64_t ranks;  /* 1 */
    int64_t failed; /* 1 on a rank that has failed */
    int64_t count;
    int64_t code[2], square[2];
    int64_t words[COMM_WORDS];
};
enum { WORDS_SENT = sizeof(struct words) / sizeof(int64_t) };

/* *a becomes *a followed by *b, which is used up. */
static void append_record(struct record *a, struct record *b)
{
    if (a->failed_rank >= 0 || b->failed_rank >= 0) {
        a->failed_rank = a->failed_rank >= 0 ? a->failed_rank : b->failed_rank;
        return;
    }
    a->mismatch |= b->mismatch || a->monoid != b->monoid || a->type != b->type || a->call != b->call;
    if (!a->mismatch && a->call != CALL_AGREE) {
        monoid_shift((enum monoid)a->monoid, (allfold_type)a->type, &b->partial, a->count);
        monoid_combine((enum monoid)a->monoid, (allfold_type)a->type, &a->partial, &b->partial);
    }
    a->count += b->count;
}

/* b = a followed by b, as MPI orders the operands of an operation that does not commute. The bytes may lie anywhere. */
static void combine_records(void *a_bytes, void *b_bytes, int *length, MPI_Datatype *datatype)
{
    int bytes;
    MPI_Type_size(*datatype, &bytes);
    for (int i = 0; i < *length; i++) {
        struct record a, b;
        memcpy(&a, (char *)a_bytes + (ptrdiff_t)i * bytes, (size_t)bytes);
        memcpy(&b, (char *)b_bytes + (ptrdiff_t)i * bytes, (size_t)bytes);
        append_record(&a, &b);
        memcpy((char *)b_bytes + (ptrdiff_t)i * bytes, &a, (size_t)bytes);
    }
}

/* Whether all ranks whose words these are do the same. */
static bool words_agree(const struct words *words)
{
    for (int i = 0; i < 2; i++)
        if ((int128)words->square[i] * words->ranks != (int128)words->code[i] * words->code[i])
            return false;
    return true;
}

/* b = a and b: the header added up, and behind it partials, in any order. */
static void combine_words_of(void *a_bytes, void *b_bytes, int *length, MPI_Datatype *datatype)
{
    (void)datatype;
    for (int i = 0; i < *length; i++) {
        struct words a, b, all;
        struct partial first = {{0}}, second = {{0}};
        memcpy(&a, (char *)a_bytes + (ptrdiff_t)i * (ptrdiff_t)sizeof a, sizeof a);
        memcpy(&b, (char *)b_bytes + (ptrdiff_t)i * (ptrdiff_t)sizeof b, sizeof b);
        all = a;
        for (size_t word = 0; word < offsetof(struct words, words) / sizeof(int64_t); word++)
            ((int64_t *)&all)[word] = ((const int64_t *)&a)[word] + ((const int64_t *)&b)[word];
        if (all.failed == 0 && words_agree(&all)) {
            const int64_t code = all.code[1] / all.ranks;
            memcpy(first.bytes, a.words, sizeof a.words);
            memcpy(second.bytes, b.words, sizeof b.words);
            monoid_combine((enum monoid)(code >> 4 & 63), (allfold_type)(code & 15), &first, &second);
            memcpy(all.words, first.bytes, sizeof all.words);
        }
        memcpy((char *)b_bytes + (ptrdiff_t)i * (ptrdiff_t)sizeof all, &all, sizeof all);
    }
}

static allfold_status mpi_failed(int code, const char *call, struct error *error)
{
    char text[MPI_MAX_ERROR_STRING] = "";
    int length = 0;
    MPI_Error_string(code, text, &length);
    return error_set(error, ALLFOLD_MPI_ERROR, "%s: %s", call, text);
}

/* Everything that needs memory or a message; on failure comm_close undoes what was done. */
static allfold_status open_mpi(MPI_Comm caller, struct comm *comm, struct error *error)
{
    struct comm_mpi *const mpi = comm->mpi;
    char host[MPI_MAX_PROCESSOR_NAME] = "";
    int length, code;
    MPI_Comm local;
    if ((code = MPI_Comm_dup(caller, &mpi->comm)) != MPI_SUCCESS)
        return mpi_failed(code, "MPI_Comm_dup", error);
    MPI_Comm_set_errhandler(mpi->comm, MPI_ERRORS_RETURN);
    MPI_Comm_rank(mpi->comm, &comm->rank);
    MPI_Comm_size(mpi->comm, &comm->size);
    MPI_Get_processor_name(host, &length);
    snprintf(comm->host, sizeof comm->host, "%s", host);
    if ((code = MPI_Comm_split_type(mpi->comm, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &local)) != MPI_SUCCESS)
        return mpi_failed(code, "MPI_Comm_split_type", error);
    MPI_Comm_rank(local, &comm->local_rank);
    MPI_Comm_size(local, &comm->local_size);
    MPI_Comm_free(&local);
    if (comm->local_size == comm->size)
        in_host_open(&mpi->in_host, mpi->comm, sizeof(struct record));
    if ((code = MPI_Type_contiguous(RECORD_BYTES, MPI_BYTE, &mpi->record)) != MPI_SUCCESS
        || (code = MPI_Type_commit(&mpi->record)) != MPI_SUCCESS
        || (code = MPI_Type_contiguous((int)sizeof(struct record), MPI_BYTE, &mpi->wide_record)) != MPI_SUCCESS
        || (code = MPI_Type_commit(&mpi->wide_record)) != MPI_SUCCESS
        || (code = MPI_Type_contiguous(WORDS_SENT, MPI_INT64_T, &mpi->words)) != MPI_SUCCESS
        || (code = MPI_Type_commit(&mpi->words)) != MPI_SUCCESS)
        return mpi_failed(code, "MPI_Type_contiguous", error);
    if ((code = MPI_Op_create(combine_records, 0, &mpi->combine)) != MPI_SUCCESS
        || (code = MPI_Op_create(combine_words_of, 1, &mpi->combine_words)) != MPI_SUCCESS)
        return mpi_failed(code, "MPI_Op_create", error);
    return ALLFOLD_OK;
}

allfold_status comm_open(const void *mpi, struct comm *comm, struct error *error)
{
    memset(comm, 0, sizeof *comm);
    comm->progress = &comm->own;
    comm->mpi = malloc(sizeof *comm->mpi);
    if (comm->mpi == NULL)
        return error_set(error, ALLFOLD_NO_MEMORY, "no memory for a communicator");
    *comm->mpi = (struct comm_mpi){.comm = MPI_COMM_NULL,
                                   .record = MPI_DATATYPE_NULL,
                                   .wide_record = MPI_DATATYPE_NULL,
                                   .words = MPI_DATATYPE_NULL,
                                   .combine = MPI_OP_NULL,
                                   .combine_words = MPI_OP_NULL};
    if (open_mpi(*(const MPI_Comm *)mpi, comm, error) != ALLFOLD_OK)
        comm_close(comm);
    return error->status;
}

void comm_close(struct comm *comm)
{
    if (comm->mpi == NULL)
        return;
    in_host_close(&comm->mpi->in_host);
    if (comm->mpi->combine != MPI_OP_NULL)
        MPI_Op_free(&comm->mpi->combine);
    if (comm->mpi->combine_words != MPI_OP_NULL)
        MPI_Op_free(&comm->mpi->combine_words);
    if (comm->mpi->words != MPI_DATATYPE_NULL)
        MPI_Type_free(&comm->mpi->words);
    if (comm->mpi->record != MPI_DATATYPE_NULL)
        MPI_Type_free(&comm->mpi->record);
    if (comm->mpi->wide_record != MPI_DATATYPE_NULL)
        MPI_Type_free(&comm->mpi->wide_record);
    if (comm->mpi->comm != MPI_COMM_NULL)
        MPI_Comm_free(&comm->mpi->comm);
    free(comm->mpi);
    comm->mpi = NULL;
}

/* The error of rank `failed` becomes every rank's; it says where it happened, and in which phase. */
static allfold_status share_error(struct comm *comm, int failed, enum phase phase, struct error *error)
{
    if (comm->rank == failed && !error->shared && comm->size > 1) {
        const struct error own = *error;
        error->status = ALLFOLD_OK;
        error_set(error, own.status, "rank %d on %.64s%s%s in phase %s: %.*s", comm->rank, comm->host,
                  comm->device[0] != '\0' ? ", " : "", comm->device, phase_name(phase), ALLFOLD_ERROR_BYTES / 4 * 3, own.text);
    }
    struct error message = *error;
    message.shared = true;
    const int code = MPI_Bcast(&message, (int)sizeof message, MPI_BYTE, failed, comm->mpi->comm);
    if (code != MPI_SUCCESS) {
        error->status = ALLFOLD_OK;
        return mpi_failed(code, "MPI_Bcast", error);
    }
    *error = message;
    return error->status;
}

static allfold_status refuse_mismatch(struct error *error)
{
    error->shared = true;
    return error_set(error, ALLFOLD_BAD_ARGUMENT,
                     "the ranks made different calls: fold or softmax, element types and options must be the same on all");
}

/* The ranks' records, of which `bytes` count, put behind one another in as many bytes of *all: through the host's memory. Behind
   a record of another call, which may be shorter, lies what was there before: it is copied, and not looked at. */
static allfold_status combine_in_host(struct comm *comm, const struct record *mine, size_t bytes, struct record *all,
                                      struct error *error)
{
    struct record next;
    const int code = in_host_exchange(&comm->mpi->in_host, mine, bytes);
    if (code != MPI_SUCCESS)
        return mpi_failed(code, "MPI_Iprobe", error);
    memcpy(all, in_host_message(&comm->mpi->in_host, 0), bytes);
    for (int rank = 1; rank < comm->size; rank++) {
        memcpy(&next, in_host_message(&comm->mpi->in_host, rank), bytes);
        append_record(all, &next);
    }
    return ALLFOLD_OK;
}

/* The header of a rank's record. */
static void begin_record(const struct comm *comm, uint32_t call, const struct error *error, struct record *mine)
{
    memset(mine, 0, HEADER_BYTES);
    mine->failed_rank = error->status != ALLFOLD_OK ? comm->rank : -1;
    mine->call = call;
}

static allfold_status agree_in_host(struct comm *comm, enum phase phase, struct error *error)
{
    struct record mine, all;
    begin_record(comm, CALL_AGREE, error, &mine);
    if (combine_in_host(comm, &mine, HEADER_BYTES, &all, error) != ALLFOLD_OK)
        return error->status;
    if (all.failed_rank >= 0)
        return share_error(comm, all.failed_rank, phase, error);
    return all.mismatch ? refuse_mismatch(error) : ALLFOLD_OK;
}

static allfold_status agree(struct comm *comm, enum phase phase, struct error *error)
{
    if (in_host_is_open(&comm->mpi->in_host))
        return agree_in_host(comm, phase, error);
    int failed = error->status != ALLFOLD_OK ? comm->rank : INT_MAX, lowest;
    const int code = MPI_Allreduce(&failed, &lowest, 1, MPI_INT, MPI_MIN, comm->mpi->comm);
    if (code != MPI_SUCCESS)
        return mpi_failed(code, "MPI_Allreduce", error);
    return lowest == INT_MAX ? ALLFOLD_OK : share_error(comm, lowest, phase, error);
}

/* The same by MPI, which sends more: zeros. */
static allfold_status combine_by_mpi(struct comm *comm, struct record *mine, size_t bytes, struct record *all,
                                     struct error *error)
{
    const bool wide = bytes > RECORD_BYTES;
    memset((char *)mine + bytes, 0, (wide ? sizeof *mine : RECORD_BYTES) - bytes);
    const int code = MPI_Allreduce(mine, all, 1, wide ? comm->mpi->wide_record : comm->mpi->record, comm->mpi->combine,
                                   comm->mpi->comm);
    return code != MPI_SUCCESS ? mpi_failed(code, "MPI_Allreduce", error) : ALLFOLD_OK;
}

/* The exchange of ordered partials; in a host, of all. */
static allfold_status combine_record(struct comm *comm, enum phase phase, uint32_t call, enum monoid monoid, allfold_type type,
                                     struct partial *partial, uint64_t *count, struct error *error)
{
    const size_t partial_bytes = monoid_bytes(monoid, type), bytes = HEADER_BYTES + partial_bytes;
    struct record mine, all;
    begin_record(comm, call, error, &mine);
    memcpy(&mine.partial, partial, partial_bytes);
    mine.count = *count;
    mine.monoid = (int32_t)monoid;
    mine.type = (int32_t)type;
    if ((in_host_is_open(&comm->mpi->in_host) ? combine_in_host(comm, &mine, bytes, &all, error)
                                              : combine_by_mpi(comm, &mine, bytes, &all, error))
        != ALLFOLD_OK)
        return error->status;
    if (all.failed_rank >= 0)
        return share_error(comm, all.failed_rank, phase, error);
    if (all.mismatch)
        return refuse_mismatch(error);
    memcpy(partial, &all.partial, partial_bytes);
    *count = all.count;
    return ALLFOLD_OK;
}

/* The exchange of words, or of what commutes as they do. Of ordered monoids nothing but agreement. */
static allfold_status combine_words(struct comm *comm, enum phase phase, uint32_t call, enum monoid monoid, allfold_type type,
                                    struct partial *partial, uint64_t *count, struct error *error)
{
    const bool commutes = monoid_commutes(monoid);
    const uint32_t words = commutes ? (uint32_t)(monoid_bytes(monoid, type) / sizeof(int64_t)) : monoid_words(monoid, type);
    const uint32_t first = words < COMM_WORDS ? words : COMM_WORDS;
    struct words mine, all;
    memset(&mine, 0, sizeof mine);
    mine.ranks = 1;
    mine.failed = error->status != ALLFOLD_OK;
    mine.count = (int64_t)*count;
    mine.code[0] = call & 0xffff;
    mine.code[1] = call >> 16 << 10 | (uint32_t)monoid << 4 | (uint32_t)type;
    for (int i = 0; i < 2; i++)
        mine.square[i] = mine.code[i] * mine.code[i];
    memcpy(mine.words, partial->bytes, first * sizeof *mine.words);
    int code = commutes ? MPI_Allreduce(&mine, &all, 1, comm->mpi->words, comm->mpi->combine_words, comm->mpi->comm)
                        : MPI_Allreduce(&mine, &all, WORDS_SENT, MPI_INT64_T, MPI_SUM, comm->mpi->comm);
    if (code != MPI_SUCCESS)
        return mpi_failed(code, "MPI_Allreduce", error);
    if (all.failed > 0)
        return agree(comm, phase, error);
    if (!words_agree(&all))
        return refuse_mismatch(error);
    if (words == 0)
        return ALLFOLD_OK;
    struct partial sum = {{0}}, other = *partial;
    memcpy(sum.bytes, all.words, first * sizeof *all.words);
    if (words > first) {
        const size_t at = first * sizeof *all.words;
        code = MPI_Allreduce(other.bytes + at, sum.bytes + at, (int)(words - first), MPI_INT64_T, MPI_SUM, comm->mpi->comm);
        if (code != MPI_SUCCESS)
            return mpi_failed(code, "MPI_Allreduce", error);
    }
    monoid_identity(monoid, type, partial);
    monoid_combine(monoid, type, partial, &sum); /* which puts the carries in order */
    *count = (uint64_t)all.count;
    return ALLFOLD_OK;
}

static allfold_status combine(struct comm *comm, enum phase phase, uint32_t call, enum monoid monoid, allfold_type type,
                              struct partial *partial, uint64_t *count, struct error *error)
{
    if (in_host_is_open(&comm->mpi->in_host))
        return combine_record(comm, phase, call, monoid, type, partial, count, error);
    if (comm->exact && combine_words(comm, phase, call, monoid, type, partial, count, error) != ALLFOLD_OK)
        return error->status;
    if (monoid_words(monoid, type) > 0 || (comm->exact && monoid_commutes(monoid)))
        return ALLFOLD_OK;
    return combine_record(comm, phase, call, monoid, type, partial, count, error);
}

static allfold_status broadcast(struct comm *comm, enum phase phase, int root, void *memory, size_t bytes,
                                struct error *error)
{
    int failed = error->status != ALLFOLD_OK;
    int code = MPI_Bcast(&failed, 1, MPI_INT, root, comm->mpi->comm);
    if (code != MPI_SUCCESS)
        return mpi_failed(code, "MPI_Bcast", error);
    if (failed)
        return share_error(comm, root, phase, error);
    code = MPI_Bcast(memory, (int)bytes, MPI_BYTE, root, comm->mpi->comm);
    return code != MPI_SUCCESS ? mpi_failed(code, "MPI_Bcast", error) : ALLFOLD_OK;
}

/* The calls themselves: in phase exchange while they wait, in the phase before when they return. */

allfold_status comm_agree(struct comm *comm, struct error *error)
{
    const enum phase before = phase_enter(comm->progress, PHASE_EXCHANGE);
    agree(comm, before, error);
    phase_enter(comm->progress, before);
    return error->status;
}

allfold_status comm_combine(struct comm *comm, uint32_t call, enum monoid monoid, allfold_type type,
                            struct partial *partial, uint64_t *count, struct error *error)
{
    const enum phase before = phase_enter(comm->progress, PHASE_EXCHANGE);
    combine(comm, before, call, monoid, type, partial, count, error);
    phase_enter(comm->progress, before);
    return error->status;
}

allfold_status comm_broadcast(struct comm *comm, int root, void *memory, size_t bytes, struct error *error)
{
    const enum phase before = phase_enter(comm->progress, PHASE_EXCHANGE);
    broadcast(comm, before, root, memory, bytes, error);
    phase_enter(comm->progress, before);
    return error->status;
}

allfold_status comm_gather(struct comm *comm, const void *memory, size_t bytes, void *all, struct error *error)
{
    const enum phase before = phase_enter(comm->progress, PHASE_EXCHANGE);
    const int code = MPI_Gather(memory, (int)bytes, MPI_BYTE, all, (int)bytes, MPI_BYTE, 0, comm->mpi->comm);
    phase_enter(comm->progress, before);
    return code != MPI_SUCCESS ? mpi_failed(code, "MPI_Gather", error) : ALLFOLD_OK;
}

allfold_status comm_gather_all(struct comm *comm, const void *memory, size_t bytes, void *all, struct error *error)
{
    const enum phase before = phase_enter(comm->progress, PHASE_EXCHANGE);
    const int code = MPI_Allgather(memory, (int)bytes, MPI_BYTE, all, (int)bytes, MPI_BYTE, comm->mpi->comm);
    phase_enter(comm->progress, before);
    return code != MPI_SUCCESS ? mpi_failed(code, "MPI_Allgather", error) : ALLFOLD_OK;
}

allfold_status comm_count(struct comm *comm, bool yes, int *count, struct error *error)
{
    const enum phase before = phase_enter(comm->progress, PHASE_EXCHANGE);
    const int mine = yes, code = MPI_Allreduce(&mine, count, 1, MPI_INT, MPI_SUM, comm->mpi->comm);
    phase_enter(comm->progress, before);
    return code != MPI_SUCCESS ? mpi_failed(code, "MPI_Allreduce", error) : ALLFOLD_OK;
}

allfold_status comm_same(struct comm *comm, uint64_t key, int *same, int *before, struct error *error)
{
    uint64_t *const keys = malloc((size_t)comm->size * sizeof *keys);
    *same = 1;
    *before = 0;
    if (keys == NULL)
        error_set(error, ALLFOLD_NO_MEMORY, "no memory for a number of each of %d ranks", comm->size);
    if (comm_agree(comm, error) == ALLFOLD_OK && comm_gather_all(comm, &key, sizeof key, keys, error) == ALLFOLD_OK) {
        *same = 0;
        for (int i = 0; i < comm->size; i++) {
            *same += keys[i] == key;
            *before += i < comm->rank && keys[i] == key;
        }
    }
    free(keys);
    return error->status;
}
