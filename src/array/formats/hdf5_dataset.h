/* The files behind the formats hdf5 and netcdf4: hdf5_file.c (the library, its lock, errors and types), hdf5_dataset.c (what is known of a
   dataset), hdf5_attributes.c, hdf5_read.c (its elements), hdf5.c (the formats). The library is the serial one: all calls are made under one lock. */
#pragma once

#include "array/formats/chunk_filters.h"
#include "array/formats/formats.h"

#define H5_USE_110_API 1
#include <hdf5.h>

/* Chunks are decompressed whole: a thread needs one and its compressed bytes. */
#define HDF5_CHUNK_BYTES_MAX (UINT64_C(256) << 20)

/* The library's lock. hdf5_lock also prepares the library when a thread first takes it. */
void hdf5_lock(void);
void hdf5_unlock(void);

/* Under the lock: *error gets the library's own reason behind these words. */
__attribute__((format(printf, 3, 4))) allfold_status hdf5_failed(struct error *error, allfold_status status, const char *format, ...);

/* Under the lock. Opens the file for reading; negative on an error. The message does not name it. */
hid_t hdf5_file_open(const char *path, struct error *error);

/* Under the lock: the element type of numbers that this library's type describes, and their byte order. ALLFOLD_TYPE_NONE: they are
   no elements of ours. */
allfold_type hdf5_element_type(hid_t type, bool *swapped);
/* The same type in memory: in this machine's byte order. The caller closes it. */
hid_t hdf5_memory_type(hid_t file_type, bool swapped);

/* How a dataset's elements are read. */
enum hdf5_access {
    HDF5_CONTIGUOUS, /* they lie in the file as they are */
    HDF5_CHUNKED,    /* chunks are read raw, and decoded by this program */
    HDF5_BY_LIBRARY  /* by H5Dread, under the lock, a block at a time: a chunk, or some part of a dataset without chunks */
};

struct hdf5_dataset {
    hid_t dataset;
    allfold_type type; /* as stored; ALLFOLD_TYPE_NONE if it is refused */
    bool swapped, chunked;
    enum hdf5_access access;
    uint64_t offset;   /* HDF5_CONTIGUOUS: of the first element in the file */
    uint32_t dimensions;
    uint64_t shape[ARRAY_DIMENSIONS_MAX];
    uint64_t block[ARRAY_DIMENSIONS_MAX]; /* shape of a chunk, or of what is read at a time */
    struct chunk_filters filters;         /* of HDF5_CHUNKED */
    bool edges_unfiltered;                /* chunks that the array's edge cuts are stored without filters */
    unsigned char fill[8];                /* what unallocated chunks hold: an element as in memory */
    char filters_text[96];                /* all filters: "shuffle, deflate" */
    char library_filter[128];             /* HDF5_BY_LIBRARY because of this filter; "" if not because of one */
    char type_text[64];                   /* if it is refused: the type in HDF5's words */
    struct error refused;                 /* why it cannot be read, without its name; ALLFOLD_OK: it can */
    bool is_dimension;                    /* a NetCDF dimension that is no variable */
};

/* Under the lock. Opens the dataset called name, with or without a leading slash, and finds out all of the above. The file stays the
   caller's. A dataset that cannot be read, or even opened, is no error: `refused` says why. False: there is no dataset of that name. */
bool hdf5_dataset_open(hid_t file, const char *name, struct hdf5_dataset *dataset);
void hdf5_dataset_close(struct hdf5_dataset *dataset);

/* Under the lock: an attribute_find for encoding_describe. user is the struct hdf5_dataset. A long text is cut. */
bool hdf5_attribute_find(void *user, const char *name, struct attribute *attribute, struct error *error);

/* Under the lock: calls visit for the attributes of an object that are numbers or texts, but not for HDF5's and NetCDF's own. */
void hdf5_attributes_visit(hid_t object, attribute_visit *visit, void *user);

/* Opens a described dataset that is not HDF5_CONTIGUOUS (hdf5_read.c). */
allfold_status hdf5_source_open(const struct array_info *info, struct source **source, struct error *error);
