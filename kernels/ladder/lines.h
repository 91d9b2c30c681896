/* Sums along the rows, and along the columns, of a matrix of f32 that lies in memory row after row. What is summed is a line: a row
   or a column. A rung is one file that defines line_ID, and a line of LADDER_ROW_RUNGS or LADDER_COLUMN_RUNGS (ladder.h). */
#pragma once

#include "kernels/ladder/input.h"

/* Place p of line i is x[i * line_stride + p * place_stride]. Of rows place_stride is 1, of columns line_stride is. */
struct lines {
    uint64_t count, length, line_stride, place_stride;
};

enum { LINE_BLOCK = 256 }; /* threads */

struct line_rung;
struct line_job {
    struct gpu *gpu;
    const struct line_rung *rung;
    const float *x; /* device memory, at a multiple of 16 bytes, as is all that follows */
    struct lines lines;
    float *sums;          /* the result: one for each line; 0 of a line without places */
    float *partials[2];   /* of rungs that split lines: of the odd levels and the even ones */
    void *engine;         /* the engine's partials, and behind them its scratch; */
    size_t engine_bytes;
    int launches;         /* set by starting: how many, */
    uint64_t threads;     /* and how many threads the first has */
};

struct line_rung {
    cudaError_t (*start)(struct line_job *job, cudaStream_t stream);
    uint64_t chunk; /* places that a block takes of a line at most; 0: the rung does not split lines */
    /* The engine's own memory, and its results as sums, in host memory. NULL: job->sums holds the results. */
    allfold_status (*plan)(struct line_job *job, struct error *error);
    allfold_status (*answer)(struct line_job *job, double *sums, struct error *error);
};

/* How many segments of at most `chunk` places a line has, and a line without places one. */
static inline uint64_t line_segments(uint64_t length, uint64_t chunk) { return length > chunk ? (length + chunk - 1) / chunk : 1; }

/* The partials of split lines are a matrix with as many lines, in the same direction. */
static inline struct lines line_partials(const struct lines *split, uint64_t segments)
{
    const bool rows = split->place_stride == 1;
    return {split->count, segments, rows ? segments : 1, rows ? 1 : split->count};
}

/* The blocks for n units, of which one takes `each`. They fit a launch: no GPU's memory holds a matrix that needs more. */
static inline unsigned int line_blocks(uint64_t n, uint64_t each) { return (unsigned int)((n + each - 1) / each); }

/* Launches blocks of LINE_BLOCK threads; none is no launch. */
template <class... Parameters, class... Arguments>
static inline cudaError_t line_launch(struct line_job *job, void (*kernel)(Parameters...), unsigned int blocks, cudaStream_t stream,
                                      Arguments... arguments)
{
    if (blocks == 0)
        return cudaSuccess;
    if (job->launches++ == 0)
        job->threads = (uint64_t)blocks * LINE_BLOCK;
    return gpu_launch(kernel, blocks, LINE_BLOCK, 0, stream, arguments...);
}
