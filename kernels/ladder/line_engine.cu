/* The engine: allfold's own kernels for folds along an axis (kernels/axis.cuh), called as the library calls them.

   Idea: rows and columns are one task, elements of three dimensions that are folded along the middle one, and the shape decides
   how many threads take a line, whether they stand side by side along it or across it, how many lines a block has, and into how
   many segments a line is split.

   It does more work than the other rungs: f32 is added in f64, and what it leaves for each line is a partial, which is wider than
   an f32 and which other ranks' partials could be combined with. So short rows cost it more writing. */
#include "kernels/ladder/lines.h"

extern "C" {
#include "fold/rows.h"
}
#include "kernels/kernels.h"

static enum monoid monoid() { return fold_monoid(ALLFOLD_SUM, ALLFOLD_LEVEL_FAST, ALLFOLD_F32); }

static allfold_status plan(struct line_job *job, struct error *error)
{
    const size_t bytes = (size_t)u64_max(job->lines.count, 1) * partial_stride(monoid(), ALLFOLD_F32);
    job->engine_bytes = bytes + u64_max(bytes, (size_t)8 << 20);
    return gpu_buffer(job->gpu, GPU_WORK, job->engine_bytes, &job->engine, error);
}

static cudaError_t start(struct line_job *job, cudaStream_t stream)
{
    const struct lines *const lines = &job->lines;
    struct axis_work work = {};
    work.monoid = monoid();
    work.type = ALLFOLD_F32;
    work.x = job->x;
    work.box = lines->place_stride == 1 ? box{lines->count, lines->length, 1, lines->line_stride, 1}
                                        : box{1, lines->length, lines->count, lines->length * lines->count, lines->place_stride};
    work.partials = job->engine;
    work.bytes = job->engine_bytes;
    return (cudaError_t)axis_launch(&work, job->gpu->device.multiprocessors, stream);
}

static allfold_status answer(struct line_job *job, double *sums, struct error *error)
{
    const size_t bytes = (size_t)job->lines.count * partial_stride(monoid(), ALLFOLD_F32);
    struct fold_call call = {};
    const struct rows_output output = {sums, NULL};
    struct rows rows = {};
    void *partials;
    if (gpu_host_buffer(job->gpu, 1, bytes, &partials, error) != ALLFOLD_OK
        || gpu_fetch(job->gpu, partials, job->engine, bytes, error) != ALLFOLD_OK)
        return error->status;
    call.fold = ALLFOLD_SUM;
    call.level = ALLFOLD_LEVEL_FAST;
    rows.call = &call;
    rows.type = ALLFOLD_F32;
    rows.count = job->lines.length;
    rows.partials = (const unsigned char *)partials;
    rows.outputs = &output;
    rows.run = rows.step = rows.inner = u64_max(job->lines.count, 1);
    return rows_finish(&rows, range{0, job->lines.count}, error);
}

extern const struct line_rung line_row_engine, line_column_engine;
const struct line_rung line_row_engine = {start, 0, plan, answer};
const struct line_rung line_column_engine = {start, 0, plan, answer};
