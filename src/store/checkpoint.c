/* Checkpoints: see checkpoint.h. */
#include "store/checkpoint.h"

#include "store/partial_file.h"
#include "store/record_file.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#define WHAT "the checkpoint"

/* The file's contents. */
struct checkpoint_record {
    struct checkpoint_identity identity;
    uint64_t done;
    uint64_t key; /* of outputs; behind it: progress->state */
};

static const char *const monoids[] = {
#define NAME(name, ...) #name,
    MONOIDS(NAME)
#undef NAME
};

static const struct record_kind kind = {"allfoldC", WHAT, sizeof(struct checkpoint_record)};

/* Sets a member of an identity. */
__attribute__((format(printf, 2, 3))) static void say(char value[IDENTITY_BYTES], const char *format, ...)
{
    char text[2 * ARRAY_PATH_BYTES];
    va_list arguments;
    va_start(arguments, format);
    const int length = vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    if (length < IDENTITY_BYTES)
        memcpy(value, text, (size_t)length + 1);
    else
        snprintf(value, IDENTITY_BYTES, "that of checksum %016" PRIx64, checksum(CHECKSUM_START, text, strlen(text)));
}

static const char *or_none(const char *text) { return text != NULL ? text : "none"; }

/* The first thing that differs, if any. */
static allfold_status compare(const struct checkpoint *checkpoint, const struct checkpoint_identity *found, struct error *error)
{
    static const char *const names[] = {
#define WORDS(name, words) words,
        CHECKPOINT_IDENTITY(WORDS)
#undef WORDS
    };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const char *const expected = (const char *)&checkpoint->identity + i * IDENTITY_BYTES;
        const char *const is = (const char *)found + i * IDENTITY_BYTES;
        if (strncmp(expected, is, IDENTITY_BYTES) != 0)
            return error_set(error, ALLFOLD_BAD_INPUT, "%s: " WHAT " is of another run: expected %s %s, found %.63s (remove it to begin anew)",
                             file_shown(checkpoint->file.path), names[i], expected, is);
    }
    return ALLFOLD_OK;
}

static void let_go(struct checkpoint *checkpoint)
{
    if (checkpoint->locked >= 0)
        close(checkpoint->locked);
    checkpoint->locked = -1;
}

/* Writes the temporary file and commits it, as a new file if `taken` is not NULL (see replacement_commit_new). Its lock, which the
   temporary file had from the beginning, is then the one that is locked. */
static allfold_status write_file(struct checkpoint *checkpoint, bool *taken, struct error *error)
{
    struct replacement *const file = &checkpoint->file;
    const struct resumable *const progress = &checkpoint->progress;
    struct checkpoint_record record;
    memset(&record, 0, sizeof record);
    record.identity = checkpoint->identity;
    record.done = progress->done;
    record.key = checkpoint->key;
    if (record_file_write(file, &kind, &record, &(struct record_tail){progress->state, progress->state_bytes}, error) != ALLFOLD_OK) {
        replacement_discard(file);
        return error->status;
    }
    const int next = fcntl(file->descriptor, F_DUPFD_CLOEXEC, 0);
    flock(file->descriptor, LOCK_EX | LOCK_NB);
    if (taken != NULL)
        replacement_commit_new(file, taken, error);
    else
        replacement_commit(file, error);
    if (error->status == ALLFOLD_OK && (taken == NULL || !*taken)) {
        let_go(checkpoint);
        checkpoint->locked = next;
        checkpoint->fresh = progress->done == 0 && progress->state_bytes == 0;
    } else if (next >= 0) {
        close(next);
    }
    return error->status;
}

/* Locks the file, if there is one. If another run replaces or removes it meanwhile, it is checked again. */
static allfold_status lock_file(struct checkpoint *checkpoint, bool *exists, struct error *error)
{
    for (*exists = true;;) {
        struct stat opened, named = {0};
        const int fd = open(checkpoint->file.path, O_RDWR | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW);
        if (fd < 0 && errno == ENOENT) {
            *exists = false;
            return ALLFOLD_OK;
        }
        if (fd < 0)
            return error_errno(error, ALLFOLD_IO_ERROR, errno, "%s: cannot open " WHAT, file_shown(checkpoint->file.path));
        if (flock(fd, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK)
            error_set(error, ALLFOLD_IO_ERROR, "%s: another run that is under way holds " WHAT ": wait for its end, or name "
                      "another file", file_shown(checkpoint->file.path));
        else if (fstat(fd, &opened) != 0 || (stat(checkpoint->file.path, &named) != 0 && errno != ENOENT))
            error_errno(error, ALLFOLD_IO_ERROR, errno, "%s: cannot tell whether it is still " WHAT,
                        file_shown(checkpoint->file.path));
        else if (opened.st_nlink > 0 && opened.st_ino == named.st_ino && opened.st_dev == named.st_dev) {
            checkpoint->locked = fd;
            return ALLFOLD_OK;
        }
        close(fd);
        if (error->status != ALLFOLD_OK)
            return error->status;
    }
}

/* Takes what the file holds. */
static allfold_status read_file(struct checkpoint *checkpoint, struct error *error)
{
    struct resumable *const progress = &checkpoint->progress;
    struct checkpoint_record record;
    struct record_tail state;
    if (record_file_read(checkpoint->file.path, &kind, &record, &state, error) != ALLFOLD_OK)
        return error->status;
    if (compare(checkpoint, &record.identity, error) != ALLFOLD_OK) {
        free(state.memory);
        return error->status;
    }
    progress->done = record.done;
    progress->state = state.memory;
    progress->state_bytes = state.bytes;
    checkpoint->key = record.key;
    checkpoint->fresh = record.done == 0 && state.bytes == 0;
    return ALLFOLD_OK;
}

/* Goes on from the file, or makes it. */
static allfold_status load(struct resumable *progress, struct error *error)
{
    struct checkpoint *const checkpoint = (struct checkpoint *)progress;
    say(checkpoint->identity.device, "%s", progress->device);
    say(checkpoint->identity.monoid, "%s", monoids[progress->monoid]);
    say(checkpoint->identity.shard, "%" PRIu64, progress->shard_elements);
    say(checkpoint->identity.call, "%016" PRIx64, progress->call);
    for (bool exists = false, taken = true; taken;) {
        if (record_file_create(checkpoint->name, &kind, &checkpoint->file, error) != ALLFOLD_OK)
            return error->status;
        if (lock_file(checkpoint, &exists, error) != ALLFOLD_OK || exists) {
            replacement_discard(&checkpoint->file);
            return error->status == ALLFOLD_OK ? read_file(checkpoint, error) : error->status;
        }
        if (write_file(checkpoint, &taken, error) != ALLFOLD_OK)
            return error->status;
    }
    return ALLFOLD_OK;
}

static allfold_status save(struct resumable *progress, struct error *error)
{
    struct checkpoint *const checkpoint = (struct checkpoint *)progress;
    if (record_file_renew(&checkpoint->file, &kind, progress->state_bytes, error) != ALLFOLD_OK)
        return error->status;
    return write_file(checkpoint, NULL, error);
}

allfold_status checkpoint_name(const char *file, int rank, char path[ARRAY_PATH_BYTES], struct error *error)
{
    if (snprintf(path, ARRAY_PATH_BYTES, "%s.%d", file, rank) >= ARRAY_PATH_BYTES)
        return error_set(error, ALLFOLD_BAD_ARGUMENT, "%s: expected a name for " WHAT " of less than %d bytes", file_shown(file),
                         ARRAY_PATH_BYTES - 12);
    return ALLFOLD_OK;
}

static void identify_run(const struct checkpoint_run *run, struct checkpoint_identity *identity)
{
    say(identity->version, "%s (partials of version %d)", allfold_version(), PARTIAL_VERSION);
    say(identity->command, "%s", run->command);
    say(identity->ranks, "%d", run->ranks);
    say(identity->rank, "%d", run->rank);
    say(identity->nan, "%s", or_none(run->nan));
    say(identity->missing, "%s", or_none(run->missing));
    say(identity->axis, "%s", or_none(run->axis));
    say(identity->keepdims, "%s", run->keepdims ? "yes" : "no");
    say(identity->ddof, "%" PRIu64, run->ddof);
    say(identity->output_type, "%s", or_none(run->output_type));
    say(identity->output, "%s", or_none(run->output));
    say(identity->values, "%s", or_none(run->values));
}

static void identify_input(const struct array_info *input, struct checkpoint_identity *identity)
{
    char shape[ARRAY_DIMENSIONS_MAX * 24], slice[ARRAY_DIMENSIONS_MAX * 48], whole[ARRAY_DIMENSIONS_MAX * 24];
    uint64_t places = checksum(CHECKSUM_START, &input->layout, sizeof input->layout);
    places = checksum(places, input->details, (size_t)input->details_bytes);
    array_shape_text(input->shape, input->dimensions, shape, sizeof shape);
    array_shape_text(array_whole(input), input->dimensions, whole, sizeof whole);
    array_slice_text(input, slice, sizeof slice);
    say(identity->file_bytes, "%" PRIu64, input->file_bytes);
    say(identity->file_time, "%" PRIu64, input->file_time);
    say(identity->format, "%s", array_format_name(input));
    say(identity->type, "%s", allfold_type_name(input->type));
    say(identity->count, "%" PRIu64, input->count);
    say(identity->shape, "%s", shape);
    say(identity->slice, "%s%s%s", input->sliced ? slice : "all", input->sliced ? " of " : "", input->sliced ? whole : "");
    say(identity->data_offset, "%" PRIu64, input->layout.offset);
    say(identity->array, "%s", input->member[0] != '\0' ? input->member : "none");
    say(identity->skipped, "%" PRIu64, input->skipped);
    say(identity->places, "%016" PRIx64, places);
    say(identity->generator, "%016" PRIx64, checksum(CHECKSUM_START, &input->generator, sizeof input->generator));
}

allfold_status checkpoint_begin(struct checkpoint *checkpoint, const struct checkpoint_run *run, const struct array_info *input,
                                struct error *error)
{
    checkpoint->progress.load = load;
    checkpoint->progress.save = save;
    checkpoint->progress.every = run->every;
    checkpoint->locked = -1;
    if (checkpoint_name(run->file, run->rank, checkpoint->name, error) != ALLFOLD_OK)
        return error->status;
    identify_run(run, &checkpoint->identity);
    identify_input(input, &checkpoint->identity);
    return ALLFOLD_OK;
}

static bool is_removed(const char *path) { return unlink(path) == 0 || errno == ENOENT; }

allfold_status checkpoint_end(struct checkpoint *checkpoint, bool succeeded, struct error *error)
{
    const char *const path = checkpoint->file.path, *const name = checkpoint->name;
    const bool linked = path[0] != '\0' && strcmp(name, path) != 0;
    if ((succeeded || checkpoint->fresh) && !((!linked || is_removed(name)) && is_removed(path)))
        error_errno(error, ALLFOLD_IO_ERROR, errno, "%s: cannot remove " WHAT, file_shown(path));
    let_go(checkpoint);
    progress_free_state(&checkpoint->progress);
    return error->status;
}
