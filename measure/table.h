/* Tables of what ladder and benchmark have measured. All their columns and facts are listed here, once: the name in JSON, the heading
   and how a number is printed. src/cli/tables.c prints tables and turns them into JSON. Numbers are kept in base units: seconds, bytes
   a second, and ratios. C, without CUDA. */
#pragma once

#include "base/error.h"
#include "measure/times.h"

#ifdef __cplusplus
extern "C" {
#endif

enum table_format {
    TABLE_TEXT,
    TABLE_INTEGER,   /* a count */
    TABLE_NUMBER,    /* three digits */
    TABLE_SECONDS,   /* shown in us */
    TABLE_BANDWIDTH, /* bytes a second, shown in GB/s */
    TABLE_RATE,      /* operations a second, shown in thousands of millions */
    TABLE_PERCENT,   /* a ratio, shown times 100 */
    TABLE_TIMES,     /* a ratio, shown as 1.23x */
    TABLE_VERDICT,   /* 1 correct, 0 wrong: then the text says how */
};

/* X(ID, key, heading, format). The key is the name in JSON, NULL: for people only. The heading is for people, NULL: in JSON only. */
#define TABLE_COLUMNS(X)                                                  \
    /* what is measured */                                                \
    X(RUNG, "rung", "rung", TEXT)                                         \
    X(IDEA, "idea", "idea", TEXT)                                         \
    X(PEER, "peer", "peer", TEXT)                                         \
    X(TIMING_POINT, "timing_point", "timing point", TEXT)                 \
    X(METHOD, "way", "method", TEXT)                                      \
    X(PATTERN, "pattern", "pattern", TEXT)                                \
    X(SECTORS, "sectors", "sectors a load", INTEGER)                      \
    X(TRIPS, "trips", "trips", INTEGER)                                   \
    X(ELEMENTS, "elements", "elements a thread", INTEGER)                 \
    X(SUMS, "sums", "sums a thread", INTEGER)                             \
    X(LOADS, "loads", "loads a thread", INTEGER)                          \
    X(LOAD_BYTES, "load_bytes", "bytes a load", INTEGER)                  \
    X(BYTES, "bytes", NULL, INTEGER)                                      \
    X(BYTES_READ, "bytes_read", "bytes read", INTEGER)                    \
    X(BYTES_WRITTEN, "bytes_written", "written", INTEGER)                 \
    /* its times */                                                       \
    X(RUNS, "runs", NULL, INTEGER)                                        \
    X(SECONDS, "seconds", "time us", SECONDS)                             \
    X(P10, "seconds_p10", "p10 us", SECONDS)                              \
    X(P99, "seconds_p99", "p99 us", SECONDS)                              \
    X(SLOWEST_RANK, "slowest_rank", "rank", INTEGER)                      \
    X(FLOOR, "floor_seconds", NULL, SECONDS)                              \
    X(IN_FLIGHT, "seconds_in_flight", "in flight us", SECONDS)            \
    /* its speed */                                                       \
    X(BANDWIDTH, "bytes_per_second", "GB/s", BANDWIDTH)                   \
    X(RATE, "operations_per_second", "Gop/s", RATE)                       \
    X(OF_CEILING, "of_read_ceiling", "% ceiling", PERCENT)                \
    X(OF_DATASHEET, "of_datasheet", "% sheet", PERCENT)                   \
    X(OF_FLOOR, "of_floor", "% floor", PERCENT)                           \
    X(INPUT_OF_CEILING, "input_of_read_ceiling", "% useful", PERCENT)     \
    X(OVER_BEFORE, "speedup_before", "x before", TIMES)                   \
    X(OVER_FIRST, "speedup_first", "x first", TIMES)                      \
    X(OVER_HOST, "speedup_host", NULL, TIMES)                             \
    X(OF_ALLFOLD, NULL, "/allfold", TIMES)                                \
    /* how it uses the GPU */                                             \
    X(LAUNCHES, "launches", "launches", INTEGER)                          \
    X(THREADS, "threads", "threads", INTEGER)                             \
    X(BARRIERS, "barriers", "barriers", NUMBER)                           \
    X(EXCHANGES, "warp_waits", "warp waits", NUMBER)                      \
    X(THREADS_EACH, "threads", "threads/SM", INTEGER)                     \
    X(BLOCKS, "blocks", "blocks", INTEGER)                                \
    X(BLOCKS_EACH, "blocks", "blocks/SM", INTEGER)                        \
    X(BLOCKS_WANTED, "blocks_wanted", "blocks wanted", INTEGER)           \
    X(BYTES_IN_FLIGHT, "bytes_in_flight", "bytes in flight/SM", INTEGER)  \
    X(OCCUPANCY, "occupancy", "occup %", PERCENT)                         \
    X(REGISTERS, "registers", "regs", INTEGER)                            \
    X(SHARED_BYTES, "shared_bytes", NULL, INTEGER)                        \
    X(DYNAMIC_SHARED, "dynamic_shared_bytes", "shared bytes", INTEGER)    \
    X(LOCAL_BYTES, "local_bytes", "local bytes", INTEGER)                 \
    /* whether it is right */                                             \
    X(ERROR, "error_ulp", "error ulp", NUMBER)                            \
    X(CHECKS, "checks", "checks", INTEGER)                                \
    X(WRONG, "wrong", "wrong", INTEGER)                                   \
    X(CORRECT, "correct", "result", VERDICT)                              \
    /* what it is measured on */                                          \
    X(RANK, "rank", "rank", INTEGER)                                      \
    X(HOST, "host", NULL, TEXT)                                           \
    X(DEVICE, "device", NULL, TEXT)                                       \
    X(UUID, "uuid", NULL, TEXT)                                           \
    X(INDEX, "index", NULL, INTEGER)                                      \
    X(HOST_THREADS, "threads", NULL, INTEGER)                             \
    X(MULTIPROCESSORS, "multiprocessors", NULL, INTEGER)                  \
    X(DRIVER, "cuda_driver", NULL, INTEGER)                               \
    X(RUNTIME, "cuda_runtime", NULL, INTEGER)                             \
    X(MEMORY, "memory", NULL, INTEGER)                                    \
    X(L2, "l2", NULL, INTEGER)                                            \
    X(CEILING_BYTES, "ceiling_bytes", NULL, INTEGER)                      \
    X(SHEET, "datasheet", NULL, BANDWIDTH)                                \
    X(READ, "read", "read GB/s", BANDWIDTH)                               \
    X(COPY, "copy", "copy GB/s", BANDWIDTH)                               \
    X(LINK_IN, "link_in", "to dev.", BANDWIDTH)                           \
    X(LINK_OUT, "link_out", "from dev.", BANDWIDTH)                       \
    X(LAUNCH, "launch", "launch us", SECONDS)                             \
    X(MESSAGE, "message", "next us", SECONDS)                             \
    X(PLACE, NULL, "device", TEXT)                                        \
    X(SLOW, NULL, "", TEXT)                                               \
    /* facts that hold for a whole table */                               \
    X(FACT_COUNT, "count", "elements, int32", INTEGER)                    \
    X(FACT_PART, "part", NULL, TEXT)                                      \
    X(FACT_ROWS, "matrix_rows", NULL, INTEGER)                            \
    X(FACT_COLUMNS, "matrix_columns", NULL, INTEGER)                      \
    X(FACT_LEFT_OUT, "left_out", "left out without a GPU", TEXT)          \
    X(FACT_CEILING, "read_ceiling", "read ceiling, measured", BANDWIDTH)  \
    X(FACT_DATASHEET, "datasheet", "datasheet peak", BANDWIDTH)

enum table_column {
#define TABLE_ENUM(ID, key, heading, format) COLUMN_##ID,
    TABLE_COLUMNS(TABLE_ENUM)
#undef TABLE_ENUM
};
struct table_column_facts {
    const char *key, *heading;
    enum table_format format;
};
extern const struct table_column_facts table_columns[];

#define TABLE_TEXT_BYTES 128
struct table_cell {
    double number; /* NaN: not known, null in JSON */
    char text[TABLE_TEXT_BYTES];
};

#define TABLE_COLUMNS_MAX 24
#define TABLE_FACTS_MAX 8
struct table {
    char title[160];
    int fact_count; /* what holds for the whole table: the count, the ceilings */
    enum table_column facts[TABLE_FACTS_MAX];
    struct table_cell fact_cells[TABLE_FACTS_MAX];
    int column_count;
    enum table_column columns[TABLE_COLUMNS_MAX]; /* the same on every rank, whatever was found */
    unsigned hidden;          /* bit i: column i is in JSON only */
    int row_count;            /* the same on every rank */
    struct table_cell *cells; /* row_count * column_count; see table_cell */
    bool is_wrong;            /* something that ran differed from what was expected of it. The command then fails */
};

/* Appends columns. All must be there before the first row. */
void table_add_columns(struct table *table, const enum table_column *columns, int count);
bool table_has(const struct table *table, enum table_column column);
/* The column is in JSON only. */
void table_hide(struct table *table, enum table_column column);
/* Appends a fact and returns its cell. */
struct table_cell *table_fact(struct table *table, enum table_column fact);
/* Appends a row of empty cells (NaN, ""). Pointers to cells become invalid. */
allfold_status table_row(struct table *table, struct error *error);
/* The cell of a row. A column that the table does not have: NULL. */
struct table_cell *table_cell(const struct table *table, int row, enum table_column column);

/* Fill cells of the last row. Without effect if the table has no such column: so what is known can be told, and the table decides
   what it shows. A cell that is not filled is null in JSON. */
void table_number(struct table *table, enum table_column column, double number);
void table_text(struct table *table, enum table_column column, const char *text);
double table_number_of(const struct table *table, enum table_column column); /* of the last row; NaN if there is none */
/* The verdict: correct if why is NULL or empty; otherwise the whole table is wrong. */
void table_verdict(struct table *table, int row, const char *why);

/* What a time says of the work that it was taken of. */
struct table_speed {
    double bytes;           /* that one run moves; NaN: none */
    double read, datasheet; /* bytes a second, to compare with; NaN or 0: not known */
};
/* Fills in the times and the speed. */
void table_times(struct table *table, const struct timing *times, const struct table_speed *speed);

void table_free(struct table *table); /* the rows; the table itself is the caller's */

#ifdef __cplusplus
}
#endif
