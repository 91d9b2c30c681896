/* Checkpoints: see checkpoint.h. */
#include "store/checkpoint.h"

#include "base/host.h"
#include "store/record_file.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#define WHAT "the checkpoint"

/* The file's contents. */
struct record {
    struct checkpoint_identity identity;
    uint64_t shards_done, count; /* count: elements in the partial */
    uint64_t key;                /* of outputs */
    struct partial partial;      /* behind it: stream->state */
};

static const struct record_kind kind = {"allfoldC", WHAT, sizeof(struct record)};

/* What an identity is made of: words for messages, place, and whether it is text. */
static const struct row {
    const char *name;
    size_t offset;
    bool text;
} rows[] = {
#define NUMBER(field, name) {name, offsetof(struct checkpoint_identity, field), false}
#define TEXT(field, name) {name, offsetof(struct checkpoint_identity, field), true}
    TEXT(version, "version"),
    TEXT(command, "command"),
    NUMBER(ranks, "ranks"),
    NUMBER(rank, "rank"),
    NUMBER(file_bytes, "bytes of the input"),
    NUMBER(file_time, "time of the input (ns)"),
    TEXT(format, "format of the input"),
    NUMBER(type, "element type (number)"),
    NUMBER(count, "elements"),
    NUMBER(data_offset, "offset of the elements"),
    NUMBER(array, "array in the file (checksum)"),
    NUMBER(generator, "generator (checksum)"),
    NUMBER(options, "options (number)"),
    TEXT(device, "device"),
    NUMBER(shard, "elements of a shard (--staging)"),
    NUMBER(monoid, "kind of partial (--sum; number)"),
    NUMBER(axis, "axes, shape, result type and outputs (--axis; checksum)"),
#undef NUMBER
#undef TEXT
};

/* The first thing that differs, if any. */
static allfold_status compare(const struct checkpoint *checkpoint, struct checkpoint_identity *found,
                              struct error *error)
{
    found->version[sizeof found->version - 1] = found->command[sizeof found->command - 1] = '\0';
    found->device[sizeof found->device - 1] = found->format[sizeof found->format - 1] = '\0';
    const char *const mine = (const char *)&checkpoint->identity, *const other = (const char *)found;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const struct row *const row = &rows[i];
        uint64_t expected, is;
        memcpy(&expected, mine + row->offset, sizeof expected);
        memcpy(&is, other + row->offset, sizeof is);
        if (row->text && strcmp(mine + row->offset, other + row->offset) != 0)
            error_set(error, ALLFOLD_BAD_INPUT, "%s: " WHAT " is of another run: expected %s %s, found %s (remove it to "
                      "begin anew)", file_shown(checkpoint->file.path), row->name, mine + row->offset, other + row->offset);
        else if (!row->text && expected != is)
            error_set(error, ALLFOLD_BAD_INPUT, "%s: " WHAT " is of another run: expected %s %" PRIu64 ", found %" PRIu64
                      " (remove it to begin anew)", file_shown(checkpoint->file.path), row->name, expected, is);
        if (error->status != ALLFOLD_OK)
            return error->status;
    }
    return ALLFOLD_OK;
}

static void let_go(struct checkpoint *checkpoint)
{
    if (checkpoint->held >= 0)
        close(checkpoint->held);
    checkpoint->held = -1;
}

/* Writes the temporary file and commits it, as a new file if `taken` is not NULL (see replacement_commit_new). Its lock, which the
   temporary file had from the beginning, is then the one that is held. */
static allfold_status save(struct checkpoint *checkpoint, const struct stream *stream, bool *taken, struct error *error)
{
    struct replacement *const file = &checkpoint->file;
    struct record record;
    memset(&record, 0, sizeof record);
    record.identity = checkpoint->identity;
    record.shards_done = stream->done;
    record.count = stream->count;
    record.key = checkpoint->key;
    if (stream->partial != NULL)
        memcpy(&record.partial, stream->partial, monoid_bytes(stream->monoid, stream->type));
    if (record_file_write(file, &kind, &record, &(struct record_tail){stream->state, stream->state_bytes}, error) != ALLFOLD_OK) {
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
        checkpoint->held = next;
        checkpoint->fresh = stream->done == 0 && stream->state_bytes == 0;
    } else if (next >= 0) {
        close(next);
    }
    return error->status;
}

/* Locks the file, if there is one. If another run replaces or removes it meanwhile, it is checked again. */
static allfold_status hold(struct checkpoint *checkpoint, bool *exists, struct error *error)
{
    for (*exists = true;;) {
        struct stat held, named = {0};
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
        else if (fstat(fd, &held) != 0 || (stat(checkpoint->file.path, &named) != 0 && errno != ENOENT))
            error_errno(error, ALLFOLD_IO_ERROR, errno, "%s: cannot tell whether it is still " WHAT,
                        file_shown(checkpoint->file.path));
        else if (held.st_nlink > 0 && held.st_ino == named.st_ino && held.st_dev == named.st_dev) {
            checkpoint->held = fd;
            return ALLFOLD_OK;
        }
        close(fd);
        if (error->status != ALLFOLD_OK)
            return error->status;
    }
}

/* Takes what the file holds. */
static allfold_status load(struct checkpoint *checkpoint, struct stream *stream, struct error *error)
{
    struct record record;
    struct record_tail state;
    if (record_file_read(checkpoint->file.path, &kind, &record, &state, error) != ALLFOLD_OK)
        return error->status;
    if (compare(checkpoint, &record.identity, error) == ALLFOLD_OK
        && (record.shards_done > stream->shards || (stream->partial != NULL && state.bytes > 0)))
        error_set(error, ALLFOLD_BAD_INPUT, "%s: " WHAT " is beyond the input", file_shown(checkpoint->file.path));
    if (error->status != ALLFOLD_OK) {
        free(state.memory);
        return error->status;
    }
    if (stream->partial != NULL)
        memcpy(stream->partial, &record.partial, monoid_bytes(stream->monoid, stream->type));
    stream->done = record.shards_done;
    stream->count = record.count;
    stream->state = state.memory;
    stream->state_bytes = state.bytes;
    checkpoint->key = record.key;
    checkpoint->fresh = record.shards_done == 0 && state.bytes == 0;
    return ALLFOLD_OK;
}

/* The hook's `before`: goes on from the file, or makes it. */
static allfold_status load_or_make(void *user, struct stream *stream, struct error *error)
{
    struct checkpoint *const checkpoint = user;
    snprintf(checkpoint->identity.device, sizeof checkpoint->identity.device, "%s", stream->device);
    checkpoint->identity.monoid = (uint64_t)stream->monoid;
    checkpoint->identity.shard = stream->shard_elements;
    checkpoint->last = clock_seconds();
    phase_enter(checkpoint->progress, PHASE_CHECKPOINT);
    for (bool exists = false, taken = true; taken;) {
        if (record_file_create(checkpoint->name, &kind, &checkpoint->file, error) != ALLFOLD_OK)
            return error->status;
        if (hold(checkpoint, &exists, error) != ALLFOLD_OK || exists) {
            replacement_discard(&checkpoint->file);
            return error->status == ALLFOLD_OK ? load(checkpoint, stream, error) : error->status;
        }
        if (save(checkpoint, stream, &taken, error) != ALLFOLD_OK)
            return error->status;
    }
    return ALLFOLD_OK;
}

/* The hook's `after_shard`. */
static allfold_status save_if_due(void *user, const struct stream *stream, bool last, struct error *error)
{
    struct checkpoint *const checkpoint = user;
    if (!last && clock_seconds() - checkpoint->last < checkpoint->every)
        return ALLFOLD_OK;
    const enum phase before = phase_enter(checkpoint->progress, PHASE_CHECKPOINT);
    if (record_file_renew(&checkpoint->file, &kind, stream->state_bytes, error) != ALLFOLD_OK
        || save(checkpoint, stream, NULL, error) != ALLFOLD_OK)
        return error->status;
    checkpoint->last = clock_seconds();
    phase_enter(checkpoint->progress, before);
    return ALLFOLD_OK;
}

allfold_status checkpoint_name(const char *file, int rank, char path[ARRAY_PATH_BYTES], struct error *error)
{
    if (snprintf(path, ARRAY_PATH_BYTES, "%s.%d", file, rank) >= ARRAY_PATH_BYTES)
        return error_set(error, ALLFOLD_BAD_ARGUMENT, "%s: expected a name for " WHAT " of less than %d bytes", file_shown(file),
                         ARRAY_PATH_BYTES - 12);
    return ALLFOLD_OK;
}

allfold_status checkpoint_begin(struct checkpoint *checkpoint, const struct checkpoint_run *run, const struct array_info *input,
                                struct progress *progress, struct error *error)
{
    struct checkpoint_identity *const identity = &checkpoint->identity;
    memset(checkpoint, 0, sizeof *checkpoint);
    checkpoint->hook = (struct stream_hook){checkpoint, run->every, load_or_make, save_if_due};
    checkpoint->held = -1;
    if (checkpoint_name(run->file, run->rank, checkpoint->name, error) != ALLFOLD_OK)
        return error->status;
    checkpoint->every = run->every;
    checkpoint->progress = progress;
    snprintf(identity->version, sizeof identity->version, "%s", allfold_version());
    snprintf(identity->command, sizeof identity->command, "%s", run->command);
    snprintf(identity->format, sizeof identity->format, "%s", array_format_name(input));
    identity->type = input->type;
    identity->count = input->count;
    identity->data_offset = input->layout.offset;
    identity->array = checksum(CHECKSUM_START, input->member, strlen(input->member));
    identity->array = checksum(identity->array, &input->layout, sizeof input->layout);
    identity->array = checksum(identity->array, &input->skipped, sizeof input->skipped);
    identity->array = checksum(identity->array, input->details, (size_t)input->details_bytes);
    identity->file_bytes = input->file_bytes;
    identity->file_time = input->file_time;
    identity->generator = checksum(CHECKSUM_START, &input->generator, sizeof input->generator);
    identity->options = run->options;
    identity->ranks = (uint64_t)run->ranks;
    identity->rank = (uint64_t)run->rank;
    identity->axis = run->axis;
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
    return error->status;
}
