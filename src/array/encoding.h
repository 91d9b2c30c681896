/* Reads what NetCDF's attributes say of an array, and applies it: which elements are missing (_FillValue, missing_value),
   how they are packed (scale_factor, add_offset), and that integers are unsigned (_Unsigned). Used by the formats that have
   attributes. */
#pragma once

#include "base/base.h"

#define MISSING_VALUES_MAX 16
#define ATTRIBUTE_BYTES_MAX 256

/* Plain bytes; all zero: elements are values, and none is missing. */
struct encoding {
    allfold_type stored;                  /* type of the elements in the file; ALLFOLD_TYPE_NONE: that of the array */
    uint32_t missing_count, missing_nan;  /* missing_nan, 1: NaN is missing */
    uint32_t packed;                      /* 1: elements stand for others, as `packing` says */
    uint32_t unused;
    struct packing packing;
    uint64_t missing[MISSING_VALUES_MAX]; /* elements of the stored type that are missing, each in the first bytes of its word */
};

/* A numeric attribute's values in host byte order, or a text. */
struct attribute {
    allfold_type type; /* ALLFOLD_TYPE_NONE: text */
    uint64_t count;    /* of values, or of bytes of the text */
    _Alignas(8) unsigned char values[ATTRIBUTE_BYTES_MAX];
};

/* Finds the array's attribute of that name. False: there is none, or *error says why it cannot be read. An attribute of more than
   ATTRIBUTE_BYTES_MAX bytes, or of another kind than numbers and text, is such an error. */
typedef bool attribute_find(void *user, const char *name, struct attribute *attribute, struct error *error);

/* Sets *encoding from the attributes of an array whose elements lie in the file as *type. *type becomes the type of the elements that
   readers give: unsigned if _Unsigned says so, f64 if the elements are packed. Missing values are compared in stored units: a
   value that the stored type cannot hold matches no element; one of more digits is rounded to the stored type. *error names the
   attribute, not the array. */
allfold_status encoding_describe(attribute_find *find, void *user, allfold_type *type, struct encoding *encoding, struct error *error);

static inline bool encoding_has_missing(const struct encoding *encoding)
{
    return encoding->missing_count > 0 || encoding->missing_nan != 0;
}

/* The missing values and the packing in words, "1e+20, nan" and "0.01 x + 273.15"; "" if there are none. */
#define ENCODING_TEXT_BYTES 512
void encoding_missing_text(const struct encoding *encoding, char text[ENCODING_TEXT_BYTES]);
void encoding_packing_text(const struct encoding *encoding, char text[ENCODING_TEXT_BYTES]);

/* Copies those of from[0 .. n), elements of the stored type, that are not missing to `to`, in order, and returns how many they are.
   to = from, or the two do not overlap. kept: a bitmap of n bits in words of 64, which is set: bit i says whether from[i] is not
   missing. */
uint64_t encoding_compact(const struct encoding *encoding, const void *from, uint64_t n, void *to, uint64_t *kept);

/* y[i] is what x[i] stands for, rounded once (x[i] as f64: integers beyond 2^53 are rounded first). x may lie in y's memory if it ends
   where y ends, or behind that. */
void encoding_unpack(const struct encoding *encoding, const void *x, uint64_t n, double *y);

/* The first position, of n, that is not kept; n if there is none. */
uint64_t encoding_first_missing(const uint64_t *kept, uint64_t n);

/* Where the k-th kept element (from 0) lies: the position of the k-th set bit. */
uint64_t encoding_select(const uint64_t *kept, uint64_t k);
