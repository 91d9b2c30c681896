/* The temporary file that must not be left behind when the process ends by a signal or by the watchdog. */
#pragma once

/* Registers a file to remove if the process ends early; NULL or "" unregisters it. One file at a time. */
void temporary_remember(const char *path);

/* Removes that file. Async-signal-safe. */
void temporary_remove(void);
