/* Which backend does the work, and with how many of the host's threads. */
#include "device/device.h"

#include <sched.h>
#include <stdlib.h>
#include <unistd.h>

#ifdef _OPENMP
#include <omp.h>
#endif

int host_threads(int local_size)
{
#ifdef _OPENMP
    if (getenv("OMP_NUM_THREADS") != NULL)
        return omp_get_max_threads();
    const long online = sysconf(_SC_NPROCESSORS_ONLN);
    long mine = online;
    cpu_set_t set;
    CPU_ZERO(&set);
    if (sched_getaffinity(0, sizeof set, &set) == 0)
        mine = CPU_COUNT(&set);
    if (mine >= online)
        mine = online / local_size;
    return mine < 1 ? 1 : (int)mine;
#else
    (void)local_size;
    return 1;
#endif
}

allfold_status backend_choose(allfold_backend choice, const struct backend **backend, struct error *error)
{
    struct error why = {0};
    switch (choice) {
    case ALLFOLD_BACKEND_AUTO:
        *backend = backend_cuda.visible(&why) > 0 ? &backend_cuda : &backend_cpu;
        return ALLFOLD_OK;
    case ALLFOLD_BACKEND_CPU:
        *backend = &backend_cpu;
        return ALLFOLD_OK;
    case ALLFOLD_BACKEND_CUDA:
        if (backend_cuda.visible(&why) == 0)
            return error_set(error, ALLFOLD_UNSUPPORTED, "no CUDA device to use: %s",
                             why.status != ALLFOLD_OK ? why.text : "none is visible");
        *backend = &backend_cuda;
        return ALLFOLD_OK;
    }
    return error_set(error, ALLFOLD_BAD_ARGUMENT, "backend %d: expected auto, cuda or cpu", (int)choice);
}
