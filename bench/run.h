/* A benchmark under way: what run.c, peers.c and nccl.c share. */
#pragma once

#include "allfold.h"
#include "bench/bench.h"
#include "bench/machine.h"
#include "core/core.h"

/* What the results of some elements must be. */
struct bench_expected {
    uint64_t count;
    long double sum;
    double max, sumexp;
};

struct bench {
    MPI_Comm comm; /* the context's ranks, for the peers that call MPI themselves */
    int rank, size;
    allfold_context *context;
    struct machine *machine;
    struct bench_files *files; /* file.c; NULL: no data in files */
    struct bench_nccl *nccl; /* NULL where there is none */
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
    allfold_result result;  /* the library's */
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
    bool copies; /* moves what a copy moves, each byte in and out; else as the subject does */
    bool links;  /* over the link from the host */
};
extern const struct bench_peer bench_peers[];
extern const int bench_peer_count;

static inline uint64_t bench_bytes(const struct bench *b) { return b->task->count * allfold_type_bytes(b->task->type); }

/* NCCL (nccl.c). Opens a communicator of the benchmark's ranks; *nccl stays NULL, without an error, where NCCL is not in
   the build or refuses, which rank 0 then says on standard error. Collective. */
allfold_status bench_nccl_open(const struct bench *b, struct bench_nccl **nccl, struct error *error);
void bench_nccl_close(struct bench_nccl *nccl);
/* Combines the ranks' results of CUB, on the device, in the machine's stream. */
allfold_status bench_nccl_combine(struct bench *b, enum cub_work work, struct error *error);
