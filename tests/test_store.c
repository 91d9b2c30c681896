/* What is kept in files beside the data. Record files: what was written is read; every byte that differs and every length that is
   not the right one is refused, and nothing is then written to the reader's memory; a writing that fails leaves the file that was
   there and no other. Checkpoints: the same run goes on, every other one is refused, and a second one at the same time, too. */
#define TAP_WITHOUT_MPI
#include "tap.h"

#include "files.h"
#include "store/checkpoint.h"
#include "store/record_file.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>

enum { BYTES = 100, ALL = BYTES + 24 };
static const struct record_kind kind = {"allfoldT", "the test's file", BYTES};

static void fill(unsigned char bytes[BYTES], unsigned seed)
{
    for (unsigned i = 0; i < BYTES; i++)
        bytes[i] = (unsigned char)(seed * 31 + i * 7 + (i == 50 ? 0 : 1));
}

/* Whether the file is refused, with these words, and the memory stays as it was. */
static bool refused(const char *path, const char *words)
{
    struct error error = {0};
    unsigned char into[BYTES], untouched[BYTES];
    memset(into, 0xee, sizeof into);
    memset(untouched, 0xee, sizeof untouched);
    return record_file_read(path, &kind, into, NULL, &error) == ALLFOLD_BAD_INPUT
           && strstr(error.text, words) != NULL && memcmp(into, untouched, sizeof into) == 0;
}

/* A file that begins as one of the kind and is longer than memory: its length is refused before it is read. */
static void test_long(void)
{
    const char *const path = in_folder("long");
    struct record_tail tail;
    struct error error = {0};
    unsigned char into[BYTES];
    make_file(path, kind.magic, sizeof kind.magic);
    must(truncate(path, (off_t)1 << 40) == 0, path);
    tap_ok(record_file_read(path, &kind, into, &tail, &error) == ALLFOLD_BAD_INPUT && strstr(error.text, "is damaged") != NULL,
           "a file of 1 TiB: %s", error.text);
    must(unlink(path) == 0, path);
}

static bool reads(const char *path, const unsigned char contents[BYTES])
{
    struct error error = {0};
    unsigned char into[BYTES];
    return record_file_read(path, &kind, into, NULL, &error) == ALLFOLD_OK && memcmp(into, contents, BYTES) == 0;
}

static allfold_status put(const char *path, const struct record_kind *of, const void *contents, struct error *error)
{
    struct replacement file;
    if (record_file_create(path, of, &file, error) != ALLFOLD_OK)
        return error->status;
    if (record_file_write(&file, of, contents, NULL, error) == ALLFOLD_OK)
        return replacement_commit(&file, error);
    replacement_discard(&file);
    return error->status;
}

static void test_record(void)
{
    const char *const path = in_folder("record");
    struct error error = {0};
    unsigned char contents[BYTES], whole[ALL], changed[ALL + 1] = {0};
    int missed = 0;
    fill(contents, 1);
    tap_ok(record_file_read(path, &kind, contents, NULL, &error) == ALLFOLD_IO_ERROR && strstr(error.text, "found no such file") != NULL,
           "no file: %s", error.text);
    error = (struct error){0};
    tap_ok(put(path, &kind, contents, &error) == ALLFOLD_OK && reads(path, contents), "written and read");
    fill(contents, 2);
    tap_ok(put(path, &kind, contents, &error) == ALLFOLD_OK && reads(path, contents), "replaced");
    FILE *const file = fopen(path, "rb");
    must(file != NULL && fread(whole, 1, ALL, file) == ALL && fclose(file) == 0, path);
    for (int i = 0; i < ALL; i++)
        for (int bit = 0; bit < 8; bit++) {
            memcpy(changed, whole, ALL);
            changed[i] ^= (unsigned char)(1 << bit);
            make_file(path, changed, ALL);
            missed += !refused(path, i < 8 ? "of another kind" : "is damaged");
        }
    tap_ok(missed == 0, "each of %d bits that differs is noticed (%d were not)", 8 * ALL, missed);
    missed = 0;
    memcpy(changed, whole, ALL);
    for (int length = 0; length <= ALL + 1; length++) {
        make_file(path, changed, (size_t)length);
        missed += length != ALL && !refused(path, "expected the test's file of 124 bytes");
    }
    tap_ok(missed == 0, "each wrong length is noticed (%d were not)", missed);
    make_file(path, whole, ALL);
}

/* A limit on the size of files is met where a full disk would be: when the file is made, and when it is written. */
static void test_no_room(void)
{
    const char *const path = in_folder("record");
    struct error error = {0};
    struct rlimit limit, old;
    struct replacement file;
    unsigned char contents[BYTES];
    fill(contents, 3);
    signal(SIGXFSZ, SIG_IGN);
    must(getrlimit(RLIMIT_FSIZE, &old) == 0, "getrlimit");
    limit = old;
    limit.rlim_cur = 64;
    must(setrlimit(RLIMIT_FSIZE, &limit) == 0, "setrlimit");
    const bool made = put(path, &kind, contents, &error) == ALLFOLD_OK;
    must(setrlimit(RLIMIT_FSIZE, &old) == 0, "setrlimit");
    tap_ok(!made && files() == 1, "no room when it is made: refused, and no file is left: %s", error.text);
    error = (struct error){0};
    must(record_file_create(path, &kind, &file, &error) == ALLFOLD_OK && setrlimit(RLIMIT_FSIZE, &limit) == 0, error.text);
    const bool written = record_file_write(&file, &kind, contents, NULL, &error) == ALLFOLD_OK;
    must(setrlimit(RLIMIT_FSIZE, &old) == 0, "setrlimit");
    replacement_discard(&file);
    fill(contents, 2);
    tap_ok(!written && files() == 1 && reads(path, contents), "no room when it is written: the old one stays, alone: %s", error.text);
    must(unlink(path) == 0, path);
}

/* All that a checkpoint's identity is made of. */
struct setup {
    struct checkpoint_run run;
    struct array_info input;
    struct resumable progress;
};

static char partial[5000]; /* what is kept */

static struct setup usual(void)
{
    static char file[512];
    struct setup setup = {.run = {.file = file, .command = "sum", .ranks = 2, .nan = "propagate", .missing = "omit"},
                          .input = {.format = 1, .type = ALLFOLD_F64, .count = 1000, .layout = {.offset = 128},
                                    .file_bytes = 8128, .file_time = 7},
                          .progress = {.monoid = MONOID_sum, .type = ALLFOLD_F64, .shard_elements = 100, .device = "cpu"}};
    snprintf(file, sizeof file, "%s", in_folder("ck"));
    return setup;
}

/* Loads the progress of a run that is set up so. */
static allfold_status begin(struct checkpoint *checkpoint, struct setup *setup, struct error *error)
{
    *checkpoint = (struct checkpoint){.progress = setup->progress};
    if (checkpoint_begin(checkpoint, &setup->run, &setup->input, error) != ALLFOLD_OK)
        return error->status;
    return checkpoint->progress.load(&checkpoint->progress, error);
}

/* Saves that so many shards are done. */
static allfold_status save(struct checkpoint *checkpoint, uint64_t done, size_t state_bytes, struct error *error)
{
    struct resumable *const progress = &checkpoint->progress;
    progress->done = done;
    progress->state = partial;
    progress->state_bytes = state_bytes;
    progress->save(progress, error);
    progress->state = NULL;
    return error->status;
}

/* Makes another run of the usual one. Returns the words of the refusal, NULL after the last. */
static const char *change(struct setup *setup, int number)
{
    static const char long_name[] = "a/folder/whose/name/is/of/so/many/bytes/that/a/checksum/stands/for/it/y.npy";
    switch (number) {
    case 0: setup->run.command = "norm1"; return "command norm1, found sum";
    case 1: setup->run.ranks = 3; return "ranks 3, found 2";
    case 2: setup->input.file_bytes = 8136; return "bytes of the input 8136, found 8128";
    case 3: setup->input.file_time = 8; return "time of the input (ns) 8, found 7";
    case 4: setup->input.format = 0; return "format of the input generated, found npy";
    case 5: setup->input.type = ALLFOLD_INT64; return "element type int64, found f64";
    case 6: setup->input.count = 999; return "elements 999, found 1000";
    case 7: setup->input.layout.offset = 136; return "offset of the elements 136, found 128";
    case 8: setup->input.generator.seed = 1; return "parameters of the generator";
    case 9: setup->run.nan = "omit"; return "--nan omit, found propagate";
    case 10: snprintf(setup->progress.device, sizeof setup->progress.device, "gpu"); return "device gpu, found cpu";
    case 11: setup->progress.shard_elements = 50; return "elements of a shard (--staging) 50, found 100";
    case 12: setup->progress.monoid = MONOID_sum_exact; return "kind of partial (--sum, --output-type) sum_exact, found sum";
    case 13: setup->input.skipped = 5; return "elements before the first (--offset) 5, found 0";
    case 14: setup->run.rank = 1; return "rank 1, found 0";
    case 15: strcpy(setup->input.member, "x"); return "array in the file x, found none";
    case 16: setup->input.layout.run = 1; return "places of the elements";
    case 17: setup->run.missing = "keep"; return "--missing keep, found omit";
    case 18: setup->run.axis = "1"; return "--axis 1, found none";
    case 19: setup->run.keepdims = true; return "--keepdims yes, found no";
    case 20: setup->run.ddof = 1; return "--ddof 1, found 0";
    case 21: setup->run.output_type = "f32"; return "--output-type f32, found none";
    case 22: setup->run.output = long_name; return "output (-o) that of checksum ";
    case 23: setup->run.values = "v.npy"; return "--values v.npy, found none";
    case 24: setup->input.dimensions = 1, setup->input.shape[0] = 1000; return "shape 1000, found scalar";
    default: return NULL;
    }
}

/* The file as another version of the program would have written it. */
static void change_version(const char *path)
{
    struct error error = {0};
    struct stat status;
    unsigned char *const contents = malloc(1 << 16);
    must(stat(path, &status) == 0, path);
    const struct record_kind checkpoints = {"allfoldC", "the checkpoint", (size_t)status.st_size - 24};
    must(record_file_read(path, &checkpoints, contents, NULL, &error) == ALLFOLD_OK, error.text);
    contents[0] = 'x';
    must(put(path, &checkpoints, contents, &error) == ALLFOLD_OK, error.text);
    free(contents);
}

static void refused_run(struct setup *setup, const char *words)
{
    struct checkpoint checkpoint;
    struct error error = {0};
    const int before = files();
    begin(&checkpoint, setup, &error);
    tap_ok(error.status == ALLFOLD_BAD_INPUT && strstr(error.text, words) != NULL && files() == before && checkpoint.progress.done == 0,
           "a checkpoint is refused: %s", error.text);
    checkpoint_end(&checkpoint, false, &error);
}

static void test_checkpoint(void)
{
    const char *const path = in_folder("ck.0"), *const words[] = {"version", "another run that is under way"};
    struct setup setup = usual();
    struct checkpoint checkpoint, second;
    struct error error = {0};
    tap_ok(begin(&checkpoint, &setup, &error) == ALLFOLD_OK && checkpoint.progress.done == 0 && files() == 1, "the file is made at the start");
    tap_ok(checkpoint_end(&checkpoint, false, &error) == ALLFOLD_OK && files() == 0, "a run that fails before the first shard leaves none");
    must(begin(&checkpoint, &setup, &error) == ALLFOLD_OK, error.text);
    memset(partial, 0x5a, sizeof partial);
    tap_ok(save(&checkpoint, 3, sizeof partial, &error) == ALLFOLD_OK && files() == 1, "kept after a shard");
    begin(&second, &setup, &error);
    tap_ok(error.status == ALLFOLD_IO_ERROR && strstr(error.text, words[1]) != NULL && files() == 1, "refused: %s", error.text);
    error = (struct error){0};
    must(checkpoint_end(&checkpoint, false, &error) == ALLFOLD_OK, error.text);

    const char *refusal;
    for (int number = 0; setup = usual(), (refusal = change(&setup, number)) != NULL; number++) {
        must(setup.run.rank == 0 || rename(path, in_folder("ck.1")) == 0, path);
        refused_run(&setup, refusal);
        must(setup.run.rank == 0 || rename(in_folder("ck.1"), path) == 0, path);
    }
    setup = usual();
    const struct resumable *const progress = &checkpoint.progress;
    tap_ok(begin(&checkpoint, &setup, &error) == ALLFOLD_OK && progress->done == 3 && progress->state_bytes == sizeof partial
           && memcmp(progress->state, partial, sizeof partial) == 0, "the same run goes on");
    must(checkpoint_end(&checkpoint, false, &error) == ALLFOLD_OK, error.text);
    change_version(path);
    setup = usual();
    refused_run(&setup, words[0]);
    must(unlink(path) == 0, path);

    must(begin(&checkpoint, &setup, &error) == ALLFOLD_OK && save(&checkpoint, 1, 0, &error) == ALLFOLD_OK
         && checkpoint_end(&checkpoint, false, &error) == ALLFOLD_OK && rename(path, in_folder("ck.1")) == 0
         && symlink("ck.1", path) == 0, path);
    tap_ok(begin(&checkpoint, &setup, &error) == ALLFOLD_OK && checkpoint_end(&checkpoint, true, &error) == ALLFOLD_OK
           && files() == 0, "success removes a checkpoint that is behind a link, and the link");
}

/* A state of any length, and the key of outputs. */
static void test_state(void)
{
    struct setup setup = usual();
    struct checkpoint checkpoint;
    struct error error = {0};
    setup.run.axis = "1";
    must(begin(&checkpoint, &setup, &error) == ALLFOLD_OK && checkpoint.fresh, error.text);
    checkpoint.key = 77;
    for (size_t bytes = sizeof partial; bytes > 0; bytes = bytes / 2) { /* the file becomes shorter */
        must(save(&checkpoint, 0, bytes, &error) == ALLFOLD_OK && !checkpoint.fresh
             && checkpoint_end(&checkpoint, false, &error) == ALLFOLD_OK, error.text);
        must(begin(&checkpoint, &setup, &error) == ALLFOLD_OK, error.text);
        if (bytes < 100)
            tap_ok(checkpoint.progress.state_bytes == bytes && checkpoint.key == 77
                   && memcmp(checkpoint.progress.state, partial, bytes) == 0, "a state of %zu bytes, and a key", bytes);
        free(checkpoint.progress.state);
        checkpoint.progress.state = NULL;
    }
    must(checkpoint_end(&checkpoint, true, &error) == ALLFOLD_OK, error.text);
}

int main(void)
{
    must(mkdtemp(folder) != NULL, folder);
    test_record();
    test_long();
    test_no_room();
    test_checkpoint();
    test_state();
    tap_ok(rmdir(folder) == 0, "nothing else is left in the folder");
    return tap_done();
}
