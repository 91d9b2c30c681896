/* Times work on the GPU, between two events, and work of the calling thread. */
#include "measure/gpu.cuh"

enum { HOST_RUNS_MOST = 20 };
static const struct timing_budget budget = {0.2, 20, GPU_RUNS_MOST}, quick_budget = {0.01, 5, 20},
                                  host_budget = {0.5, 3, HOST_RUNS_MOST};

/* One timed run: events 2 run and 2 run + 1. */
static cudaError_t run_once(struct gpu *gpu, const struct gpu_work *work, int run)
{
    cudaError_t code = gpu_clear(gpu);
    if (code == cudaSuccess)
        code = cudaEventRecord(gpu->events[2 * run], gpu->stream);
    if (code == cudaSuccess)
        code = work->start(work->argument, gpu->stream);
    if (code == cudaSuccess)
        code = cudaEventRecord(gpu->events[2 * run + 1], gpu->stream);
    return code;
}

/* Runs this many times, all queued before the first is waited for. */
static allfold_status run_all(struct gpu *gpu, const struct gpu_work *work, int runs, double *seconds, struct error *error)
{
    for (int run = 0; run < runs; run++)
        if (gpu_check(run_once(gpu, work, run), "starting what is measured", error) != ALLFOLD_OK)
            return error->status;
    if (gpu_wait(gpu, "running what is measured", error) != ALLFOLD_OK)
        return error->status;
    for (int run = 0; run < runs; run++) {
        float milliseconds = 0.0f;
        if (gpu_check(cudaEventElapsedTime(&milliseconds, gpu->events[2 * run], gpu->events[2 * run + 1]),
                      "reading the time", error) != ALLFOLD_OK)
            return error->status;
        seconds[run] = 1e-3 * (double)milliseconds;
    }
    return ALLFOLD_OK;
}

/* Warm-up, then as many runs as there is time for. */
static allfold_status time_within(struct gpu *gpu, const struct gpu_work *work, const struct timing_budget *budget,
                                  struct timing *timing, struct error *error)
{
    double seconds[GPU_RUNS_MOST];
    if (run_all(gpu, work, 3, seconds, error) != ALLFOLD_OK)
        return error->status;
    const int runs = timing_runs(budget, seconds[2]);
    if (run_all(gpu, work, runs, seconds, error) == ALLFOLD_OK)
        *timing = timing_of(seconds, runs);
    return error->status;
}

allfold_status gpu_time(struct gpu *gpu, const struct gpu_work *work, struct timing *timing, struct error *error)
{
    return time_within(gpu, work, &budget, timing, error);
}

allfold_status gpu_time_quickly(struct gpu *gpu, const struct gpu_work *work, struct timing *timing, struct error *error)
{
    return time_within(gpu, work, &quick_budget, timing, error);
}

allfold_status host_time(const struct gpu_work *work, struct timing *timing, struct error *error)
{
    double seconds[HOST_RUNS_MOST];
    int runs = 1;
    for (int run = -1; run < runs; run++) { /* run -1 warms up */
        const double start = clock_seconds();
        if (gpu_check(work->start(work->argument, NULL), "running what is measured", error) != ALLFOLD_OK)
            return error->status;
        const double taken = clock_seconds() - start;
        if (run < 0)
            runs = timing_runs(&host_budget, taken);
        else
            seconds[run] = taken;
    }
    *timing = timing_of(seconds, runs);
    return ALLFOLD_OK;
}
