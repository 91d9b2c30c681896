/* `allfold ladder rows` and `allfold ladder columns`: every rung over the same matrix of f32, each sum compared with its oracle, timed,
   compared again. The elements are small integers, so small that no sum of a line's elements rounds, in whatever order it is made, up
   to 2^24 of them: a sum that is not exactly right is wrong. */
#include "kernels/ladder/lines.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#define ROW(ID, name, idea) extern const struct line_rung line_##ID;
LADDER_ROW_RUNGS(ROW)
LADDER_COLUMN_RUNGS(ROW)
#undef ROW
#define ROW(ID, name, idea) &line_##ID,
static const struct line_rung *const row_rungs[] = {LADDER_ROW_RUNGS(ROW)};
static const struct line_rung *const column_rungs[] = {LADDER_COLUMN_RUNGS(ROW)};
#undef ROW

#define COLUMNS(X)                                                \
    X(RUNG, "rung", "rung", LADDER_TEXT)                          \
    X(MEDIAN, "seconds", "time us", LADDER_SECONDS)               \
    X(P99, "seconds_p99", "p99 us", LADDER_SECONDS)               \
    X(RUNS, "runs", NULL, LADDER_INTEGER)                         \
    X(THREADS, "threads", "threads", LADDER_INTEGER)              \
    X(LAUNCHES, "launches", "launches", LADDER_INTEGER)           \
    X(BANDWIDTH, "bytes_per_second", "GB/s", LADDER_BANDWIDTH)    \
    X(OF_CEILING, "of_read_ceiling", "% ceiling", LADDER_PERCENT) \
    X(OF_DATASHEET, "of_datasheet", "% sheet", LADDER_PERCENT)    \
    X(BEFORE, "speedup_before", "x before", LADDER_TIMES)         \
    X(FIRST, "speedup_first", "x first", LADDER_TIMES)            \
    X(CORRECT, "correct", "result", LADDER_VERDICT)               \
    X(IDEA, "idea", "idea", LADDER_TEXT)
enum column {
#define ROW(ID, key, heading, format) ID,
    COLUMNS(ROW)
#undef ROW
};

/* One matrix, the rungs that sum its lines, and what their sums must be. */
struct chapter {
    struct gpu *gpu;
    const char *direction; /* "row", "column" */
    const struct ladder_rung_list *names;
    const struct line_rung *const *rungs;
    struct lines lines;
    uint64_t n;
    int bits;                          /* of the elements */
    const float *x;
    const struct ladder_line *expected; /* host memory */
};

static struct chapter rows_of(struct gpu *gpu, const struct ladder_shape *shape)
{
    return {gpu, "row", &ladder_row_rungs, row_rungs, {shape->rows, shape->columns, shape->columns, 1}, shape->rows * shape->columns,
            ladder_line_bits(shape->columns), NULL, NULL};
}

static struct chapter columns_of(struct gpu *gpu, const struct ladder_shape *shape)
{
    return {gpu, "column", &ladder_column_rungs, column_rungs, {shape->columns, shape->rows, 1, shape->columns},
            shape->rows * shape->columns, ladder_line_bits(shape->rows), NULL, NULL};
}

static allfold_status chapter_begin(struct chapter *chapter, struct error *error)
{
    const struct lines *const lines = &chapter->lines;
    const struct ladder_lines asked = {chapter->n, lines->count, lines->length, lines->line_stride, lines->place_stride};
    void *expected;
    if (gpu_host_buffer(chapter->gpu, 0, (size_t)u64_max(lines->count, 1) * sizeof(struct ladder_line), &expected, error) != ALLFOLD_OK
        || ladder_input_integers(chapter->gpu, chapter->bits, chapter->n, &chapter->x, error) != ALLFOLD_OK)
        return error->status;
    ladder_oracle_lines(&asked, chapter->bits, (struct ladder_line *)expected);
    chapter->expected = (const struct ladder_line *)expected;
    return gpu_wait(chapter->gpu, "making the input", error);
}

/* Memory for a rung. */
static allfold_status job_make(const struct chapter *chapter, int rung, struct line_job *job, struct error *error)
{
    struct gpu *const gpu = chapter->gpu;
    const struct lines *const lines = &chapter->lines;
    *job = {};
    job->gpu = gpu;
    job->rung = chapter->rungs[rung];
    job->x = chapter->x;
    job->lines = *lines;
    if (gpu_buffer(gpu, GPU_RESULT, (size_t)u64_max(lines->count, 1) * sizeof(float), &job->sums, error) != ALLFOLD_OK)
        return error->status;
    uint64_t segments = lines->length;
    for (int level = 0; level < 2 && job->rung->chunk > 0; level++) {
        segments = line_segments(segments, job->rung->chunk);
        gpu_buffer(gpu, level == 0 ? GPU_PARTIALS : GPU_PARTIALS_2, (size_t)u64_max(segments * lines->count, 4) * sizeof(float),
                   &job->partials[level], error);
    }
    return error->status == ALLFOLD_OK && job->rung->plan != NULL ? job->rung->plan(job, error) : error->status;
}

static cudaError_t job_start(void *argument, cudaStream_t stream)
{
    struct line_job *const job = (struct line_job *)argument;
    job->launches = 0;
    return job->rung->start(job, stream);
}

/* The sums of the last start, in host memory. */
static allfold_status fetch(struct line_job *job, double *sums, struct error *error)
{
    const size_t bytes = (size_t)job->lines.count * sizeof(float);
    void *found;
    if (job->rung->answer != NULL)
        return job->rung->answer(job, sums, error);
    if (gpu_host_buffer(job->gpu, 1, u64_max(bytes, 1), &found, error) != ALLFOLD_OK
        || gpu_fetch(job->gpu, found, job->sums, bytes, error) != ALLFOLD_OK)
        return error->status;
    for (uint64_t line = 0; line < job->lines.count; line++)
        sums[line] = ((const float *)found)[line];
    return ALLFOLD_OK;
}

/* Compares the last start's sums with the oracle's, and the input with its original contents. why is left unchanged if it is not empty. */
static allfold_status compare(const struct chapter *chapter, struct line_job *job, char why[LADDER_TEXT_BYTES], struct error *error)
{
    const uint64_t count = chapter->lines.count;
    double *const sums = (double *)malloc((size_t)u64_max(count, 1) * sizeof *sums);
    uint64_t changes = 0;
    if (sums == NULL)
        return error_set(error, ALLFOLD_NO_MEMORY, "no memory for the sums of %llu lines", (unsigned long long)count);
    if (fetch(job, sums, error) == ALLFOLD_OK)
        for (uint64_t line = 0; line < count && why[0] == '\0'; line++)
            if (ladder_line_differs(&chapter->expected[line], chapter->lines.length, sums[line]))
                snprintf(why, LADDER_TEXT_BYTES, "%s %llu: found %.9g, expected %.9g", chapter->direction, (unsigned long long)line,
                         sums[line], chapter->expected[line].sum);
    free(sums);
    if (error->status == ALLFOLD_OK
        && ladder_input_integers_changes(chapter->gpu, chapter->bits, chapter->n, &changes, error) == ALLFOLD_OK && changes > 0
        && why[0] == '\0')
        snprintf(why, LADDER_TEXT_BYTES, "changed %llu places of its input", (unsigned long long)changes);
    return error->status;
}

/* One run from poisoned memory. */
static allfold_status check(const struct chapter *chapter, struct line_job *job, char why[LADDER_TEXT_BYTES], struct error *error)
{
    struct gpu *const gpu = chapter->gpu;
    if (ladder_poison(gpu, error) != ALLFOLD_OK
        || gpu_check(job_start(job, gpu->stream), "starting a rung", error) != ALLFOLD_OK)
        return error->status;
    return compare(chapter, job, why, error);
}

/* Medians that later rungs are compared with, and the ceiling. */
struct yardsticks {
    double before, first, ceiling;
};

static void fill_row(const struct chapter *chapter, const struct line_job *job, const struct timing *times, struct yardsticks *yardsticks,
                     struct ladder_cell *row)
{
    const double bytes = (double)(chapter->n + chapter->lines.count) * sizeof(float); /* without what lies between the levels */
    yardsticks->first = yardsticks->first > 0.0 ? yardsticks->first : times->median;
    row[MEDIAN].number = times->median;
    row[P99].number = times->p99;
    row[RUNS].number = times->runs;
    if (job->launches > 0) { /* the engine's are not ours to know */
        row[THREADS].number = (double)job->threads;
        row[LAUNCHES].number = job->launches;
    }
    row[BANDWIDTH].number = bytes / times->median;
    row[OF_CEILING].number = yardsticks->ceiling > 0.0 ? bytes / times->median / yardsticks->ceiling : NAN;
    row[OF_DATASHEET].number = bytes / times->median / chapter->gpu->device.datasheet;
    row[BEFORE].number = yardsticks->before / times->median;
    row[FIRST].number = yardsticks->first / times->median;
    yardsticks->before = times->median;
}

static allfold_status measure(const struct chapter *chapter, int rung, struct yardsticks *yardsticks, struct ladder_table *table,
                              struct error *error)
{
    char why[LADDER_TEXT_BYTES] = "";
    struct line_job job;
    struct timing times;
    const struct gpu_work work = {job_start, &job};
    if (job_make(chapter, rung, &job, error) != ALLFOLD_OK || check(chapter, &job, why, error) != ALLFOLD_OK
        || gpu_time(chapter->gpu, &work, &times, error) != ALLFOLD_OK || compare(chapter, &job, why, error) != ALLFOLD_OK)
        return error->status;
    struct ladder_cell *const row = ladder_table_row(table, error);
    if (row == NULL)
        return error->status;
    snprintf(row[RUNG].text, sizeof row[RUNG].text, "%s", chapter->names->rungs[rung].name);
    snprintf(row[IDEA].text, sizeof row[IDEA].text, "%s", chapter->names->rungs[rung].idea);
    fill_row(chapter, &job, &times, yardsticks, row);
    ladder_table_verdict(table, &row[CORRECT], why);
    return ALLFOLD_OK;
}

static allfold_status run(struct chapter *chapter, const struct ladder_request *request, struct ladder_table *table, struct error *error)
{
    struct yardsticks yardsticks = {NAN, NAN, NAN};
#define ROW(ID, key, heading, format) ladder_table_column(table, key, heading, format);
    COLUMNS(ROW)
#undef ROW
    table->compared = MEDIAN;
    snprintf(table->title, sizeof table->title, "%s sums of a matrix of %llu rows and %llu columns, f32", chapter->direction,
             (unsigned long long)request->shape.rows, (unsigned long long)request->shape.columns);
    if (chapter_begin(chapter, error) != ALLFOLD_OK
        || gpu_read_ceiling(chapter->gpu, chapter->x, chapter->n * sizeof(float), &yardsticks.ceiling, error) != ALLFOLD_OK)
        return error->status;
    ladder_facts(chapter->gpu, yardsticks.ceiling, table);
    ladder_table_fact(table, "matrix_rows", NULL, LADDER_INTEGER)->number = (double)request->shape.rows;
    ladder_table_fact(table, "matrix_columns", NULL, LADDER_INTEGER)->number = (double)request->shape.columns;
    for (int rung = 0; rung < chapter->names->count; rung++)
        if ((request->rung < 0 || request->rung == rung) && measure(chapter, rung, &yardsticks, table, error) != ALLFOLD_OK)
            break;
    return error->status;
}

static allfold_status check_all(struct chapter *chapter, const struct ladder_request *request, struct ladder_table *table,
                                struct error *error)
{
    if (chapter_begin(chapter, error) != ALLFOLD_OK)
        return error->status;
    for (int rung = 0; rung < chapter->names->count; rung++) {
        char why[LADDER_TEXT_BYTES] = "", where[LADDER_TEXT_BYTES];
        struct line_job job;
        if (request->rung >= 0 && request->rung != rung)
            continue;
        if (job_make(chapter, rung, &job, error) != ALLFOLD_OK || check(chapter, &job, why, error) != ALLFOLD_OK)
            break;
        snprintf(where, sizeof where, "%llu x %llu: %.80s", (unsigned long long)request->shape.rows,
                 (unsigned long long)request->shape.columns, why);
        ladder_check_note(table, &chapter->names->rungs[rung], why[0] != '\0' ? where : NULL);
    }
    return error->status;
}

allfold_status ladder_rows_run(struct gpu *gpu, const struct ladder_request *request, struct ladder_table *table, struct error *error)
{
    struct chapter chapter = rows_of(gpu, &request->shape);
    return run(&chapter, request, table, error);
}

allfold_status ladder_columns_run(struct gpu *gpu, const struct ladder_request *request, struct ladder_table *table, struct error *error)
{
    struct chapter chapter = columns_of(gpu, &request->shape);
    return run(&chapter, request, table, error);
}

allfold_status ladder_rows_check(struct gpu *gpu, const struct ladder_request *request, struct ladder_table *table, struct error *error)
{
    struct chapter chapter = rows_of(gpu, &request->shape);
    return check_all(&chapter, request, table, error);
}

allfold_status ladder_columns_check(struct gpu *gpu, const struct ladder_request *request, struct ladder_table *table, struct error *error)
{
    struct chapter chapter = columns_of(gpu, &request->shape);
    return check_all(&chapter, request, table, error);
}
