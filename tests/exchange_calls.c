/* The exchange between ranks (comm/), called by test_exchange.py at many rank counts: through a host's memory and through MPI,
   of every monoid and type, against partials put together in rank order; thousands of calls in a row, with delays, on several
   communicators in turn, some of which fail or do not match; and messages under way meanwhile. Prints TAP. argv[1]: how many
   calls in a row. */
#include "tests/support.h"

#include <glob.h>
#include <sched.h>
#include <unistd.h>

/* The library links with this file's in_host_open, which can be told that there is no memory. */
#define in_host_open real_in_host_open
#include "comm/in_host.c"
#undef in_host_open

static bool by_mpi;
void in_host_open(struct in_host *in_host, MPI_Comm comm, size_t bytes)
{
    *in_host = (struct in_host){.comm = comm};
    if (!by_mpi)
        real_in_host_open(in_host, comm, bytes);
}

static const char *way(void) { return by_mpi ? "MPI" : "the host's memory"; }

static void open_comm(MPI_Comm mpi, bool exact, struct comm *comm)
{
    struct error error = {0};
    must(comm_open(&mpi, comm, &error) == ALLFOLD_OK, error.text);
    comm->exact = exact;
}

/* ---- every monoid, every type */

enum { ELEMENTS = 40 };

/* A rank's elements: integers that floating-point folds add, multiply and square exactly, so that any order gives one result; or
   any numbers, whose sums depend on the order. */
static void fill(allfold_type type, bool any_order, int rank, int n, void *x)
{
    for (int i = 0; i < n; i++) {
        const uint64_t hash = hash_of((uint64_t)i, (uint64_t)(rank + 1));
        const double number = any_order ? (double)(hash % 5 == 0 ? 2 : 1) * (type_kind(type) != 'u' && hash & 64 ? -1 : 1)
                                        : (unit_of((uint64_t)i, (uint64_t)rank) - 0.4) * (hash & 32 ? 1e4 : 1e-3);
        if (type_kind(type) == 'f')
            element_put(type, x, (uint64_t)i, number);
        else
            element_put_bits(type, x, (uint64_t)i, (uint64_t)(int64_t)number);
    }
}

/* Whether combining rounds, even of such numbers. With two ranks' partials among empty ones the order still does not matter. */
static bool always_rounds(enum monoid monoid)
{
    return (monoid_facts[monoid].terms != TERMS_NONE && !monoid_commutes(monoid)) || monoid == MONOID_stats;
}

/* Every rank folds every rank's elements, and puts the partials behind one another itself. */
static bool combine_right(allfold_context *local, struct comm *comm, enum monoid monoid, allfold_type type, bool any_order)
{
    _Alignas(64) unsigned char x[ELEMENTS * 8];
    struct partial mine, expected, next;
    uint64_t count = 0, expected_count = 0;
    struct error error = {0};
    struct queue *const queue = local->queues[0];
    monoid_identity(monoid, type, &expected);
    monoid_identity(monoid, type, &mine);
    for (int rank = 0; rank < comm->size; rank++) {
        const bool empty = any_order && always_rounds(monoid) ? rank != comm->size / 2 && rank != comm->size - 1 : rank % 3 == 2;
        const int n = empty ? 0 : (rank * 7 + 3) % ELEMENTS;
        fill(type, any_order, rank, n, x);
        monoid_identity(monoid, type, &next);
        if (n > 0) {
            must(local->device->backend->fold(queue, monoid, type, x, (uint64_t)n, 0, &error) == ALLFOLD_OK
                     && local->device->backend->wait(queue, &error) == ALLFOLD_OK, error.text);
            monoid_combine(monoid, type, &next, queue->partial);
        }
        if (rank == comm->rank) {
            mine = next;
            count = (uint64_t)n;
        }
        monoid_shift(monoid, type, &next, expected_count);
        if (rank == 0)
            expected = next;
        else
            monoid_combine(monoid, type, &expected, &next);
        expected_count += (uint64_t)n;
    }
    return comm_combine(comm, 7, monoid, type, &mine, &count, &error) == ALLFOLD_OK && count == expected_count
           && memcmp(mine.bytes, expected.bytes, monoid_bytes(monoid, type)) == 0;
}

static void test_monoids(allfold_context *local, bool exact)
{
    struct comm comm;
    int wrong = 0, cases = 0;
    open_comm(MPI_COMM_WORLD, exact, &comm);
    for (int monoid = 0; monoid < MONOID_COUNT; monoid++)
        for (int type = 0; type < ALLFOLD_TYPE_COUNT; type++)
            for (int any_order = by_mpi ? 1 : 0; any_order < 2; any_order++, cases++) { /* MPI has an order of its own */
                if (!monoid_takes((enum monoid)monoid, (allfold_type)type))
                    continue;
                const bool words = monoid_words((enum monoid)monoid, (allfold_type)type) > 0
                                   || monoid_commutes((enum monoid)monoid);
                if ((words && !exact && by_mpi) /* exact folds need comm->exact */
                    || combine_right(local, &comm, (enum monoid)monoid, (allfold_type)type, any_order != 0))
                    continue;
                if (wrong++ == 0 && comm.rank == 0)
                    printf("# monoid %d of %s\n", monoid, allfold_type_name((allfold_type)type));
            }
    tap_ok(wrong == 0, "through %s%s: %d partials in rank order", way(), exact ? ", exact folds too" : "", cases);
    comm_close(&comm);
}

/* ---- many calls in a row */

enum kind { COMBINES, COMBINES_INDICES, AGREES, ONE_FAILS, DIFFERENT_CALLS, KINDS };

/* What the round's numbers say, the same for all its ranks; each has its own delay before it. */
static void dawdle(uint64_t hash)
{
    if (hash % 512 == 0)
        usleep(200);
    else if (hash % 8 == 0)
        sched_yield();
    else if (hash % 4 == 0)
        for (volatile int i = 0; i < (int)(hash >> 20 & 4095); i++)
            ;
}

static bool round_sums(struct comm *comm, uint64_t round)
{
    struct error error = {0};
    struct partial partial;
    uint64_t count = (uint64_t)comm->rank + 1, expected = 0;
    monoid_identity(MONOID_sum, ALLFOLD_UINT64, &partial);
    ((uint64_t *)partial.bytes)[0] = hash_of(round, (uint64_t)comm->rank) >> 8;
    for (int rank = 0; rank < comm->size; rank++)
        expected += hash_of(round, (uint64_t)rank) >> 8;
    return comm_combine(comm, 1, MONOID_sum, ALLFOLD_UINT64, &partial, &count, &error) == ALLFOLD_OK
           && ((uint64_t *)partial.bytes)[0] == expected
           && count == (uint64_t)comm->size * ((uint64_t)comm->size + 1) / 2;
}

/* The largest element, and where in the whole it is: each rank has one element. */
static bool round_indices(allfold_context *local, struct comm *comm, uint64_t round)
{
    struct error error = {0};
    uint64_t count = 1;
    struct queue *const queue = local->queues[0];
    int best = 0;
    for (int rank = 1; rank < comm->size; rank++)
        if ((int32_t)hash_of(round, (uint64_t)rank) > (int32_t)hash_of(round, (uint64_t)best))
            best = rank;
    const int32_t x = (int32_t)hash_of(round, (uint64_t)comm->rank);
    must(local->device->backend->fold(queue, MONOID_argmax, ALLFOLD_INT32, &x, 1, 0, &error) == ALLFOLD_OK
             && local->device->backend->wait(queue, &error) == ALLFOLD_OK, error.text);
    struct partial partial = *queue->partial;
    allfold_result result;
    const struct fold_call call = {.fold = ALLFOLD_ARGMAX};
    return comm_combine(comm, 2, MONOID_argmax, ALLFOLD_INT32, &partial, &count, &error) == ALLFOLD_OK
           && fold_finish(&call, ALLFOLD_INT32, &partial, count, &result, &error) == ALLFOLD_OK
           && result.fields[0].index == (uint64_t)best
           && result.fields[0].value.i64 == (int32_t)hash_of(round, (uint64_t)best);
}

/* One or two ranks fail: in an agreement, or with a partial. All hear of the lower one. */
static bool round_fails(struct comm *comm, uint64_t round)
{
    struct error error = {0};
    struct partial partial;
    uint64_t count = 1;
    char text[64];
    const int first = (int)(hash_of(round, 1) % (uint64_t)comm->size), second = (int)(hash_of(round, 2) % (uint64_t)comm->size);
    const int lower = first < second ? first : second;
    snprintf(text, sizeof text, "fails in round %llu", (unsigned long long)round);
    monoid_identity(MONOID_stats, ALLFOLD_F64, &partial);
    if (comm->rank == first || comm->rank == second)
        error_set(&error, ALLFOLD_IO_ERROR, "%d %s", comm->rank, text);
    if (hash_of(round, 3) & 1)
        comm_agree(comm, &error);
    else
        comm_combine(comm, 3, MONOID_stats, ALLFOLD_F64, &partial, &count, &error);
    char expected[80];
    snprintf(expected, sizeof expected, "%d %s", lower, text);
    return error.status == ALLFOLD_IO_ERROR && strstr(error.text, expected) != NULL;
}

/* One rank calls another fold; through memory even an agreement may meet a fold. */
static bool round_differs(struct comm *comm, uint64_t round)
{
    struct error error = {0};
    struct partial partial;
    uint64_t count = 1;
    const bool other = comm->rank == (int)(hash_of(round, 1) % (uint64_t)comm->size);
    const enum monoid monoid = other ? MONOID_stats : MONOID_sum;
    monoid_identity(monoid, ALLFOLD_F64, &partial);
    if (other && !by_mpi && hash_of(round, 2) & 1)
        comm_agree(comm, &error);
    else
        comm_combine(comm, other ? 5 : 4, monoid, ALLFOLD_F64, &partial, &count, &error);
    return comm->size == 1 ? error.status == ALLFOLD_OK
                           : error.status == ALLFOLD_BAD_ARGUMENT && strstr(error.text, "different calls") != NULL;
}

static bool do_round(allfold_context *local, struct comm *comm, uint64_t round)
{
    struct error error = {0};
    const uint64_t hash = hash_of(round, 99);
    dawdle(hash_of(round, 1000 + (uint64_t)world_rank()));
    switch (hash % 64 == 0 ? ONE_FAILS : hash % 64 == 1 ? DIFFERENT_CALLS : (enum kind)(hash % 3)) {
    case COMBINES: return round_sums(comm, round);
    case COMBINES_INDICES: return round_indices(local, comm, round);
    case AGREES: return comm_agree(comm, &error) == ALLFOLD_OK;
    case ONE_FAILS: return round_fails(comm, round);
    default: return round_differs(comm, round);
    }
}

/* On all ranks, on a part of them, and on all backwards, in runs of random length. */
static void test_rounds(allfold_context *local, uint64_t rounds)
{
    struct comm comms[3];
    MPI_Comm part, backwards;
    uint64_t round = 0, wrong = 0, first = 0;
    MPI_Comm_split(MPI_COMM_WORLD, world_rank() % 2, 0, &part);
    MPI_Comm_split(MPI_COMM_WORLD, 0, -world_rank(), &backwards);
    open_comm(MPI_COMM_WORLD, false, &comms[0]);
    open_comm(part, false, &comms[1]);
    open_comm(backwards, false, &comms[2]);
    MPI_Comm_free(&part); /* the library has its own */
    MPI_Comm_free(&backwards);
    while (round < rounds) {
        const uint64_t hash = hash_of(round, 7), end = round + 1 + hash % 50;
        for (; round < end; round++)
            if (!do_round(local, &comms[hash >> 32 & 1 ? 0 : 1 + (hash >> 33 & 1)], round) && wrong++ == 0)
                first = round;
    }
    if (wrong > 0)
        printf("# rank %d: round %llu was wrong first\n", world_rank(), (unsigned long long)first);
    tap_ok(wrong == 0, "through %s: %llu calls on three communicators in turn", way(), (unsigned long long)round);
    for (int i = 0; i < 3; i++)
        comm_close(&comms[i]);
}

/* ---- messages under way */

/* Rank 0's message is too long to go before rank 1 asks for it, and rank 0 is in an exchange by then. */
static void test_progress(void)
{
    enum { BYTES = 8 << 20 };
    char *const bytes = malloc(BYTES);
    struct comm comm;
    struct error error = {0};
    MPI_Request request;
    must(bytes != NULL, "no memory");
    memset(bytes, world_rank() + 1, BYTES);
    open_comm(MPI_COMM_WORLD, false, &comm);
    if (comm.rank == 0)
        MPI_Isend(bytes, BYTES, MPI_BYTE, 1, 5, MPI_COMM_WORLD, &request);
    else if (comm.rank == 1)
        MPI_Recv(bytes, BYTES, MPI_BYTE, 0, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    comm_agree(&comm, &error);
    if (comm.rank == 0)
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    tap_ok(error.status == ALLFOLD_OK && (comm.rank != 1 || (bytes[0] == 1 && bytes[BYTES - 1] == 1)),
           "through %s: a message of another communicator arrives meanwhile", way());
    comm_close(&comm);
    free(bytes);
}

/* ---- opening, closing */

static void test_many(void)
{
    enum { COMMS = 50 };
    static struct comm ways[2][COMMS]; /* where a leak checker finds them */
    struct comm *const comms = ways[by_mpi];
    struct error error = {0};
    char pattern[64];
    glob_t left;
    bool good = true;
    for (int i = 0; i < COMMS; i++)
        open_comm(MPI_COMM_WORLD, false, &comms[i]);
    for (int i = 0; i < COMMS; i++)
        good = round_sums(&comms[i], (uint64_t)i) && comm_agree(&comms[COMMS - 1 - i], &error) == ALLFOLD_OK && good;
    for (int i = 0; i < COMMS; i += 2) /* the others are never closed */
        comm_close(&comms[i]);
    for (int i = 1; i < COMMS; i += 2)
        good = round_sums(&comms[i], (uint64_t)i) && good;
    tap_ok(good, "through %s: %d communicators open together, of which half is never closed", way(), COMMS);
    snprintf(pattern, sizeof pattern, "/dev/shm/allfold.%ld.*", (long)getpid());
    tap_ok(glob(pattern, 0, NULL, &left) == GLOB_NOMATCH, "none has left a name in /dev/shm");
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    must(argc == 2, "usage: exchange_calls ROUNDS");
    const uint64_t rounds = strtoull(argv[1], NULL, 10);
    const allfold_options options = {.backend = ALLFOLD_BACKEND_CPU, .threads = 1};
    allfold_context *local;
    char message[ALLFOLD_ERROR_BYTES];
    must(allfold_open(MPI_COMM_SELF, &options, &local, message, sizeof message) == ALLFOLD_OK, message);
    for (int i = 0; i < 2; i++) {
        by_mpi = i == 1;
        test_monoids(local, false);
        test_monoids(local, true);
        test_rounds(local, by_mpi ? rounds / 4 : rounds);
        if (world_size() > 1)
            test_progress();
        test_many();
    }
    allfold_close(local);
    const int status = tap_done();
    MPI_Finalize();
    return status;
}
