/* Array files: what is written is read back for every type, sizes and offsets beyond 32 bits, and what is refused. By
   itself. */
#define TAP_WITHOUT_MPI
#include "tap.h"

#include "array/array.h"
#include "files.h"
#include "generated.h"

#include <fcntl.h>
#include <inttypes.h>
#include <sys/stat.h>

/* A description that must fail, with a message that holds `says`. */
static void refused(const char *name, const struct array_hints *hints, const char *says, const char *what)
{
    struct array_info info;
    struct error error = {.status = ALLFOLD_OK};
    if (!tap_ok(array_describe(name, hints, &info, &error) != ALLFOLD_OK && strstr(error.text, says) != NULL,
                "refused: %s", what))
        tap_note("found: %s", error.text);
}

/* Reads the whole array in 4 ranges and compares. */
static bool same_elements(const struct array_info *info, const char *elements, struct error *error)
{
    const size_t bytes = allfold_type_bytes(info->type);
    struct source *source;
    bool same = true;
    if (source_open(info, &source, error) != ALLFOLD_OK)
        return false;
    for (uint64_t part = 0; part < 4 && error->status == ALLFOLD_OK; part++) {
        const struct range range = range_part(info->count, part, 4);
        char *read = malloc(range.count * bytes + 1);
        read_elements(source, range, read, error);
        same = same && memcmp(read, elements + range.first * bytes, range.count * bytes) == 0;
        free(read);
    }
    source_close(source);
    return same && error->status == ALLFOLD_OK;
}

static void test_round_trips(void)
{
    for (int i = ALLFOLD_TYPE_NONE + 1; i < ALLFOLD_TYPE_COUNT; i++) {
        const char *name = allfold_type_name((allfold_type)i);
        struct array_info info, read;
        struct error error = {.status = ALLFOLD_OK};
        char text[64];
        uint64_t count;
        snprintf(text, sizeof text, "wide?n=1015&dtype=%s", name);
        char *elements = elements_of(text, &count);
        info = parsed(text);
        info.dimensions = 3;
        info.shape[0] = 5, info.shape[1] = 7, info.shape[2] = 29;
        info.fortran_order = 1;
        const char *raw = in_folder("raw.bin"), *npy = in_folder("array.npy");
        const struct array_hints hints = {.type = (allfold_type)i};
        tap_ok(write_array(raw, &info, elements, &error) && array_describe(raw, &hints, &read, &error) == ALLFOLD_OK &&
                   strcmp(array_format_name(&read), "raw") == 0 && read.count == 1015 && read.dimensions == 1 && read.shape[0] == 1015 &&
                   same_elements(&read, elements, &error),
               "%s: raw round trip", name);
        if (i == ALLFOLD_BF16)
            tap_ok(!write_array(npy, &info, elements, &error) && error.status == ALLFOLD_UNSUPPORTED &&
                       strstr(error.text, "f32 holds every bf16") != NULL, "%s: .npy refused", name);
        else
            tap_ok(write_array(npy, &info, elements, &error) && array_describe(npy, NULL, &read, &error) == ALLFOLD_OK &&
                       strcmp(array_format_name(&read), "npy") == 0 && read.type == info.type && read.fortran_order == 1 &&
                       read.dimensions == 3 && memcmp(read.shape, info.shape, sizeof read.shape) == 0 &&
                       same_elements(&read, elements, &error),
                   "%s: .npy round trip keeps shape and order", name);
        if (error.status != ALLFOLD_OK && i != ALLFOLD_BF16)
            tap_note("%s", error.text);
        free(elements);
    }
}

static void test_large(void)
{
    static const char text[] = "uniform?n=5000001&dtype=f64"; /* 40 MB: threads share each range */
    uint64_t count;
    char *elements = elements_of(text, &count);
    const struct array_info info = parsed(text);
    struct array_info read;
    struct error error = {.status = ALLFOLD_OK};
    const char *path = in_folder("large");
    const struct array_hints whole = {.type = ALLFOLD_F64};
    tap_ok(write_array(path, &info, elements, &error) && array_describe(path, &whole, &read, &error) == ALLFOLD_OK &&
               same_elements(&read, elements, &error), "a file that several threads write and read");
    const struct array_hints odd = {.type = ALLFOLD_F64, .has_offset = true, .offset = 8 * 1000 + 3,
                                    .has_count = true, .count = 4500000};
    tap_ok(array_describe(path, &odd, &read, &error) == ALLFOLD_OK && read.layout.offset == 8003 &&
               same_elements(&read, elements + 8003, &error), "an offset that is not aligned, several threads");
    unlink(path);
    free(elements);
}

static void test_empty(void)
{
    uint64_t count;
    char *elements = elements_of("uniform?n=0&dtype=int32", &count);
    const struct array_info info = parsed("uniform?n=0&dtype=int32");
    struct array_info read;
    struct error error = {.status = ALLFOLD_OK};
    const struct array_hints hints = {.type = ALLFOLD_INT32};
    const char *npy = in_folder("empty.npy"), *raw = in_folder("empty");
    tap_ok(write_array(npy, &info, elements, &error) && array_describe(npy, NULL, &read, &error) == ALLFOLD_OK &&
               read.count == 0 && read.shape[0] == 0 && same_elements(&read, elements, &error), "an empty .npy array");
    tap_ok(write_array(raw, &info, elements, &error) && array_describe(raw, &hints, &read, &error) == ALLFOLD_OK &&
               read.count == 0 && same_elements(&read, elements, &error), "an empty raw array");
    free(elements);
}

static void test_beyond_32_bits(void)
{
    const char *path = in_folder("sparse");
    const uint64_t count = (UINT64_C(1) << 32) + 3;
    const int8_t last[3] = {-7, 8, 9};
    struct array_info info;
    struct source *source;
    struct error error = {.status = ALLFOLD_OK};
    const struct array_hints bytes = {.type = ALLFOLD_INT8};
    const struct array_hints odd = {.type = ALLFOLD_INT16, .has_offset = true, .offset = count - 2};
    const int fd = open(path, O_RDWR | O_CREAT, 0666);
    int8_t end[4] = {1};
    if (fd < 0 || ftruncate(fd, (off_t)count) != 0 || pwrite(fd, last, 3, (off_t)count - 3) != 3) {
        tap_skip("a sparse file of 2^32 + 3 elements cannot be made here");
    } else {
        must(array_describe(path, &bytes, &info, &error) == ALLFOLD_OK, error.text);
        must(source_open(&info, &source, &error) == ALLFOLD_OK, error.text);
        tap_ok(info.count == count && read_elements(source, (struct range){count - 4, 4}, end, &error) == ALLFOLD_OK && end[0] == 0 &&
                   memcmp(end + 1, last, 3) == 0, "the last elements of a sparse file of 2^32 + 3");
        source_close(source);
        must(array_describe(path, &odd, &info, &error) == ALLFOLD_OK, error.text);
        must(source_open(&info, &source, &error) == ALLFOLD_OK, error.text);
        tap_ok(info.count == 1 && read_elements(source, (struct range){0, 1}, end, &error) == ALLFOLD_OK &&
                   memcmp(end, last + 1, 2) == 0, "the element at an offset beyond 2^32, not aligned");
        source_close(source);
    }
    close(fd);
    unlink(path);
}

static void test_refused_inputs(void)
{
    const struct array_hints f32 = {.type = ALLFOLD_F32};
    const struct array_hints offset = {.type = ALLFOLD_F32, .has_offset = true, .offset = 11};
    const struct array_hints count = {.type = ALLFOLD_F32, .has_count = true, .count = 3};
    const struct array_hints huge = {.type = ALLFOLD_F64, .has_offset = true, .offset = 2,
                                     .has_count = true, .count = UINT64_C(1) << 61};
    const char *raw = in_folder("ten");
    make_file(raw, "0123456789", 10);
    refused(raw, NULL, "--dtype", "a raw file without a type");
    refused(raw, &f32, "2 too many", "10 bytes of f32");
    refused(raw, &offset, "found 10 bytes", "an offset beyond the end");
    refused(raw, &count, "expected 3 f32 elements from byte 0, found 2", "a count beyond the end");
    refused(raw, &huge, "found 1 (8 bytes)", "a count whose bytes overflow");
    refused(in_folder("none"), &f32, "No such file", "a file that is not there");
    refused(folder, &f32, "a directory", "a directory");
    refused("/dev/null", &f32, "a character device", "a device");
    refused("", &f32, "an empty one", "an empty name");
    must(mkfifo(in_folder("fifo"), 0666) == 0, "mkfifo");
    refused(in_folder("fifo"), &f32, "a fifo", "a fifo, without waiting for it");
    unlink(in_folder("fifo"));
    refused("/proc/self/maps", &f32, "tells its size", "a file that says it is empty, and is not");
    make_file(in_folder("fake.npy"), "\x93NUMPX\x01", 8);
    refused(in_folder("fake.npy"), &f32, "magic", "an .npy name without the magic, even with a type");
    refused(in_folder("array.npy"), &f32, "expected no --dtype", "another type for an .npy file");
    char *name = malloc(ARRAY_PATH_BYTES + 1);
    memset(name, 'x', ARRAY_PATH_BYTES);
    name[ARRAY_PATH_BYTES] = '\0';
    refused(name, &f32, "less than 4096 bytes", "a name of 4096 bytes");
    free(name);
}

/* A file that changes after it was described: error says so, and no element of it is believed. */
static void test_changing_input(void)
{
    const char *path = in_folder("changing");
    const struct array_hints f32 = {.type = ALLFOLD_F32};
    struct array_info info;
    struct source *source;
    struct error error = {.status = ALLFOLD_OK};
    float x[4];
    make_file(path, "0123456789abcdef", 16);
    must(array_describe(path, &f32, &info, &error) == ALLFOLD_OK, error.text);
    must(source_open(&info, &source, &error) == ALLFOLD_OK, error.text);
    tap_ok(read_elements(source, (struct range){0, 4}, x, &error) == ALLFOLD_OK && memcmp(x, "0123456789abcdef", 16) == 0, "a file");
    tap_ok(read_elements(source, (struct range){1, 4}, x, &error) == ALLFOLD_BAD_ARGUMENT, "refused: a range beyond its elements");
    error.status = ALLFOLD_OK;
    must(truncate(path, 10) == 0, "truncate");
    tap_ok(read_elements(source, (struct range){0, 4}, x, &error) == ALLFOLD_IO_ERROR && strstr(error.text, "shrank") != NULL,
           "refused: a file that shrinks while it is read");
    source_close(source);
    error.status = ALLFOLD_OK;
    tap_ok(source_open(&info, &source, &error) == ALLFOLD_BAD_INPUT && strstr(error.text, "expected the file of 16") != NULL,
           "refused: a file that is shorter than described");
    error.status = ALLFOLD_OK;
    make_file(path, "0123456789abcdefghij", 20);
    tap_ok(source_open(&info, &source, &error) == ALLFOLD_BAD_INPUT && strstr(error.text, "found 20 bytes") != NULL,
           "refused: a file that has grown since");
}

int main(void)
{
    must(mkdtemp(folder) != NULL, folder);
    test_round_trips();
    test_large();
    test_empty();
    test_beyond_32_bits();
    test_refused_inputs();
    test_changing_input();
    static const char *const made[] = {"raw.bin", "array.npy", "empty.npy", "empty", "ten", "fake.npy", "changing"};
    for (size_t i = 0; i < sizeof made / sizeof *made; i++)
        unlink(in_folder(made[i]));
    tap_ok(rmdir(folder) == 0, "nothing else is left in the folder");
    return tap_done();
}
