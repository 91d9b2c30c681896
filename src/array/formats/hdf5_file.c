/* The HDF5 library: its lock, its errors, its files, its types. See hdf5_dataset.h. */
#include "array/formats/hdf5_dataset.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

void hdf5_lock(void)
{
    static _Thread_local bool ready; /* a library for several threads has a stack of errors for each */
    pthread_mutex_lock(&mutex);
    if (!ready) {
        H5Eset_auto2(H5E_DEFAULT, NULL, NULL); /* its errors become ours */
        ready = true;
    }
}

void hdf5_unlock(void) { pthread_mutex_unlock(&mutex); }

/* The reason nearest to the cause that has words. */
static herr_t take_reason(unsigned n, const H5E_error2_t *reason, void *user)
{
    char *const text = user;
    (void)n;
    if (text[0] == '\0' && reason->desc != NULL)
        snprintf(text, ALLFOLD_ERROR_BYTES / 2, "%s", reason->desc);
    return 0;
}

allfold_status hdf5_failed(struct error *error, allfold_status status, const char *format, ...)
{
    char words[ALLFOLD_ERROR_BYTES], reason[ALLFOLD_ERROR_BYTES / 2] = "";
    va_list args;
    va_start(args, format);
    vsnprintf(words, sizeof words, format, args);
    va_end(args);
    H5Ewalk2(H5E_DEFAULT, H5E_WALK_UPWARD, take_reason, reason);
    return error_set(error, status, "%s: HDF5: %s", words, reason[0] != '\0' ? reason : "no reason given");
}

/* Versions of the library differ in the numbers of this error. */
static herr_t find_lock(unsigned n, const H5E_error2_t *reason, void *locked)
{
    (void)n;
    *(bool *)locked |= reason->desc != NULL && strncmp(reason->desc, "unable to lock", 14) == 0;
    return 0;
}

hid_t hdf5_file_open(const char *path, struct error *error)
{
    bool locked = false;
    const hid_t file = H5Fopen(path, H5F_ACC_RDONLY, H5P_DEFAULT);
    if (file >= 0)
        return file;
    H5Ewalk2(H5E_DEFAULT, H5E_WALK_UPWARD, find_lock, &locked);
    if (locked)
        hdf5_failed(error, ALLFOLD_IO_ERROR, "a program that writes the file holds its lock: wait for it, or set HDF5_USE_FILE_LOCKING=FALSE if "
                    "nothing writes");
    else
        hdf5_failed(error, ALLFOLD_BAD_INPUT, "cannot open it");
    return file;
}

/* ---- types of elements */

/* The floating-point types of IEEE 754, by size and by where their fields begin. */
static const struct {
    allfold_type type;
    size_t bytes, sign, exponent, exponent_bits, fraction_bits;
} real_types[] = {{ALLFOLD_F16, 2, 15, 10, 5, 10}, {ALLFOLD_F32, 4, 31, 23, 8, 23}, {ALLFOLD_F64, 8, 63, 52, 11, 52}};

static allfold_type real_type(hid_t type)
{
    size_t sign, exponent, exponent_bits, fraction, fraction_bits;
    if (H5Tget_fields(type, &sign, &exponent, &exponent_bits, &fraction, &fraction_bits) < 0)
        return ALLFOLD_TYPE_NONE;
    for (size_t i = 0; i < sizeof real_types / sizeof *real_types; i++)
        if (H5Tget_size(type) == real_types[i].bytes && sign == real_types[i].sign && exponent == real_types[i].exponent
            && exponent_bits == real_types[i].exponent_bits && fraction == 0 && fraction_bits == real_types[i].fraction_bits
            && H5Tget_ebias(type) == ((size_t)1 << (exponent_bits - 1)) - 1 && H5Tget_norm(type) == H5T_NORM_IMPLIED)
            return real_types[i].type;
    return ALLFOLD_TYPE_NONE;
}

static allfold_type integer_type(hid_t type, bool is_signed)
{
    static const allfold_type types[2][4] = {{ALLFOLD_UINT8, ALLFOLD_UINT16, ALLFOLD_UINT32, ALLFOLD_UINT64},
                                             {ALLFOLD_INT8, ALLFOLD_INT16, ALLFOLD_INT32, ALLFOLD_INT64}};
    const size_t bytes = H5Tget_size(type);
    if (H5Tget_precision(type) != 8 * bytes || H5Tget_offset(type) != 0)
        return ALLFOLD_TYPE_NONE;
    for (int i = 0; i < 4; i++)
        if (bytes == (size_t)1 << i)
            return types[is_signed][i];
    return ALLFOLD_TYPE_NONE;
}

/* h5py's bool is an enumeration of one byte: FALSE = 0, TRUE = 1. */
static bool is_bool(hid_t type)
{
    static const char *const names[] = {"FALSE", "TRUE"};
    if (H5Tget_size(type) != 1 || H5Tget_nmembers(type) != 2)
        return false;
    for (int i = 0; i < 2; i++) {
        signed char value = -1;
        if (H5Tenum_valueof(type, names[i], &value) < 0 || value != i)
            return false;
    }
    return true;
}

allfold_type hdf5_element_type(hid_t type, bool *swapped)
{
    const H5T_order_t order = H5Tget_order(type);
    *swapped = H5Tget_size(type) > 1 && order != H5Tget_order(H5T_NATIVE_INT);
    if (order != H5T_ORDER_LE && order != H5T_ORDER_BE && H5Tget_size(type) > 1)
        return ALLFOLD_TYPE_NONE;
    switch (H5Tget_class(type)) {
    case H5T_INTEGER: return integer_type(type, H5Tget_sign(type) == H5T_SGN_2);
    case H5T_BITFIELD: return integer_type(type, false);
    case H5T_FLOAT: return real_type(type);
    case H5T_ENUM: return is_bool(type) ? ALLFOLD_BOOL : ALLFOLD_TYPE_NONE;
    default: return ALLFOLD_TYPE_NONE;
    }
}

hid_t hdf5_memory_type(hid_t file_type, bool swapped)
{
    const hid_t type = H5Tcopy(file_type);
    if (swapped)
        H5Tset_order(type, H5Tget_order(H5T_NATIVE_INT));
    return type;
}
