/* NumPy's .npz: a zip archive whose members are .npy files. Stored members (np.savez) are read where they lie; the checksums of their
   bytes are not compared: that would read every byte before the work. Deflated members (np.savez_compressed) cannot be entered in the
   middle, so each rank inflates all of one when it opens the array, and reads from memory. */
#include "array/formats/npy.h"
#include "array/formats/swap.h"
#include "array/formats/zip.h"

#ifdef HAVE_CONFIG_H
#include "config.h"
#endif
#ifdef ALLFOLD_HAVE_LIBDEFLATE
#include <libdeflate.h>
#endif

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define ENDING ".npy"
#define DEFLATED_BYTES_MAX (UINT64_C(1) << 30) /* of a deflated member, as it was before: every rank keeps all of it in memory */
/* deflate makes nothing smaller than this part of it, and adds 5 bytes to each block of at most 64 KiB that it leaves as it is */
#define RATIO_MAX 1032

/* What info->details is for a deflated member. */
struct deflated {
    struct range place; /* of its deflated bytes in the file */
    uint64_t bytes;     /* of the .npy file that they make */
    uint64_t crc;
    uint64_t header;    /* bytes of it before the elements */
};

/* ---- deflated members */

#ifdef ALLFOLD_HAVE_LIBDEFLATE
/* Inflates from `from` to `to`, which has room for member->bytes. */
static allfold_status inflate(const struct deflated *member, const void *from, void *to, struct error *error)
{
    struct libdeflate_decompressor *const decompressor = libdeflate_alloc_decompressor();
    if (decompressor == NULL)
        return error_set(error, ALLFOLD_NO_MEMORY, "no memory to inflate it");
    const enum libdeflate_result result
        = libdeflate_deflate_decompress(decompressor, from, member->place.count, to, member->bytes, NULL);
    libdeflate_free_decompressor(decompressor);
    if (result != LIBDEFLATE_SUCCESS)
        return error_set(error, ALLFOLD_BAD_INPUT, "expected %" PRIu64 " bytes that inflate to %" PRIu64 ", found otherwise: the file is "
                         "damaged", member->place.count, member->bytes);
    const uint32_t crc = libdeflate_crc32(0, to, member->bytes);
    if (crc != member->crc)
        return error_set(error, ALLFOLD_BAD_INPUT, "expected the checksum %08" PRIx64 ", found %08" PRIx32 ": the file is damaged", member->crc,
                         crc);
    return ALLFOLD_OK;
}
#else
static allfold_status inflate(const struct deflated *member, const void *from, void *to, struct error *error)
{
    (void)member, (void)from, (void)to;
    return error_set(error, ALLFOLD_UNSUPPORTED, "expected a stored member, as of np.savez, found a deflated one, and this build has no "
                     "libdeflate: install libdeflate-dev and configure again, or write the file again with np.savez");
}
#endif

static allfold_status check_sizes(const struct deflated *member, struct error *error)
{
    const uint64_t least = member->bytes / RATIO_MAX, most = member->bytes + member->bytes / 1000 + 1024;
    if (member->bytes > DEFLATED_BYTES_MAX)
        return error_set(error, ALLFOLD_UNSUPPORTED, "expected a deflated member of at most %" PRIu64 " bytes, since every rank inflates all "
                         "of it, found %" PRIu64 ": write it again with np.savez or np.save", DEFLATED_BYTES_MAX, member->bytes);
    if (member->place.count < least || member->place.count > most)
        return error_set(error, ALLFOLD_BAD_INPUT, "expected at %s %" PRIu64 " deflated bytes for a member of %" PRIu64 ", found %" PRIu64,
                         member->place.count < least ? "least" : "most", member->place.count < least ? least : most, member->bytes,
                         member->place.count);
    return ALLFOLD_OK;
}

/* The member's bytes as they were before; the caller frees them. NULL: *error says why. */
static unsigned char *read_member(int fd, const struct deflated *member, struct error *error)
{
    if (check_sizes(member, error) != ALLFOLD_OK)
        return NULL;
    void *const from = malloc((size_t)member->place.count + 1);
    unsigned char *const to = aligned_alloc(64, ((size_t)member->bytes + 64) / 64 * 64);
    if (from == NULL || to == NULL)
        error_set(error, ALLFOLD_NO_MEMORY, "no memory to inflate %" PRIu64 " bytes", member->bytes);
    else if (file_read(&(struct file_range){fd, NULL, member->place.first, member->place.count}, from, error) == ALLFOLD_OK)
        inflate(member, from, to, error);
    free(from);
    if (error->status == ALLFOLD_OK)
        return to;
    free(to);
    return NULL;
}

/* Inflates the member, checks it, and describes its array. */
static allfold_status describe_deflated(const struct input_file *file, const struct deflated *member, struct array_info *info,
                                        struct error *error)
{
    unsigned char *const bytes = read_member(file->fd, member, error);
    struct deflated *const details = malloc(sizeof *details);
    if (details == NULL)
        error_set(error, ALLFOLD_NO_MEMORY, "no memory to describe it");
    else if (bytes != NULL)
        npy_describe(&(struct npy_place){.memory = bytes, .bytes = member->bytes}, info, error);
    free(bytes);
    if (error->status != ALLFOLD_OK) {
        free(details);
        return error->status;
    }
    *details = *member;
    details->header = info->layout.offset;
    info->plain = 0;
    info->details = details;
    info->details_bytes = sizeof *details;
    return ALLFOLD_OK;
}

struct deflated_source {
    struct source source;
    struct array_info info;
    unsigned char *memory;
    const unsigned char *elements; /* in it */
};

static allfold_status read_deflated(struct reader *reader, const struct read_request *request, struct piece *piece, struct error *error)
{
    const struct deflated_source *const s = (const struct deflated_source *)reader->source;
    if (array_check_range(&s->info, request->range.first, request->range.count, error) != ALLFOLD_OK)
        return error->status;
    piece->elements = s->elements + request->range.first * allfold_type_bytes(s->info.type);
    piece->count = request->range.count;
    return ALLFOLD_OK;
}

static void close_source(struct source *source) { free(((struct deflated_source *)source)->memory); }

/* Reads the file once more, which must be as long as it was. */
static allfold_status fill(struct deflated_source *s, struct error *error)
{
    const struct deflated *const member = s->info.details;
    const size_t bytes = allfold_type_bytes(s->info.type);
    struct error why = {.status = ALLFOLD_OK};
    uint64_t file_bytes;
    const int fd = file_open(s->info.path, &file_bytes, error);
    if (fd < 0)
        return error->status;
    if (file_bytes != s->info.file_bytes)
        error_set(&why, ALLFOLD_BAD_INPUT, "expected the file of %" PRIu64 " bytes that was described, found %" PRIu64
                  " bytes: it has changed, or this host sees another file", s->info.file_bytes, file_bytes);
    else
        s->memory = read_member(fd, member, &why);
    close(fd);
    if (s->memory == NULL)
        return error_within(error, &why, "%s", file_shown(s->info.path));
    if (member->header % bytes != 0)
        memmove(s->memory, s->memory + member->header, (size_t)(member->bytes - member->header));
    unsigned char *const elements = s->memory + (member->header % bytes == 0 ? member->header : 0);
    if (s->info.layout.swapped)
        swap_bytes(elements, elements, (member->bytes - member->header) / bytes, bytes);
    s->elements = elements + s->info.skipped * bytes;
    return ALLFOLD_OK;
}

static allfold_status open_deflated(const struct array_info *info, struct source **source, struct error *error)
{
    struct deflated_source *const s = calloc(1, sizeof *s);
    if (s == NULL)
        return error_set(error, ALLFOLD_NO_MEMORY, "%s: no memory to open it", file_shown(info->path));
    /* No check: from here on the elements are in memory, with the checksum that was described. */
    s->source = (struct source){.read = read_deflated, .close = close_source, .type = info->type};
    memcpy(&s->info, info, sizeof *info);
    if (fill(s, error) != ALLFOLD_OK) {
        free(s);
        return error->status;
    }
    *source = &s->source;
    return ALLFOLD_OK;
}

/* ---- the directory */

static bool recognises_npz(const struct input_file *file)
{
    const bool zip = file->head_bytes >= 4 && (memcmp(file->head, "PK\3\4", 4) == 0 || memcmp(file->head, "PK\5\6", 4) == 0);
    return zip || file_name_ends(file->name, ".npz");
}

static allfold_status describe_member(const struct input_file *file, const struct zip_directory *archive, const struct zip_member *member,
                                      struct array_info *info, struct error *error)
{
    struct range place;
    if (zip_locate(file, archive, member, &place, error) != ALLFOLD_OK)
        return error->status;
    if (member->method == ZIP_DEFLATED)
        return describe_deflated(file, &(struct deflated){.place = place, .bytes = member->bytes, .crc = member->crc}, info, error);
    if (member->method != ZIP_STORED)
        return error_set(error, ALLFOLD_UNSUPPORTED, "expected a stored or a deflated member, found compression method %u: write it again with "
                         "np.savez or np.save", member->method);
    return npy_describe(&(struct npy_place){.file = file, .offset = place.first, .bytes = place.count}, info, error);
}

struct npz_listing {
    const struct input_file *file;
    const struct zip_directory *archive;
    struct directory *directory;
};

/* "w" is w.npy, and so is "w.npy". Other members are no arrays. */
static void list_member(void *user, const struct zip_member *member)
{
    const struct npz_listing *const l = user;
    char name[ZIP_NAME_BYTES];
    if (!file_name_ends(member->name, ENDING))
        return;
    snprintf(name, sizeof name, "%.*s", (int)(strlen(member->name) - strlen(ENDING)), member->name);
    struct array_entry *const entry = directory_entry(l->directory, l->file, name, member->name);
    if (entry == NULL)
        return;
    entry->shapeless = describe_member(l->file, l->archive, member, &entry->info, &entry->refused) != ALLFOLD_OK;
    if (entry->refused.status == ALLFOLD_UNSUPPORTED && entry->info.plain) /* its header was read, and says so of the type */
        entry->type_text = "unknown";
    entry->filters = member->method == ZIP_DEFLATED ? "deflate" : NULL;
    directory_add(l->directory);
}

static allfold_status read_npz(const struct input_file *file, struct directory *directory, struct error *error)
{
    struct zip_directory archive;
    if (zip_find_directory(file, &archive, error) != ALLFOLD_OK)
        return error->status;
    return zip_list(file, &archive, list_member, &(struct npz_listing){file, &archive, directory}, error);
}

const struct format format_npz = {.name = "npz", .recognises = recognises_npz, .read_directory = read_npz, .open = open_deflated, .named = true,
                                  .opens_parts = true};
