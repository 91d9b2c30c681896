/* Small files with a checksum: see record_file.h. */
#include "store/record_file.h"

#include "array/array.h"
#include "array/file.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* In the file: this, the contents, and the checksum of both. Little-endian, as all that the program reads and writes. */
struct head {
    char magic[RECORD_MAGIC_BYTES];
    uint64_t bytes; /* of the contents */
};

uint64_t checksum(uint64_t sum, const void *bytes, size_t count)
{
    const unsigned char *const byte = bytes;
    for (size_t i = 0; i < count; i++)
        sum = (sum ^ byte[i]) * UINT64_C(0x100000001b3);
    return sum;
}

static allfold_status temporary_name(const char *path, const char *what, char temporary[ARRAY_PATH_BYTES],
                                     struct error *error)
{
    if (snprintf(temporary, ARRAY_PATH_BYTES, "%s.tmp", path) >= ARRAY_PATH_BYTES)
        return error_set(error, ALLFOLD_BAD_ARGUMENT, "%s: %s: expected a path of less than %d bytes", file_shown(path),
                         what, ARRAY_PATH_BYTES - 4);
    return ALLFOLD_OK;
}

/* Head, contents and checksum in one piece of memory, to be freed; NULL where there is none. */
static char *seal(const char magic[RECORD_MAGIC_BYTES], const void *contents, size_t bytes)
{
    struct head head = {.bytes = bytes};
    char *const sealed = malloc(sizeof head + bytes + sizeof(uint64_t));
    if (sealed == NULL)
        return NULL;
    memcpy(head.magic, magic, sizeof head.magic);
    memcpy(sealed, &head, sizeof head);
    memcpy(sealed + sizeof head, contents, bytes);
    const uint64_t sum = checksum(CHECKSUM_START, sealed, sizeof head + bytes);
    memcpy(sealed + sizeof head + bytes, &sum, sizeof sum);
    return sealed;
}

static allfold_status write_durable(const char *temporary, const char *what, const char *bytes, size_t count,
                                    struct error *error)
{
    const int fd = open(temporary, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0666);
    int synced;
    if (fd < 0)
        return error_errno(error, ALLFOLD_IO_ERROR, errno, "%s: cannot make %s", file_shown(temporary), what);
    if (file_write(fd, temporary, 0, count, bytes, 1, error) == ALLFOLD_OK) {
        while ((synced = fsync(fd)) != 0 && errno == EINTR)
            ;
        if (synced != 0)
            error_errno(error, ALLFOLD_IO_ERROR, errno, "%s: cannot make %s durable", file_shown(temporary), what);
    }
    if (close(fd) != 0 && errno != EINTR)
        error_errno(error, ALLFOLD_IO_ERROR, errno, "%s: cannot close %s", file_shown(temporary), what);
    return error->status;
}

allfold_status record_file_write(const char *path, const char *what, const char magic[RECORD_MAGIC_BYTES],
                            const void *contents, size_t bytes, struct error *error)
{
    char temporary[ARRAY_PATH_BYTES];
    if (temporary_name(path, what, temporary, error) != ALLFOLD_OK)
        return error->status;
    char *const sealed = seal(magic, contents, bytes);
    if (sealed == NULL)
        return error_set(error, ALLFOLD_NO_MEMORY, "%s: no memory for %s", file_shown(path), what);
    if (write_durable(temporary, what, sealed, sizeof(struct head) + bytes + sizeof(uint64_t), error) == ALLFOLD_OK
        && rename(temporary, path) != 0)
        error_errno(error, ALLFOLD_IO_ERROR, errno, "%s: cannot give %s its name", file_shown(path), what);
    if (error->status != ALLFOLD_OK)
        unlink(temporary);
    free(sealed);
    return error->status;
}

static allfold_status check(const char *path, const char *what, const char magic[RECORD_MAGIC_BYTES], const char *sealed,
                            size_t bytes, struct error *error)
{
    struct head head;
    uint64_t sum;
    memcpy(&head, sealed, sizeof head);
    memcpy(&sum, sealed + sizeof head + bytes, sizeof sum);
    if (memcmp(head.magic, magic, sizeof head.magic) != 0)
        return error_set(error, ALLFOLD_BAD_INPUT, "%s: expected %s, found a file of another kind", file_shown(path), what);
    if (head.bytes != bytes || sum != checksum(CHECKSUM_START, sealed, sizeof head + bytes))
        return error_set(error, ALLFOLD_BAD_INPUT, "%s: %s is damaged: its checksum is not that of its contents",
                         file_shown(path), what);
    return ALLFOLD_OK;
}

static allfold_status read_sealed(int fd, const char *path, const char *what, const char magic[RECORD_MAGIC_BYTES],
                                  void *contents, size_t bytes, struct error *error)
{
    const size_t all = sizeof(struct head) + bytes + sizeof(uint64_t);
    char *const sealed = malloc(all);
    if (sealed == NULL)
        return error_set(error, ALLFOLD_NO_MEMORY, "%s: no memory for %s", file_shown(path), what);
    if (file_read(fd, path, 0, all, sealed, 1, error) == ALLFOLD_OK
        && check(path, what, magic, sealed, bytes, error) == ALLFOLD_OK)
        memcpy(contents, sealed + sizeof(struct head), bytes);
    free(sealed);
    return error->status;
}

allfold_status record_file_read(const char *path, const char *what, const char magic[RECORD_MAGIC_BYTES], void *contents,
                           size_t bytes, bool *exists, struct error *error)
{
    const uint64_t expected = sizeof(struct head) + bytes + sizeof(uint64_t);
    uint64_t found;
    *exists = false;
    if (access(path, F_OK) != 0 && errno == ENOENT)
        return ALLFOLD_OK;
    const int fd = file_open(path, &found, error);
    if (fd < 0)
        return error->status;
    *exists = true;
    if (found == expected)
        read_sealed(fd, path, what, magic, contents, bytes, error);
    else
        error_set(error, ALLFOLD_BAD_INPUT, "%s: expected %s of %" PRIu64 " bytes, found %" PRIu64
                  ": it is damaged, or of another kind", file_shown(path), what, expected, found);
    close(fd);
    return error->status;
}

allfold_status record_file_remove(const char *path, const char *what, struct error *error)
{
    char temporary[ARRAY_PATH_BYTES];
    if (temporary_name(path, what, temporary, error) != ALLFOLD_OK)
        return error->status;
    unlink(temporary);
    if (unlink(path) != 0 && errno != ENOENT)
        return error_errno(error, ALLFOLD_IO_ERROR, errno, "%s: cannot remove %s", file_shown(path), what);
    return ALLFOLD_OK;
}
