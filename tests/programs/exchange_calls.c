/* The exchange between ranks (comm/), called by test_exchange.py at many rank counts: on one host, on hosts of several ranks, with
   ranks dealt out to hosts in turn, and through MPI alone; of every monoid and type, against partials put together in rank
   order; thousands of calls in a row, with delays, on several communicators in turn, some of which fail or do not match; and
   messages under way meanwhile. Prints TAP. argv[1]: how many calls in a row. */
#include "tests/support.h"

#include <glob.h>
#include <sched.h>
#include <unistd.h>

/* How the ranks are spread over hosts. */
static enum layout { ONE_HOST, BLOCKS, DEALT_OUT, BY_MPI, LAYOUTS } layout;
static const char *const layout_names[] = {"one host", "hosts of 1, 3, 3, ... ranks", "ranks dealt out to two hosts", "MPI alone"};

/* The library links with this one: hosts that are none. */
int MPI_Comm_split_type(MPI_Comm comm, int type, int key, MPI_Info info, MPI_Comm *local)
{
    (void)type;
    (void)info;
    return PMPI_Comm_split(comm, layout == BLOCKS ? (world_rank() + 2) / 3 : layout == DEALT_OUT ? world_rank() % 2 : 0, key, local);
}

/* Calls of MPI that fail on this rank. */
static bool fails_to_create, fails_to_reduce;
int MPI_Op_create(MPI_User_function *function, int commute, MPI_Op *op)
{
    return fails_to_create ? MPI_ERR_OTHER : PMPI_Op_create(function, commute, op);
}
int MPI_Allreduce(const void *from, void *to, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm)
{
    return fails_to_reduce ? MPI_ERR_OTHER : PMPI_Allreduce(from, to, count, type, op, comm);
}

static const char *where(void) { return layout_names[layout]; }

static void open_comm(MPI_Comm mpi, struct comm *comm)
{
    struct error error = {0};
    must(comm_open(&mpi, layout == BY_MPI ? ALLFOLD_EXCHANGE_MPI : ALLFOLD_EXCHANGE_AUTO, comm, &error) == ALLFOLD_OK, error.text);
}

static void test_hosts(void)
{
    struct comm comm;
    open_comm(MPI_COMM_WORLD, &comm);
    const int expected[LAYOUTS] = {1, (comm.size + 4) / 3, comm.size, comm.size};
    tap_ok(comm.hosts == expected[layout], "%s: %d hosts", where(), comm.hosts);
    comm_close(&comm);
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
    return (monoid_facts[monoid].terms != TERMS_NONE && monoid_facts[monoid].level == ALLFOLD_LEVEL_FAST) || monoid == MONOID_stats
           || monoid == MONOID_logits;
}

/* Every rank folds every rank's elements, and puts the partials behind one another itself. */
static bool combine_right(allfold_context *local, struct comm *comm, enum monoid monoid, allfold_type type, bool any_order)
{
    _Alignas(64) unsigned char x[ELEMENTS * 8];
    struct partial mine, expected, next;
    uint64_t count = 0, expected_count = 0;
    struct error error = {0};
    struct queue *const queue = local->queue;
    monoid_identity(monoid, type, &expected);
    monoid_identity(monoid, type, &mine);
    for (int rank = 0; rank < comm->size; rank++) {
        const bool empty = any_order && always_rounds(monoid) ? rank != comm->size / 2 && rank != comm->size - 1 : rank % 3 == 2;
        const int n = empty ? 0 : (rank * 7 + 3) % ELEMENTS;
        fill(type, any_order, rank, n, x);
        monoid_identity(monoid, type, &next);
        if (n > 0) {
            must(local->device->backend->fold(queue, &(struct work){.monoid = monoid, .type = type, .x = x, .n = (uint64_t)n, .y = x}, &error) == ALLFOLD_OK
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
    struct comm_part part = {7, monoid, type, count, &mine};
    return comm_combine(comm, &part, &error) == ALLFOLD_OK && part.count == expected_count
           && memcmp(mine.bytes, expected.bytes, monoid_bytes(monoid, type)) == 0;
}

static void test_monoids(allfold_context *local)
{
    struct comm comm;
    int wrong = 0, cases = 0;
    open_comm(MPI_COMM_WORLD, &comm);
    for (int monoid = 0; monoid < MONOID_COUNT; monoid++)
        for (int type = ALLFOLD_TYPE_NONE + 1; type < ALLFOLD_TYPE_COUNT; type++)
            for (int any_order = layout == ONE_HOST ? 0 : 1; any_order < 2; any_order++, cases++) { /* hosts are added up first */
                if (!monoid_takes((enum monoid)monoid, (allfold_type)type)
                    || combine_right(local, &comm, (enum monoid)monoid, (allfold_type)type, any_order != 0))
                    continue;
                if (wrong++ == 0 && comm.rank == 0)
                    printf("# monoid %d of %s\n", monoid, allfold_type_name((allfold_type)type));
            }
    tap_ok(wrong == 0, "%s: %d partials in rank order", where(), cases);
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
    struct comm_part part = {1, MONOID_sum, ALLFOLD_UINT64, (uint64_t)comm->rank + 1, &partial};
    uint64_t expected = 0;
    monoid_identity(MONOID_sum, ALLFOLD_UINT64, &partial);
    ((uint64_t *)partial.bytes)[0] = hash_of(round, (uint64_t)comm->rank) >> 8;
    for (int rank = 0; rank < comm->size; rank++)
        expected += hash_of(round, (uint64_t)rank) >> 8;
    return comm_combine(comm, &part, &error) == ALLFOLD_OK && ((uint64_t *)partial.bytes)[0] == expected
           && part.count == (uint64_t)comm->size * ((uint64_t)comm->size + 1) / 2;
}

/* The largest element, and where in the whole it is: each rank has one element. */
static bool round_indices(allfold_context *local, struct comm *comm, uint64_t round)
{
    struct error error = {0};
    struct queue *const queue = local->queue;
    int best = 0;
    for (int rank = 1; rank < comm->size; rank++)
        if ((int32_t)hash_of(round, (uint64_t)rank) > (int32_t)hash_of(round, (uint64_t)best))
            best = rank;
    const int32_t x = (int32_t)hash_of(round, (uint64_t)comm->rank);
    must(local->device->backend->fold(queue, &(struct work){.monoid = MONOID_argmax, .type = ALLFOLD_INT32, .x = &x, .n = 1}, &error) == ALLFOLD_OK
             && local->device->backend->wait(queue, &error) == ALLFOLD_OK, error.text);
    struct partial partial = *queue->partial;
    struct comm_part part = {2, MONOID_argmax, ALLFOLD_INT32, 1, &partial};
    struct fold_results result;
    const struct fold_call call = {.fold = ALLFOLD_ARGMAX};
    return comm_combine(comm, &part, &error) == ALLFOLD_OK
           && fold_finish(&call, &(struct folded){ALLFOLD_INT32, part.count, &partial}, &result, &error) == ALLFOLD_OK
           && result.fields[0].index == (uint64_t)best
           && result.fields[0].value.i64 == (int32_t)hash_of(round, (uint64_t)best);
}

/* One or two ranks fail: in an agreement, or with a partial. All hear of the lower one. */
static bool round_fails(struct comm *comm, uint64_t round)
{
    struct error error = {0};
    struct partial partial;
    struct comm_part part = {3, MONOID_stats, ALLFOLD_F64, 1, &partial};
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
        comm_combine(comm, &part, &error);
    char expected[80];
    snprintf(expected, sizeof expected, "%d %s", lower, text);
    return error.status == ALLFOLD_IO_ERROR && strstr(error.text, expected) != NULL;
}

/* One rank makes another call: it agrees only, or its fold, its type or its options are others. The partials of the first two
   are wider than what hosts send at once. All ranks are told, and *partial stays. */
static bool round_differs(struct comm *comm, uint64_t round)
{
    static const enum monoid monoids[] = {MONOID_stats_exact, MONOID_norm2_exact, MONOID_sum_exact, MONOID_sumexp_f64_exact,
                                          MONOID_sum, MONOID_argmax};
    enum { COUNT = sizeof monoids / sizeof *monoids };
    struct error error = {0};
    struct partial partial, before;
    const uint64_t monoid = hash_of(round, 4) % COUNT, how = hash_of(round, 2) % 4;
    const bool other = comm->rank == (int)(hash_of(round, 1) % (uint64_t)comm->size);
    struct comm_part part = {4, monoids[monoid], ALLFOLD_F64, 1, &partial};
    if (other) {
        part.call += how == 1;
        part.monoid = monoids[(monoid + (how == 2 ? 1 + hash_of(round, 5) % (COUNT - 1) : 0)) % COUNT];
        part.type = how == 3 ? ALLFOLD_F32 : ALLFOLD_F64;
    }
    memset(&partial, 0, sizeof partial);
    monoid_identity(part.monoid, part.type, &partial);
    before = partial;
    if (other && how == 0)
        comm_agree(comm, &error);
    else
        comm_combine(comm, &part, &error);
    return comm->size == 1 ? error.status == ALLFOLD_OK
                           : error.status == ALLFOLD_BAD_ARGUMENT && strstr(error.text, "different calls") != NULL
                                 && part.count == 1 && memcmp(&before, &partial, sizeof partial) == 0;
}

static void test_different(void)
{
    enum { ROUNDS = 250 };
    struct comm comm;
    int wrong = 0;
    open_comm(MPI_COMM_WORLD, &comm);
    for (int round = 0; round < ROUNDS; round++)
        wrong += !round_differs(&comm, (uint64_t)round);
    tap_ok(wrong == 0, "%s: %d calls that do not match are refused", where(), ROUNDS);
    comm_close(&comm);
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
    open_comm(MPI_COMM_WORLD, &comms[0]);
    open_comm(part, &comms[1]);
    open_comm(backwards, &comms[2]);
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
    tap_ok(wrong == 0, "%s: %llu calls on three communicators in turn", where(), (unsigned long long)round);
    for (int i = 0; i < 3; i++)
        comm_close(&comms[i]);
}

/* ---- failures of the exchange itself */

/* What keeps one rank from opening keeps all, and all hear of it: a failure that it brings, or meets. */
static void test_open_fails(void)
{
    const MPI_Comm world = MPI_COMM_WORLD;
    bool good = true;
    for (int failing = 0; failing < world_size(); failing += world_size() > 1 ? world_size() - 1 : 1)
        for (int way = 0; way < 2; way++) {
            struct comm comm;
            struct error error = {0};
            char named[32] = "";
            if (world_size() > 1)
                snprintf(named, sizeof named, "rank %d on ", failing);
            if (world_rank() == failing && way == 0)
                error_set(&error, ALLFOLD_NO_MEMORY, "no memory for MPI_Op_create");
            fails_to_create = world_rank() == failing && way == 1;
            comm_open(&world, ALLFOLD_EXCHANGE_AUTO, &comm, &error);
            fails_to_create = false;
            good = good && error.status == (way == 0 ? ALLFOLD_NO_MEMORY : ALLFOLD_MPI_ERROR) && comm.mpi == NULL
                   && strncmp(error.text, named, strlen(named)) == 0 && strstr(error.text, "MPI_Op_create") != NULL;
        }
    tap_ok(good, "%s: all ranks hear why one cannot open", where());
}

/* No rank waits for hosts between which MPI has failed, and the next exchange is right. */
static void test_broken(void)
{
    struct comm comm;
    struct error error = {0};
    open_comm(MPI_COMM_WORLD, &comm);
    fails_to_reduce = true;
    comm_agree(&comm, &error);
    fails_to_reduce = false;
    tap_ok(error.status == ALLFOLD_MPI_ERROR && round_sums(&comm, 1), "%s: MPI_Allreduce fails", where());
    comm_close(&comm);
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
    open_comm(MPI_COMM_WORLD, &comm);
    if (comm.rank == 0)
        MPI_Isend(bytes, BYTES, MPI_BYTE, 1, 5, MPI_COMM_WORLD, &request);
    else if (comm.rank == 1)
        MPI_Recv(bytes, BYTES, MPI_BYTE, 0, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    comm_agree(&comm, &error);
    if (comm.rank == 0)
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    tap_ok(error.status == ALLFOLD_OK && (comm.rank != 1 || (bytes[0] == 1 && bytes[BYTES - 1] == 1)),
           "%s: a message of another communicator arrives meanwhile", where());
    comm_close(&comm);
    free(bytes);
}

/* ---- opening, closing */

static void test_many(void)
{
    enum { COMMS = 50 };
    static struct comm layouts[LAYOUTS][COMMS]; /* where a leak checker finds them */
    struct comm *const comms = layouts[layout];
    struct error error = {0};
    char pattern[64];
    glob_t left;
    bool good = true;
    for (int i = 0; i < COMMS; i++)
        open_comm(MPI_COMM_WORLD, &comms[i]);
    for (int i = 0; i < COMMS; i++)
        good = round_sums(&comms[i], (uint64_t)i) && comm_agree(&comms[COMMS - 1 - i], &error) == ALLFOLD_OK && good;
    for (int i = 0; i < COMMS; i += 2) /* the others are never closed */
        comm_close(&comms[i]);
    for (int i = 1; i < COMMS; i += 2)
        good = round_sums(&comms[i], (uint64_t)i) && good;
    tap_ok(good, "%s: %d communicators open together, of which half is never closed", where(), COMMS);
    snprintf(pattern, sizeof pattern, "/dev/shm/allfold.%ld.*", (long)getpid());
    tap_ok(glob(pattern, 0, NULL, &left) == GLOB_NOMATCH, "none has left a name in /dev/shm");
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    must(argc == 2, "usage: exchange_calls ROUNDS");
    const uint64_t rounds = strtoull(argv[1], NULL, 10);
    const allfold_options options = {.size = sizeof options, .backend = ALLFOLD_BACKEND_CPU, .threads = 1};
    allfold_context *local;
    char message[ALLFOLD_ERROR_BYTES];
    must(allfold_open(MPI_COMM_SELF, &options, &local, message, sizeof message) == ALLFOLD_OK, message);
    for (layout = ONE_HOST; layout < LAYOUTS; layout++) {
        test_hosts();
        test_monoids(local);
        if (world_size() > 1)
            test_different();
        test_rounds(local, layout == ONE_HOST ? rounds : rounds / 16);
        test_open_fails();
        test_broken();
        if (world_size() > 1)
            test_progress();
        test_many();
    }
    allfold_close(local);
    const int status = tap_done();
    MPI_Finalize();
    return status;
}
