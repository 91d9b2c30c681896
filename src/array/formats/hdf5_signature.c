/* How an HDF5 file is told, with and without the library. */
#include "array/formats/formats.h"

#include <string.h>
#include <unistd.h>

bool hdf5_recognises(const struct input_file *file)
{
    static const unsigned char signature[8] = {0x89, 'H', 'D', 'F', '\r', '\n', 0x1a, '\n'};
    unsigned char found[sizeof signature];
    if (file->fd < 0)
        return false;
    if (file->head_bytes >= sizeof signature && memcmp(file->head, signature, sizeof signature) == 0)
        return true;
    for (off_t offset = 512; offset <= 2048; offset *= 2)
        if (pread(file->fd, found, sizeof found, offset) == (ssize_t)sizeof found && memcmp(found, signature, sizeof found) == 0)
            return true;
    return false;
}
