/* Writes output files of several arrays: NumPy's .npz, a zip archive of stored .npy members, all of one shape. Sizes are in
   64 bits (zip64), as NumPy writes them. The checksums of members are computed when all elements are there: they need them
   in order. */
#include "array/array.h"
#include "array/formats/npy.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    LOCAL_BYTES = 30 + 20,  /* before a member, beside its name: with the field that has sizes in 64 bits */
    ENTRY_BYTES = 46 + 28,  /* in the directory */
    END_BYTES = 56 + 20 + 22,
    CHECKSUM_IN_LOCAL = 14, /* where the checksum stands in these */
    CHECKSUM_IN_ENTRY = 16,
    ZIP_VERSION = 45,         /* of zip, which has zip64 */
    DATE = 33,              /* 1980-01-01: the file depends on its contents alone */
    NAME_BYTES = 64,
    SEAL_BYTES = 1 << 20
};

/* Bytes that are put one behind the other, little-endian. */
struct writer {
    unsigned char *at;
};

static void put(struct writer *w, uint64_t value, int bytes)
{
    for (int i = 0; i < bytes; i++)
        *w->at++ = (unsigned char)(value >> 8 * i);
}

struct member {
    char name[NAME_BYTES], header[NPY_HEADER_BYTES_MAX];
    size_t name_bytes, header_bytes;
    uint64_t at, data_bytes;
};

/* What a member's own header and its entry in the directory have in common. */
static void put_facts(struct writer *w, const struct member *m, size_t extra_bytes)
{
    put(w, ZIP_VERSION, 2);
    put(w, 0, 2 + 2 + 2); /* flags, stored, time */
    put(w, DATE, 2);
    put(w, 0, 4); /* the checksum, which comes later */
    put(w, UINT32_MAX, 4);
    put(w, UINT32_MAX, 4);
    put(w, m->name_bytes, 2);
    put(w, extra_bytes, 2);
}

static void put_name(struct writer *w, const struct member *m, size_t extra_bytes)
{
    memcpy(w->at, m->name, m->name_bytes);
    w->at += m->name_bytes;
    put(w, 1, 2);
    put(w, extra_bytes - 4, 2);
    put(w, m->header_bytes + m->data_bytes, 8);
    put(w, m->header_bytes + m->data_bytes, 8);
}

static size_t put_local(unsigned char *bytes, const struct member *m)
{
    struct writer w = {bytes};
    put(&w, 0x04034b50, 4);
    put_facts(&w, m, 20);
    put_name(&w, m, 20);
    memcpy(w.at, m->header, m->header_bytes);
    return (size_t)(w.at - bytes) + m->header_bytes;
}

static void put_entry(struct writer *w, const struct member *m)
{
    put(w, 0x02014b50, 4);
    put(w, 3 << 8 | ZIP_VERSION, 2); /* made on Unix */
    put_facts(w, m, 28);
    put(w, 0, 2 + 2 + 2); /* no comment, first disk, binary */
    put(w, UINT32_C(0600) << 16, 4);
    put(w, UINT32_MAX, 4);
    put_name(w, m, 28);
    put(w, m->at, 8);
}

static void put_end(struct writer *w, int count, struct range directory)
{
    put(w, 0x06064b50, 4);
    put(w, 56 - 12, 8);
    put(w, 3 << 8 | ZIP_VERSION, 2);
    put(w, ZIP_VERSION, 2);
    put(w, 0, 4 + 4);
    put(w, (uint64_t)count, 8);
    put(w, (uint64_t)count, 8);
    put(w, directory.count, 8);
    put(w, directory.first, 8);
    put(w, 0x07064b50, 4);
    put(w, 0, 4);
    put(w, directory.first + directory.count, 8);
    put(w, 1, 4);
    put(w, 0x06054b50, 4);
    put(w, 0, 2 + 2);
    put(w, UINT64_MAX, 2 + 2 + 4); /* counts and places are those above */
    put(w, UINT32_MAX, 4);
    put(w, 0, 2);
}

/* Where everything lies. */
struct archive_plan {
    int count;
    struct member members[OUTPUT_ARRAYS_MAX];
    struct range directory;
    uint64_t bytes;
};

static allfold_status plan_members(const char *path, const struct output_arrays *arrays, struct archive_plan *plan, struct error *error)
{
    struct array_info *const info = malloc(sizeof *info);
    if (info == NULL)
        return error_set(error, ALLFOLD_NO_MEMORY, "%s: no memory to create it", file_shown(path));
    memcpy(info, arrays->info, sizeof *info);
    plan->count = arrays->count;
    for (int i = 0; i < plan->count; i++) {
        struct member *const m = &plan->members[i];
        info->type = arrays->types[i];
        if (arrays->is_row) {
            info->dimensions = 1;
            info->shape[0] = info->count = arrays->rows[i];
        }
        if (!npy_has(info->type))
            error_set(error, ALLFOLD_UNSUPPORTED, "%s: NumPy has no %s: expected elements of another type (f32 holds every %s)",
                      file_shown(path), type_numpy_name(info->type), allfold_type_name(info->type));
        m->name_bytes = (size_t)snprintf(m->name, sizeof m->name, "%s.npy", arrays->names[i]);
        m->header_bytes = error->status == ALLFOLD_OK ? npy_header(info, m->header) : 0;
        m->at = plan->bytes;
        if (__builtin_mul_overflow(info->count, (uint64_t)allfold_type_bytes(info->type), &m->data_bytes)
            || m->data_bytes > FILE_BYTES_MAX / (2 * OUTPUT_ARRAYS_MAX))
            error_set(error, ALLFOLD_BAD_ARGUMENT, "%s: expected arrays of less than 2^58 bytes", file_shown(path));
        plan->bytes += LOCAL_BYTES + m->name_bytes + m->header_bytes + m->data_bytes;
        plan->directory.count += ENTRY_BYTES + m->name_bytes;
    }
    plan->directory.first = plan->bytes;
    plan->bytes += plan->directory.count + END_BYTES;
    free(info);
    return error->status;
}

/* Writes all but elements and checksums. */
static allfold_status write_frame(const struct archive_plan *plan, const struct replacement *file, struct error *error)
{
    unsigned char bytes[OUTPUT_ARRAYS_MAX * (ENTRY_BYTES + NAME_BYTES) + END_BYTES + NPY_HEADER_BYTES_MAX];
    for (int i = 0; i < plan->count && error->status == ALLFOLD_OK; i++) {
        const struct file_range local = {file->descriptor, file->path, plan->members[i].at, put_local(bytes, &plan->members[i])};
        file_write(&local, bytes, error);
    }
    struct writer w = {bytes};
    for (int i = 0; i < plan->count; i++)
        put_entry(&w, &plan->members[i]);
    put_end(&w, plan->count, plan->directory);
    const struct file_range end = {file->descriptor, file->path, plan->directory.first, (size_t)(w.at - bytes)};
    return error->status != ALLFOLD_OK ? error->status : file_write(&end, bytes, error);
}

allfold_status output_create_archive(const char *path, const struct output_arrays *arrays, const struct replacement_key *key,
                                     struct output *outputs, struct error *error)
{
    struct archive_plan plan = {0};
    struct replacement file;
    uint64_t entry;
    if (output_check_name(path, ".npz", error) != ALLFOLD_OK || plan_members(path, arrays, &plan, error) != ALLFOLD_OK
        || replacement_create(path, plan.bytes, key, &file, error) != ALLFOLD_OK)
        return error->status;
    if (write_frame(&plan, &file, error) != ALLFOLD_OK) {
        replacement_discard(&file);
        return error->status;
    }
    entry = plan.directory.first;
    for (int i = 0; i < plan.count; i++) {
        const struct member *const m = &plan.members[i];
        const uint64_t header = m->at + LOCAL_BYTES + m->name_bytes;
        outputs[i] = (struct output){.file = file, .type = arrays->types[i], .count = arrays->is_row ? arrays->rows[i] : arrays->info->count,
                                     .data_offset = header + m->header_bytes, .member_at = header,
                                     .checksum_at = {m->at + CHECKSUM_IN_LOCAL, entry + CHECKSUM_IN_ENTRY}};
        entry += ENTRY_BYTES + m->name_bytes;
    }
    return ALLFOLD_OK;
}

/* CRC-32 as zip has it (polynomial 0xedb88320, reflected), eight bytes at a time. */
struct checksum {
    uint32_t table[8][256], value;
};

static void checksum_begin(struct checksum *c)
{
    for (uint32_t i = 0; i < 256; i++) {
        c->table[0][i] = i;
        for (int bit = 0; bit < 8; bit++)
            c->table[0][i] = c->table[0][i] >> 1 ^ ((c->table[0][i] & 1) * UINT32_C(0xedb88320));
    }
    for (int row = 1; row < 8; row++)
        for (int i = 0; i < 256; i++)
            c->table[row][i] = c->table[row - 1][i] >> 8 ^ c->table[0][c->table[row - 1][i] & 255];
    c->value = UINT32_MAX;
}

static void checksum_add(struct checksum *c, const unsigned char *bytes, size_t count)
{
    uint32_t value = c->value;
    for (; count >= 8; bytes += 8, count -= 8) {
        uint64_t word;
        memcpy(&word, bytes, sizeof word);
        word ^= value;
        value = 0;
        for (int i = 0; i < 8; i++)
            value ^= c->table[7 - i][word >> 8 * i & 255];
    }
    for (; count > 0; bytes++, count--)
        value = value >> 8 ^ c->table[0][(value ^ *bytes) & 255];
    c->value = value;
}

/* Reads a member back and writes its checksum. */
static void seal(const struct output *output, int fd, unsigned char *buffer, struct error *error)
{
    const uint64_t end = output->data_offset + output->count * allfold_type_bytes(output->type);
    unsigned char bytes[4];
    struct checksum checksum;
    checksum_begin(&checksum);
    for (uint64_t at = output->member_at; at < end && error->status == ALLFOLD_OK; at += SEAL_BYTES) {
        const struct file_range range = {fd, output->file.path, at, u64_min(SEAL_BYTES, end - at)};
        if (file_read(&range, buffer, error) == ALLFOLD_OK)
            checksum_add(&checksum, buffer, (size_t)range.bytes);
    }
    put(&(struct writer){bytes}, ~checksum.value, 4);
    for (int i = 0; i < 2 && error->status == ALLFOLD_OK; i++)
        file_write(&(struct file_range){fd, output->file.path, output->checksum_at[i], 4}, bytes, error);
}

allfold_status output_seal(const struct output *output, struct error *error)
{
    unsigned char *const buffer = malloc(SEAL_BYTES);
    const int fd = replacement_open(&output->file, O_RDWR, error);
    const char *const shown = file_shown(output->file.path);
    if (buffer == NULL)
        error_set(error, ALLFOLD_NO_MEMORY, "%s: no memory to complete it", shown);
    else if (fd >= 0)
        seal(output, fd, buffer, error);
    if (error->status == ALLFOLD_OK && fsync(fd) != 0)
        error_errno(error, ALLFOLD_IO_ERROR, errno, "%s: cannot make the output durable", shown);
    if (fd >= 0)
        close(fd);
    free(buffer);
    return error->status;
}
