/* `allfold ladder softmax`: every rung of the softmax ladder over the same logits, each output compared with a float64
   oracle, timed, compared again. */
#include "kernels/ladder/runner.h"
#include "kernels/ladder/softmax.h"

#include "kernels/kernels.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define ROW(NAME, name, idea) extern const struct softmax_rung softmax_##NAME;
LADDER_SOFTMAX_RUNGS(ROW)
#undef ROW
static const struct softmax_rung *const rungs[] = {
#define ROW(NAME, name, idea) &softmax_##NAME,
    LADDER_SOFTMAX_RUNGS(ROW)
#undef ROW
};

static allfold_status job_make(struct gpu *gpu, uint64_t n, struct softmax_job *job, struct error *error)
{
    const struct gpu_device *const device = &gpu->device;
    const size_t scratch = fold_scratch_bytes(device->multiprocessors);
    void *mailbox;
    *job = {};
    job->gpu = gpu;
    job->n = n;
    job->blocks = (unsigned int)(device->multiprocessors * (device->threads_per_multiprocessor / SOFTMAX_BLOCK));
    if (ladder_input_logits(gpu, n, &job->x, error) != ALLFOLD_OK
        || gpu_buffer(gpu, GPU_WORK, n * sizeof(float), &job->y, error) != ALLFOLD_OK
        || gpu_buffer(gpu, GPU_PARTIALS, 2 * job->blocks * sizeof(float), &job->partials, error) != ALLFOLD_OK
        || gpu_buffer(gpu, GPU_RESULT, 2 * sizeof(float), &job->result, error) != ALLFOLD_OK
        || gpu_buffer(gpu, GPU_SCRATCH, scratch, &job->space.scratch, error) != ALLFOLD_OK
        || gpu_fill(gpu, job->space.scratch, 0, scratch, error) != ALLFOLD_OK
        || gpu_pinned(gpu, sizeof *job->space.mailbox, &mailbox, error) != ALLFOLD_OK)
        return error->status;
    job->space.mailbox = (struct fold_mailbox *)memset(mailbox, 0, sizeof *job->space.mailbox);
    job->space.multiprocessors = device->multiprocessors;
    return gpu_wait(gpu, "making the input", error);
}

/* The logits, and the rung that was prepared last. */
struct softmax_subject {
    struct softmax_job job;
    struct ladder_logits logits;
    const struct softmax_rung *rung;
    double worst; /* the largest error of all its comparisons, in units in the last place */
};

/* What the last run wrote, against the oracle. */
static allfold_status compare(void *argument, char why[TABLE_TEXT_BYTES], struct error *error)
{
    struct softmax_subject *const subject = (struct softmax_subject *)argument;
    const struct softmax_rung *const rung = subject->rung;
    struct softmax_job *const job = &subject->job;
    const uint64_t threads = (uint64_t)SOFTMAX_BLOCK * (rung->most > 0 ? rung->most : job->blocks);
    const struct ladder_allowed allowed = {rung->allowed + rung->allowed_each * (double)(job->n / threads + 1), rung->allowed_below};
    void *y;
    uint64_t changes = 0;
    double worst = 0.0;
    char found[TABLE_TEXT_BYTES] = "";
    if (gpu_host_buffer(job->gpu, 0, job->n * sizeof(float), &y, error) != ALLFOLD_OK
        || gpu_fetch(job->gpu, y, job->y, job->n * sizeof(float), error) != ALLFOLD_OK
        || ladder_input_logits_changes(job->gpu, job->n, &changes, error) != ALLFOLD_OK)
        return error->status;
    ladder_oracle_softmax(&subject->logits, (const float *)y, &allowed, &worst, found);
    if (found[0] == '\0' && changes > 0)
        snprintf(found, sizeof found, "changed %llu places of its input", (unsigned long long)changes);
    if (why[0] == '\0')
        memcpy(why, found, sizeof found);
    subject->worst = subject->worst < worst || isnan(worst) ? worst : subject->worst;
    return ALLFOLD_OK;
}

static allfold_status prepare(void *argument, int rung, struct ladder_work *work, struct error *error)
{
    struct softmax_subject *const subject = (struct softmax_subject *)argument;
    subject->rung = rungs[rung];
    subject->worst = 0.0;
    const double bytes = (double)subject->rung->passes * (double)subject->job.n * sizeof(float);
    *work = {{subject->rung->start, &subject->job}, false, bytes, subject, NULL, compare};
    return error->status;
}

static void describe(const void *argument, const struct ladder_runner *runner)
{
    const struct softmax_subject *const subject = (const struct softmax_subject *)argument;
    table_number(runner->table, COLUMN_TRIPS, subject->rung->passes);
    table_number(runner->table, COLUMN_ERROR, subject->worst);
}

allfold_status ladder_softmax_run(struct gpu *gpu, const struct ladder_request *request, struct table *table, struct error *error)
{
    static const enum table_column columns[] = {
        COLUMN_RUNG, COLUMN_SECONDS, COLUMN_P99, COLUMN_RUNS, COLUMN_TRIPS, COLUMN_BARRIERS, COLUMN_EXCHANGES,
        COLUMN_BANDWIDTH, COLUMN_OF_CEILING, COLUMN_OF_DATASHEET, COLUMN_OVER_BEFORE, COLUMN_OVER_FIRST,
        COLUMN_ERROR, COLUMN_CORRECT, COLUMN_IDEA,
    };
    struct softmax_subject subject = {};
    const struct ladder_climb climb = {&ladder_softmax_rungs, -1, &subject, prepare, describe};
    struct ladder_runner runner;
    table_add_columns(table, columns, sizeof columns / sizeof *columns);
    snprintf(table->title, sizeof table->title, "softmax of %llu f32, blocks of %d threads",
             (unsigned long long)request->count, SOFTMAX_BLOCK);
    if (request->count == 0)
        return error_set(error, ALLFOLD_BAD_ARGUMENT, "ladder softmax: expected a --count above 0, found 0");
    ladder_oracle_logits(request->count, &subject.logits);
    if (job_make(gpu, request->count, &subject.job, error) == ALLFOLD_OK
        && ladder_runner_begin(&runner, gpu, subject.job.x, subject.job.n * sizeof(float), table, error) == ALLFOLD_OK)
        ladder_climb_measure(&climb, &runner, error);
    return error->status;
}
