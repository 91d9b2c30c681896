/* The watchdog: see watchdog.h. It looks at the board several times a second, and at other hosts' heartbeats. */
#include "watch/watchdog.h"

#include "base/host.h"
#include "watch/heartbeats.h"
#include "watch/board.h"
#include "watch/temporary.h"
#include "watch/threads.h"

#include <limits.h>
#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define PERIOD 0.1            /* seconds between two looks */
#define GRACE 10.0            /* for a run that is asked to stop to reach a safe point */
#define GRACE_AT_START 0.5    /* nothing is lost before the work has begun */
#define GRACE_FOR_FILES 0.6   /* launchers kill one second after they ask */
#define GRACE_AT_FINISH 1.0   /* so that the message names a rank that is stopped, not one that waits for it */
#define GRACE_FOR_MPI 1.0     /* for MPI's own threads to end what they have begun */
#define GRACE_FOR_OTHERS 2.0  /* for other ranks to see that this one is stopped, and say so */

/* What was last heard of one other rank of this host. */
struct last_beat {
    uint64_t beats;
    double heard;
};

static struct {
    struct watch_settings settings;
    int rank, local, locals;
    char name[HOST_WORDS_BYTES];
    struct board *board; /* NULL: not open */
    struct board_slot *mine;
    struct heartbeats *beats; /* on the first rank of a host, where there are several */
    struct last_beat *last_beats;   /* by local rank */
    double looked;       /* when, last */
    double asked;        /* since when the run is asked to stop; 0: it is not */
    double waiting;      /* since when all ranks of this host wait for other ranks; 0: one works */
    uint64_t changes;    /* of all phases of this host, then */
    double finishing;    /* since when this rank has been leaving */
    bool files_removed;
    pthread_t thread;
} watch;

struct progress *watch_progress(void) { return watch.board == NULL ? NULL : &watch.mine->progress; }
const char *watch_name(void) { return watch.name; }

static void add_word(char *line, size_t bytes, size_t *length, const char *word)
{
    for (; *word != '\0' && *length < bytes - 1; word++)
        line[(*length)++] = *word;
}

void watch_say(const char *word, ...)
{
    char line[600];
    size_t length = 0;
    va_list words;
    if (watch.settings.eraser != NULL)
        add_word(line, sizeof line, &length, watch.settings.eraser());
    add_word(line, sizeof line, &length, watch.settings.program);
    add_word(line, sizeof line, &length, ": ");
    va_start(words, word);
    for (; word != NULL; word = va_arg(words, const char *))
        add_word(line, sizeof line, &length, word);
    va_end(words);
    line[length++] = '\n';
    if (write(STDERR_FILENO, line, length) < 0)
        return;
}

bool watch_claim(enum watch_end end)
{
    int none = 0;
    return watch.board == NULL || atomic_compare_exchange_strong(&watch.board->verdict, &none, 1 + (int)end);
}

int watch_status(enum watch_end end) { return watch.settings.statuses[end]; }

void watch_stop(int signal)
{
    int none = 0;
    if (watch.board != NULL)
        atomic_compare_exchange_strong(&watch.mine->progress.stop, &none, signal);
}

static enum phase phase_of(const struct board_slot *slot)
{
    return (enum phase)atomic_load_explicit(&slot->progress.phase, memory_order_relaxed);
}

static void leave(enum watch_end end)
{
    temporary_remove();
    _exit(watch_status(end));
}

__attribute__((format(printf, 2, 3))) static void end_job(enum watch_end end, const char *format, ...)
{
    char text[480];
    va_list arguments;
    if (!watch_claim(end))
        return; /* the next check finds the verdict of the rank that was first */
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    watch_say(text, NULL);
}

/* "rank 3", "ranks 0-3, 6": of the local ranks that are marked. */
static void ranks_words(const bool *marked, char *words, size_t bytes)
{
    size_t length = 0;
    int count = 0;
    for (int i = 0; i < watch.locals; i++)
        count += marked[i];
    length += (size_t)snprintf(words, bytes, "rank%s", count == 1 ? "" : "s");
    const char *separator = " ";
    for (int i = 0; i < watch.locals && length < bytes - 32; i++) {
        const int first = watch.board->slots[i].rank;
        if (!marked[i])
            continue;
        while (i + 1 < watch.locals && marked[i + 1] && watch.board->slots[i + 1].rank == watch.board->slots[i].rank + 1)
            i++;
        const int last = watch.board->slots[i].rank;
        length += (size_t)(first == last ? snprintf(words + length, bytes - length, "%s%d", separator, first)
                                         : snprintf(words + length, bytes - length, "%s%d-%d", separator, first, last));
        separator = ", ";
    }
    if (length >= bytes - 32)
        snprintf(words + length, bytes - length, " and others");
}

static const char *host_name(void)
{
    const char *const on = strstr(watch.name, " on ");
    return on != NULL ? on + 4 : "this host";
}

/* A rank of this host that has died could not report it. mpirun notices too; other launchers may not. */
static void look_for_dead(void)
{
    for (int i = 0; i < watch.locals; i++)
        if (i != watch.local && slot_died(&watch.board->slots[i], watch.mine))
            end_job(WATCH_FAILED, "rank %d on %s died in phase %s", watch.board->slots[i].rank, host_name(),
                    phase_name(phase_of(&watch.board->slots[i])));
}

/* Ranks of this host whose watchdog has fallen silent: stopped processes. They are killed, since they cannot leave. */
static void look_for_silent(double now)
{
    bool silent[watch.locals];
    char words[160];
    int late = -1;
    for (int i = 0; i < watch.locals; i++) {
        struct board_slot *const slot = &watch.board->slots[i];
        const uint64_t beats = atomic_load_explicit(&slot->beats, memory_order_relaxed);
        if (beats != watch.last_beats[i].beats || atomic_load(&slot->state) == SLOT_ENDED)
            watch.last_beats[i] = (struct last_beat){beats, now};
        silent[i] = i != watch.local && now - watch.last_beats[i].heard > watch.settings.timeout / 2;
        if (silent[i] && now - watch.last_beats[i].heard > watch.settings.timeout)
            late = i;
    }
    if (late < 0)
        return;
    ranks_words(silent, words, sizeof words);
    end_job(WATCH_FAILED, "%s on %s not heard from for %g s, last in phase %s: stopped, or without a processor", words,
            host_name(), watch.settings.timeout, phase_name(phase_of(&watch.board->slots[late])));
    for (int i = 0; i < watch.locals; i++)
        if (silent[i] && watch.board->slots[i].pid_namespace == watch.mine->pid_namespace)
            kill(watch.board->slots[i].pid, SIGKILL);
}

static void look_for_silent_hosts(double now)
{
    int count;
    const struct host *const hosts = heartbeats_hosts(watch.beats, &count);
    for (int i = 0; i < count; i++)
        if (hosts[i].known && !hosts[i].last.finished && now - hosts[i].heard > watch.settings.timeout)
            end_job(WATCH_FAILED, "%s not heard from for %g s, last in phase %s: dead, or cut off from the network",
                    hosts[i].words, watch.settings.timeout, phase_name((enum phase)hosts[i].last.phase));
}

/* All ranks wait for others: messages no longer arrive. */
static void look_for_stuck(double now)
{
    int count;
    const struct host *const hosts = heartbeats_hosts(watch.beats, &count);
    bool all = watch.rank == 0 && watch.waiting > 0 && now - watch.waiting > watch.settings.timeout;
    for (int i = 1; i < count; i++)
        all = all && hosts[i].known && (double)hosts[i].last.waiting > watch.settings.timeout;
    if (all)
        end_job(WATCH_FAILED, "all ranks have waited in phase exchange for %g s: messages between them do not arrive",
                watch.settings.timeout);
    const bool in_mpi = watch.finishing > 0 && atomic_load(&watch.mine->state) == SLOT_RUNNING; /* others wait for this rank */
    if (in_mpi && now - watch.finishing > watch.settings.timeout + GRACE_AT_FINISH)
        end_job(WATCH_FAILED, "%s has waited for %g s to leave MPI, in phase finish", watch.name, watch.settings.timeout);
}

/* A run that is asked to stop does so at a safe point. If it reaches none in time, it is ended. */
static void look_at_stop(double now)
{
    const int stop = atomic_load(&watch.mine->progress.stop);
    const enum phase phase = phase_of(watch.mine);
    if (stop == 0 || phase == PHASE_FINISH)
        return;
    if (watch.asked == 0)
        watch.asked = now;
    if (!watch.files_removed && now - watch.asked > GRACE_FOR_FILES) {
        temporary_remove();
        watch.files_removed = true;
    }
    if (now - watch.asked > (phase == PHASE_START ? GRACE_AT_START : GRACE))
        end_job(WATCH_STOPPED, "%s stopped by %s in phase %s%s", watch.name, stop_name(stop), phase_name(phase),
                phase == PHASE_START ? "" : ", which came to no safe point");
}

/* What this host reports, and what its ranks must learn of the others. */
static void gather(double now, struct heartbeat *beat)
{
    uint64_t changes = 0;
    bool all_wait = true;
    *beat = (struct heartbeat){.phase = PHASE_FINISH, .finished = 1};
    for (int i = 0; i < watch.locals; i++) {
        const struct board_slot *const slot = &watch.board->slots[i];
        const enum phase phase = phase_of(slot);
        const bool over = phase == PHASE_FINISH || atomic_load(&slot->state) == SLOT_ENDED;
        const int stop = atomic_load(&slot->progress.stop);
        beat->finished = beat->finished && over;
        if (phase < beat->phase)
            beat->phase = phase;
        if (beat->stop == 0)
            beat->stop = stop;
        beat->done += atomic_load(&slot->progress.done);
        beat->total += atomic_load(&slot->progress.total);
        changes += atomic_load(&slot->progress.changes);
        all_wait = all_wait && (phase == PHASE_EXCHANGE || over);
    }
    if (!all_wait || beat->finished || changes != watch.changes)
        watch.waiting = 0;
    watch.changes = changes;
    if (all_wait && !beat->finished && watch.waiting == 0)
        watch.waiting = now;
    beat->waiting = watch.waiting > 0 ? (float)(now - watch.waiting) : 0;
}

/* Other hosts' news, into *beat. */
static void hear(struct heartbeat *beat)
{
    int count;
    const struct host *const hosts = heartbeats_hosts(watch.beats, &count);
    for (int i = 0; i < count; i++) {
        if (!hosts[i].known)
            continue;
        if (beat->stop == 0)
            beat->stop = hosts[i].last.stop;
        if (beat->verdict == 0 && hosts[i].last.verdict > 0 && hosts[i].last.verdict <= WATCH_ENDS)
            beat->verdict = hosts[i].last.verdict;
        beat->done += hosts[i].last.done;
        beat->total += hosts[i].last.total;
    }
}

/* A process that has not run for a while itself knows nothing of the others: the whole job may have been suspended. */
static void forget(double now)
{
    int count;
    struct host *const hosts = heartbeats_hosts(watch.beats, &count);
    for (int i = 0; i < watch.locals; i++)
        watch.last_beats[i].heard = now;
    for (int i = 0; i < count; i++)
        hosts[i].heard = now;
    watch.waiting = watch.waiting > 0 ? now : 0;
    watch.asked = watch.asked > 0 ? now : 0;
    watch.finishing = watch.finishing > 0 ? now : 0;
}

static void look(double now)
{
    struct heartbeat beat;
    if (watch.settings.timeout > 0 && now - watch.looked > watch.settings.timeout / 2)
        forget(now);
    watch.looked = now;
    atomic_fetch_add(&watch.mine->beats, 1);
    if (watch.finishing == 0 && phase_of(watch.mine) == PHASE_FINISH)
        watch.finishing = now;
    gather(now, &beat);
    heartbeats_exchange(watch.beats, &beat, now);
    hear(&beat);
    if (beat.verdict != 0)
        watch_claim((enum watch_end)(beat.verdict - 1));
    if (beat.stop != 0)
        watch_stop(beat.stop);
    if (watch.rank == 0 && watch.settings.show != NULL && beat.total > 0 && phase_of(watch.mine) != PHASE_FINISH)
        watch.settings.show(beat.done, beat.total);
    look_for_dead();
    look_at_stop(now);
    if (watch.settings.timeout > 0) {
        look_for_silent(now);
        look_for_silent_hosts(now);
        look_for_stuck(now);
    }
    const int verdict = atomic_load(&watch.board->verdict);
    if (verdict != 0) {
        beat.verdict = verdict;
        heartbeats_exchange(watch.beats, &beat, now);
        leave((enum watch_end)(verdict - 1));
    }
}

static void *run(void *nothing)
{
    const struct timespec period = {0, (long)(PERIOD * 1e9)};
    (void)nothing;
    for (;;) {
        nanosleep(&period, NULL);
        look(clock_seconds());
    }
    return NULL;
}

void watch_begin(void)
{
    setenv("OMPI_MCA_async_mpi_finalize", "1", 0);
}

/* The kernel kills this process some time after the timeout, even if it is stopped and no other rank is left to see it. */
static void limit_life(void)
{
    struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGKILL};
    const double seconds = watch.settings.timeout + GRACE_FOR_OTHERS;
    struct itimerspec limit = {0};
    timer_t timer;
    if (watch.settings.timeout <= 0 || seconds > 1e9 || timer_create(CLOCK_MONOTONIC, &event, &timer) != 0)
        return;
    limit.it_value.tv_sec = (time_t)seconds;
    limit.it_value.tv_nsec = (long)((seconds - floor(seconds)) * 1e9);
    timer_settime(timer, 0, &limit, NULL);
}

void watch_finish(void)
{
    if (watch.board != NULL) {
        limit_life();
        phase_enter(&watch.mine->progress, PHASE_FINISH);
    }
    MPI_Barrier(MPI_COMM_WORLD); /* pending messages arrive, and other hosts notice a rank that does not come here */
    threads_rest(GRACE_FOR_MPI);
    MPI_Finalize();
}

/* Code that ends the process in the middle of the work (a library that calls exit, for example) must not leave the other ranks
   waiting, and the job must not pass as successful. */
static void surprised(const char *how)
{
    if (watch_claim(WATCH_FAILED))
        watch_say(watch.name, how, phase_name(phase_of(watch.mine)), NULL);
    leave(WATCH_FAILED);
}

static bool all_reached(enum slot_state state)
{
    for (int i = 0; i < watch.locals; i++)
        if (atomic_load(&watch.board->slots[i].state) < (int)state)
            return false;
    return true;
}

/* The ranks of a host end together: one that is stopped after MPI_Finalize keeps the launcher waiting, and ranks that have
   ended cannot see it. They wait twice, so that only a rank that is stopped between two polls goes unnoticed. */
static void at_exit(void)
{
    const struct timespec period = {0, 100000};
    if (phase_of(watch.mine) != PHASE_FINISH)
        surprised(" left the program in phase ");
    for (int state = SLOT_LEAVING; state <= SLOT_ENDED; state++) {
        atomic_store(&watch.mine->state, state);
        while (watch.settings.timeout > 0 && !all_reached((enum slot_state)state))
            nanosleep(&period, NULL);
    }
}

/* Called first thing by MPI_Finalize, as the attribute of MPI_COMM_SELF is deleted. */
static int at_finalize(MPI_Comm comm, int key, void *value, void *state)
{
    (void)comm;
    (void)key;
    (void)value;
    (void)state;
    if (phase_of(watch.mine) != PHASE_FINISH)
        surprised(" left MPI in phase ");
    return MPI_SUCCESS;
}

static void name_ranks(char words[HOST_WORDS_BYTES])
{
    char host[MPI_MAX_PROCESSOR_NAME] = "";
    int length;
    bool all[watch.locals];
    memset(all, true, sizeof all);
    MPI_Get_processor_name(host, &length);
    snprintf(watch.name, sizeof watch.name, "rank %d on %.64s", watch.rank, host);
    ranks_words(all, words, HOST_WORDS_BYTES - 72);
    snprintf(words + strlen(words), HOST_WORDS_BYTES - strlen(words), " on %.64s", host);
}

static allfold_status start(struct error *error)
{
    sigset_t all, before;
    int key;
    for (int i = 0; i < watch.locals; i++)
        watch.last_beats[i].heard = clock_seconds();
    watch.looked = clock_seconds();
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before); /* signals go to the thread that works */
    const int code = pthread_create(&watch.thread, NULL, run, NULL);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (code != 0)
        return error_errno(error, ALLFOLD_NO_MEMORY, code, "cannot start a thread for the watchdog");
    MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, at_finalize, &key, NULL);
    MPI_Comm_set_attr(MPI_COMM_SELF, key, NULL);
    atexit(at_exit);
    return ALLFOLD_OK;
}

/* There is no context yet that would do that. */
static allfold_status agree(struct error *error)
{
    int failed = error->status != ALLFOLD_OK ? watch.rank : INT_MAX, lowest;
    MPI_Allreduce(&failed, &lowest, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
    if (lowest != INT_MAX)
        MPI_Bcast(error, (int)sizeof *error, MPI_BYTE, lowest, MPI_COMM_WORLD);
    return error->status;
}

allfold_status watch_open(const struct watch_settings *settings, struct error *error)
{
    MPI_Comm local, leaders;
    char words[HOST_WORDS_BYTES] = "";
    struct board *board = NULL;
    watch.settings = *settings;
    MPI_Comm_rank(MPI_COMM_WORLD, &watch.rank);
    MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &local);
    MPI_Comm_rank(local, &watch.local);
    MPI_Comm_size(local, &watch.locals);
    MPI_Comm_split(MPI_COMM_WORLD, watch.local == 0 ? 0 : MPI_UNDEFINED, 0, &leaders);
    watch.last_beats = calloc((size_t)watch.locals, sizeof *watch.last_beats);
    if (watch.last_beats == NULL)
        error_set(error, ALLFOLD_NO_MEMORY, "no memory to watch %d ranks", watch.locals);
    board_open(local, watch.rank, &board, error);
    if (board != NULL) {
        watch.board = board;
        watch.mine = &board->slots[watch.local];
        name_ranks(words);
    }
    if (leaders != MPI_COMM_NULL) {
        heartbeats_open(leaders, words, &watch.beats, error);
        MPI_Comm_free(&leaders);
    }
    MPI_Comm_free(&local);
    if (error->status == ALLFOLD_OK)
        start(error);
    return agree(error);
}
