/* Runs one command of the program allfold, on all ranks of MPI_COMM_WORLD. Rank 0 reports. All ranks exit with the same
   code, and no rank leaves while another waits for it. */
#include "cli/commands/commands.h"
#include "base/host.h"
#include "cli/help.h"
#include "cli/launch.h"
#include "cli/nvtx.h"
#include "cli/options.h"
#include "cli/progress.h"
#include "cli/session.h"
#include "cli/start.h"
#include "cli/suggest.h"
#include "cli/text.h"
#include "watch/stop.h"
#include "watch/threads.h"
#include "watch/watchdog.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* What commands are called elsewhere. "": no command is like that. */
static const struct {
    const char *word, *command;
} other_words[] = {{"stdev", "std"},    {"stddev", "std"},    {"var", "variance"}, {"describe", "stats"},
                   {"count", "stats"},  {"average", "mean"},  {"avg", "mean"},     {"median", ""},        {"product", "prod"},
                   {"total", "sum"},    {"norm", "norm2"},    {"l1", "norm1"},     {"l2", "norm2"},       {"linf", "norminf"},
                   {"lse", "logsumexp"}, {"ls", "info"},      {"list", "info"}};

static struct suggestion suggest_command(const char *found, const char *const *names, size_t count)
{
    for (size_t i = 0; i < sizeof other_words / sizeof *other_words; i++)
        if (strcmp(found, other_words[i].word) == 0)
            return suggest(other_words[i].command, &other_words[i].command, other_words[i].command[0] != '\0', "");
    return suggest(found, names, count, "");
}

static const struct command *find_command(const struct command_table *table, const char *name, struct error *error)
{
    const char *names[table->count];
    for (size_t i = 0; i < table->count; i++) {
        if (strcmp(table->commands[i].name, name) == 0)
            return &table->commands[i];
        names[i] = table->commands[i].name;
    }
    error_set(error, ALLFOLD_BAD_ARGUMENT, "'%.100s' is %s%s: see allfold --help", name,
              name[0] == '-' ? "no command (options follow it)" : "no command", suggest_command(name, names, table->count).text);
    return NULL;
}

/* Takes the places of standard streams that are closed: else the next file or pipe would have one of them, and what is printed. Reading
   from them, or writing to them, fails as it would otherwise. */
static bool fill_standard_streams(void)
{
    for (int stream = STDIN_FILENO; stream <= STDERR_FILENO; stream++)
        if (fcntl(stream, F_GETFD) < 0 && open("/dev/null", stream == STDIN_FILENO ? O_WRONLY : O_RDONLY) != stream)
            return false;
    return true;
}

/* Flushes what was printed, or sets an error. */
static allfold_status flush_output(const struct settings *settings, struct error *error)
{
    errno = 0;
    if (fflush(stdout) == 0 && !ferror(stdout))
        return ALLFOLD_OK;
    return error_errno(error, ALLFOLD_IO_ERROR, errno != 0 ? errno : EIO, "cannot write to standard output%s",
                       settings->output != NULL || settings->partial != NULL ? " (what is written to files is complete)" : "");
}

/* What main finds out before MPI_Init. */
struct invocation {
    int argc;
    char **argv;
    struct launch launch;
    struct start start;
    struct settings settings;
    struct error error; /* what is wrong with the arguments, but for what `tell` answers */
    bool outside;       /* as in struct session */
};

/* Collective; *error is agreed upon. */
static void run_session(struct invocation *invocation, struct error *error)
{
    const struct settings *const settings = &invocation->settings;
    struct session session = {.settings = settings, .launch = &invocation->launch, .start = &invocation->start};
    session_open(&session);
    if (session.error.status == ALLFOLD_OK) {
        settings->command->run(&session);
        if (session.error.status == ALLFOLD_OK) {
            flush_output(settings, &session.error);
            session_agree(&session);
        }
        if (session.error.status != ALLFOLD_MPI_ERROR) {
            session_end(&session);
            session_close(&session);
        }
    }
    *error = session.error;
    invocation->outside = session.outside;
}

static bool is_one_of(const char *word, const char *a, const char *b) { return strcmp(word, a) == 0 || strcmp(word, b) == 0; }

/* "allfold --help", "allfold help COMMAND", "allfold --version": whether the arguments ask for such. Rank 0 prints. */
static bool tell(const struct command_table *table, const struct invocation *invocation, int rank, struct error *error)
{
    char **const argv = invocation->argv;
    const int argc = invocation->argc;
    const char *const word = argc > 1 ? argv[1] : "";
    const char *const name = argc > 2 && !is_one_of(argv[2], "--help", "-h") ? argv[2] : NULL;
    const struct command *command = NULL;
    if (is_one_of(word, "--version", "-V")) {
        if (rank == 0)
            help_version();
    } else if (!is_one_of(word, "--help", "-h") && strcmp(word, "help") != 0)
        return false;
    else if (argc > 3)
        error_set(error, ALLFOLD_BAD_ARGUMENT, "help: expected one COMMAND, found '%.100s' too", argv[3]);
    else if ((name == NULL || (command = find_command(table, name, error)) != NULL) && rank == 0) {
        if (command != NULL)
            help_command(table, command);
        else
            help_program(table);
    }
    flush_output(&invocation->settings, error);
    return true;
}

/* Parses the arguments, a copy of them since parsing moves them. Every rank finds the same errors. */
static void parse(const struct command_table *table, struct invocation *invocation, char **words)
{
    struct settings *const settings = &invocation->settings;
    *settings = (struct settings)SETTINGS_DEFAULT;
    settings->words = (const char *const *)invocation->argv;
    settings->word_count = invocation->argc;
    memcpy(words, invocation->argv, (size_t)invocation->argc * sizeof *words);
    if (invocation->argc < 2)
        error_set(&invocation->error, ALLFOLD_BAD_ARGUMENT, "expected a command, found nothing: see allfold --help");
    else if ((settings->command = find_command(table, words[1], &invocation->error)) != NULL)
        options_parse(table, invocation->argc - 1, words + 1, settings, &invocation->error);
}

static void run(const struct command_table *table, struct invocation *invocation, struct error *error)
{
    const struct settings *const settings = &invocation->settings;
    int rank, ranks;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if (tell(table, invocation, rank, error))
        return;
    *error = invocation->error;
    if (error->status != ALLFOLD_OK)
        return;
    if (settings->help) {
        if (rank == 0)
            help_command(table, settings->command);
        flush_output(settings, error);
    } else if (launch_check(&invocation->launch, ranks, error) == ALLFOLD_OK)
        run_session(invocation, error);
}

static int exit_code(allfold_status status, bool outside)
{
    switch (status) {
    case ALLFOLD_OK: return outside ? EXIT_OUTSIDE : EXIT_DONE;
    case ALLFOLD_BAD_ARGUMENT: return EXIT_USAGE;
    case ALLFOLD_STOPPED: return EXIT_STOPPED;
    default: return EXIT_FAILED;
    }
}

/* MPI_Init, and beside it what else a start can do. */
static void start(struct invocation *invocation)
{
    int threading;
    nvtx_name_phases();
    start_environment(&invocation->launch);
    if (invocation->error.status == ALLFOLD_OK)
        start_device(&invocation->settings, &invocation->launch);
    const double before = clock_seconds();
    MPI_Init_thread(&invocation->argc, &invocation->argv, MPI_THREAD_FUNNELED, &threading);
    invocation->start.mpi = clock_seconds() - before;
    threads_remember();
}

int main(int argc, char **argv)
{
    struct invocation invocation = {.argc = argc, .argv = argv, .launch = launch_read()};
    struct error error = {0};
    char *words[argc + 1];
    int rank, ranks;
    if (!fill_standard_streams())
        return EXIT_FAILED;
    start_begin(&invocation.start);
    setvbuf(stderr, NULL, _IOLBF, BUFSIZ); /* a line at a time: ranks share it */
    stop_begin();
    watch_begin();
    if (launch_check_early(&invocation.launch, &error) != ALLFOLD_OK) {
        if (invocation.launch.task == 0)
            text_tell(NULL, error.text);
        return EXIT_USAGE;
    }
    parse(&command_table, &invocation, words);
    start(&invocation);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if (launch_compare(argc - 1, argv + 1, &error) == ALLFOLD_OK)
        run(&command_table, &invocation, &error);
    start_device_wait(&invocation.start);

    /* If MPI does not know several tasks to be one job, each has rank 0: the launcher's first task reports. */
    const bool speaks = rank == 0 && (ranks > 1 || invocation.launch.task == 0);
    progress_end();
    if (error.status != ALLFOLD_OK && (speaks || error.status == ALLFOLD_MPI_ERROR))
        text_tell(NULL, error.text);
    if (error.status == ALLFOLD_MPI_ERROR) { /* the others may wait in a call that will never end */
        watch_claim(WATCH_FAILED);
        MPI_Abort(MPI_COMM_WORLD, EXIT_FAILED);
    }
    watch_finish();
    return exit_code(error.status, invocation.outside);
}
