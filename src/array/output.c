/* Writes output files: every process writes its ranges of the temporary file of a replacement (replacement.h), which gets
   its name when all have succeeded. */
#include "array/array.h"
#include "array/formats/npy.h"
#include "array/formats/swap.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The ending by which a name promises another file than one with this ending ("": raw elements); NULL: it does not. */
static const char *other_ending(const char *path, const char *written)
{
    static const char *const endings[] = {".npy", ".npz", ".safetensors", ".h5", ".hdf5", ".he5", ".nc", ".nc4", ".cdf", ".zarr",
                                          ".json", ".csv", ".tsv", ".txt"};
    for (size_t i = 0; i < sizeof endings / sizeof *endings; i++)
        if (file_name_ends(path, endings[i]) && strcmp(endings[i], written) != 0)
            return endings[i];
    return NULL;
}

allfold_status output_check_name(const char *path, const char *written, struct error *error)
{
    const char *ending = other_ending(path, written);
    char *const target = ending == NULL ? realpath(path, NULL) : NULL;
    if (ending != NULL)
        error_set(error, ALLFOLD_BAD_ARGUMENT, "%s: no %s is written here: expected .npy, another name for raw elements, such as y.raw, or with "
                  "-o of folds along an axis .npz or .nc", file_shown(path), ending);
    else if (target != NULL && (ending = other_ending(target, written)) != NULL)
        error_set(error, ALLFOLD_BAD_ARGUMENT, "%s: the link leads to a file that ends in %s, found %s to write: expected names that agree",
                  file_shown(path), ending, written[0] != '\0' ? written : "raw elements");
    free(target);
    return error->status;
}

/* The header, and what of *output does not depend on the file system. */
static allfold_status plan(const char *path, const struct array_info *info, struct output *output, char *header,
                           struct error *error)
{
    const bool npy = file_name_ends(path, ".npy");
    uint64_t product;
    if (output_check_name(path, npy ? ".npy" : "", error) != ALLFOLD_OK)
        return error->status;
    if (npy && !npy_has(info->type))
        return error_set(error, ALLFOLD_UNSUPPORTED,
                         "%s: NumPy has no %s: expected elements of another type (f32 holds every %s), or a name that does not end in "
                         ".npy for a raw file", file_shown(path), type_numpy_name(info->type), allfold_type_name(info->type));
    if (!array_count(info->shape, info->dimensions, allfold_type_bytes(info->type), &product)
        || product > (FILE_BYTES_MAX - NPY_HEADER_BYTES_MAX) / allfold_type_bytes(info->type))
        return error_set(error, ALLFOLD_BAD_ARGUMENT, "%s: expected an output of less than 2^63 bytes, found %" PRIu64
                         " %s elements", file_shown(path), info->count, allfold_type_name(info->type));
    if (product != info->count)
        return error_set(error, ALLFOLD_BAD_ARGUMENT, "%s: the output's shape does not make up its %" PRIu64
                         " elements", file_shown(path), info->count);
    output->type = info->type;
    output->count = info->count;
    output->data_offset = npy ? npy_header(info, header) : 0;
    return ALLFOLD_OK;
}

allfold_status output_create(const char *path, const struct array_info *info, const struct replacement_key *key, struct output *output,
                             struct error *error)
{
    struct output made;
    char header[NPY_HEADER_BYTES_MAX];
    memset(&made, 0, sizeof made);
    if (plan(path, info, &made, header, error) != ALLFOLD_OK
        || replacement_create(path, made.data_offset + made.count * allfold_type_bytes(made.type), key, &made.file, error)
               != ALLFOLD_OK)
        return error->status;
    const struct file_range head = {made.file.descriptor, made.file.path, 0, made.data_offset};
    if (file_write(&head, header, error) != ALLFOLD_OK) {
        replacement_discard(&made.file);
        return error->status;
    }
    memcpy(output, &made, sizeof made);
    return ALLFOLD_OK;
}

struct file_sink {
    struct sink sink;
    struct output output;
    int fd;
};

/* Writes elements as another format has them: int64 as int32, which holds them, and big-endian. */
static allfold_status write_turned(const struct file_sink *s, uint64_t first, uint64_t count, const void *elements, struct error *error)
{
    enum { BLOCK = 4096 };
    uint64_t block[BLOCK];
    const struct output *const o = &s->output;
    const allfold_type type = o->written != ALLFOLD_TYPE_NONE ? o->written : o->type;
    const uint64_t bytes = allfold_type_bytes(type);
    for (uint64_t done = 0, n; done < count && error->status == ALLFOLD_OK; done += n) {
        n = u64_min(count - done, BLOCK);
        const char *const from = (const char *)elements + done * allfold_type_bytes(o->type);
        for (uint64_t i = 0; i < n && type != o->type; i++)
            ((uint32_t *)(void *)block)[i] = (uint32_t)((const uint64_t *)(const void *)from)[i];
        swap_bytes(block, type != o->type ? (const void *)block : from, n, bytes);
        file_write(&(struct file_range){s->fd, o->file.path, o->data_offset + (first + done) * bytes, n * bytes}, block, error);
    }
    return error->status;
}

static allfold_status write_sink(struct sink *sink, uint64_t first, uint64_t count, const void *elements,
                                 struct error *error)
{
    const struct file_sink *s = (const struct file_sink *)sink;
    const struct output *o = &s->output;
    const uint64_t bytes = allfold_type_bytes(o->type);
    if (first > o->count || count > o->count - first)
        return error_set(error, ALLFOLD_BAD_ARGUMENT,
                         "%s: expected a range within its %" PRIu64 " elements, found %" PRIu64 " elements from %"
                         PRIu64, file_shown(o->file.path), o->count, count, first);
    const struct file_range range = {s->fd, o->file.path, o->data_offset + first * bytes, count * bytes};
    return o->swapped ? write_turned(s, first, count, elements, error) : file_write(&range, elements, error);
}

static allfold_status sync_sink(struct sink *sink, struct error *error)
{
    const struct file_sink *const s = (const struct file_sink *)sink;
    int synced;
    while ((synced = fsync(s->fd)) != 0 && errno == EINTR)
        ;
    if (synced != 0)
        error_errno(error, ALLFOLD_IO_ERROR, errno, "%s: cannot make the output durable", file_shown(s->output.file.path));
    return error->status;
}

static allfold_status close_sink(struct sink *sink, struct error *error)
{
    struct file_sink *s = (struct file_sink *)sink;
    const char *shown = file_shown(s->output.file.path);
    sync_sink(sink, error);
    if (close(s->fd) != 0 && errno != EINTR) /* Linux has closed it even then */
        error_errno(error, ALLFOLD_IO_ERROR, errno, "%s: cannot close the output file", shown);
    free(s);
    return error->status;
}

allfold_status output_open(const struct output *output, struct sink **sink, struct error *error)
{
    struct file_sink *s = calloc(1, sizeof *s);
    if (s == NULL)
        return error_set(error, ALLFOLD_NO_MEMORY, "%s: no memory to open it", file_shown(output->file.path));
    s->sink.write = write_sink;
    s->sink.sync = sync_sink;
    s->sink.close = close_sink;
    s->sink.type = output->type;
    memcpy(&s->output, output, sizeof *output);
    s->fd = replacement_open(&output->file, O_WRONLY, error);
    if (s->fd >= 0)
        *sink = &s->sink;
    else
        free(s);
    return error->status;
}
