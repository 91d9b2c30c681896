/* Progress of long work on standard error: see progress.c. On rank 0. */
#ifndef ALLFOLD_CLI_PROGRESS_H
#define ALLFOLD_CLI_PROGRESS_H

#include <stdint.h>

/* Called now and then by the watchdog's thread. */
void progress_show(uint64_t done, uint64_t total);

/* Before anything else is printed: takes the line back and shows no more. */
void progress_end(void);

#endif
