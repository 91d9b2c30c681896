/* Lays out classic NetCDF, CDF-1, 2 or 5, and writes its header (netcdf_file.c), for results (output_netcdf.c). */
#pragma once

#include "array/array.h"

#include <stdio.h>

/* nc_type, as the file has it. */
enum netcdf_type {
    NETCDF_BYTE = 1, NETCDF_CHAR, NETCDF_SHORT, NETCDF_INT, NETCDF_FLOAT, NETCDF_DOUBLE, NETCDF_INT64 = 10, NETCDF_UINT64
};

enum { NETCDF_NAME_BYTES = 256, NETCDF_DIMENSIONS_MAX = ARRAY_DIMENSIONS_MAX, NETCDF_VARIABLES_MAX = ARRAY_DIMENSIONS_MAX + OUTPUT_ARRAYS_MAX };

/* Elements as the file has them: big-endian. */
struct netcdf_values {
    enum netcdf_type type;
    uint64_t count;
    void *bytes; /* from malloc */
};

struct netcdf_attribute {
    char name[NETCDF_NAME_BYTES];
    struct netcdf_values values;
};

struct netcdf_attributes {
    struct netcdf_attribute *list;
    size_t count;
};

struct netcdf_variable {
    char name[NETCDF_NAME_BYTES];
    uint32_t dimensions, ids[NETCDF_DIMENSIONS_MAX]; /* of those of the file */
    struct netcdf_attributes attributes;
    struct netcdf_values values; /* bytes is NULL: they are written later */
    uint64_t begin;              /* their first byte */
};

/* A file as it is made: all zero, nothing is in it. */
struct netcdf_file {
    uint32_t dimensions;
    struct {
        char name[NETCDF_NAME_BYTES];
        uint64_t length;
    } dimension[NETCDF_DIMENSIONS_MAX];
    int variables;
    struct netcdf_variable variable[NETCDF_VARIABLES_MAX];
    struct netcdf_attributes attributes;
    uint64_t room;                 /* bytes to be left behind the header */
    int version;                   /* set by netcdf_layout, as begins are, and */
    uint64_t header_bytes, bytes;  /* of the whole file */
    bool no_memory;                /* for something: the file is not whole */
};

size_t netcdf_type_bytes(enum netcdf_type type);

/* The values in a type of the file's that holds them all: CDF-5's only if no other does. False: there is none, or no
   memory. */
bool netcdf_convert(allfold_type type, uint64_t count, const void *values, struct netcdf_values *converted);

/* Adds an attribute, or takes its place if there is one of that name; one that the file cannot hold is left out. */
void netcdf_add(struct netcdf_file *file, struct netcdf_attributes *attributes, const struct array_attribute *attribute);
void netcdf_add_text(struct netcdf_file *file, struct netcdf_attributes *attributes, const char *name, const char *text);
const struct netcdf_attribute *netcdf_find(const struct netcdf_attributes *attributes, const char *name);
void netcdf_remove(struct netcdf_attributes *attributes, const char *name);
void netcdf_attributes_free(struct netcdf_attributes *attributes);

/* The name that a variable or a dimension may have: without slashes, and beginning as names must. */
void netcdf_name(const char *name, char spelled[NETCDF_NAME_BYTES]);

/* Chooses the version and all places. */
allfold_status netcdf_layout(struct netcdf_file *file, struct error *error);
/* Writes the header. */
void netcdf_write_header(const struct netcdf_file *file, FILE *to);
void netcdf_free(struct netcdf_file *file);
