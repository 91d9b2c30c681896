/* Small files with a checksum: see record_file.h. */
#include "store/record_file.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* In the file: this, the contents, and the checksum of both. Little-endian, as all that the program reads and writes. */
struct head {
    char magic[sizeof((struct record_kind *)NULL)->magic];
    uint64_t bytes; /* of the contents */
};

uint64_t checksum(uint64_t sum, const void *bytes, size_t count)
{
    const unsigned char *const byte = bytes;
    for (size_t i = 0; i < count; i++)
        sum = (sum ^ byte[i]) * UINT64_C(0x100000001b3);
    return sum;
}

static size_t file_bytes(const struct record_kind *kind) { return sizeof(struct head) + kind->bytes + sizeof(uint64_t); }

allfold_status record_file_create(const char *path, const struct record_kind *kind, struct replacement *file,
                                  struct error *error)
{
    return replacement_create(path, file_bytes(kind), file, error);
}

/* Memory for a whole file, to be freed. */
static char *allocate(const char *path, const struct record_kind *kind, struct error *error)
{
    char *const bytes = malloc(file_bytes(kind));
    if (bytes == NULL)
        error_set(error, ALLFOLD_NO_MEMORY, "%s: no memory for %s", file_shown(path), kind->name);
    return bytes;
}

allfold_status record_file_write(const struct replacement *file, const struct record_kind *kind, const void *contents,
                                 struct error *error)
{
    struct head head = {.bytes = kind->bytes};
    const size_t summed = sizeof head + kind->bytes;
    char *const bytes = allocate(file->path, kind, error);
    int synced;
    if (bytes == NULL)
        return error->status;
    memcpy(head.magic, kind->magic, sizeof head.magic);
    memcpy(bytes, &head, sizeof head);
    memcpy(bytes + sizeof head, contents, kind->bytes);
    const uint64_t sum = checksum(CHECKSUM_START, bytes, summed);
    memcpy(bytes + summed, &sum, sizeof sum);
    const struct file_range whole = {file->descriptor, file->path, 0, summed + sizeof sum};
    if (file_write(&whole, bytes, error) == ALLFOLD_OK) {
        while ((synced = fsync(file->descriptor)) != 0 && errno == EINTR)
            ;
        if (synced != 0)
            error_errno(error, ALLFOLD_IO_ERROR, errno, "%s: cannot make %s durable", file_shown(file->path), kind->name);
    }
    free(bytes);
    return error->status;
}

static allfold_status check(const char *path, const struct record_kind *kind, const char *bytes, struct error *error)
{
    const size_t summed = sizeof(struct head) + kind->bytes;
    struct head head;
    uint64_t sum;
    memcpy(&head, bytes, sizeof head);
    memcpy(&sum, bytes + summed, sizeof sum);
    if (memcmp(head.magic, kind->magic, sizeof head.magic) != 0)
        return error_set(error, ALLFOLD_BAD_INPUT, "%s: expected %s, found a file of another kind", file_shown(path),
                         kind->name);
    if (head.bytes != kind->bytes || sum != checksum(CHECKSUM_START, bytes, summed))
        return error_set(error, ALLFOLD_BAD_INPUT, "%s: %s is damaged: its checksum is not that of its contents",
                         file_shown(path), kind->name);
    return ALLFOLD_OK;
}

allfold_status record_file_read(const char *path, const struct record_kind *kind, void *contents, bool *exists,
                                struct error *error)
{
    uint64_t found;
    *exists = false;
    if (access(path, F_OK) != 0 && errno == ENOENT)
        return ALLFOLD_OK;
    const int fd = file_open(path, &found, error);
    if (fd < 0)
        return error->status;
    *exists = true;
    char *const bytes = allocate(path, kind, error);
    if (found != file_bytes(kind))
        error_set(error, ALLFOLD_BAD_INPUT, "%s: expected %s of %zu bytes, found %" PRIu64 ": it is damaged, or of another kind",
                  file_shown(path), kind->name, file_bytes(kind), found);
    else if (bytes != NULL && file_read(&(struct file_range){fd, path, 0, found}, bytes, error) == ALLFOLD_OK
             && check(path, kind, bytes, error) == ALLFOLD_OK)
        memcpy(contents, bytes + sizeof(struct head), kind->bytes);
    free(bytes);
    close(fd);
    return error->status;
}
