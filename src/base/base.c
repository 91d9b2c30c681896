/* Names from the public tables, errors, the clock. */
#include "base/base.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

static const struct {
    const char *name, *numpy;
    size_t bytes;
    char kind;
} types[ALLFOLD_TYPE_COUNT] = {
#define ROW(ID, name, numpy, bytes, kind, value) [ALLFOLD_##ID] = {#name, numpy, bytes, kind},
    ALLFOLD_TYPES(ROW)
#undef ROW
};

static const struct {
    const char *name;
    size_t results;
} folds[] = {
#define ROW(ID, name, monoid, results, text) {#name, results},
    ALLFOLD_FOLDS(ROW)
#undef ROW
};

const char *allfold_type_name(allfold_type type) { return type_exists(type) ? types[type].name : "no type"; }
const char *allfold_fold_name(allfold_fold fold) { return fold < ALLFOLD_FOLD_COUNT ? folds[fold].name : "no fold"; }
size_t allfold_type_bytes(allfold_type type) { return type_exists(type) ? types[type].bytes : 0; }
size_t allfold_result_count(allfold_fold fold) { return fold < ALLFOLD_FOLD_COUNT ? folds[fold].results : 0; }
bool type_exists(allfold_type type) { return type > ALLFOLD_TYPE_NONE && type < ALLFOLD_TYPE_COUNT; }
unsigned type_number_bits(allfold_type type) { return type_kind(type) == 'b' ? 1 : 8 * (unsigned)allfold_type_bytes(type); }
char type_kind(allfold_type type) { return types[type].kind; }
const char *type_numpy_name(allfold_type type) { return types[type].numpy; }
const char *allfold_version(void) { return ALLFOLD_VERSION; }

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

double allfold_number(allfold_value value)
{
    switch (value.kind) {
    case ALLFOLD_VALUE_I64: return (double)value.i64;
    case ALLFOLD_VALUE_U64: return (double)value.u64;
    default: return value.f64;
    }
}

const allfold_result *allfold_result_find(const allfold_results *results, const char *name)
{
    for (size_t i = 0; i < results->count; i++)
        if (strcmp(results->results[i].name, name) == 0)
            return &results->results[i];
    return NULL;
}

bool type_by_name(const char *name, allfold_type *type)
{
    for (int i = ALLFOLD_TYPE_NONE + 1; i < ALLFOLD_TYPE_COUNT; i++)
        if (strcmp(name, types[i].name) == 0 || strcmp(name, types[i].numpy) == 0) {
            *type = (allfold_type)i;
            return true;
        }
    return false;
}

bool fold_by_name(const char *name, allfold_fold *fold)
{
    for (int i = 0; i < ALLFOLD_FOLD_COUNT; i++)
        if (strcmp(name, folds[i].name) == 0) {
            *fold = (allfold_fold)i;
            return true;
        }
    return false;
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

double clock_seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}
