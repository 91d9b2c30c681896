/* Signals: those that ask for a stop, and those of a crash. And the file that must not be left behind. */
#ifndef ALLFOLD_CLI_STOP_H
#define ALLFOLD_CLI_STOP_H

/* After watch_open. A signal that was ignored when the program started (nohup) stays ignored. */
void stop_install(void);

/* A temporary file that is removed if the process does not come to forget it; NULL forgets. One at a time. */
void stop_remember(const char *path);

/* Removes that file. Async-signal-safe. */
void stop_clean(void);

#endif
