/* The base of every part of the program: the public tables without MPI, errors, and small helpers. */
#pragma once

#define ALLFOLD_WITHOUT_MPI
#include "allfold.h"
#undef ALLFOLD_WITHOUT_MPI

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

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

/* A range of the global index space. */
struct range {
    uint64_t first;
    uint64_t count;
};

/* Element x stands for scale * x + offset. */
struct packing {
    double scale, offset;
};

/* Part `part` of `parts` (> 0) of [0, count): contiguous, in order, sizes that differ by at most one, integers only. */
static inline struct range range_part(uint64_t count, uint64_t part, uint64_t parts)
{
    const uint64_t size = count / parts, longer = count % parts;
    const uint64_t first = part * size + (part < longer ? part : longer);
    return (struct range){first, size + (part < longer ? 1 : 0)};
}

static inline uint64_t u64_min(uint64_t a, uint64_t b) { return a < b ? a : b; }
static inline uint64_t u64_max(uint64_t a, uint64_t b) { return a > b ? a : b; }

/* The type or fold of that name (NumPy's names too); false if there is none. */
bool type_by_name(const char *name, allfold_type *type);
bool fold_by_name(const char *name, allfold_fold *fold);
bool type_exists(allfold_type type); /* false for ALLFOLD_TYPE_NONE and for numbers that are no type */
unsigned type_number_bits(allfold_type type); /* bits of an element's number: 8 a byte, for bool 1 */
char type_kind(allfold_type type);   /* 'f', 'i', 'u' or 'b' */
const char *type_numpy_name(allfold_type type);

/* Monotonic seconds. */
double clock_seconds(void);
