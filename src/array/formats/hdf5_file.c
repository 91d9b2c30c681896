/* The HDF5 library: its lock, its errors, its files. See hdf5_dataset.h. */
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
