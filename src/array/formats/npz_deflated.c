/* Deflated members of .npz files: see npz_deflated.h. A stream of deflate cannot be entered in the middle, so each rank inflates all of
   it when it opens the array, and reads from memory. */
#include "array/formats/npz_deflated.h"

#include "array/formats/npy.h"
#include "array/formats/swap.h"

#ifdef HAVE_CONFIG_H
#include "config.h"
#endif
#ifdef ALLFOLD_HAVE_LIBDEFLATE
#include <libdeflate.h>
#endif

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* deflate makes nothing smaller than this part of it, and adds 5 bytes to each block of at most 64 KiB that it leaves as it is */
#define RATIO_MAX 1032

struct deflated_source {
    struct source source;
    struct array_info info;
    unsigned char *memory;
    const unsigned char *elements; /* in it */
};

struct deflated_reader {
    struct reader reader;
    const struct deflated_source *source;
};

#ifdef ALLFOLD_HAVE_LIBDEFLATE
/* Inflates from `from` to `to`, which has room for member->bytes. */
static allfold_status inflate(const char *name, const struct npz_deflated *member, const void *from, void *to, struct error *error)
{
    struct libdeflate_decompressor *const decompressor = libdeflate_alloc_decompressor();
    if (decompressor == NULL)
        return error_set(error, ALLFOLD_NO_MEMORY, "%s: no memory to inflate it", file_shown(name));
    const enum libdeflate_result result
        = libdeflate_deflate_decompress(decompressor, from, member->place.count, to, member->bytes, NULL);
    libdeflate_free_decompressor(decompressor);
    if (result != LIBDEFLATE_SUCCESS)
        return error_set(error, ALLFOLD_BAD_INPUT, "%s: expected %" PRIu64 " bytes that inflate to %" PRIu64 ", found otherwise: the file is "
                         "damaged", file_shown(name), member->place.count, member->bytes);
    const uint32_t crc = libdeflate_crc32(0, to, member->bytes);
    if (crc != member->crc)
        return error_set(error, ALLFOLD_BAD_INPUT, "%s: expected the checksum %08" PRIx64 ", found %08" PRIx32 ": the file is damaged",
                         file_shown(name), member->crc, crc);
    return ALLFOLD_OK;
}
#else
static allfold_status inflate(const char *name, const struct npz_deflated *member, const void *from, void *to, struct error *error)
{
    (void)member, (void)from, (void)to;
    return error_set(error, ALLFOLD_UNSUPPORTED, "%s: expected a stored member, as of np.savez, found a deflated one, and this build has no "
                     "libdeflate: install libdeflate-dev and configure again, or write the file again with np.savez", file_shown(name));
}
#endif

static allfold_status check_sizes(const char *name, const struct npz_deflated *member, struct error *error)
{
    if (member->bytes > NPZ_DEFLATED_BYTES_MAX)
        return error_set(error, ALLFOLD_UNSUPPORTED, "%s: expected a deflated member of at most %" PRIu64 " bytes, since every rank "
                         "inflates all of it, found %" PRIu64 ": write it again with np.savez or np.save", file_shown(name),
                         NPZ_DEFLATED_BYTES_MAX, member->bytes);
    if (member->bytes / RATIO_MAX > member->place.count)
        return error_set(error, ALLFOLD_BAD_INPUT, "%s: expected at least %" PRIu64 " deflated bytes for a member of %" PRIu64 ", found %"
                         PRIu64, file_shown(name), member->bytes / RATIO_MAX, member->bytes, member->place.count);
    const uint64_t most = member->bytes + member->bytes / 1000 + 1024;
    if (member->place.count > most)
        return error_set(error, ALLFOLD_BAD_INPUT, "%s: expected at most %" PRIu64 " deflated bytes for a member of %" PRIu64 ", found %"
                         PRIu64, file_shown(name), most, member->bytes, member->place.count);
    return ALLFOLD_OK;
}

/* The member's bytes as they were before; the caller frees them. NULL: *error says why. */
static unsigned char *read_member(const struct file_range *range, const struct npz_deflated *member, struct error *error)
{
    if (check_sizes(range->path, member, error) != ALLFOLD_OK)
        return NULL;
    void *const from = malloc((size_t)range->bytes + 1);
    unsigned char *const to = aligned_alloc(64, ((size_t)member->bytes + 64) / 64 * 64);
    if (from == NULL || to == NULL)
        error_set(error, ALLFOLD_NO_MEMORY, "%s: no memory to inflate %" PRIu64 " bytes", file_shown(range->path), member->bytes);
    else if (file_read(range, from, error) == ALLFOLD_OK)
        inflate(range->path, member, from, to, error);
    free(from);
    if (error->status == ALLFOLD_OK)
        return to;
    free(to);
    return NULL;
}

allfold_status npz_deflated_describe(const struct input_file *file, const char *name, const struct npz_deflated *member,
                                     struct array_info *info, struct error *error)
{
    const struct file_range range = {file->fd, name, member->place.first, member->place.count};
    unsigned char *const bytes = read_member(&range, member, error);
    struct npz_deflated *const details = calloc(1, sizeof *details);
    if (details == NULL)
        error_set(error, ALLFOLD_NO_MEMORY, "%s: no memory to describe it", file_shown(name));
    else if (bytes != NULL)
        npy_describe(&(struct npy_place){.name = name, .memory = bytes, .bytes = member->bytes}, info, error);
    free(bytes);
    if (error->status != ALLFOLD_OK) {
        free(details);
        return error->status;
    }
    *details = *member;
    details->header = info->layout.offset;
    info->details = details;
    info->details_bytes = sizeof *details;
    return ALLFOLD_OK;
}

static allfold_status read_deflated(struct reader *reader, const struct read_request *request, struct piece *piece, struct error *error)
{
    const struct deflated_source *const s = ((const struct deflated_reader *)reader)->source;
    if (array_check_range(&s->info, request->range.first, request->range.count, error) != ALLFOLD_OK)
        return error->status;
    piece->elements = s->elements + request->range.first * allfold_type_bytes(s->info.type);
    piece->count = request->range.count;
    return ALLFOLD_OK;
}

static void close_reader(struct reader *reader) { free(reader); }

static allfold_status open_reader(struct source *source, struct reader **reader, struct error *error)
{
    const struct deflated_source *const s = (const struct deflated_source *)source;
    struct deflated_reader *const r = malloc(sizeof *r);
    if (r == NULL)
        return error_set(error, ALLFOLD_NO_MEMORY, "%s: no memory to read it", file_shown(s->info.path));
    *r = (struct deflated_reader){{read_deflated, close_reader}, s};
    *reader = &r->reader;
    return ALLFOLD_OK;
}

static void close_source(struct source *source)
{
    free(((struct deflated_source *)source)->memory);
    free(source);
}

/* Reads the file once more, which must be as long as it was. */
static allfold_status fill(struct deflated_source *s, struct error *error)
{
    const struct npz_deflated *const member = s->info.details;
    const size_t bytes = allfold_type_bytes(s->info.type);
    uint64_t file_bytes;
    const int fd = file_open(s->info.path, &file_bytes, error);
    if (fd < 0)
        return error->status;
    if (file_bytes != s->info.file_bytes)
        error_set(error, ALLFOLD_BAD_INPUT, "%s: expected the file of %" PRIu64 " bytes that was described, found %" PRIu64
                  " bytes: it has changed, or this host sees another file", file_shown(s->info.path), s->info.file_bytes, file_bytes);
    else
        s->memory = read_member(&(struct file_range){fd, s->info.path, member->place.first, member->place.count}, member, error);
    close(fd);
    if (s->memory == NULL)
        return error->status;
    if (member->header % bytes != 0)
        memmove(s->memory, s->memory + member->header, (size_t)(member->bytes - member->header));
    unsigned char *const elements = s->memory + (member->header % bytes == 0 ? member->header : 0);
    if (s->info.layout.swapped)
        swap_bytes(elements, elements, (member->bytes - member->header) / bytes, bytes);
    s->elements = elements + s->info.skipped * bytes;
    return ALLFOLD_OK;
}

allfold_status npz_deflated_open(const struct array_info *info, struct source **source, struct error *error)
{
    struct deflated_source *const s = calloc(1, sizeof *s);
    if (s == NULL)
        return error_set(error, ALLFOLD_NO_MEMORY, "%s: no memory to open it", file_shown(info->path));
    /* No check: from here on the elements are in memory, with the checksum that was described. */
    s->source = (struct source){.open_reader = open_reader, .close = close_source, .type = info->type};
    memcpy(&s->info, info, sizeof *info);
    if (fill(s, error) != ALLFOLD_OK) {
        free(s);
        return error->status;
    }
    *source = &s->source;
    return ALLFOLD_OK;
}
