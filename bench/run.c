/* Runs the cases of the benchmark: makes the data, takes turns and times, checks the results, and gathers them from all
   ranks. */
#include "bench/run.h"
#include "base/host.h"
#include "bench/file.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    WARM_UP = 2,
    RUNS_LEAST = 15,
    RUNS_MOST = 200,
    SURVEY_RUNS = 11,
    MESSAGES = 200 /* to the next rank and back */
};
#define GPU_CEILING_BYTES ((uint64_t)4 << 30)  /* long enough that launching does not count */
#define CPU_CEILING_BYTES ((uint64_t)1 << 30)
#define LINK_BYTES ((uint64_t)256 << 20)

static struct comm *comm_of(struct bench *b) { return &b->context->comm; }

static bool on_gpu(const struct bench *b) { return b->context->device->backend->own_memory; }

/* How many bytes the ceilings are measured on: no more than an eighth of a device's memory. */
static uint64_t ceiling_bytes(const struct bench *b, uint64_t x_bytes)
{
    const uint64_t most = b->context->device->info.memory_total / 8 / 4096 * 4096;
    if (on_gpu(b))
        return u64_min(GPU_CEILING_BYTES, most);
    const uint64_t least = machine_cpu_cache_bytes(b->context->device->threads);
    return u64_min(u64_max(u64_min(x_bytes / 4096 * 4096, CPU_CEILING_BYTES), least), most);
}

static allfold_status open_machine(struct bench *b, struct error *error)
{
    b->facts.ceiling_bytes = ceiling_bytes(b, b->bytes.x);
    b->bytes.x = u64_max(b->bytes.x, b->facts.ceiling_bytes);
    b->bytes.y = u64_max(b->bytes.y, b->facts.ceiling_bytes);
    b->bytes.host = u64_max(b->bytes.host, u64_min(LINK_BYTES, b->facts.ceiling_bytes));
    if (!on_gpu(b))
        return machine_open_cpu(b->context->device->threads, &b->bytes, &b->machine, error);
    return machine_open_cuda(b->context->comm.local_rank, &b->bytes, &b->machine, error);
}

static allfold_status open_members(const allfold_options *options, struct bench *b, struct error *error)
{
    char message[ALLFOLD_ERROR_BYTES] = "";
    const allfold_status status = allfold_open(b->comm, options, &b->context, message, sizeof message);
    if (status != ALLFOLD_OK)
        return error_set(error, status, "%s", message);
    MPI_Comm_set_errhandler(b->comm, MPI_ERRORS_RETURN);
    b->rank = b->context->comm.rank;
    b->size = b->context->comm.size;
    if (b->rank == 0) {
        b->measured = calloc((size_t)b->size * BENCH_ROWS_MAX, sizeof *b->measured);
        if (b->measured == NULL)
            error_set(error, ALLFOLD_NO_MEMORY, "no memory for the results of %d ranks", b->size);
    }
    if (error->status == ALLFOLD_OK)
        open_machine(b, error);
    if (comm_agree(comm_of(b), error) != ALLFOLD_OK)
        return error->status;
    return b->size > 1 && on_gpu(b) ? bench_nccl_open(b, &b->nccl, error) : ALLFOLD_OK;
}

allfold_status bench_open(const allfold_options *options, int ranks, const struct bench_bytes *bytes, struct bench **bench,
                          struct error *error)
{
    int rank;
    struct bench *const b = calloc(1, sizeof *b);
    MPI_Comm comm;
    *bench = NULL;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_split(MPI_COMM_WORLD, rank < ranks ? 0 : MPI_UNDEFINED, rank, &comm);
    if (b == NULL) {
        /* the others wait in the opening of a context: there is no telling them */
        fprintf(stderr, "allfold: no memory for the benchmark\n");
        MPI_Abort(MPI_COMM_WORLD, 1);
        return error_set(error, ALLFOLD_NO_MEMORY, "no memory for the benchmark");
    }
    if (comm == MPI_COMM_NULL) {
        free(b);
        return ALLFOLD_OK;
    }
    *b = (struct bench){.comm = comm, .bytes = *bytes};
    if (open_members(options, b, error) == ALLFOLD_OK)
        *bench = b;
    else
        bench_close(b);
    return error->status;
}

void bench_close(struct bench *b)
{
    if (b == NULL)
        return;
    bench_nccl_close(b->nccl);
    bench_cublas_close(b->cublas);
    bench_file_close(b);
    if (b->machine != NULL)
        b->machine->ops->close(b->machine);
    allfold_close(b->context);
    MPI_Comm_free(&b->comm);
    free(b->measured);
    free(b->all_facts);
    free(b);
}

/* ---- what the machines are */

/* The median time of work of this rank's machine, all ranks at the same time. */
static double survey(struct bench *b, allfold_status (*work)(struct bench *b, struct error *error), bool host,
                     struct error *error)
{
    const struct machine_ops *const ops = b->machine->ops;
    double seconds[SURVEY_RUNS];
    for (int run = -WARM_UP; run < SURVEY_RUNS; run++) {
        double taken = 0.0;
        if (comm_agree(comm_of(b), error) != ALLFOLD_OK)
            return NAN;
        if (!host)
            ops->clear(b->machine, error);
        const double start = clock_seconds();
        if ((host || ops->begin(b->machine, error) == ALLFOLD_OK) && work(b, error) == ALLFOLD_OK
            && (host || ops->end(b->machine, error) == ALLFOLD_OK) && ops->wait(b->machine, error) == ALLFOLD_OK && !host)
            ops->elapsed(b->machine, &taken, error);
        seconds[run < 0 ? 0 : run] = host ? clock_seconds() - start : taken;
    }
    return timing_of(seconds, SURVEY_RUNS).median;
}

static allfold_status survey_read(struct bench *b, struct error *error)
{
    return b->machine->ops->read(b->machine, b->facts.ceiling_bytes, error);
}
static allfold_status survey_copy(struct bench *b, struct error *error)
{
    return b->machine->ops->copy(b->machine, b->facts.ceiling_bytes, error);
}
static uint64_t link_bytes(const struct bench *b) { return u64_min(LINK_BYTES, b->facts.ceiling_bytes); }
static allfold_status survey_in(struct bench *b, struct error *error)
{
    return b->machine->ops->link(b->machine, link_bytes(b), true, error);
}
static allfold_status survey_out(struct bench *b, struct error *error)
{
    return b->machine->ops->link(b->machine, link_bytes(b), false, error);
}
static allfold_status survey_nothing(struct bench *b, struct error *error)
{
    return b->machine->ops->nothing(b->machine, error);
}

/* 8 bytes to the next rank and back, one pair of ranks after the other; half the median. */
static double survey_message(struct bench *b)
{
    double seconds[MESSAGES], mine = NAN, word = 1.0;
    if (b->size == 1)
        return NAN;
    for (int from = 0; from < b->size; from++) {
        const int to = (from + 1) % b->size;
        MPI_Barrier(b->comm);
        for (int i = 0; i < MESSAGES && (b->rank == from || b->rank == to); i++) {
            const double start = clock_seconds();
            if (b->rank == from) {
                MPI_Send(&word, 1, MPI_DOUBLE, to, 0, b->comm);
                MPI_Recv(&word, 1, MPI_DOUBLE, to, 0, b->comm, MPI_STATUS_IGNORE);
            } else {
                MPI_Recv(&word, 1, MPI_DOUBLE, from, 0, b->comm, MPI_STATUS_IGNORE);
                MPI_Send(&word, 1, MPI_DOUBLE, from, 0, b->comm);
            }
            seconds[i] = clock_seconds() - start;
        }
        if (b->rank == from)
            mine = timing_of(seconds, MESSAGES).median / 2;
    }
    return mine;
}

static void survey_machine(struct bench *b, struct error *error)
{
    const struct machine_ops *const ops = b->machine->ops;
    struct bench_facts *const facts = &b->facts;
    const double bytes = (double)facts->ceiling_bytes;
    /* ceilings are read off random data, too */
    ops->describe(b->machine, facts, error);
    ops->fill(b->machine, &(struct bench_data){ALLFOLD_INT32, BENCH_RANGE, 0, facts->ceiling_bytes / 4, 0, false}, error);
    if (on_gpu(b) && error->status == ALLFOLD_OK)
        ops->fill(b->machine, &(struct bench_data){ALLFOLD_INT32, BENCH_RANGE, 0, u64_min(b->bytes.host, facts->ceiling_bytes) / 4, 0, true}, error);
    if (error->status == ALLFOLD_OK && ops->read_prepare(b->machine, facts->ceiling_bytes, error) == ALLFOLD_OK)
        ops->copy_prepare(b->machine, facts->ceiling_bytes, error);
    facts->read = bytes / survey(b, survey_read, false, error);
    facts->copy = 2 * bytes / survey(b, survey_copy, false, error);
    facts->link_in = ops->link != NULL ? (double)link_bytes(b) / survey(b, survey_in, false, error) : NAN;
    facts->link_out = ops->link != NULL ? (double)link_bytes(b) / survey(b, survey_out, false, error) : NAN;
    facts->launch = ops->nothing != NULL ? survey(b, survey_nothing, true, error) : NAN;
    b->filled.count = 0;
}

allfold_status bench_survey(struct bench *b, const struct bench_facts **facts, struct error *error)
{
    snprintf(b->facts.host, sizeof b->facts.host, "%s", b->context->comm.host);
    survey_machine(b, error);
    if (comm_agree(comm_of(b), error) != ALLFOLD_OK)
        return error->status;
    b->facts.message = survey_message(b);
    free(b->all_facts);
    *facts = b->all_facts = comm_gather(comm_of(b), &b->facts, sizeof b->facts, error);
    return error->status;
}

/* What this rank's elements fold to, for those that start from there. */
static allfold_status fold_mine(struct bench *b, struct error *error)
{
    const struct bench_case *const task = b->task;
    const struct bench_subject *const subject = task->subject;
    const char *const x = b->machine->x;
    b->context->level = subject->level; /* on all ranks: they measure the same */
    if (bench_is_axis(b) || subject->kind == BENCH_ORDER)
        return error->status;
    b->softmax_work = (struct softmax_work){x, b->machine->y, task->type, task->type, box_of_row(task->count), task->count, 1, false, subject->level};
    b->work = (struct work){.monoid = subject->kind == BENCH_FOLD ? fold_monoid((allfold_fold)subject->fold, subject->level, task->type)
                                                                  : softmax_monoid(task->type, task->type, false, subject->level),
                            .type = task->type, .x = x, .n = task->count};
    if (bench_takes_two(subject))
        b->work.y = x + bench_second_place(task->count) * allfold_type_bytes(task->type);
    if (task->place == BENCH_ON_DEVICE && b->machine->ops->fold(b->machine, &b->work, error) == ALLFOLD_OK)
        b->machine->ops->fold_taken(b->machine, &b->work, &b->partial, error);
    return error->status;
}

/* ---- turns */

static allfold_status clear(struct bench *b, struct error *error)
{
    if (b->task->place == BENCH_IN_FILE)
        return bench_file_ready(b, error);
    return b->task->warm ? error->status : b->machine->ops->clear(b->machine, error);
}

/* One run, all ranks beginning together; how long it took this rank. */
static double time_once(struct bench *b, const struct bench_peer *peer, struct error *error)
{
    const struct machine_ops *const ops = b->machine->ops;
    double seconds = 0.0;
    if (peer->timing_point == BENCH_KERNEL) {
        if (comm_agree(comm_of(b), error) == ALLFOLD_OK && clear(b, error) == ALLFOLD_OK
            && ops->begin(b->machine, error) == ALLFOLD_OK && peer->run(b, error) == ALLFOLD_OK
            && ops->end(b->machine, error) == ALLFOLD_OK && ops->wait(b->machine, error) == ALLFOLD_OK)
            ops->elapsed(b->machine, &seconds, error);
        return seconds;
    }
    if (clear(b, error) == ALLFOLD_OK)
        ops->wait(b->machine, error);
    if (comm_agree(comm_of(b), error) != ALLFOLD_OK) /* the barrier, too */
        return 0.0;
    const double start = clock_seconds();
    peer->run(b, error);
    return clock_seconds() - start;
}

/* Another order in each round, the same on all ranks: no peer always follows the same other one. (Fisher and Yates) */
static void shuffle(int *order, int count, int round)
{
    for (int i = 0; i < count; i++)
        order[i] = i;
    for (int i = count - 1; i > 0; i--) {
        const int j = (int)(numbers_mix((uint64_t)(round + WARM_UP) << 32 | (uint64_t)i) % (uint64_t)(i + 1)), kept = order[i];
        order[i] = order[j];
        order[j] = kept;
    }
}

/* seconds: of peer i, run r, at [i * RUNS_MOST + r]. Rounds: each peer once. */
static int take_turns(struct bench *b, const struct bench_peer *const *peers, int count, double *seconds,
                      struct error *error)
{
    int runs = RUNS_LEAST;
    for (int round = -WARM_UP; round < runs && error->status == ALLFOLD_OK; round++) {
        const double start = clock_seconds();
        int order[BENCH_ROWS_MAX];
        shuffle(order, count, round);
        for (int i = 0; i < count && error->status == ALLFOLD_OK; i++) {
            const double taken = time_once(b, peers[order[i]], error);
            seconds[order[i] * RUNS_MOST + (round < 0 ? 0 : round)] = taken;
        }
        if (round == -1) {
            runs = timing_runs(&(struct timing_budget){b->task->seconds, RUNS_LEAST, RUNS_MOST}, clock_seconds() - start);
            MPI_Bcast(&runs, 1, MPI_INT, 0, b->comm);
        }
    }
    comm_agree(comm_of(b), error);
    return runs;
}

static void check(struct bench *b, const struct bench_peer *peer, struct bench_measured *measured, struct error *error)
{
    measured->checked = peer->check != NULL;
    measured->correct = true;
    if (peer->check == NULL)
        return;
    if (bench_output_bytes(b->task) > 0 && error->status == ALLFOLD_OK)
        b->machine->ops->poison(b->machine, bench_output_bytes(b->task), error);
    if (comm_agree(comm_of(b), error) != ALLFOLD_OK)
        return;
    if (peer->run(b, error) == ALLFOLD_OK && b->machine->ops->wait(b->machine, error) == ALLFOLD_OK)
        peer->check(b, measured->wrong, error);
    measured->correct = measured->wrong[0] == '\0';
}

/* ---- what was found */

static double bytes_of(const struct bench *b, const struct bench_peer *peer)
{
    const double input = (double)bench_bytes(b), all = input + (double)bench_output_bytes(b->task);
    if (peer->timing_point == BENCH_EXCHANGE)
        return 0.0;
    switch (peer->moves) {
    case BENCH_MOVES_INPUT: return input;
    case BENCH_MOVES_COPY: return 2 * input;
    case BENCH_MOVES_FOUR: return 4 * all;
    default: return all;
    }
}

/* A fold reads each byte once; softmax reads once, and reads and writes once more. A row of softmax along an axis may stay on the chip:
   it is read once and written once. */
static double floor_of(const struct bench *b, const struct bench_peer *peer, const struct bench_facts *facts)
{
    const double bytes = (double)bench_bytes(b), reading = bytes / facts->read, copying = 2 * bytes / facts->copy;
    const bool softmax = b->task->subject->kind == BENCH_SOFTMAX && peer->moves == BENCH_MOVES_ALL;
    if (peer->timing_point == BENCH_EXCHANGE)
        return 0.0;
    if (b->task->place == BENCH_IN_FILE)
        return 0.0; /* the rows beside it say what the files can give */
    if (b->task->place == BENCH_IN_HOST)
        return isnan(facts->link_in) ? reading : bytes / facts->link_in;
    if (peer->moves == BENCH_MOVES_COPY || (softmax && bench_is_axis(b)))
        return copying;
    return softmax ? reading + copying : bytes_of(b, peer) / facts->read;
}

/* all: on rank 0, `count` of each rank in rank order. */
static void fill_rows(struct bench *b, const struct bench_peer *const *peers, int count,
                      const struct bench_measured *all)
{
    for (int i = 0; i < count; i++) {
        struct bench_row *const row = &b->rows[i];
        *row = (struct bench_row){.peer = peers[i]->name, .timing_point = peers[i]->timing_point, .bytes = bytes_of(b, peers[i])};
        if (b->rank != 0)
            continue;
        row->measured = b->measured + i * b->size;
        for (int rank = 0; rank < b->size; rank++) {
            row->measured[rank] = all[rank * count + i];
            if (row->measured[rank].times.median > row->measured[row->slowest].times.median)
                row->slowest = rank;
        }
        row->floor = floor_of(b, peers[i], &b->all_facts[row->slowest]);
    }
}

static allfold_status measure(struct bench *b, const struct bench_peer *const *peers, int count, double *seconds,
                              struct error *error)
{
    struct bench_measured mine[BENCH_ROWS_MAX];
    memset(mine, 0, sizeof mine);
    const int runs = take_turns(b, peers, count, seconds, error);
    if (error->status != ALLFOLD_OK)
        return error->status;
    for (int i = 0; i < count; i++) {
        mine[i].times = timing_of(seconds + i * RUNS_MOST, runs);
        check(b, peers[i], &mine[i], error);
    }
    struct bench_measured *const all = comm_gather(comm_of(b), mine, (size_t)count * sizeof *mine, error);
    if (error->status == ALLFOLD_OK)
        fill_rows(b, peers, count, all);
    free(all);
    return error->status;
}

/* cuBLAS is a peer if all ranks have it. */
static allfold_status open_cublas(struct bench *b, struct error *error)
{
    int having;
    bench_cublas_open(b, &b->cublas);
    if (comm_count(comm_of(b), b->cublas != NULL, &having, error) == ALLFOLD_OK && having < b->size) {
        bench_cublas_close(b->cublas);
        b->cublas = NULL;
    }
    return error->status;
}

allfold_status bench_run(struct bench *b, const struct bench_case *task, const struct bench_row **rows, int *row_count,
                         struct error *error)
{
    const struct bench_peer *peers[BENCH_ROWS_MAX];
    int count = 0;
    b->task = task;
    if (bench_fill(b, error) != ALLFOLD_OK)
        return error->status;
    if (bench_is_dot(b) && on_gpu(b) && open_cublas(b, error) != ALLFOLD_OK)
        return error->status;
    fold_mine(b, error);
    for (int i = 0; i < bench_peer_count; i++)
        if (bench_peers[i].fits(b) && error->status == ALLFOLD_OK) {
            if (bench_peers[i].prepare != NULL)
                bench_peers[i].prepare(b, error);
            peers[count++] = &bench_peers[i];
        }
    double *const seconds = malloc((size_t)BENCH_ROWS_MAX * RUNS_MOST * sizeof *seconds);
    if (seconds == NULL)
        error_set(error, ALLFOLD_NO_MEMORY, "no memory for times");
    if (comm_agree(comm_of(b), error) == ALLFOLD_OK)
        measure(b, peers, count, seconds, error);
    free(seconds);
    *rows = b->rows;
    *row_count = count;
    return error->status;
}
