/* Raw files: elements of the type that the user says, from a byte on, and nothing else. */
#include "array/formats/formats.h"

#include <inttypes.h>

static bool recognises_any(const struct input_file *file) { return file != NULL; }

/* What a file seems to be that is of no format. */
static const char *guess(const struct input_file *file)
{
    static const struct {
        const char *begins, *what;
    } known[] = {{"\x1f\x8b", "a gzip file: gunzip it first"},  {"\x28\xb5\x2f\xfd", "a zstd file: unzstd it first"},
                 {"\xfd" "7zXZ", "an xz file: unxz it first"}, {"BZh", "a bzip2 file: bunzip2 it first"},
                 {"PAR1", "a Parquet file"},                   {"MATLAB 5.0", "a MATLAB file"}};
    const size_t bytes = file->head_bytes;
    bool text = bytes > 0;
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (bytes >= strlen(known[i].begins) && memcmp(file->head, known[i].begins, strlen(known[i].begins)) == 0)
            return known[i].what;
    for (size_t i = 0; i < bytes; i++)
        text = text && (file->head[i] >= ' ' || (file->head[i] >= '\t' && file->head[i] <= '\r')) && file->head[i] != 0x7f;
    return text ? "text: numpy.loadtxt and numpy.save make .npy of numbers in text" : "neither";
}

static allfold_status describe(const struct input_file *file, struct array_info *info, struct error *error)
{
    const struct array_hints *const hints = file->hints;
    if (hints->type == ALLFOLD_TYPE_NONE)
        return error_set(error, ALLFOLD_BAD_ARGUMENT, "expected a file of a format that allfold reads (.npy, .npz, safetensors, NetCDF, HDF5)%s; "
                         "found %s", hints->listing ? " (raw elements have no header to list)" : ", or --dtype TYPE to read it as raw elements",
                         guess(file));
    const uint64_t bytes = allfold_type_bytes(hints->type);
    const uint64_t offset = hints->has_offset ? hints->offset : 0;
    if (offset > file->bytes)
        return error_set(error, ALLFOLD_BAD_INPUT, "raw file: expected --offset %" PRIu64 " to lie inside it, found %" PRIu64 " bytes", offset,
                         file->bytes);
    const uint64_t rest = file->bytes - offset;
    if (hints->has_count && hints->count > rest / bytes)
        return error_set(error, ALLFOLD_BAD_INPUT, "raw file: expected %" PRIu64 " %s elements from byte %" PRIu64 ", found %" PRIu64 " (%" PRIu64
                         " bytes)", hints->count, allfold_type_name(hints->type), offset, rest / bytes, rest);
    if (!hints->has_count && rest % bytes != 0)
        return error_set(error, ALLFOLD_BAD_INPUT, "raw file: expected whole %s elements of %" PRIu64 " bytes from byte %" PRIu64
                         ", found %" PRIu64 " bytes: %" PRIu64 " too many (or give --count)", allfold_type_name(hints->type), bytes, offset, rest,
                         rest % bytes);
    info->type = hints->type;
    info->dimensions = 1;
    info->shape[0] = hints->has_count ? hints->count : rest / bytes;
    info->layout.offset = offset;
    info->plain = 1;
    return ALLFOLD_OK;
}

static allfold_status read_raw(const struct input_file *file, struct directory *directory, struct error *error)
{
    struct array_entry *const entry = directory_entry(directory, file, NULL, NULL);
    if (entry != NULL && describe(file, &entry->info, error) == ALLFOLD_OK)
        directory_add(directory);
    return error->status;
}

const struct format format_raw = {.name = "raw", .recognises = recognises_any, .read_directory = read_raw, .headless = true};
