/* Elements that lie as they are: in runs, in several files, in either byte order, at every cut; and files that change meanwhile. */
#define TAP_WITHOUT_MPI
#include "array/formats/formats.h"
#include "array/formats/parts.h"
#include "tests/files.h"
#include "tests/generated.h"
#include "tests/tap.h"

#include <inttypes.h>
#include <sys/time.h>

enum { RUNS = 4, RUN = 5, ELEMENTS = RUNS * RUN }; /* of a file */

/* Element i of an array. */
static uint32_t value(uint64_t i) { return (uint32_t)i * 0x01030507u + 1; }

static void put(unsigned char *to, uint32_t x, bool swapped)
{
    for (int byte = 0; byte < 4; byte++)
        to[byte] = (unsigned char)(x >> 8 * (swapped ? 3 - byte : byte));
}

/* A file of elements first, first + 1 ... in runs that begin `stride` bytes from each other. */
static void make_runs(const char *path, const struct array_layout *layout, uint64_t first)
{
    const uint64_t bytes = layout->offset + (RUNS - 1) * layout->stride + RUN * 4;
    unsigned char *const file = malloc(bytes);
    memset(file, 0xee, bytes);
    for (uint64_t i = 0; i < ELEMENTS; i++)
        put(file + layout->offset + i / RUN * layout->stride + i % RUN * 4, value(first + i), layout->swapped);
    make_file(path, file, bytes);
    free(file);
}

/* The description of such a file, as a format would give it. */
static struct array_info describe(const char *path, const struct array_layout *layout)
{
    struct array_info info;
    struct error error = {.status = ALLFOLD_OK};
    const struct array_hints bytes = {.type = ALLFOLD_UINT8};
    must(array_describe(path, &bytes, &info, &error) == ALLFOLD_OK, error.text);
    info.type = ALLFOLD_UINT32;
    info.count = info.shape[0] = ELEMENTS;
    info.layout = *layout;
    return info;
}

/* Every range is read right, the first `skipped` elements left out. */
static bool reads_all_ranges(const struct array_info *info, struct error *error)
{
    struct source *source;
    uint32_t found[3 * ELEMENTS];
    bool right = true;
    if (source_open(info, &source, error) != ALLFOLD_OK)
        return false;
    for (uint64_t first = 0; first < info->count; first++)
        for (uint64_t count = 1; first + count <= info->count && error->status == ALLFOLD_OK; count++) {
            read_elements(source, (struct range){first, count}, found, error);
            for (uint64_t i = 0; i < count; i++)
                right = right && found[i] == value(info->skipped + first + i);
        }
    source_close(source);
    return right && error->status == ALLFOLD_OK;
}

static void test_runs(void)
{
    static const uint64_t strides[] = {RUN * 4, RUN * 4 + 3, 1000, 200000}; /* the last is read run by run */
    for (size_t i = 0; i < sizeof strides / sizeof *strides; i++)
        for (int swapped = 0; swapped < 2; swapped++) {
            struct error error = {.status = ALLFOLD_OK};
            const struct array_layout layout = {.offset = 13, .run = RUN, .stride = strides[i], .swapped = (uint32_t)swapped};
            make_runs(in_folder("runs"), &layout, 0);
            struct array_info info = describe(in_folder("runs"), &layout);
            const bool whole = reads_all_ranges(&info, &error);
            info.skipped = 7;
            info.count -= 7;
            tap_ok(whole && reads_all_ranges(&info, &error), "runs %" PRIu64 " bytes apart%s: every range", strides[i],
                   swapped ? ", big-endian" : "");
        }
}

/* Three files, of which the middle one is empty. */
static struct array_info join(void)
{
    static const struct array_layout layouts[] = {{.offset = 3, .run = RUN, .stride = 33, .swapped = 1}, {.offset = 0}, {.offset = 8, .stride = RUN * 4}};
    struct error error = {.status = ALLFOLD_OK};
    struct parts_list list = {.count = 0};
    struct array_info info = {.count = 0};
    for (int part = 0; part < 3; part++) {
        char name[] = "part-0";
        name[5] = (char)('0' + part);
        make_runs(in_folder(name), &layouts[part == 1 ? 0 : part], part == 2 ? ELEMENTS : 0);
        struct array_info one = describe(in_folder(name), &layouts[part]);
        one.layout.stride = part == 0 ? 33 : 0;
        one.count = part == 1 ? 0 : ELEMENTS;
        must(parts_add(&list, &one, &error) == ALLFOLD_OK, error.text);
        info = one;
    }
    info.count = 2 * ELEMENTS;
    must(parts_finish(&list, &info, &error) == ALLFOLD_OK, error.text);
    return info;
}

/* Opens, lets `change` do something to the last file, and reads the last elements. */
static void test_change(const char *what, allfold_status expected, void (*change)(const char *path))
{
    struct array_info info = join();
    struct source *source;
    struct error error = {.status = ALLFOLD_OK};
    uint32_t x;
    must(source_open(&info, &source, &error) == ALLFOLD_OK, error.text);
    change(in_folder("part-2"));
    read_elements(source, (struct range){2 * ELEMENTS - 1, 1}, &x, &error);
    tap_ok(error.status == expected, "a part that is %s before it is read: %s", what, error.text);
    error = (struct error){.status = ALLFOLD_OK};
    tap_ok(source_check(source, &error) == expected, "and at the end: %s", error.text);
    source_close(source);
    array_release(&info);
}

static void leave(const char *path) { (void)path; }
static void cut(const char *path) { must(truncate(path, 10) == 0, path); }
static void grow(const char *path) { must(truncate(path, 1000) == 0, path); }
static void touch(const char *path)
{
    static const struct timeval times[2] = {{1, 0}, {1, 0}};
    must(utimes(path, times) == 0, path);
}
static void replace(const char *path)
{
    make_file(in_folder("other"), "x", 1);
    must(rename(in_folder("other"), path) == 0, path);
}

static void test_parts(void)
{
    struct error error = {.status = ALLFOLD_OK};
    struct array_info info = join();
    tap_ok(reads_all_ranges(&info, &error), "three files, in runs and without, in both byte orders: every range");
    const char *const called[] = {info.path};
    tap_ok(array_has_file(&info, called, 1, in_folder("part-1")) && !array_has_file(&info, called, 1, in_folder("runs")), "the files of the array are known");
    array_release(&info);
    test_change("left alone", ALLFOLD_OK, leave);
    test_change("written to", ALLFOLD_IO_ERROR, touch);
    test_change("cut", ALLFOLD_BAD_INPUT, cut);
    test_change("made longer", ALLFOLD_BAD_INPUT, grow);
    test_change("replaced", ALLFOLD_BAD_INPUT, replace);
    info = join();
    const bool same = array_check_times(&info, &error) == ALLFOLD_OK;
    touch(in_folder("part-1"));
    tap_ok(same && array_check_times(&info, &error) == ALLFOLD_BAD_INPUT && strstr(error.text, "part-1") != NULL,
           "refused after the description: %s", error.text);
    error = (struct error){.status = ALLFOLD_OK};
    array_release(&info);
    info = join();
    cut(in_folder("part-2"));
    struct source *source;
    tap_ok(source_open(&info, &source, &error) == ALLFOLD_BAD_INPUT && strstr(error.text, "part-2") != NULL, "refused at the start: %s",
           error.text);
    array_release(&info);
}

int main(void)
{
    must(mkdtemp(folder) != NULL, folder);
    test_runs();
    test_parts();
    static const char *const made[] = {"runs", "part-0", "part-1", "part-2"};
    for (size_t i = 0; i < sizeof made / sizeof *made; i++)
        unlink(in_folder(made[i]));
    tap_ok(rmdir(folder) == 0, "nothing else is left in the folder");
    return tap_done();
}
