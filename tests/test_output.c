/* Outputs appear whole, under their name, or not at all, and leave nothing behind; what is refused as one. By itself. */
#define TAP_WITHOUT_MPI
#include "tap.h"

#include "array/array.h"
#include "files.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

static struct array_info bytes_info(uint64_t count)
{
    return (struct array_info){.type = ALLFOLD_UINT8, .count = count, .dimensions = 1, .shape = {count}};
}

static void test_output(void)
{
    const struct array_info info = bytes_info(3);
    const char *path = in_folder("out"), *link = in_folder("link");
    struct output output;
    struct sink *sink;
    struct stat status;
    struct error error = {.status = ALLFOLD_OK};
    const mode_t mask = umask(027);
    tap_ok(write_array(path, &info, "new", &error) && holds(path, "new") && stat(path, &status) == 0 &&
               (status.st_mode & 07777) == 0640, "a new output has the permissions that the umask leaves");
    umask(mask);
    must(chmod(path, 0604) == 0, "chmod");
    const int before = files();
    tap_ok(output_create(path, &info, NULL, &output, &error) == ALLFOLD_OK && output_open(&output, &sink, &error) == ALLFOLD_OK &&
               sink->write(sink, 0, 3, "two", &error) == ALLFOLD_OK && sink->close(sink, &error) == ALLFOLD_OK &&
               holds(path, "new") && files() == before + 1, "the old file stays until the commit");
    tap_ok(replacement_commit(&output.file, &error) == ALLFOLD_OK && holds(path, "two") && files() == before &&
               stat(path, &status) == 0 && (status.st_mode & 07777) == 0604, "the commit replaces it, permissions kept");
    output_create(path, &info, NULL, &output, &error);
    replacement_discard(&output.file);
    tap_ok(error.status == ALLFOLD_OK && holds(path, "two") && files() == before, "a discarded output leaves nothing");
    must(symlink("out", link) == 0, "symlink");
    tap_ok(write_array(link, &info, "abc", &error) && holds(path, "abc") && lstat(link, &status) == 0 &&
               S_ISLNK(status.st_mode), "a symbolic link is written through");
    unlink(link);
    char name[256];
    memset(name, 'n', 255);
    name[255] = '\0';
    tap_ok(write_array(in_folder(name), &info, "abc", &error) && holds(in_folder(name), "abc"), "a name of 255 bytes");
    unlink(in_folder(name));
    must(chdir(folder) == 0, folder);
    tap_ok(write_array("here", &info, "abc", &error) && holds("here", "abc"), "a name without a folder");
    unlink("here");
    must(chdir("..") == 0, "..");
    tap_ok(output_create(path, &info, NULL, &output, &error) == ALLFOLD_OK && truncate(output.file.temporary, 2) == 0 &&
               output_open(&output, &sink, &error) == ALLFOLD_IO_ERROR, "a temporary file of another size is not opened");
    error.status = ALLFOLD_OK;
    tap_ok(replacement_commit(&output.file, &error) == ALLFOLD_IO_ERROR && holds(path, "abc") && files() == before,
           "nor committed, and it is gone");
}

/* What runs that were killed have left, and what is still somebody's. */
static void test_left_behind(void)
{
    const struct array_info info = bytes_info(3);
    const char *path = in_folder("left");
    struct output dead, alive, output;
    struct error error = {.status = ALLFOLD_OK};
    const int before = files();
    must(output_create(path, &info, NULL, &dead, &error) == ALLFOLD_OK && output_create(path, &info, NULL, &alive, &error) == ALLFOLD_OK,
         error.text);
    must(close(dead.file.descriptor) == 0, "close"); /* as the end of its process does */
    char other[ARRAY_PATH_BYTES], foreign[ARRAY_PATH_BYTES];
    snprintf(other, sizeof other, "%.4000sx", dead.file.temporary);
    memcpy(foreign, dead.file.temporary, sizeof foreign);
    char *const mark = strstr(foreign, ".left.") + 6;
    *mark = *mark == '0' ? '1' : '0'; /* as if on another host */
    must(close(creat(other, 0600)) == 0 && close(creat(foreign, 0600)) == 0, "creat");
    tap_ok(output_create(path, &info, NULL, &output, &error) == ALLFOLD_OK && access(dead.file.temporary, F_OK) != 0 && errno == ENOENT,
           "the temporary file of a process that is gone is removed by the next run");
    tap_ok(access(alive.file.temporary, F_OK) == 0 && access(other, F_OK) == 0 && access(foreign, F_OK) == 0
               && files() == before + 4, "that of a living one stays, and what has another name");
    replacement_discard(&output.file);
    replacement_discard(&alive.file);
    unlink(other);
    unlink(foreign);
    tap_ok(files() == before, "nothing else is left");
}

static void refused_output(const char *path, const struct array_info *info, const char *says, const char *what)
{
    struct output output;
    struct error error = {.status = ALLFOLD_OK};
    const int before = files();
    if (!tap_ok(output_create(path, info, NULL, &output, &error) != ALLFOLD_OK && strstr(error.text, says) != NULL &&
                    files() == before, "refused: %s", what))
        tap_note("found: %s", error.text);
}

static void test_refused_outputs(void)
{
    const struct array_info info = bytes_info(3), vast = bytes_info(UINT64_MAX);
    struct array_info odd = info;
    char *name = malloc(ARRAY_PATH_BYTES + 1);
    memset(name, '/', ARRAY_PATH_BYTES);
    strcpy(name + ARRAY_PATH_BYTES - 1, "x");
    odd.count = 4;
    make_file(in_folder("ten"), "0123456789", 10);
    refused_output("", &info, "an empty name", "an output without a name");
    refused_output(name, &info, "less than 4096", "an output with a path of 4096 bytes");
    refused_output(folder, &info, "a directory", "a directory as output");
    refused_output(in_folder("x/"), &info, "the folder", "an output that ends in a slash");
    refused_output("/dev/null", &info, "a character device", "a device as output");
    refused_output(in_folder("none/out"), &info, "No such file", "an output in a folder that is not there");
    refused_output(in_folder("ten/out"), &info, "Not a directory", "an output in a file");
    refused_output(in_folder("out"), &vast, "less than 2^63 bytes", "an output of 2^64 - 1 bytes");
    refused_output(in_folder("out"), &odd, "does not make up", "an output whose shape is not its count");
    must(symlink("nothing", in_folder("dangling")) == 0, "symlink");
    refused_output(in_folder("dangling"), &info, "No such file", "a symbolic link to nothing as output");
    unlink(in_folder("dangling"));
    if (geteuid() == 0) {
        tap_skip("root may write read-only files");
    } else {
        must(chmod(in_folder("out"), 0444) == 0, "chmod");
        refused_output(in_folder("out"), &info, "may not be written", "a read-only file as output");
    }
    free(name);
}

/* A disk that is full: a limit on the size of files fails in the same two places. */
static void test_full_disk(void)
{
    const struct array_info info = bytes_info(20000000); /* so many that several threads meet the limit */
    struct output output;
    struct sink *sink;
    struct error error = {.status = ALLFOLD_OK};
    struct rlimit limit, old;
    const int before = files();
    char *elements = calloc(info.count, 1);
    const char *path = in_folder("full");
    signal(SIGXFSZ, SIG_IGN);
    must(getrlimit(RLIMIT_FSIZE, &old) == 0, "getrlimit");
    limit = old;
    limit.rlim_cur = 1000003;
    must(setrlimit(RLIMIT_FSIZE, &limit) == 0, "setrlimit");
    tap_ok(output_create(path, &info, NULL, &output, &error) == ALLFOLD_IO_ERROR && files() == before,
           "no room when the output is made: an error, and no file");
    must(setrlimit(RLIMIT_FSIZE, &old) == 0, "setrlimit");
    error.status = ALLFOLD_OK;
    must(output_create(path, &info, NULL, &output, &error) == ALLFOLD_OK, error.text);
    must(output_open(&output, &sink, &error) == ALLFOLD_OK, error.text);
    must(setrlimit(RLIMIT_FSIZE, &limit) == 0, "setrlimit");
    const bool failed = sink->write(sink, 0, info.count, elements, &error) == ALLFOLD_IO_ERROR;
    must(setrlimit(RLIMIT_FSIZE, &old) == 0, "setrlimit");
    sink->close(sink, &error);
    replacement_discard(&output.file);
    tap_ok(failed && strstr(error.text, "cannot write") != NULL && files() == before,
           "no room while it is written: an error, and no file after discard");
    signal(SIGXFSZ, SIG_DFL);
    free(elements);
}

int main(void)
{
    must(mkdtemp(folder) != NULL, folder);
    test_output();
    test_left_behind();
    test_refused_outputs();
    test_full_disk();
    static const char *const made[] = {"out", "ten"};
    for (size_t i = 0; i < sizeof made / sizeof *made; i++)
        unlink(in_folder(made[i]));
    tap_ok(rmdir(folder) == 0, "nothing else is left in the folder");
    return tap_done();
}
