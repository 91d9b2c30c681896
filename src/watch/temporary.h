/* Removes the temporary files that must not be left behind when the process ends by a signal or by the watchdog. */
#pragma once

/* Registers a file to remove if the process ends early; "" is none. Two files at a time; a file twice is one. */
void temporary_remember(const char *path);
void temporary_forget(const char *path);

/* Removes those files. Async-signal-safe. */
void temporary_remove(void);
