/* One input of the fuzzer: see parse.h. It is a file in memory, since formats read files. */
#include "tests/fuzz/parse.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define NAMES 4

static void must(bool condition, const char *what)
{
    if (!condition) {
        fprintf(stderr, "fuzz: %s\n", what);
        abort();
    }
}

/* The names of the first arrays that are listed. */
struct names {
    char names[NAMES][ARRAY_PATH_BYTES];
    int count;
};

/* All elements lie within the file. */
static void check(const struct array_info *info, uint64_t file_bytes)
{
    const struct array_layout *const layout = &info->layout;
    const uint64_t bytes = allfold_type_bytes(array_stored_type(info)), run = layout->run != 0 ? layout->run : info->count;
    must(type_exists(info->type) && info->dimensions <= ARRAY_DIMENSIONS_MAX, "a type or a shape that does not exist");
    if (info->count == 0 || !info->plain)
        return;
    const unsigned __int128 last = (unsigned __int128)((info->count - 1) / run) * layout->stride + layout->offset
                                   + (unsigned __int128)run * bytes;
    must(last <= file_bytes, "elements beyond the end of the file");
    must(layout->run == 0 || layout->stride >= layout->run * bytes, "runs that overlap");
}

static void take_entry(void *user, const struct array_entry *entry)
{
    struct names *const names = user;
    char shape[64];
    array_entry_shape(entry, shape, sizeof shape);
    must(array_entry_type(entry)[0] != '\0', "a type without words");
    must((entry->refused.status == ALLFOLD_OK) == (entry->refused.text[0] == '\0'), "a refusal without a reason");
    if (entry->refused.status == ALLFOLD_OK)
        check(&entry->info, entry->info.file_bytes);
    if (entry->name != NULL && names->count < NAMES && strlen(entry->name) < ARRAY_PATH_BYTES)
        strcpy(names->names[names->count++], entry->name);
}

/* name: NULL, or that of the array. */
static void describe(const struct format *format, const struct input_file *file, const char *name)
{
    struct array_info info;
    struct error error = {.status = ALLFOLD_OK};
    const allfold_status status = directory_find(format, file, name, &info, &error);
    must(status == error.status && (status == ALLFOLD_OK) == (error.text[0] == '\0'), "a status without a message");
    if (status != ALLFOLD_OK)
        return;
    check(&info, file->bytes);
    array_release(&info);
}

void fuzz_parse(const struct format *format, const uint8_t *bytes, size_t count)
{
    static int fd = -1;
    static struct names names;
    static const struct array_hints hints;
    static const struct input_name all;
    struct error error = {.status = ALLFOLD_OK};
    if (fd < 0)
        fd = memfd_create("fuzz", MFD_CLOEXEC);
    must(fd >= 0 && ftruncate(fd, (off_t)count) == 0 && pwrite(fd, bytes, count, 0) == (ssize_t)count, "no file in memory");
    struct input_file file = {.name = "input", .hints = &hints, .fd = fd, .bytes = count,
                              .head_bytes = count < sizeof file.head ? count : sizeof file.head};
    memcpy(file.head, bytes, file.head_bytes);
    format->recognises(&file);
    names.count = 0;
    directory_list(format, &file, &all, take_entry, &names, &error);
    for (int i = 0; i < names.count; i++)
        describe(format, &file, names.names[i]);
    describe(format, &file, NULL);
    describe(format, &file, "none of these");
}
