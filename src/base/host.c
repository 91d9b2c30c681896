/* Asks the system about the host: see host.h. */
#include "base/host.h"

#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#ifdef _OPENMP
#include <omp.h>
#endif

enum isa host_isa(void)
{
#ifdef ALLFOLD_HAVE_X86_ISA
    __builtin_cpu_init();
    const bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
    if (avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw")
        && __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl"))
        return ISA_AVX512;
    if (avx2)
        return ISA_AVX2;
#endif
    return ISA_BASE;
}

uint64_t host_memory(void)
{
    const long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
    return pages > 0 && page > 0 ? (uint64_t)pages * (uint64_t)page : UINT64_MAX >> 1;
}

void *host_allocate(size_t bytes)
{
    enum { HUGE_PAGE = 2 << 20 };
    const size_t unit = bytes >= 2 * HUGE_PAGE ? HUGE_PAGE : 4096, whole = (bytes + unit - 1) / unit * unit;
    void *const memory = bytes <= PTRDIFF_MAX ? aligned_alloc(unit, whole) : NULL;
#ifdef MADV_HUGEPAGE
    if (memory != NULL && unit == HUGE_PAGE)
        madvise(memory, whole, MADV_HUGEPAGE); /* a wish, no more */
#endif
    return memory;
}

int host_thread(void)
{
#ifdef _OPENMP
    return omp_get_thread_num();
#else
    return 0;
#endif
}

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

static int cpus_of(pid_t process)
{
    cpu_set_t set;
    CPU_ZERO(&set);
    return sched_getaffinity(process, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 0;
}

int host_cpus_bound(void) { return cpus_of(0); }

int host_cpus_of_parent(void)
{
    const char *const job = getenv("SLURM_CPUS_ON_NODE"); /* slurmstepd itself may be outside the job's control group */
    const int count = cpus_of(getppid());
    return job != NULL && atoi(job) > 0 && atoi(job) < count ? atoi(job) : count;
}

/* Appends "first-last" or "first"; false if it does not fit. */
static bool append_range(char *text, size_t bytes, int first, int last)
{
    const size_t used = strlen(text);
    char range[32];
    snprintf(range, sizeof range, first == last ? "%s%d" : "%s%d-%d", used > 0 ? "," : "", first, last);
    if (used + strlen(range) + sizeof "..." > bytes) {
        strcpy(text + used, "...");
        return false;
    }
    strcpy(text + used, range);
    return true;
}

void host_cpus(char *text, size_t bytes)
{
    cpu_set_t set;
    CPU_ZERO(&set);
    text[0] = '\0';
    if (sched_getaffinity(0, sizeof set, &set) != 0)
        return;
    for (int first = 0; first < CPU_SETSIZE; first++) {
        int last = first;
        if (!CPU_ISSET(first, &set))
            continue;
        while (last + 1 < CPU_SETSIZE && CPU_ISSET(last + 1, &set))
            last++;
        if (!append_range(text, bytes, first, last))
            return;
        first = last;
    }
}

/* Whether all of the process's CPUs are in a list such as "0-7,16". */
static bool all_in(const cpu_set_t *set, const char *list)
{
    cpu_set_t outside = *set;
    while (*list >= '0' && *list <= '9') {
        char *end;
        const long first = strtol(list, &end, 10), last = *end == '-' ? strtol(end + 1, &end, 10) : first;
        for (long cpu = first; cpu <= last && cpu < CPU_SETSIZE; cpu++)
            CPU_CLR((size_t)cpu, &outside);
        list = *end == ',' ? end + 1 : end;
    }
    return CPU_COUNT(&outside) == 0;
}

int host_numa_node(void)
{
    enum { NODES_MAX = 1024 };
    char path[64], list[4096];
    cpu_set_t set;
    int missing = 0;
    CPU_ZERO(&set);
    if (sched_getaffinity(0, sizeof set, &set) != 0)
        return -1;
    for (int node = 0; node < NODES_MAX && missing < 16; node++) { /* numbers may have holes */
        snprintf(path, sizeof path, "/sys/devices/system/node/node%d/cpulist", node);
        FILE *const file = fopen(path, "r");
        missing = file == NULL ? missing + 1 : 0;
        if (file == NULL)
            continue;
        const bool found = fgets(list, sizeof list, file) != NULL && all_in(&set, list);
        fclose(file);
        if (found)
            return node;
    }
    return -1;
}

double clock_seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}
