/* allfold-files: arrays in files, of which the functions of allfold.h take in place of an array in memory. The header of a library of its own,
   liballfold-files, so that programs that fold memory link no file formats. It works with the liballfold of its own version.

       allfold_source *source;
       allfold_result mean;
       if (allfold_source_open(context, "tas.nc:tas", NULL, &source) == ALLFOLD_OK) {
           allfold_reduce(context, ALLFOLD_MEAN, &(allfold_array){.data = source, .type = ALLFOLD_SOURCE}, NULL, &mean);
           allfold_source_close(source);
       }

   A source describes an array, and holds no elements and no open file: each call opens the file, and refuses one that was written to since
   allfold_source_open. It belongs to no context, and may be used by several threads at a time. */
#ifndef ALLFOLD_FILES_H
#define ALLFOLD_FILES_H

#include <allfold.h>

#ifdef __GNUC__
#pragma GCC visibility push(default) /* what the shared library exports */
#endif
#ifdef __cplusplus
extern "C" {
#endif

/* What calls make of missing elements (docs/missing.md). */
typedef enum {
    ALLFOLD_MISSING_OMIT = 0, /* leave them out; softmax and dot products, which need all, fail with ALLFOLD_NO_VALUE */
    ALLFOLD_MISSING_KEEP,     /* take them as the numbers that they are */
    ALLFOLD_MISSING_ERROR     /* fail with ALLFOLD_NO_VALUE */
} allfold_missing;

/* The program's options for an input, docs/formats.md. NULL means all defaults. Begin with ALLFOLD_SOURCE_OPTIONS_INIT, or set .size: as in
   allfold_options. In all fields except size zero means the default. */
typedef struct {
    size_t size;       /* sizeof(allfold_source_options) */
    allfold_missing missing;
    allfold_type type; /* of a raw file, which needs it */
    uint64_t offset;   /* bytes of a raw file, elements of any other, that come before the array */
    uint64_t count;    /* elements; 0: all that follow */
    const char *shape; /* "3,4", of an array that is a row, such as a raw file */
    const char *slice; /* "time=0:120,lat=-10:", by Python's rules: as --slice */
} allfold_source_options;
#define ALLFOLD_SOURCE_OPTIONS_INIT {sizeof(allfold_source_options), ALLFOLD_MISSING_OMIT, ALLFOLD_TYPE_NONE, 0, 0, NULL, NULL}

/* What a source is. Pointers belong to it. */
typedef struct {
    size_t size;               /* sizeof(allfold_source_facts): set by the caller. Later versions add fields at the end */
    const char *name;          /* FILE, or FILE:NAME */
    allfold_type type;         /* of the elements as calls take them: those of packed ones are f64 */
    uint64_t count;            /* product of the shape */
    int rank;                  /* 0: a scalar */
    int fortran_order;         /* 1: the first dimension varies fastest. Indices, and places of results along axes, count in the order of elements */
    const uint64_t *shape;
    const char *const *dimensions; /* their names; NULL: they have none */
} allfold_source_facts;

/* Opens the array of this name: "FILE", "FILE:NAME", a pattern of files that are joined, or a generator, as the program takes it. Rank 0 reads
   what describes it, and tells the others; all ranks need the file when its elements are read. Collective. On failure *source is NULL, and
   allfold_message says why. */
allfold_status allfold_source_open(allfold_context *context, const char *name, const allfold_source_options *options, allfold_source **source);

/* Part of a source, in the same dimensions: a source of its own. slice: as in the options, in indices of this source. Local: message (of
   message_bytes, cut to fit; may be NULL) says what is wrong, and is empty on success. */
allfold_status allfold_source_slice(const allfold_source *source, const char *slice, allfold_source **part, char *message, size_t message_bytes);

/* Local; the second ignores NULL. */
void allfold_source_describe(const allfold_source *source, allfold_source_facts *facts);
void allfold_source_close(allfold_source *source);

/* The names of a file's arrays of numbers, in its order, one behind the other, each with the 0 at its end: *count of them in *names, which the
   caller frees by free(). NULL: the name means one array, of a format without names, or by FILE:NAME. Collective. */
allfold_status allfold_source_list(allfold_context *context, const char *file, char **names, size_t *count);

#ifdef __cplusplus
}
#endif
#ifdef __GNUC__
#pragma GCC visibility pop
#endif
#endif /* ALLFOLD_FILES_H */
