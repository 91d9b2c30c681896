/* Defines a benchmark under way, which run.c, peers.c and nccl.c share. */
#pragma once

#include "allfold.h"
#include "bench/bench.h"
#include "bench/machine.h"
#include "core/core.h"

/* What the results of some elements must be. */
struct bench_expected {
    uint64_t count;
    long double sum, products; /* of elements with those of the other operand, or with themselves */
    double max, sumexp;
    double scale; /* of floating-point elements, beside those in [-8, 8): errors grow with it */
};

struct bench {
    MPI_Comm comm; /* the context's ranks, for the peers that call MPI themselves */
    int rank, size;
    allfold_context *context;
    struct machine *machine;
    struct bench_files *files; /* file.c; NULL: no data in files */
    struct bench_nccl *nccl;     /* NULL where there is none */
    struct bench_cublas *cublas; /* likewise; opened by the first dot product */
    struct bench_bytes bytes;
    struct bench_facts facts, *all_facts; /* this rank's; rank 0: one a rank */
    struct bench_row rows[BENCH_ROWS_MAX];
    struct bench_measured *measured; /* rank 0: BENCH_ROWS_MAX a rank */

    /* The case under way, and the data that is there: of filled, where filled.count > 0. */
    const struct bench_case *task;
    struct bench_case filled;
    struct bench_expected mine, all; /* of this rank's elements, and of all ranks' */
    struct work work;                /* the case's elements, and the monoid of a fold or of softmax's first pass */
    struct softmax_work softmax_work;
    struct partial partial; /* what this rank's elements fold to */
    allfold_result results[FOLD_RESULTS_MAX]; /* the library's */
    size_t result_count;
    double found;           /* the peers' */
};

/* A peer that computes a subject, at one timing point. All functions are called by all ranks together. */
struct bench_peer {
    const char *name;
    enum bench_timing_point timing_point;
    const char *text;
    bool (*fits)(const struct bench *b); /* whether it can do b->task */
    allfold_status (*prepare)(struct bench *b, struct error *error); /* may be NULL */
    /* BENCH_KERNEL: starts the work; else does it whole. */
    allfold_status (*run)(struct bench *b, struct error *error);
    /* Compares what a run found with what is expected; wrong says how it differs. NULL where nothing is found. */
    allfold_status (*check)(struct bench *b, char wrong[96], struct error *error);
    enum { BENCH_MOVES_ALL, BENCH_MOVES_INPUT, BENCH_MOVES_COPY, BENCH_MOVES_FOUR } moves; /* what the subject does, its input, each
                    byte of it in and out, four times what the subject does */
};
extern const struct bench_peer bench_peers[];
extern const int bench_peer_count;

static inline bool bench_is(const struct bench *b, int fold) { return b->task->subject->kind == BENCH_FOLD && b->task->subject->fold == fold; }
static inline bool bench_is_dot(const struct bench *b) { return bench_is(b, FOLD_DOT); }
static inline bool bench_is_compare(const struct bench *b) { return bench_is(b, FOLD_COMPARE); }
static inline bool bench_is_axis(const struct bench *b) { return b->task->shape.length > 0; }
/* Bytes of the input. */
static inline uint64_t bench_bytes(const struct bench *b) { return bench_input_bytes(b->task); }
/* The type to which results of the case are rounded. */
allfold_type bench_result_type(const struct bench_case *task);

/* expected.c. What the results of a row of the data must be: of this rank's elements, and of those of all ranks. Collective. */
allfold_status bench_expect(struct bench *b, const struct bench_row_of *row, struct bench_expected *mine, struct bench_expected *all,
                            struct error *error);
/* Makes the case's data, and knows b->mine and b->all. Collective. */
allfold_status bench_fill(struct bench *b, struct error *error);
/* Compares a result of that name, which was rounded with that relative error. Names that nothing is known of pass. */
void bench_check(const struct bench_expected *expected, const char *name, double found, double precision, char wrong[96]);
/* The relative error that level fast adds to what f64 leaves: of logsumexp whose terms are f32. */
double bench_precision(const struct bench_case *task);
/* Whether |found - expected| <= tolerance; else wrong says so. */
bool bench_near(double found, long double expected, double tolerance, char wrong[96]);
/* How far sums of `count` products or terms in f32, each at most `largest`, may be off: their error grows as that of a random walk. */
double bench_f32_tolerance(uint64_t count, double largest);
/* Compares CUB's values in the same way; and how far elements of softmax may be off, of f32 by that part. */
void bench_check_cub(allfold_type type, enum cub_work work, const struct bench_expected *expected, double found, char wrong[96]);
double bench_softmax_tolerance(allfold_type type, double of_f32);

/* axis.c: the library along an axis, and CUB. */
bool bench_axis_fits(const struct bench *b);
allfold_status bench_axis_run(struct bench *b, struct error *error);
allfold_status bench_axis_check(struct bench *b, char wrong[96], struct error *error);
bool bench_axis_fits_cub(const struct bench *b);
allfold_status bench_axis_cub_prepare(struct bench *b, struct error *error);
allfold_status bench_axis_cub_run(struct bench *b, struct error *error);
allfold_status bench_axis_cub_whole(struct bench *b, struct error *error);
allfold_status bench_axis_cub_check(struct bench *b, char wrong[96], struct error *error);

/* order.c. */
bool bench_order_fits(const struct bench *b);
allfold_status bench_order_run(struct bench *b, struct error *error);
allfold_status bench_order_check(struct bench *b, char wrong[96], struct error *error);
bool bench_order_fits_cub(const struct bench *b);
allfold_status bench_order_cub_prepare(struct bench *b, struct error *error);
allfold_status bench_order_cub_run(struct bench *b, struct error *error);
allfold_status bench_order_cub_whole(struct bench *b, struct error *error);
allfold_status bench_order_cub_check(struct bench *b, char wrong[96], struct error *error);

/* cuBLAS (cublas.c), if its library can be loaded: dot products of f32 and f64. *cublas stays NULL, without an error, if it cannot. */
void bench_cublas_open(struct bench *b, struct bench_cublas **cublas);
void bench_cublas_close(struct bench_cublas *cublas);
/* The dot product of the case's operands, on the device, in the machine's stream, to machine->result. */
allfold_status bench_cublas_dot(struct bench *b, struct error *error);

/* NCCL (nccl.c). Opens a communicator of the benchmark's ranks; *nccl stays NULL, without an error, where NCCL is not in
   the build or refuses, which rank 0 then says on standard error. Collective. */
allfold_status bench_nccl_open(const struct bench *b, struct bench_nccl **nccl, struct error *error);
void bench_nccl_close(struct bench_nccl *nccl);
/* Combines the ranks' results of CUB, on the device, in the machine's stream. */
allfold_status bench_nccl_combine(struct bench *b, enum cub_work work, struct error *error);
