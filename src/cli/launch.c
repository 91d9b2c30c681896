/* Finds out how the program was started: see launch.h. */
#include "cli/launch.h"

#include "array/file.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A launcher's variables: the number of tasks, this task's own (NULL if it does not say: then every task reports), and its number
   on its host. unbind: see launch.h. */
struct names {
    const char *tasks, *task, *local, *unbind;
};

static bool read_names(const struct names *names, struct launch *launch)
{
    const char *const tasks = getenv(names->tasks), *const task = names->task != NULL ? getenv(names->task) : NULL;
    if (tasks == NULL || atol(tasks) < 1)
        return false;
    const char *const local = names->local != NULL ? getenv(names->local) : NULL;
    *launch = (struct launch){.variable = names->tasks, .tasks = atol(tasks), .task = task != NULL ? atol(task) : 0,
                              .local_rank = local != NULL ? atoi(local) : -1, .unbind = names->unbind};
    snprintf(launch->count, sizeof launch->count, "%.23s", tasks);
    return true;
}

/* PBS: a line for each MPI process that the job asked for (mpiprocs). */
static long count_lines(const char *path)
{
    struct error ignored = {0};
    uint64_t bytes;
    long lines = 0;
    const int fd = path != NULL ? file_open(path, &bytes, &ignored) : -1;
    FILE *const file = fd >= 0 ? fdopen(fd, "r") : NULL;
    if (file == NULL)
        return 0;
    for (int c; (c = getc(file)) != EOF;)
        lines += c == '\n';
    fclose(file);
    return lines;
}

/* LSF: "host1 slots host2 slots ..." */
static long count_words(const char *text)
{
    long words = 0;
    while (text != NULL && *(text += strspn(text, " ")) != '\0') {
        words++;
        text += strcspn(text, " ");
    }
    return words;
}

/* What the launcher says, but for single_process. */
static struct launch read_launcher(void)
{
    /* The innermost launcher comes first: mpirun within a batch job knows better than the job. */
    static const struct names launchers[] = {
        {"OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_LOCAL_RANK",
         "mpirun --bind-to none, or --map-by slot:PE=%d"},
        {"PMI_SIZE", "PMI_RANK", "MPI_LOCALRANKID", "mpiexec -bind-to none, or srun --cpus-per-task=%d"},
        {"SLURM_STEP_NUM_TASKS", "SLURM_PROCID", "SLURM_LOCALID", "srun --cpus-per-task=%d"},
        {"FLUX_JOB_SIZE", "FLUX_TASK_RANK", "FLUX_TASK_LOCAL_ID", "flux run --cores-per-task=%d"},
        {"JSM_NAMESPACE_SIZE", "JSM_NAMESPACE_RANK", "JSM_NAMESPACE_LOCAL_RANK", "jsrun -c %d -b none"},
        {"SLURM_NTASKS", "SLURM_PROCID", NULL, NULL},
    };
    struct launch launch = {.tasks = 1, .local_rank = -1};
    for (size_t i = 0; i < sizeof launchers / sizeof *launchers; i++)
        if (read_names(&launchers[i], &launch))
            return launch;
    /* Batch systems that count slots, which may be threads: only several hosts show that one rank is wrong. */
    const char *const nodes = getenv("PBS_NODEFILE"), *const hosts = getenv("NHOSTS");
    const long processes = count_lines(nodes);
    if (processes > 0) {
        launch.variable = "lines of PBS_NODEFILE";
        launch.tasks = processes;
        snprintf(launch.count, sizeof launch.count, "%ld", processes);
    } else if (count_words(getenv("LSB_MCPU_HOSTS")) > 2)
        read_names(&(struct names){"LSB_DJOB_NUMPROC", NULL, NULL, NULL}, &launch);
    else if (hosts != NULL && atol(hosts) > 1)
        read_names(&(struct names){"NSLOTS", NULL, NULL, NULL}, &launch);
    return launch;
}

static bool any_set(const char *const *names)
{
    for (; *names != NULL; names++)
        if (getenv(*names) != NULL)
            return true;
    return false;
}

/* What connects a process to a process manager. */
static const char *const managers[] = {"PMIX_NAMESPACE", "PMI_FD", "PMI_RANK", "OMPI_COMM_WORLD_SIZE", NULL};

struct launch launch_read(void)
{
    static const char *const steps[] = {"SLURM_STEP_ID", "SLURM_STEPID", "FLUX_TASK_RANK", "JSM_NAMESPACE_RANK", "ALPS_APP_PE",
                                        "PALS_RANKID", "PMIX_RANK", "MPI_LOCALRANKID", "PMI_PORT", "PMI_ID", "MPIRUN_RANK",
                                        "MV2_COMM_WORLD_SIZE", NULL};
    struct launch launch = read_launcher();
    launch.single_process = !any_set(managers) && !any_set(steps);
    if (launch.single_process)
        launch.local_rank = 0;
    return launch;
}

static allfold_status not_one_job(const struct launch *launch, struct error *error)
{
    return error_set(error, ALLFOLD_BAD_ARGUMENT,
                     "expected one MPI job of %s ranks (%s=%s), found that MPI knows of 1 rank, so each task would "
                     "fold alone: start with srun --mpi=pmix or with the mpirun of the MPI library that allfold was "
                     "built with; for one rank on purpose: mpirun -n 1",
                     launch->count, launch->variable, launch->count);
}

allfold_status launch_check(const struct launch *launch, int ranks, struct error *error)
{
    return ranks > 1 || launch->tasks <= 1 ? ALLFOLD_OK : not_one_job(launch, error);
}

allfold_status launch_check_early(const struct launch *launch, struct error *error)
{
#if defined(OPEN_MPI) && OPEN_MPI
    /* Otherwise Open MPI ends the process in MPI_Init, with a long text that does not say what to type. */
    const char *const tasks = getenv("SLURM_STEP_NUM_TASKS");
    if (!any_set(managers) && tasks != NULL && atol(tasks) > 1)
        return not_one_job(launch, error);
#else
    (void)launch;
    (void)error;
#endif
    return ALLFOLD_OK;
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
