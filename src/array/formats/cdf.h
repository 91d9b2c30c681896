/* The header of classic NetCDF files, CDF-1, 2 and 5: https://docs.unidata.ucar.edu/netcdf-c/current/file_format_specifications.html */
#pragma once

#include "array/formats/formats.h"

#define CDF_NAME_BYTES 1024

struct cdf_dimension {
    char *name;
    uint64_t length; /* of the record dimension 0 in the file; here the number of records */
    bool record;
};

struct cdf_variable {
    char *name;
    uint32_t file_type; /* nc_type, 1 to 11 */
    uint64_t dimensions;
    uint64_t ids[ARRAY_DIMENSIONS_MAX]; /* of its dimensions, if they are not too many */
    uint64_t attributes, attribute_count; /* the byte at which they begin */
    uint64_t begin;                     /* byte of its first element */
    bool record;                        /* its first dimension is the record dimension */
    uint64_t count;                     /* elements, of a record if it has records */
    uint64_t bytes;                     /* of these */
};

struct cdf {
    unsigned version; /* 1, 2 or 5 */
    uint64_t records;
    uint64_t record_bytes; /* from the begin of a record to that of the next */
    struct cdf_dimension *dimensions;
    struct cdf_variable *variables;
    uint64_t dimension_count, variable_count;
    uint64_t header_bytes;
};

/* Parses the header. Of *cdf the caller frees what there is, also after an error. */
allfold_status cdf_read(const struct input_file *file, struct cdf *cdf, struct error *error);
void cdf_free(struct cdf *cdf);

/* The type of elements of an nc_type; ALLFOLD_TYPE_NONE: characters. Their name in NetCDF's words, and their size. */
allfold_type cdf_type(uint32_t file_type);
const char *cdf_type_name(uint32_t file_type);

/* A variable's attributes. */
struct cdf_attributes {
    const struct input_file *file;
    const struct cdf *cdf;
    const struct cdf_variable *variable;
};
/* An attribute_find (encoding.h) for encoding_describe. user is the struct cdf_attributes. */
bool cdf_find_attribute(void *user, const char *name, struct attribute *attribute, struct error *error);
