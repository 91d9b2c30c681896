/* The fuzzer's corpus without the fuzzer: each file as it is, each cut at every byte, each with every byte damaged in several ways. The
   parsers must accept or refuse them, and touch no memory that is not theirs, which sanitizers show. */
#define TAP_WITHOUT_MPI
#include "tests/fuzz/parse.h"
#include "tests/tap.h"

#include <dirent.h>
#include <stdlib.h>

#define FILE_BYTES 65536

static const struct {
    const char *folder;
    const struct format *format;
} targets[] = {{"npy", &format_npy}, {"npz", &format_npz}, {"safetensors", &format_safetensors}, {"netcdf", &format_netcdf}};

/* All bytes of a file, of exactly its length. */
static uint8_t *read_whole(const char *path, size_t *count)
{
    uint8_t *const bytes = malloc(FILE_BYTES);
    FILE *const file = fopen(path, "rb");
    *count = file != NULL ? fread(bytes, 1, FILE_BYTES, file) : 0;
    if (file != NULL)
        fclose(file);
    return realloc(bytes, *count > 0 ? *count : 1);
}

static int vary(const struct format *format, uint8_t *bytes, size_t count)
{
    static const uint8_t wrong[] = {0x00, 0xff, 0x7f, 0x80, 0x01, '{', '9'};
    int runs = 1;
    fuzz_parse(format, bytes, count);
    for (size_t length = 0; length < count; length++, runs++)
        fuzz_parse(format, bytes, length);
    for (size_t at = 0; at < count; at++)
        for (size_t i = 0; i < sizeof wrong; i++, runs++) {
            const uint8_t was = bytes[at];
            bytes[at] = wrong[i];
            fuzz_parse(format, bytes, count);
            bytes[at] = was;
        }
    return runs;
}

int main(void)
{
    for (size_t i = 0; i < sizeof targets / sizeof *targets; i++) {
        char path[4096];
        int files = 0, runs = 0;
        snprintf(path, sizeof path, "%s/tests/fuzz/corpus/%s", getenv("ALLFOLD_SOURCE"), targets[i].folder);
        DIR *const folder = opendir(path);
        for (const struct dirent *entry; folder != NULL && (entry = readdir(folder)) != NULL;) {
            size_t count;
            if (entry->d_name[0] == '.')
                continue;
            snprintf(path, sizeof path, "%s/tests/fuzz/corpus/%s/%s", getenv("ALLFOLD_SOURCE"), targets[i].folder, entry->d_name);
            uint8_t *const bytes = read_whole(path, &count);
            runs += vary(targets[i].format, bytes, count);
            files++;
            free(bytes);
        }
        if (folder != NULL)
            closedir(folder);
        tap_ok(files > 2 && runs > 1000, "%s: %d files, %d with every byte cut off or damaged", targets[i].folder, files, runs);
    }
    return tap_done();
}
