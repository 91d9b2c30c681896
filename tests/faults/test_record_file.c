/* Sealed files: what was written is read; every byte that differs and every length that is not the right one is refused, and
   nothing is then written to the reader's memory; an interrupted writing leaves the file that was there. */
#define TAP_WITHOUT_MPI
#include "array/array.h"
#include "store/record_file.h"
#include "tests/tap.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define MAGIC "allfoldT"
#define WHAT "the test's file"
enum { BYTES = 100, ALL = BYTES + 24 };

static char path[ARRAY_PATH_BYTES];

static void fill(unsigned char bytes[BYTES], unsigned seed)
{
    for (unsigned i = 0; i < BYTES; i++)
        bytes[i] = (unsigned char)(seed * 31 + i * 7 + (i == 50 ? 0 : 1));
}

/* Whether the file is refused, with these words, and the memory stays as it was. */
static bool refused(const char *words)
{
    struct error error = {0};
    unsigned char into[BYTES], untouched[BYTES];
    bool exists;
    memset(into, 0xee, sizeof into);
    memset(untouched, 0xee, sizeof untouched);
    return record_file_read(path, WHAT, MAGIC, into, BYTES, &exists, &error) == ALLFOLD_BAD_INPUT && exists
           && strstr(error.text, words) != NULL && memcmp(into, untouched, sizeof into) == 0;
}

static bool reads(const unsigned char contents[BYTES])
{
    struct error error = {0};
    unsigned char into[BYTES];
    bool exists;
    return record_file_read(path, WHAT, MAGIC, into, BYTES, &exists, &error) == ALLFOLD_OK && exists
           && memcmp(into, contents, BYTES) == 0;
}

static void put(const unsigned char *bytes, size_t count)
{
    const int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0666);
    if (fd < 0 || write(fd, bytes, count) != (ssize_t)count)
        tap_ok(false, "the test's own file");
    close(fd);
}

static void get(unsigned char *bytes, size_t count)
{
    const int fd = open(path, O_RDONLY);
    if (fd < 0 || read(fd, bytes, count) != (ssize_t)count)
        tap_ok(false, "the test's own file");
    close(fd);
}

int main(void)
{
    struct error error = {0};
    unsigned char contents[BYTES], whole[ALL], changed[ALL + 1] = {0};
    char temporary[ARRAY_PATH_BYTES];
    bool exists = true;
    int missed = 0;
    snprintf(path, sizeof path, "%s/record-%ld", getenv("TMPDIR") != NULL ? getenv("TMPDIR") : "/tmp", (long)getpid());
    snprintf(temporary, sizeof temporary, "%.4000s.tmp", path);
    fill(contents, 1);
    tap_ok(record_file_read(path, WHAT, MAGIC, contents, BYTES, &exists, &error) == ALLFOLD_OK && !exists, "no file is no error");
    tap_ok(record_file_write(path, WHAT, MAGIC, contents, BYTES, &error) == ALLFOLD_OK && reads(contents), "written and read");
    fill(contents, 2);
    tap_ok(record_file_write(path, WHAT, MAGIC, contents, BYTES, &error) == ALLFOLD_OK && reads(contents), "replaced");
    get(whole, ALL);

    for (int i = 0; i < ALL; i++)
        for (int bit = 0; bit < 8; bit++) {
            memcpy(changed, whole, ALL);
            changed[i] ^= (unsigned char)(1 << bit);
            put(changed, ALL);
            missed += !refused(i < 8 ? "of another kind" : "is damaged");
        }
    tap_ok(missed == 0, "each of %d bits that differs is noticed (%d were not)", 8 * ALL, missed);
    missed = 0;
    memcpy(changed, whole, ALL);
    for (int length = 0; length <= ALL + 1; length++) {
        put(changed, (size_t)length);
        missed += length != ALL && !refused("expected the test's file of 124 bytes");
    }
    tap_ok(missed == 0, "each wrong length is noticed (%d were not)", missed);

    put(whole, ALL);
    tap_ok(mkdir(temporary, 0700) == 0, "a folder where the temporary file should be");
    fill(contents, 3);
    tap_ok(record_file_write(path, WHAT, MAGIC, contents, BYTES, &error) == ALLFOLD_IO_ERROR, "cannot be written: %s", error.text);
    fill(contents, 2);
    tap_ok(reads(contents), "and the old one is still there");
    rmdir(temporary);
    error = (struct error){0};
    tap_ok(record_file_remove(path, WHAT, &error) == ALLFOLD_OK && access(path, F_OK) != 0
               && record_file_remove(path, WHAT, &error) == ALLFOLD_OK, "removed, twice");
    return tap_done();
}
