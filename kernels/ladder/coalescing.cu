/* Coalescing: which lane loads which element.

   Idea: memory moves in sectors of 32 bytes, and a warp's load is served by as many sectors as its 32 lanes touch. Lanes that take
   neighbouring elements share sectors: 4 sectors, all of whose bytes are used. Lanes that take elements a whole row apart
   touch 32 sectors and use 4 bytes of each. The other 28 bytes are wasted, unless a cache still holds them when they are
   needed.

   Shown on the sums of the rows, and of the columns, of a row-major matrix. A line is what is summed: a row or a column.
   In every kernel a warp sums a tile of 32 lines by 256 places, and each lane loads 256 elements. Only the order differs:

       lane_a_line     lane i walks along line i: coalesced for columns, 32 sectors a load for rows
       warp_a_line     the lanes take one line together, then the next: coalesced for rows, not for columns
       corner_turned   the tile is loaded along the memory's rows, whichever way the lines run, and turned in shared memory

   So the same kernel is good for one sum and bad for the other. The corner turn is for algorithms that cannot choose which
   thread needs which element. Its tile has one column more than it needs. Without it the 32 elements of a column lie in one
   bank of shared memory, and are read one after another; with it they lie in 32 banks.

   A line longer than 256 leaves several partials. These form a matrix, whose columns are summed in the same way, level by
   level. */
#include "kernels/ladder/experiment.cuh"

#include <math.h>
#include <stdio.h>

#include <type_traits>

constexpr int LINES = 32, PLACES = 256, WARPS = 8;

/* What a warp sums: LINES lines from `line` on, PLACES places from `place` on, which are the lines' segment `segment`. */
struct tile {
    uint64_t line, place, segment;
};

/* `count` lines of `length` elements: the rows of the matrix at x, or its columns. */
template <bool rows> struct int_lines {
    const int32_t *x;
    uint64_t count, length;

    /* 0 outside the matrix. `inside` promises that the element is inside: then no test separates one load from the
       next. */
    template <bool inside> __device__ __forceinline__ int32_t at(uint64_t line, uint64_t place) const
    {
        return inside || (line < count && place < length) ? x[rows ? line * length + place : place * count + line] : 0;
    }
    __device__ __forceinline__ bool has(const struct tile &tile) const
    {
        return tile.line + LINES <= count && tile.place + PLACES <= length;
    }
    /* This warp's tile. There are fewer than 2^32: no GPU holds a larger matrix. */
    __device__ __forceinline__ struct tile tile() const
    {
        const uint32_t tiles = (uint32_t)((count + LINES - 1) / LINES), warp = blockIdx.x * WARPS + threadIdx.x / 32;
        return {(uint64_t)(warp % tiles) * LINES, (uint64_t)(warp / tiles) * PLACES, warp / tiles};
    }
    /* Lane i has the sum of the tile's line i. Warps beyond the last tile have no sum; a line without places has one. */
    __device__ __forceinline__ void store(const struct tile &tile, int32_t sum, int32_t *partials) const
    {
        const uint64_t line = tile.line + threadIdx.x % 32;
        if (line < count && (tile.segment == 0 || tile.place < length))
            partials[tile.segment * count + line] = sum;
    }
};

static __device__ __forceinline__ int32_t sum_of_lanes(int32_t value) /* in every lane */
{
#pragma unroll
    for (int lanes = 16; lanes > 0; lanes /= 2)
        value = int_sum::combine(value, __shfl_xor_sync(0xffffffffu, value, lanes));
    return value;
}

/* The three methods of summing a tile. Lane i gets the sum of its line i. */
struct lane_a_line {
    template <bool rows, bool inside>
    static __device__ __forceinline__ int32_t sum(const struct int_lines<rows> &x, const struct tile &tile)
    {
        int32_t sum = 0;
#pragma unroll 16
        for (int place = 0; place < PLACES; place++)
            sum = int_sum::combine(sum, x.template at<inside>(tile.line + threadIdx.x % 32, tile.place + place));
        return sum;
    }
};

struct warp_a_line {
    template <bool rows, bool inside>
    static __device__ __forceinline__ int32_t sum(const struct int_lines<rows> &x, const struct tile &tile)
    {
        const int lane = threadIdx.x % 32;
        int32_t mine = 0;
#pragma unroll 2
        for (int line = 0; line < LINES; line++) {
            int32_t sum = 0;
#pragma unroll
            for (int place = 0; place < PLACES; place += 32)
                sum = int_sum::combine(sum, x.template at<inside>(tile.line + line, tile.place + place + lane));
            sum = sum_of_lanes(sum);
            mine = lane == line ? sum : mine;
        }
        return mine;
    }
};

template <int pad> struct corner_turned {
    static __device__ __forceinline__ int32_t (*warp_tile())[32 + pad]
    {
        __shared__ int32_t tiles[WARPS][32][32 + pad];
        return tiles[threadIdx.x / 32];
    }
    template <bool rows, bool inside>
    static __device__ __forceinline__ int32_t sum(const struct int_lines<rows> &x, const struct tile &tile)
    {
        int32_t(*const turned)[32 + pad] = warp_tile();
        const int lane = threadIdx.x % 32;
        int32_t sums[rows ? 1 : 32] = {0}; /* of the lane's row; or the lane's share of each column */
#pragma unroll 1
        for (int place = 0; place < PLACES; place += 32) {
#pragma unroll
            for (int row = 0; row < 32; row++) /* of memory: neighbouring lanes, neighbouring elements */
                turned[row][lane] = rows ? x.template at<inside>(tile.line + row, tile.place + place + lane)
                                       : x.template at<inside>(tile.line + lane, tile.place + place + row);
            __syncwarp();
#pragma unroll
            for (int column = 0; column < 32; column++)
                sums[rows ? 0 : column] = int_sum::combine(sums[rows ? 0 : column], turned[lane][column]);
            __syncwarp();
        }
        int32_t mine = sums[0];
        if constexpr (!rows) {
#pragma unroll
            for (int column = 0; column < 32; column++) {
                const int32_t sum = sum_of_lanes(sums[column]);
                mine = lane == column ? sum : mine;
            }
        }
        return mine;
    }
};

template <class Method, bool rows>
static __global__ void __launch_bounds__(32 * WARPS) tile_kernel(struct int_lines<rows> x, int32_t *partials)
{
    const struct tile tile = x.tile();
    x.store(tile, x.has(tile) ? Method::template sum<rows, true>(x, tile) : Method::template sum<rows, false>(x, tile), partials);
}

static uint64_t segments_of(uint64_t length) { return length > PLACES ? (length + PLACES - 1) / PLACES : 1; }

template <bool rows>
static cudaError_t start_level(void (*kernel)(struct int_lines<rows>, int32_t *), struct int_lines<rows> x, int32_t *partials,
                               cudaStream_t stream)
{
    const uint64_t warps = (x.count + LINES - 1) / LINES * segments_of(x.length);
    if (warps == 0)
        return cudaSuccess;
    return gpu_launch(kernel, (unsigned int)((warps + WARPS - 1) / WARPS), 32 * WARPS, 0, stream, x, partials);
}

template <bool rows> struct line_sums {
    struct experiment *experiment;
    void (*kernel)(struct int_lines<rows>, int32_t *);
    struct int_lines<rows> x;
    int32_t *partials[2], *sums; /* of the odd levels and the even ones; of the last */
    const int32_t *expected;     /* what the sums must be */
};

template <bool rows> static cudaError_t start(void *argument, cudaStream_t stream)
{
    const struct line_sums<rows> *const job = (const struct line_sums<rows> *)argument;
    uint64_t segments = segments_of(job->x.length);
    int32_t *to = segments > 1 ? job->partials[0] : job->sums;
    cudaError_t code = start_level(job->kernel, job->x, to, stream);
    for (int level = 1; segments > 1 && code == cudaSuccess; level++) {
        const struct int_lines<false> partials = {to, job->x.count, segments};
        segments = segments_of(segments);
        to = segments > 1 ? job->partials[level % 2] : job->sums;
        code = start_level(tile_kernel<lane_a_line, false>, partials, to, stream);
    }
    return code;
}

template <bool rows>
static allfold_status job_allocate(struct gpu *gpu, struct line_sums<rows> *job, struct error *error)
{
    static const enum gpu_buffers buffers[] = {GPU_PARTIALS, GPU_PARTIALS_2, GPU_RESULT};
    const uint64_t segments = segments_of(job->x.length), shares[] = {segments, segments_of(segments), 1};
    int32_t **const memory[] = {&job->partials[0], &job->partials[1], &job->sums};
    for (int i = 0; i < 3; i++)
        gpu_buffer(gpu, buffers[i], u64_max(shares[i] * job->x.count * sizeof(int32_t), 16), memory[i], error);
    return error->status;
}

/* All sums of the last start, and the input. */
template <bool rows> static allfold_status compare(void *argument, char why[TABLE_TEXT_BYTES], struct error *error)
{
    const struct line_sums<rows> *const job = (const struct line_sums<rows> *)argument;
    struct experiment *const experiment = job->experiment;
    const size_t bytes = (size_t)job->x.count * sizeof(int32_t);
    void *found;
    if (gpu_host_buffer(experiment->gpu, 1, bytes > 0 ? bytes : 1, &found, error) != ALLFOLD_OK
        || gpu_fetch(experiment->gpu, found, job->sums, bytes, error) != ALLFOLD_OK)
        return error->status;
    const int32_t *const sums = (const int32_t *)found;
    for (uint64_t line = 0; line < job->x.count && why[0] == '\0'; line++)
        if (sums[line] != job->expected[line])
            snprintf(why, TABLE_TEXT_BYTES, "%s %llu: found %d, expected %d", rows ? "row" : "column",
                     (unsigned long long)line, sums[line], job->expected[line]);
    return experiment_compare_input(experiment, why, error);
}

/* Sectors that a warp's load touches if its lanes are this many elements apart. */
static double sectors_of(uint64_t stride) { return stride >= 8 ? 32.0 : (double)(31 * stride / 8 + 1); }

template <bool rows> struct line_method {
    const char *name, *pattern;
    void (*kernel)(struct int_lines<rows>, int32_t *);
    bool coalesced;
};

template <bool rows>
static allfold_status measure(const struct line_method<rows> *method, struct line_sums<rows> *job, struct error *error)
{
    struct experiment *const experiment = job->experiment;
    struct table *const table = experiment->table;
    const double bytes = (double)(experiment->n + job->x.count) * sizeof(int32_t); /* without what lies between the levels */
    const struct ladder_work work = {{start<rows>, job}, false, bytes, job, NULL, compare<rows>};
    struct kernel_needs needs;
    job->kernel = method->kernel;
    if (experiment_needs((const void *)method->kernel, 32 * WARPS, 0, &needs, error) != ALLFOLD_OK
        || table_row(table, error) != ALLFOLD_OK)
        return error->status;
    table_text(table, COLUMN_METHOD, method->name);
    table_text(table, COLUMN_PATTERN, method->pattern);
    table_number(table, COLUMN_SECTORS, sectors_of(method->coalesced ? 1 : rows ? job->x.length : job->x.count));
    table_number(table, COLUMN_REGISTERS, needs.registers);
    table_number(table, COLUMN_OCCUPANCY, (double)needs.blocks * 32 * WARPS / experiment->gpu->device.threads_per_multiprocessor);
    return ladder_runner_measure(&experiment->runner, &work, error);
}

/* The sums of all rows, or of all columns, by each method. */
template <bool rows>
static allfold_status measure_all(struct experiment *experiment, uint64_t row_count, uint64_t column_count,
                                  struct error *error)
{
    typedef typename std::conditional<rows, lane_a_line, warp_a_line>::type naive_method;
    typedef typename std::conditional<rows, warp_a_line, lane_a_line>::type coalesced_method;
    static const struct line_method<rows> methods[] = {
        {"naive", rows ? "a lane a row" : "lanes down a column", tile_kernel<naive_method, rows>, false},
        {"coalesced", rows ? "lanes along a row" : "a lane a column", tile_kernel<coalesced_method, rows>, true},
        {"corner-turned", "tile[32][32]", tile_kernel<corner_turned<0>, rows>, true},
        {"corner-turned, padded", "tile[32][32 + 1]", tile_kernel<corner_turned<1>, rows>, true},
    };
    struct line_sums<rows> job = {};
    void *expected;
    job.experiment = experiment;
    job.x = {experiment->x, rows ? row_count : column_count, rows ? column_count : row_count};
    if (job_allocate(experiment->gpu, &job, error) != ALLFOLD_OK
        || gpu_host_buffer(experiment->gpu, 0, (size_t)u64_max(job.x.count, 1) * sizeof(int32_t), &expected, error)
               != ALLFOLD_OK)
        return error->status;
    const struct ladder_lines lines = {experiment->n, job.x.count, job.x.length, rows ? column_count : 1, rows ? 1 : column_count};
    ladder_oracle_line_sums(&lines, (int32_t *)expected);
    job.expected = (const int32_t *)expected;
    for (const struct line_method<rows> &method : methods)
        if (measure(&method, &job, error) != ALLFOLD_OK)
            break;
    return error->status;
}

static uint64_t root_of(uint64_t n)
{
    uint64_t root = (uint64_t)sqrt((double)n);
    while (root * root > n)
        root--;
    while ((root + 1) * (root + 1) <= n)
        root++;
    return root;
}

allfold_status ladder_coalescing(struct gpu *gpu, const struct ladder_request *request, struct table *table, struct error *error)
{
    static const enum table_column columns_of_method[] = {COLUMN_METHOD,    COLUMN_PATTERN,   COLUMN_SECTORS,
                                                          COLUMN_REGISTERS, COLUMN_OCCUPANCY, COLUMN_OVER_FIRST};
    const uint64_t columns = request->columns > 0 ? request->columns : root_of(request->count);
    const uint64_t rows = columns > 0 ? request->count / columns : 0;
    struct experiment experiment;
    if (columns > request->count)
        return error_set(error, ALLFOLD_BAD_ARGUMENT, "coalescing: a row of %llu columns needs a larger --count than %llu",
                         (unsigned long long)columns, (unsigned long long)request->count);
    snprintf(table->title, sizeof table->title, "%s sums of a matrix of %llu rows and %llu columns, row after row in memory",
             request->part == 0 ? "row" : "column", (unsigned long long)rows, (unsigned long long)columns);
    table_add_columns(table, columns_of_method, sizeof columns_of_method / sizeof *columns_of_method);
    if (experiment_begin(&experiment, gpu, rows * columns, table, error) != ALLFOLD_OK)
        return error->status;
    snprintf(table_fact(table, COLUMN_FACT_PART)->text, TABLE_TEXT_BYTES, "%s sums", request->part == 0 ? "row" : "column");
    table_fact(table, COLUMN_FACT_ROWS)->number = (double)rows;
    table_fact(table, COLUMN_FACT_COLUMNS)->number = (double)columns;
    return request->part == 0 ? measure_all<true>(&experiment, rows, columns, error)
                              : measure_all<false>(&experiment, rows, columns, error);
}
