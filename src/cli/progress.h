/* Shows the progress of long work on standard error: see progress.c. On rank 0. */
#pragma once

#include <stdint.h>

/* The watchdog's thread calls this regularly. */
void progress_show(uint64_t done, uint64_t total);

/* What removes the line from the terminal, for a message that cannot wait: "" if there is none. For signal handlers, too. */
const char *progress_eraser(void);

/* Called before anything else is printed: removes the line and shows no more. */
void progress_end(void);
