/* Tells the host's CPUs that this process may use, its memory and its clock. */
#pragma once

#include <stddef.h>
#include <stdint.h>

enum { THREADS_MAX = 4096 }; /* the most that a caller may ask for */

/* The instruction sets for which loops are compiled; each has those before it. */
enum isa { ISA_BASE, ISA_AVX2, ISA_AVX512 };
/* The last of them that this processor has and this build. */
enum isa host_isa(void);

/* Bytes of this host's memory. */
uint64_t host_memory(void);

/* Memory that begins at a page; from 4 MiB on, at one of 2 MiB, and in such pages if the system has them: these are made faster, and found faster by
   the address cache. NULL: there is none. The caller frees it with free(). */
void *host_allocate(size_t bytes);

/* Threads that one of local_size processes of this host may use: OMP_NUM_THREADS if it is set, else the cores that the process is
   bound to, or its share of all cores if it is not bound. */
int host_threads(int local_size);

/* The number of the calling thread in its OpenMP team; 0 outside one, and in a build without OpenMP. */
int host_thread(void);

/* How many CPUs this process may run on, and how many the process that started it may use, within its job: if that is a launcher,
   what it can share among its ranks on this host. 0 if the system does not say. */
int host_cpus_bound(void);
int host_cpus_of_parent(void);

/* The CPUs that this process may run on, as "0-7,16", cut with "..." if they do not fit; and the NUMA node that has all of them,
   or -1. */
void host_cpus(char *text, size_t bytes);
int host_numa_node(void);

/* Monotonic seconds. */
double clock_seconds(void);
