/* Runs the benchmark behind `allfold bench`: the library and its peers in turn, on the same data, in one process a rank.
   src/cli/commands/bench.c calls it. The library, libbench.a, is the program's own; the C library never links it.

   A machine (machine.h) is where data lies and time is taken: a GPU or the CPU. A subject is what is computed, a peer who
   computes it: one line each in subjects.c and peers.c. docs/performance.md has the formula of every figure. */
#pragma once

#include "base/base.h"
#include "measure/times.h"

/* What is computed of the elements. */
enum bench_kind {
    BENCH_FOLD,    /* a fold of allfold.h, FOLD_DOT or FOLD_COMPARE */
    BENCH_PASS,    /* softmax's first pass, (max, sum of exponentials), which is no fold of allfold.h by itself */
    BENCH_SOFTMAX,
    BENCH_ORDER,   /* an order statistic */
};
enum bench_order { BENCH_MEDIAN, BENCH_QUANTILE, BENCH_QUANTILES, BENCH_TOP, BENCH_BINS, BENCH_BINS_MANY };
struct bench_subject {
    const char *name;
    enum bench_kind kind;
    int fold;          /* of BENCH_ORDER an enum bench_order; else of BENCH_FOLD only */
    bool floating;     /* of floating-point elements only */
    allfold_level level;
    const char *text;
};
extern const struct bench_subject bench_subjects[];
extern const int bench_subject_count;

/* Which types, places and shapes a subject can be measured with. */
bool bench_takes_type(const struct bench_subject *subject, allfold_type type);
bool bench_takes_place(const struct bench_subject *subject, int place); /* enum bench_place */
/* Whether it has two operands. */
bool bench_takes_two(const struct bench_subject *subject);
bool bench_takes_axis(const struct bench_subject *subject);

/* The element types that the benchmark makes data of. */
extern const allfold_type bench_types[];
extern const int bench_type_count;

/* Between which two moments a time lies. */
enum bench_timing_point {
    BENCH_KERNEL,   /* the device's own work, between two events around its launches */
    BENCH_PARTIAL,  /* from the call until this rank's partial is on its host; softmax: until its part is done */
    BENCH_EXCHANGE, /* the ranks' exchange, their partials ready on their hosts */
    BENCH_HOST,     /* from the call until the value is on every host; softmax: until all parts are done */
    BENCH_TIMING_POINT_COUNT
};
extern const char *const bench_timing_point_names[BENCH_TIMING_POINT_COUNT];

/* Where the data is. */
enum bench_place {
    BENCH_ON_DEVICE, /* where the machine computes */
    BENCH_IN_HOST,   /* in pinned host memory */
    BENCH_IN_FILE,   /* in files, one a rank */
};
extern const char *const bench_place_names[];

/* An array of three dimensions, whose second is folded. length 0: it is folded as a whole. */
struct bench_shape {
    uint64_t outer, length, inner;
    bool cut_axis; /* the rows are spread over the ranks, each of which has `length` elements of each; else a rank has whole rows */
};

enum { BENCH_RANGE = 8 }; /* unless the user says another */

/* One measurement, in which all peers that can do the work take turns. */
struct bench_case {
    const struct bench_subject *subject;
    allfold_type type;
    int range;       /* a power of two: floating-point elements are uniform in [-range, range) */
    uint64_t count;  /* elements of each rank; of a dot product, of each operand */
    struct bench_shape shape; /* of a rank's elements, data on the device only */
    enum bench_place place;
    bool warm;       /* caches are left as the run before left them, and files are in the system's; else cleared before each run */
    double seconds;  /* to be spent on it, about */
};

/* The bytes of a case's input and of its output, on each rank. */
uint64_t bench_input_bytes(const struct bench_case *task);
uint64_t bench_output_bytes(const struct bench_case *task);

/* What one peer took, on one rank. Plain bytes: ranks exchange it. */
struct bench_measured {
    struct timing times;
    bool checked, correct; /* the result was compared with what is known of the data, and agreed */
    char wrong[96];        /* else, how it differed */
};

enum { BENCH_ROWS_MAX = 16 };
struct bench_row {
    const char *peer;
    enum bench_timing_point timing_point;
    double bytes;                     /* that a rank's share of the work must move, counted once */
    double floor;                     /* seconds in which that can be done at the ceilings of the slowest rank; 0 if unknown */
    int slowest;                      /* the rank whose median is largest */
    struct bench_measured *measured;  /* rank 0: one a rank; else NULL */
};

/* What a machine is and can do at most, by measurement. Plain bytes. */
struct bench_facts {
    char device[128], uuid[64], host[256];
    int index, multiprocessors, threads; /* multiprocessors, index: 0 on the CPU */
    int driver, runtime;                 /* CUDA versions as 1000 * major + 10 * minor, 0 on the CPU */
    uint64_t memory, l2;                 /* bytes; 0 where not known */
    double datasheet;                    /* bytes a second: memory clock * bus width * 2; NaN where not told */
    double read, copy;                   /* ceilings, bytes a second; a copied byte counts twice, read and written */
    double link_in, link_out;            /* host to device and back, pinned memory, bytes a second; NaN on the CPU */
    double launch;                       /* seconds, an empty kernel and a synchronisation; NaN on the CPU */
    double message;                      /* seconds, half a round trip of 8 bytes to the next rank; NaN for one rank */
    uint64_t ceiling_bytes;              /* that the ceilings were measured on */
};

/* Something of a rank that is slow beside the others, or nothing. */
enum { BENCH_HEALTH_FACTS = 6 };
struct bench_illness {
    bool slow[BENCH_HEALTH_FACTS]; /* by the facts of bench_health_names */
    double of_median[BENCH_HEALTH_FACTS]; /* how fast, as a part of the ranks' median: below 1 is slower. NaN: not known */
};
extern const char *const bench_health_names[BENCH_HEALTH_FACTS];
#define BENCH_HEALTH_RATE 0.90    /* a rate is slow below this part of the ranks' median, unless the user says another */
#define BENCH_HEALTH_LATENCY 0.50 /* a latency, whose noise is larger, where the median is below this part of it */
/* Finds slow devices and links: ills, like facts, are one a rank. With two ranks the faster stands for the median. */
void bench_health(const struct bench_facts *facts, int ranks, double least_rate, struct bench_illness *ills);

struct bench;

/* The largest data: x, y where something is written, host where it lies in host memory. */
struct bench_bytes {
    uint64_t x, y, host;
};

/* Opens the benchmark on the first `ranks` of MPI_COMM_WORLD, which all must call this together; on the others *bench
   is then NULL, and they have no part in the calls below. Every rank's error is all ranks'. */
allfold_status bench_open(const allfold_options *options, int ranks, const struct bench_bytes *bytes, struct bench **bench,
                          struct error *error);
void bench_close(struct bench *bench); /* collective over its ranks; NULL is allowed */

/* What every rank's machine is, its ceilings measured: *facts, one a rank, is rank 0's; the bench's own. Collective. */
allfold_status bench_survey(struct bench *bench, const struct bench_facts **facts, struct error *error);

/* Measures one case: rows, *row_count of them, are valid until the next call. Collective. */
allfold_status bench_run(struct bench *bench, const struct bench_case *task, const struct bench_row **rows,
                         int *row_count, struct error *error);

/* The peers of this build, a line each, for people. */
void bench_peers_print(void (*line)(const char *peer, const char *timing_point, const char *text));
