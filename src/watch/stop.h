/* Signals: those that ask for a stop, and those of a crash. */
#ifndef ALLFOLD_STOP_H
#define ALLFOLD_STOP_H

/* Before MPI_Init, which may load libraries that handle signals their way: sees which are ignored (nohup), and ignores
   SIGXFSZ, because an output beyond the limit on file sizes is an error to report and to clean up after. */
void stop_begin(void);

/* After watch_open. What stop_begin found ignored is ignored. */
void stop_install(void);

#endif
