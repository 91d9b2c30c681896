/* `allfold ladder rows` and `allfold ladder columns`: every rung over the same matrix of f32, each sum compared with its oracle, timed,
   compared again. The elements are small integers, so small that no sum of a line's elements rounds, in whatever order it is made, up
   to 2^24 of them: a sum that is not exactly right is wrong. */
#include "kernels/ladder/lines.h"
#include "kernels/ladder/runner.h"

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

/* One matrix, the rungs that sum its lines, what their sums must be, and the work of one rung. */
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
    struct line_job job;               /* of the rung that was prepared last */
};

static struct chapter rows_of(struct gpu *gpu, const struct ladder_shape *shape)
{
    return {gpu, "row", &ladder_row_rungs, row_rungs, {shape->rows, shape->columns, shape->columns, 1}, shape->rows * shape->columns,
            ladder_line_bits(shape->columns), NULL, NULL, {}};
}

static struct chapter columns_of(struct gpu *gpu, const struct ladder_shape *shape)
{
    return {gpu, "column", &ladder_column_rungs, column_rungs, {shape->columns, shape->rows, 1, shape->columns},
            shape->rows * shape->columns, ladder_line_bits(shape->rows), NULL, NULL, {}};
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

/* Compares the last start's sums with the oracle's, and the input with its original contents. */
static allfold_status compare(void *argument, char why[TABLE_TEXT_BYTES], struct error *error)
{
    struct chapter *const chapter = (struct chapter *)argument;
    const uint64_t count = chapter->lines.count;
    double *const sums = (double *)malloc((size_t)u64_max(count, 1) * sizeof *sums);
    uint64_t changes = 0;
    if (sums == NULL)
        return error_set(error, ALLFOLD_NO_MEMORY, "no memory for the sums of %llu lines", (unsigned long long)count);
    if (fetch(&chapter->job, sums, error) == ALLFOLD_OK)
        for (uint64_t line = 0; line < count && why[0] == '\0'; line++)
            if (ladder_line_differs(&chapter->expected[line], chapter->lines.length, sums[line]))
                snprintf(why, TABLE_TEXT_BYTES, "%s %llu: found %.9g, expected %.9g", chapter->direction, (unsigned long long)line,
                         sums[line], chapter->expected[line].sum);
    free(sums);
    if (error->status == ALLFOLD_OK
        && ladder_input_integers_changes(chapter->gpu, chapter->bits, chapter->n, &changes, error) == ALLFOLD_OK && changes > 0
        && why[0] == '\0')
        snprintf(why, TABLE_TEXT_BYTES, "changed %llu places of its input", (unsigned long long)changes);
    return error->status;
}

static allfold_status prepare(void *argument, int rung, struct ladder_work *work, struct error *error)
{
    struct chapter *const chapter = (struct chapter *)argument;
    const double bytes = (double)(chapter->n + chapter->lines.count) * sizeof(float); /* without what lies between the levels */
    if (chapter->rungs[rung]->start == NULL)
        return ALLFOLD_OK;
    *work = {{job_start, &chapter->job}, false, bytes, chapter, NULL, compare};
    return job_make(chapter, rung, &chapter->job, error);
}

static void describe(const void *argument, const struct ladder_runner *runner)
{
    const struct line_job *const job = &((const struct chapter *)argument)->job;
    if (job->launches > 0) { /* the engine's are not ours to know */
        table_number(runner->table, COLUMN_THREADS, (double)job->threads);
        table_number(runner->table, COLUMN_LAUNCHES, job->launches);
    }
}

static allfold_status run(struct chapter chapter, const struct ladder_request *request, struct table *table, struct error *error)
{
    static const enum table_column columns[] = {
        COLUMN_RUNG, COLUMN_SECONDS, COLUMN_P99, COLUMN_RUNS, COLUMN_THREADS, COLUMN_LAUNCHES, COLUMN_BARRIERS, COLUMN_EXCHANGES,
        COLUMN_BANDWIDTH, COLUMN_OF_CEILING, COLUMN_OF_DATASHEET, COLUMN_OVER_BEFORE, COLUMN_OVER_FIRST, COLUMN_CORRECT, COLUMN_IDEA,
    };
    const struct ladder_climb climb = {chapter.names, request->rung, &chapter, prepare, describe};
    struct ladder_runner runner;
    table_add_columns(table, columns, sizeof columns / sizeof *columns);
    snprintf(table->title, sizeof table->title, "%s sums of a matrix of %llu rows and %llu columns, f32", chapter.direction,
             (unsigned long long)request->shape.rows, (unsigned long long)request->shape.columns);
    if (chapter_begin(&chapter, error) != ALLFOLD_OK
        || ladder_runner_begin(&runner, chapter.gpu, chapter.x, chapter.n * sizeof(float), table, error) != ALLFOLD_OK)
        return error->status;
    table_fact(table, COLUMN_FACT_ROWS)->number = (double)request->shape.rows;
    table_fact(table, COLUMN_FACT_COLUMNS)->number = (double)request->shape.columns;
    return ladder_climb_measure(&climb, &runner, error);
}

static allfold_status check(struct chapter chapter, const struct ladder_request *request, struct table *table, struct error *error)
{
    const struct ladder_climb climb = {chapter.names, request->rung, &chapter, prepare, describe};
    char where[TABLE_TEXT_BYTES];
    snprintf(where, sizeof where, "%llu x %llu", (unsigned long long)request->shape.rows, (unsigned long long)request->shape.columns);
    return chapter_begin(&chapter, error) == ALLFOLD_OK ? ladder_climb_check(&climb, chapter.gpu, where, table, error) : error->status;
}

allfold_status ladder_rows_run(struct gpu *gpu, const struct ladder_request *request, struct table *table, struct error *error)
{
    return run(rows_of(gpu, &request->shape), request, table, error);
}

allfold_status ladder_columns_run(struct gpu *gpu, const struct ladder_request *request, struct table *table, struct error *error)
{
    return run(columns_of(gpu, &request->shape), request, table, error);
}

allfold_status ladder_rows_check(struct gpu *gpu, const struct ladder_request *request, struct table *table, struct error *error)
{
    return check(rows_of(gpu, &request->shape), request, table, error);
}

allfold_status ladder_columns_check(struct gpu *gpu, const struct ladder_request *request, struct table *table, struct error *error)
{
    return check(columns_of(gpu, &request->shape), request, table, error);
}
