/* The .npy format, versions 1.0 to 3.0: https://numpy.org/neps/nep-0001-npy-format.html */
#pragma once

#include "array/array.h"

#define NPY_MAGIC "\x93NUMPY"
#define NPY_MAGIC_BYTES 6
#define NPY_HEADER_BYTES_MAX 1024 /* of what npy_header writes: 32 dimensions of 20 digits fit */

/* Sets type, dimensions, fortran_order, shape and count of *info, and the byte order, from a header's text, the literal of a Python
   dictionary. */
allfold_status npy_parse(const char *text, size_t bytes, struct array_info *info, struct error *error);

/* Where an .npy file lies: a file of its own, or part of one. */
struct input_file;
struct npy_place {
    const struct input_file *file;
    uint64_t offset, bytes;
    const unsigned char *memory; /* not NULL: it lies there, and offset is 0 */
};

/* The same for an open file, and its layout; checks the magic, and that the file is exactly as large as its header implies. */
allfold_status npy_describe(const struct npy_place *place, struct array_info *info, struct error *error);

/* Whether NumPy has the type: of floating-point types only those of IEEE 754 (half, single, double), which it names by their bits. */
bool npy_has(allfold_type type);

/* Writes the header that NumPy would write (version 1.0) and returns its length, a multiple of 64. npy_has info's
   type. */
size_t npy_header(const struct array_info *info, char header[NPY_HEADER_BYTES_MAX]);
