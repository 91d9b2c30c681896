/* How the program was started. */
#include "cli/launch.h"

#include <stdlib.h>
#include <string.h>

struct launch launch_read(void)
{
    /* The innermost launcher first: mpirun within a batch job knows better than the job. */
    static const struct {
        const char *tasks, *task;
    } variables[] = {
        {"OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK"},
        {"PMI_SIZE", "PMI_RANK"},
        {"SLURM_STEP_NUM_TASKS", "SLURM_PROCID"},
        {"SLURM_NTASKS", "SLURM_PROCID"},
        {"FLUX_JOB_SIZE", "FLUX_TASK_RANK"},
        {"JSM_NAMESPACE_SIZE", "JSM_NAMESPACE_RANK"},
    };
    for (size_t i = 0; i < sizeof variables / sizeof *variables; i++) {
        const char *tasks = getenv(variables[i].tasks), *task = getenv(variables[i].task);
        if (tasks != NULL && atol(tasks) > 0)
            return (struct launch){variables[i].tasks, atol(tasks), task != NULL ? atol(task) : 0};
    }
    return (struct launch){NULL, 1, 0};
}

allfold_status launch_check(const struct launch *launch, int ranks, struct error *error)
{
    if (ranks > 1 || launch->tasks <= 1)
        return ALLFOLD_OK;
    return error_set(error, ALLFOLD_BAD_ARGUMENT,
                     "expected one MPI job of %ld ranks (%s=%ld), found that MPI knows of 1 rank, so each task would "
                     "fold alone: start with srun --mpi=pmix or with the mpirun of the MPI library that allfold was "
                     "built with; for one rank on purpose: mpirun -n 1",
                     launch->tasks, launch->variable, launch->tasks);
}

/* FNV-1a over the arguments and their ends. */
static uint64_t hash(int argc, char **argv)
{
    uint64_t value = UINT64_C(0xcbf29ce484222325);
    for (int i = 0; i < argc; i++)
        for (size_t j = 0; j <= strlen(argv[i]); j++)
            value = (value ^ (unsigned char)argv[i][j]) * UINT64_C(0x100000001b3);
    return value;
}

allfold_status launch_compare(int argc, char **argv, struct error *error)
{
    const uint64_t mine = hash(argc, argv), send[2] = {mine, ~mine};
    uint64_t largest[2];
    MPI_Allreduce(send, largest, 2, MPI_UINT64_T, MPI_MAX, MPI_COMM_WORLD);
    if (largest[0] == ~largest[1])
        return ALLFOLD_OK;
    return error_set(error, ALLFOLD_BAD_ARGUMENT,
                     "expected the same command, options and names on all ranks, found ranks that were given others");
}
