/* Members of .npz files that np.savez_compressed has deflated. */
#pragma once

#include "array/formats/zip.h"

/* The longest member that is read, as it was before: every rank keeps all of it in memory. */
#define NPZ_DEFLATED_BYTES_MAX (UINT64_C(1) << 30)

/* A member, as zip_locate has found it. name: of the array, for messages. */
struct npz_deflated {
    struct range place; /* of its deflated bytes in the file */
    uint64_t bytes;     /* of the .npy file that they make */
    uint64_t crc;
    uint64_t header;    /* bytes of it before the elements */
};

/* Inflates the member, checks it, and describes its array. */
allfold_status npz_deflated_describe(const struct input_file *file, const char *name, const struct npz_deflated *member,
                                     struct array_info *info, struct error *error);

/* Opens it: inflates it again, on each rank. */
allfold_status npz_deflated_open(const struct array_info *info, struct source **source, struct error *error);
