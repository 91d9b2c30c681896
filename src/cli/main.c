/* The program allfold: one command a run, on all ranks of MPI_COMM_WORLD. Rank 0 reports; all ranks exit with the same
   code, and none leaves while another waits for it. */
#include "cli/help.h"
#include "cli/launch.h"
#include "cli/nvtx.h"
#include "cli/options.h"
#include "cli/progress.h"
#include "cli/session.h"
#include "watch/stop.h"
#include "watch/watchdog.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define FOLD(ID, name, monoid, text) {#name, "INPUT", TAKES_FOLD, ALLFOLD_##ID, text, fold_run},
#define TAKES_ARRAY (TAKES_COMMON | TAKES_DEVICE | TAKES_TYPE | TAKES_RAW | TAKES_CHECKPOINT)
#define TAKES_FOLD (TAKES_ARRAY | TAKES_RESULT_TYPE | TAKES_PARTIAL)
#define TAKES_MERGE (TAKES_COMMON | TAKES_RESULT_TYPE | TAKES_PARTIAL | TAKES_NAN)
#define TAKES_SOFTMAX (TAKES_ARRAY | TAKES_LEVEL | TAKES_OUTPUT | TAKES_OUTPUT_TYPE)
#define TAKES_INFO (TAKES_COMMON | TAKES_DEVICE | TAKES_BINDING)
#define TAKES_CLIMB (TAKES_COMMON | TAKES_LADDER)
#define TAKES_MEASURE (TAKES_COMMON | TAKES_DEVICE | TAKES_BENCH)
#define TAKES_GENERATE (TAKES_COMMON | TAKES_TYPE | TAKES_OUTPUT)

/* The commands, in the order of --help. */
const struct command commands[] = {
    ALLFOLD_FOLDS(FOLD)
    {"merge", "FILE...", TAKES_MERGE, 0, "the fold of several arrays, from what --partial kept of each", merge_run},
    {"softmax", "INPUT", TAKES_SOFTMAX, 0, "exp(x) / sum of exp(x), without overflow", softmax_run},
    {"log-softmax", "INPUT", TAKES_SOFTMAX, 1, "logarithm of softmax", softmax_run},
    {"generate", "DISTRIBUTION?n=COUNT", TAKES_GENERATE, 0, "write an array of a named distribution", generate_run},
    {"info", NULL, TAKES_INFO, 0, "version, build, MPI library, and the device of each rank", info_run},
    {"ladder", "[TOPIC]", TAKES_CLIMB, 0, "the classic reduction kernels, checked and timed on a GPU", ladder_command_run},
    {"bench", NULL, TAKES_MEASURE, 0, "the speed of folds and softmax beside their peers and the ceilings", bench_command_run},
};
const size_t command_count = sizeof commands / sizeof *commands;

unsigned command_takes(const struct command *command)
{
    const allfold_fold fold = (allfold_fold)command->which;
    if (command->run != fold_run)
        return command->takes;
    return command->takes | (fold_has_nan_choice(fold) ? TAKES_NAN : 0u)
           | (fold_has_level_choice(fold) ? TAKES_LEVEL : 0u);
}

static const struct command *find_command(const char *name, struct error *error)
{
    const char *names[sizeof commands / sizeof *commands];
    for (size_t i = 0; i < command_count; i++) {
        if (strcmp(commands[i].name, name) == 0)
            return &commands[i];
        names[i] = commands[i].name;
    }
    error_set(error, ALLFOLD_BAD_ARGUMENT, "'%.100s' is %s%s: see allfold --help", name,
              name[0] == '-' ? "no command (options follow it)" : "no command",
              suggest(name, names, command_count, "").text);
    return NULL;
}

/* What was printed is on its way, or the error says why not. */
static allfold_status flush_output(struct error *error)
{
    errno = 0;
    if (fflush(stdout) == 0 && !ferror(stdout))
        return ALLFOLD_OK;
    return error_errno(error, ALLFOLD_IO_ERROR, errno != 0 ? errno : EIO, "cannot write to standard output");
}

/* Collective; *error is agreed upon. */
static void run_session(const struct settings *settings, struct error *error)
{
    struct session session = {.settings = settings};
    session_open(&session);
    if (session.error.status == ALLFOLD_OK) {
        settings->command->run(&session);
        if (session.error.status == ALLFOLD_OK) {
            flush_output(&session.error);
            if (session_agree(&session))
                session_succeed(&session);
        }
        if (session.error.status != ALLFOLD_MPI_ERROR)
            session_close(&session);
    }
    *error = session.error;
}

/* What argv asks for. Every rank finds the same errors in it. */
static void run(int argc, char **argv, const struct launch *launch, int rank, int ranks, struct error *error)
{
    struct settings settings;
    const char *name = argc > 1 ? argv[1] : "";
    const bool help = strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0, version = strcmp(name, "--version") == 0;
    if (help || version) {
        if (rank == 0 && help)
            help_program();
        else if (rank == 0)
            help_version();
        flush_output(error);
        return;
    }
    if (argc < 2) {
        error_set(error, ALLFOLD_BAD_ARGUMENT, "expected a command, found nothing: see allfold --help");
        return;
    }
    const struct command *command = find_command(name, error);
    if (command == NULL || options_parse(command, argc - 1, argv + 1, &settings, error) != ALLFOLD_OK)
        return;
    if (settings.help) {
        if (rank == 0)
            help_command(command);
        flush_output(error);
    } else if (launch_check(launch, ranks, error) == ALLFOLD_OK)
        run_session(&settings, error);
}

static int exit_code(allfold_status status)
{
    switch (status) {
    case ALLFOLD_OK: return EXIT_DONE;
    case ALLFOLD_BAD_ARGUMENT: return EXIT_USAGE;
    case ALLFOLD_STOPPED: return EXIT_STOPPED;
    default: return EXIT_FAILED;
    }
}

int main(int argc, char **argv)
{
    const struct launch launch = launch_read();
    struct error error = {0};
    int rank, ranks, threading;
    setvbuf(stderr, NULL, _IOLBF, BUFSIZ); /* a line at a time: ranks share it */
    stop_begin();
    if (launch_check_early(&launch, &error) != ALLFOLD_OK) {
        if (launch.task == 0)
            fprintf(stderr, "allfold: %s\n", error.text);
        return EXIT_USAGE;
    }
    nvtx_name_phases();
    MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &threading);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if (launch_compare(argc - 1, argv + 1, &error) == ALLFOLD_OK)
        run(argc, argv, &launch, rank, ranks, &error);

    /* Of several tasks that MPI does not know to be one job each has rank 0: the launcher's first one speaks. */
    const bool speaks = rank == 0 && (ranks > 1 || launch.task == 0);
    progress_end();
    if (error.status != ALLFOLD_OK && (speaks || error.status == ALLFOLD_MPI_ERROR))
        fprintf(stderr, "allfold: %s\n", error.text);
    watch_finish();
    if (error.status == ALLFOLD_MPI_ERROR) { /* the others may wait in a call that will never end */
        watch_claim(WATCH_FAILED);
        MPI_Abort(MPI_COMM_WORLD, EXIT_FAILED);
    }
    MPI_Finalize();
    return exit_code(error.status);
}
