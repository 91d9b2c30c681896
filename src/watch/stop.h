/* Handles signals: those that ask for a stop, and those of a crash. */
#pragma once

/* Called before MPI_Init, which may load libraries that install handlers of their own. Notes which signals are ignored (nohup), and
   ignores SIGXFSZ: an output beyond the limit on file sizes then is an error, which is reported and cleaned up after. */
void stop_begin(void);

/* Called after watch_open. Signals that stop_begin found ignored stay ignored. */
void stop_install(void);
