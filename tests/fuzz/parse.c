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

static void take_name(void *user, const struct array_entry *entry)
{
    struct names *const names = user;
    char shape[64];
    array_shape_text(entry->shape, entry->dimensions, shape, sizeof shape);
    must((entry->type == ALLFOLD_TYPE_NONE) == (entry->refused != NULL), "an array is neither readable nor refused");
    if (names->count < NAMES && strlen(entry->name) < ARRAY_PATH_BYTES)
        strcpy(names->names[names->count++], entry->name);
}

/* All elements lie within the file. */
static void check(const struct array_info *info, uint64_t file_bytes)
{
    const struct array_layout *const layout = &info->layout;
    const allfold_type stored = info->encoding.stored != ALLFOLD_TYPE_NONE ? info->encoding.stored : info->type;
    const uint64_t bytes = allfold_type_bytes(stored), run = layout->run != 0 ? layout->run : info->count;
    must(type_exists(info->type) && info->dimensions <= ARRAY_DIMENSIONS_MAX, "a type or a shape that does not exist");
    if (info->count == 0 || !info->plain)
        return;
    const unsigned __int128 last = (unsigned __int128)((info->count - 1) / run) * layout->stride + layout->offset
                                   + (unsigned __int128)run * bytes;
    must(last <= file_bytes, "elements beyond the end of the file");
    must(layout->run == 0 || layout->stride >= layout->run * bytes, "runs that overlap");
}

static void describe(const struct format *format, struct input_file *file, const char *member)
{
    static const struct array_hints hints;
    struct array_info info;
    struct error error = {.status = ALLFOLD_OK};
    memset(&info, 0, sizeof info);
    strcpy(info.path, file->name);
    strcpy(info.member, member);
    file->member = format->list != NULL ? info.member : NULL;
    const allfold_status status = format->describe(file, &hints, &info, &error);
    must(status == error.status && (status == ALLFOLD_OK) == (error.text[0] == '\0'), "a status without a message");
    if (status == ALLFOLD_OK)
        check(&info, file->bytes);
    free(info.details);
}

void fuzz_parse(const struct format *format, const uint8_t *bytes, size_t count)
{
    static int fd = -1;
    static struct names names;
    struct error error = {.status = ALLFOLD_OK};
    if (fd < 0)
        fd = memfd_create("fuzz", MFD_CLOEXEC);
    must(fd >= 0 && ftruncate(fd, (off_t)count) == 0 && pwrite(fd, bytes, count, 0) == (ssize_t)count, "no file in memory");
    struct input_file file = {.name = "input", .fd = fd, .bytes = count, .head_bytes = count < sizeof file.head ? count : sizeof file.head};
    memcpy(file.head, bytes, file.head_bytes);
    format->recognises(&file);
    names.count = 0;
    if (format->list != NULL)
        format->list(&file, take_name, &names, &error);
    for (int i = 0; i < names.count; i++)
        describe(format, &file, names.names[i]);
    describe(format, &file, "none of these");
}
