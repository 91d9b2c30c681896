/* The filters of HDF5's chunks that readers undo themselves, in parallel: deflate, zstd, shuffle and fletcher32. Formats:
   https://docs.hdfgroup.org/hdf5/v1_14/_f_m_t3.html and https://github.com/HDFGroup/hdf5_plugins (zstd). */
#pragma once

#include "base/base.h"

/* Numbers that the HDF Group has registered. */
enum { CHUNK_DEFLATE = 1, CHUNK_SHUFFLE = 2, CHUNK_FLETCHER32 = 3, CHUNK_ZSTD = 32015 };

#define CHUNK_FILTERS_MAX 8

/* A pipeline, in the order of writing. */
struct chunk_filters {
    int count;
    int id[CHUNK_FILTERS_MAX];
    size_t element_bytes; /* that shuffle works on */
};

/* Whether this build undoes the filter. */
bool chunk_filter_known(int id);
/* What a build would need to undo it: " (a build with libzstd-dev and --with-zstd undoes it)"; "" if none does, or this one. */
const char *chunk_filter_advice(int id);
/* "deflate"; NULL if the number is not one that many files have. */
const char *chunk_filter_name(int id);

/* One thread's decompressors, opened when they are first needed. All zero: none yet. */
struct chunk_decoder {
    void *deflate, *zstd;
    void *scratch[2]; /* of scratch_bytes each, for what lies between two filters */
    size_t scratch_bytes;
};

/* A chunk as it lies in the file. */
struct raw_chunk {
    const void *bytes;
    size_t count;
    uint32_t mask;  /* bit i: filter i was left out */
    size_t decoded; /* bytes of the chunk */
};

/* Writes the chunk's elements to destination, as the file orders their bytes. *error says what is wrong with
   the chunk, not where it lies. */
allfold_status chunk_decode(struct chunk_decoder *decoder, const struct chunk_filters *filters, const struct raw_chunk *chunk,
                            void *destination, struct error *error);
void chunk_decoder_close(struct chunk_decoder *decoder);
