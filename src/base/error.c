/* Writes the text of errors: see error.h. */
#include "base/error.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

const char *allfold_status_text(allfold_status status)
{
    switch (status) {
    case ALLFOLD_OK: return "done";
    case ALLFOLD_BAD_ARGUMENT: return "bad argument";
    case ALLFOLD_BAD_INPUT: return "bad input";
    case ALLFOLD_NO_VALUE: return "no value";
    case ALLFOLD_OVERFLOW: return "integer overflow";
    case ALLFOLD_UNSUPPORTED: return "not supported";
    case ALLFOLD_NO_MEMORY: return "out of memory";
    case ALLFOLD_IO_ERROR: return "input/output error";
    case ALLFOLD_DEVICE_ERROR: return "device error";
    case ALLFOLD_MPI_ERROR: return "MPI error";
    case ALLFOLD_STOPPED: return "stopped";
    }
    return "unknown status";
}

static allfold_status set(struct error *error, allfold_status status, const char *reason, const char *format, va_list args)
{
    if (error->status != ALLFOLD_OK)
        return error->status;
    error->status = status;
    const int length = vsnprintf(error->text, sizeof error->text, format, args);
    if (reason != NULL && length >= 0 && (size_t)length < sizeof error->text)
        snprintf(error->text + length, sizeof error->text - (size_t)length, ": %s", reason);
    return status;
}

allfold_status error_set(struct error *error, allfold_status status, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    status = set(error, status, NULL, format, args);
    va_end(args);
    return status;
}

allfold_status error_errno(struct error *error, allfold_status status, int errno_value, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    status = set(error, status, strerror(errno_value), format, args);
    va_end(args);
    return status;
}

allfold_status error_within(struct error *error, const struct error *why, const char *format, ...)
{
    char words[ALLFOLD_ERROR_BYTES];
    va_list args;
    if (why->status == ALLFOLD_OK)
        return error->status;
    va_start(args, format);
    vsnprintf(words, sizeof words, format, args);
    va_end(args);
    return error_set(error, why->status, "%s: %s", words, why->text);
}
