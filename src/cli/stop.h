/* Signals: those that ask for a stop, and those of a crash. And the file that must not be left behind. */
#ifndef ALLFOLD_CLI_STOP_H
#define ALLFOLD_CLI_STOP_H

/* Before MPI_Init, which may load libraries that handle signals their way: sees which are ignored (nohup), and ignores SIGXFSZ,
   because an output beyond the limit on file sizes is an error to report and to clean up after. */
void stop_begin(void);

/* After watch_open. What stop_begin found ignored is ignored. */
void stop_install(void);

/* A temporary file that is removed if the process does not come to forget it; NULL forgets. One at a time. */
void stop_remember(const char *path);

/* Removes that file. Async-signal-safe. */
void stop_clean(void);

#endif
