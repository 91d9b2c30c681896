/* Handles signals: see stop.h. */
#include "watch/stop.h"

#include "watch/temporary.h"
#include "watch/watchdog.h"

#include <signal.h>
#include <unistd.h>

#define CRASHES(X)                            \
    X(SEGV, "a segmentation fault")           \
    X(BUS, "a bus error")                     \
    X(FPE, "an arithmetic exception")         \
    X(ILL, "an illegal instruction")          \
    X(ABRT, "an abort")

/* A second interrupt ends the run at once. */
static void end_at_once(int signal)
{
    if (watch_claim(WATCH_STOPPED))
        watch_say(watch_name(), " stopped at once by a second ", stop_name(signal), NULL);
    temporary_remove();
    _exit(watch_status(WATCH_STOPPED));
}

static void on_stop(int signal)
{
    if (signal == SIGINT && atomic_load(&watch_progress()->stop) == SIGINT)
        end_at_once(signal);
    watch_stop(signal);
}

static const char *crash_text(int signal)
{
    switch (signal) {
#define CASE(name, text) case SIG##name: return text;
        CRASHES(CASE)
#undef CASE
    default: return "a signal";
    }
}

/* Prints rank and phase, cleans up, and leaves the rest to the handler that was there before (Open MPI prints a stack). */
static struct sigaction before[NSIG];
static void on_crash(int signal)
{
    if (watch_claim(WATCH_FAILED))
        watch_say(watch_name(), " died of ", crash_text(signal), " in phase ",
                  phase_name((enum phase)atomic_load(&watch_progress()->phase)), NULL);
    temporary_remove();
    sigaction(signal, &before[signal], NULL);
    raise(signal);
}

static sigset_t ignored;

void stop_begin(void)
{
    sigemptyset(&ignored);
    signal(SIGXFSZ, SIG_IGN);
    for (int number = 1; number < NSIG; number++) {
        struct sigaction now;
        if (sigaction(number, NULL, &now) == 0 && now.sa_handler == SIG_IGN)
            sigaddset(&ignored, number);
    }
}

static void install(int signal, void (*handler)(int), int flags)
{
    struct sigaction action = {.sa_handler = sigismember(&ignored, signal) ? SIG_IGN : handler, .sa_flags = flags};
    sigemptyset(&action.sa_mask);
    sigaction(signal, &action, &before[signal]);
}

void stop_install(void)
{
    install(SIGXFSZ, SIG_IGN, 0);
#define STOP(name) install(SIG##name, on_stop, SA_RESTART);
    STOP_SIGNALS(STOP)
#undef STOP
#define CRASH(name, text) install(SIG##name, on_crash, SA_ONSTACK);
    CRASHES(CRASH)
#undef CRASH
}
