/* `allfold ladder softmax`: every rung of the softmax ladder over the same logits, each output compared with a float64
   oracle, timed, compared again. */
#include "kernels/ladder/input.h"
#include "kernels/ladder/softmax.h"

#include "kernels/kernels.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define ROW(NAME, name, idea) extern const struct softmax_rung softmax_##NAME;
LADDER_SOFTMAX_RUNGS(ROW)
#undef ROW
static const struct {
    const struct softmax_rung *rung;
    const char *name, *idea;
} rungs[] = {
#define ROW(NAME, name, idea) {&softmax_##NAME, name, idea},
    LADDER_SOFTMAX_RUNGS(ROW)
#undef ROW
};

#define COLUMNS(X)                                                \
    X(RUNG, "rung", "rung", LADDER_TEXT)                          \
    X(MEDIAN, "seconds", "time us", LADDER_SECONDS)               \
    X(P99, "seconds_p99", "p99 us", LADDER_SECONDS)               \
    X(RUNS, "runs", NULL, LADDER_INTEGER)                         \
    X(TRIPS, "trips", "trips", LADDER_INTEGER)                    \
    X(BANDWIDTH, "bytes_per_second", "GB/s", LADDER_BANDWIDTH)    \
    X(OF_CEILING, "of_read_ceiling", "% ceiling", LADDER_PERCENT) \
    X(OF_DATASHEET, "of_datasheet", "% sheet", LADDER_PERCENT)    \
    X(BEFORE, "speedup_before", "x before", LADDER_TIMES)         \
    X(FIRST, "speedup_first", "x first", LADDER_TIMES)            \
    X(ERROR, "error_ulp", "error ulp", LADDER_NUMBER)             \
    X(CORRECT, "correct", "result", LADDER_VERDICT)               \
    X(IDEA, "idea", "idea", LADDER_TEXT)
enum column {
#define ROW(ID, key, heading, format) ID,
    COLUMNS(ROW)
#undef ROW
};

static allfold_status job_make(struct gpu *gpu, uint64_t n, struct softmax_job *job, struct error *error)
{
    const struct gpu_device *const device = &gpu->device;
    const size_t scratch = fold_scratch_bytes(device->multiprocessors);
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
        || gpu_check(cudaMallocHost((void **)&job->space.mailbox, sizeof *job->space.mailbox), "pinned memory for the engine's result",
                       error)
               != ALLFOLD_OK)
        return error->status;
    memset(job->space.mailbox, 0, sizeof *job->space.mailbox);
    job->space.multiprocessors = device->multiprocessors;
    return gpu_wait(gpu, "making the input", error);
}

/* What was found of one rung. */
struct finding {
    struct timing timing;
    double worst; /* the largest error of both comparisons, in units in the last place */
    char why[LADDER_TEXT_BYTES];
};

/* What the last run wrote, against the oracle. */
static allfold_status compare(struct softmax_job *job, const struct ladder_logits *logits, const struct softmax_rung *rung,
                              struct finding *finding, struct error *error)
{
    const uint64_t threads = (uint64_t)SOFTMAX_BLOCK * (rung->most > 0 ? rung->most : job->blocks);
    const struct ladder_allowed allowed = {rung->allowed + rung->allowed_each * (double)(job->n / threads + 1), rung->allowed_below};
    void *y;
    uint64_t changes = 0;
    double worst = 0.0;
    char why[LADDER_TEXT_BYTES] = "";
    if (gpu_host_buffer(job->gpu, 0, job->n * sizeof(float), &y, error) != ALLFOLD_OK
        || gpu_fetch(job->gpu, y, job->y, job->n * sizeof(float), error) != ALLFOLD_OK
        || ladder_input_logits_changes(job->gpu, job->n, &changes, error) != ALLFOLD_OK)
        return error->status;
    ladder_oracle_softmax(logits, (const float *)y, &allowed, &worst, why);
    if (why[0] == '\0' && changes > 0)
        snprintf(why, sizeof why, "changed %llu places of its input", (unsigned long long)changes);
    if (finding->why[0] == '\0')
        memcpy(finding->why, why, sizeof why);
    finding->worst = finding->worst < worst || isnan(worst) ? worst : finding->worst;
    return ALLFOLD_OK;
}

static allfold_status measure(struct softmax_job *job, const struct ladder_logits *logits, const struct softmax_rung *rung,
                              struct finding *finding, struct error *error)
{
    struct gpu *const gpu = job->gpu;
    const struct gpu_work work = {rung->start, job};
    *finding = {};
    if (gpu_fill(gpu, job->y, LADDER_POISON, job->n * sizeof(float), error) == ALLFOLD_OK
        && gpu_check(rung->start(job, gpu->stream), "starting a rung", error) == ALLFOLD_OK
        && compare(job, logits, rung, finding, error) == ALLFOLD_OK
        && gpu_time(gpu, &work, &finding->timing, error) == ALLFOLD_OK)
        compare(job, logits, rung, finding, error);
    return error->status;
}

static allfold_status measure_all(struct softmax_job *job, double ceiling, struct ladder_table *table,
                                  struct error *error)
{
    struct ladder_logits logits;
    double before = NAN, first = NAN;
    ladder_oracle_logits(job->n, &logits);
    for (const auto &named : rungs) {
        const double bytes = (double)named.rung->passes * (double)job->n * sizeof(float);
        struct finding finding;
        const struct timing &times = finding.timing;
        if (measure(job, &logits, named.rung, &finding, error) != ALLFOLD_OK)
            break;
        struct ladder_cell *const row = ladder_table_row(table, error);
        if (row == NULL)
            break;
        first = first > 0.0 ? first : times.median;
        snprintf(row[RUNG].text, sizeof row[RUNG].text, "%s", named.name);
        snprintf(row[IDEA].text, sizeof row[IDEA].text, "%s", named.idea);
        row[MEDIAN].number = times.median;
        row[P99].number = times.p99;
        row[RUNS].number = times.runs;
        row[TRIPS].number = named.rung->passes;
        row[BANDWIDTH].number = bytes / times.median;
        row[OF_CEILING].number = ceiling > 0.0 ? bytes / times.median / ceiling : NAN;
        row[OF_DATASHEET].number = bytes / times.median / job->gpu->device.datasheet;
        row[BEFORE].number = before / times.median;
        row[FIRST].number = first / times.median;
        row[ERROR].number = finding.worst;
        ladder_table_verdict(table, &row[CORRECT], finding.why);
        before = times.median;
    }
    return error->status;
}

allfold_status ladder_softmax_run(struct gpu *gpu, const struct ladder_request *request,
                                  struct ladder_table *table, struct error *error)
{
    struct softmax_job job;
    double ceiling;
#define ROW(ID, key, heading, format) ladder_table_column(table, key, heading, format);
    COLUMNS(ROW)
#undef ROW
    table->compared = MEDIAN;
    snprintf(table->title, sizeof table->title, "softmax of %llu f32, blocks of %d threads",
             (unsigned long long)request->count, SOFTMAX_BLOCK);
    if (request->count == 0)
        return error_set(error, ALLFOLD_BAD_ARGUMENT, "ladder softmax: expected a --count above 0, found 0");
    if (job_make(gpu, request->count, &job, error) == ALLFOLD_OK
        && gpu_read_ceiling(gpu, job.x, job.n * sizeof(float), &ceiling, error) == ALLFOLD_OK) {
        ladder_facts(gpu, ceiling, table);
        measure_all(&job, ceiling, table, error);
    }
    cudaFreeHost(job.space.mailbox);
    return error->status;
}
