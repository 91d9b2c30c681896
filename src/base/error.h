/* Keeps the reason for a failure: a status and a text. The function that decides an error writes it, once. */
#pragma once

#include "base/types.h"

#define ALLFOLD_ERROR_BYTES 480

/* The reason for a failure. The function that decides an error writes it, once; its callers return it. */
struct error {
    allfold_status status;
    bool shared; /* every rank holds this same error (comm/) */
    char text[ALLFOLD_ERROR_BYTES];
};

/* Writes status and text (printf-like) unless error already holds one, and returns the status held: so
   `return error_set(error, ALLFOLD_IO_ERROR, "...")`. error may not be NULL. */
#if defined(__GNUC__)
__attribute__((format(printf, 3, 4)))
#endif
allfold_status error_set(struct error *error, allfold_status status, const char *format, ...);

/* The same for a failed system call: appends strerror(errno_value). */
#if defined(__GNUC__)
__attribute__((format(printf, 4, 5)))
#endif
allfold_status error_errno(struct error *error, allfold_status status, int errno_value, const char *format, ...);

/* Fails as *why says, with these words in front of its text: "WORDS: TEXT". Nothing if *why holds no error. */
#if defined(__GNUC__)
__attribute__((format(printf, 3, 4)))
#endif
allfold_status error_within(struct error *error, const struct error *why, const char *format, ...);
