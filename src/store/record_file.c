/* Writes and reads small files with a checksum: see record_file.h. */
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

static size_t file_bytes(const struct record_kind *kind, size_t tail) { return sizeof(struct head) + kind->bytes + tail + sizeof(uint64_t); }

/* A file that is there and holds something must begin as one of the kind: other files are not replaced. */
static void check_replaced(const char *path, const struct record_kind *kind, struct error *error)
{
    char magic[sizeof kind->magic] = "";
    uint64_t bytes = 0;
    const int fd = access(path, F_OK) == 0 ? file_open(path, &bytes, error) : -1;
    if (fd < 0)
        return;
    file_read(&(struct file_range){fd, path, 0, u64_min(bytes, sizeof magic)}, magic, error);
    close(fd);
    if (bytes > 0 && memcmp(magic, kind->magic, sizeof magic) != 0)
        error_set(error, ALLFOLD_BAD_INPUT, "%s: expected no file yet or %s, found a file of another kind, which is not replaced",
                  file_shown(path), kind->name);
}

allfold_status record_file_create(const char *path, const struct record_kind *kind, struct replacement *file,
                                  struct error *error)
{
    if (replacement_create(path, file_bytes(kind, 0), NULL, file, error) != ALLFOLD_OK)
        return error->status;
    check_replaced(file->path, kind, error);
    if (error->status != ALLFOLD_OK)
        replacement_discard(file);
    return error->status;
}

allfold_status record_file_renew(struct replacement *file, const struct record_kind *kind, size_t tail, struct error *error)
{
    file->bytes = file_bytes(kind, tail);
    return replacement_renew(file, error);
}

allfold_status record_file_write(const struct replacement *file, const struct record_kind *kind, const void *contents,
                                 const struct record_tail *tail, struct error *error)
{
    struct head head = {.bytes = kind->bytes + (tail != NULL ? tail->bytes : 0)};
    uint64_t sum = CHECKSUM_START, at = 0;
    int synced;
    memcpy(head.magic, kind->magic, sizeof head.magic);
    const struct {
        const void *memory;
        size_t bytes;
    } parts[] = {{&head, sizeof head}, {contents, kind->bytes}, {tail != NULL ? tail->memory : NULL, tail != NULL ? tail->bytes : 0},
                 {&sum, sizeof sum}};
    for (int i = 0; i < 4 && error->status == ALLFOLD_OK; i++) {
        const struct file_range range = {file->descriptor, file->path, at, parts[i].bytes};
        if (parts[i].bytes > 0 && file_write(&range, parts[i].memory, error) == ALLFOLD_OK && i < 3)
            sum = checksum(sum, parts[i].memory, parts[i].bytes);
        at += parts[i].bytes;
    }
    if (error->status != ALLFOLD_OK)
        return error->status;
    while ((synced = fsync(file->descriptor)) != 0 && errno == EINTR)
        ;
    if (synced != 0)
        error_errno(error, ALLFOLD_IO_ERROR, errno, "%s: cannot make %s durable", file_shown(file->path), kind->name);
    return error->status;
}

/* Before the whole file is read, however long it is. */
static allfold_status check_head(const struct file_range *file, const struct record_kind *kind, struct error *error)
{
    struct head head;
    if (file_read(&(struct file_range){file->fd, file->path, 0, sizeof head}, &head, error) != ALLFOLD_OK)
        return error->status;
    if (memcmp(head.magic, kind->magic, sizeof head.magic) != 0)
        return error_set(error, ALLFOLD_BAD_INPUT, "%s: expected %s, found a file of another kind", file_shown(file->path), kind->name);
    if (head.bytes != file->bytes - sizeof head - sizeof(uint64_t))
        return error_set(error, ALLFOLD_BAD_INPUT, "%s: %s is damaged: its length is not the one that it begins with",
                         file_shown(file->path), kind->name);
    return ALLFOLD_OK;
}

static allfold_status check_sum(const char *path, const struct record_kind *kind, const struct record_tail *whole, struct error *error)
{
    const size_t summed = whole->bytes - sizeof(uint64_t);
    uint64_t sum;
    memcpy(&sum, (char *)whole->memory + summed, sizeof sum);
    if (sum == checksum(CHECKSUM_START, whole->memory, summed))
        return ALLFOLD_OK;
    return error_set(error, ALLFOLD_BAD_INPUT, "%s: %s is damaged: its checksum is not that of its contents", file_shown(path), kind->name);
}

/* Copies contents and tail of a file that is right. */
static allfold_status take(const struct record_kind *kind, const struct record_tail *whole, void *contents, struct record_tail *tail,
                           struct error *error)
{
    const char *const from = (char *)whole->memory + sizeof(struct head);
    const size_t bytes = whole->bytes - file_bytes(kind, 0);
    void *const memory = bytes > 0 ? malloc(bytes) : NULL;
    if (bytes > 0 && memory == NULL)
        return error_set(error, ALLFOLD_NO_MEMORY, "no memory for %s", kind->name);
    if (bytes > 0)
        memcpy(memory, from + kind->bytes, bytes);
    if (tail != NULL)
        *tail = (struct record_tail){memory, bytes};
    memcpy(contents, from, kind->bytes);
    return ALLFOLD_OK;
}

allfold_status record_file_read(const char *path, const struct record_kind *kind, void *contents, struct record_tail *tail,
                                struct error *error)
{
    uint64_t found;
    if (access(path, F_OK) != 0 && errno == ENOENT)
        return error_set(error, ALLFOLD_IO_ERROR, "%s: expected %s, found no such file", file_shown(path), kind->name);
    const int fd = file_open(path, &found, error);
    if (fd < 0)
        return error->status;
    const struct file_range file = {fd, path, 0, found};
    struct record_tail whole = {NULL, (size_t)found};
    if (found < file_bytes(kind, 0) || (tail == NULL && found > file_bytes(kind, 0)))
        error_set(error, ALLFOLD_BAD_INPUT, "%s: expected %s of %zu bytes%s, found %" PRIu64 ": it is damaged, or of another kind",
                  file_shown(path), kind->name, file_bytes(kind, 0), tail != NULL ? " or more" : "", found);
    else if (check_head(&file, kind, error) == ALLFOLD_OK && (whole.memory = malloc(whole.bytes)) == NULL)
        error_set(error, ALLFOLD_NO_MEMORY, "%s: no memory for %s", file_shown(path), kind->name);
    else if (whole.memory != NULL && file_read(&file, whole.memory, error) == ALLFOLD_OK
             && check_sum(path, kind, &whole, error) == ALLFOLD_OK)
        take(kind, &whole, contents, tail, error);
    free(whole.memory);
    close(fd);
    return error->status;
}
