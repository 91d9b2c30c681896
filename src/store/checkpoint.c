/* Checkpoints of folds: see checkpoint.h. */
#include "store/checkpoint.h"

#include "array/file.h"
#include "store/record_file.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define MAGIC "allfoldC"
#define WHAT "the checkpoint"

/* The file's contents. */
struct record {
    struct checkpoint_identity identity;
    uint64_t shards_done;
    struct partial partial;
};

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
    NUMBER(format, "format of the input"),
    NUMBER(type, "element type (number)"),
    NUMBER(count, "elements"),
    NUMBER(data_offset, "offset of the elements"),
    NUMBER(generator, "generator (checksum)"),
    NUMBER(options, "options (number)"),
    TEXT(device, "device"),
    NUMBER(shard, "elements of a shard (--staging)"),
    NUMBER(monoid, "kind of partial (--sum; number)"),
#undef NUMBER
#undef TEXT
};

/* The first thing that differs, if any. */
static allfold_status compare(const struct checkpoint *checkpoint, struct checkpoint_identity *found,
                              struct error *error)
{
    found->version[sizeof found->version - 1] = found->command[sizeof found->command - 1] = '\0';
    found->device[sizeof found->device - 1] = '\0';
    const char *const mine = (const char *)&checkpoint->identity, *const other = (const char *)found;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const struct row *const row = &rows[i];
        uint64_t expected, is;
        memcpy(&expected, mine + row->offset, sizeof expected);
        memcpy(&is, other + row->offset, sizeof is);
        if (row->text && strcmp(mine + row->offset, other + row->offset) != 0)
            error_set(error, ALLFOLD_BAD_INPUT, "%s: " WHAT " is of another run: expected %s %s, found %s (remove it to "
                      "begin anew)", file_shown(checkpoint->path), row->name, mine + row->offset, other + row->offset);
        else if (!row->text && expected != is)
            error_set(error, ALLFOLD_BAD_INPUT, "%s: " WHAT " is of another run: expected %s %" PRIu64 ", found %" PRIu64
                      " (remove it to begin anew)", file_shown(checkpoint->path), row->name, expected, is);
        if (error->status != ALLFOLD_OK)
            return error->status;
    }
    return ALLFOLD_OK;
}

/* The hook's `before`: takes what the file holds, if there is one. */
static allfold_status load(void *user, struct stream *stream, struct error *error)
{
    struct checkpoint *const checkpoint = user;
    struct record record;
    bool exists;
    snprintf(checkpoint->identity.device, sizeof checkpoint->identity.device, "%s", stream->device);
    checkpoint->identity.monoid = (uint64_t)stream->monoid;
    checkpoint->identity.shard = stream->shard_elements;
    checkpoint->last = clock_seconds();
    phase_enter(checkpoint->progress, PHASE_CHECKPOINT);
    if (record_file_read(checkpoint->path, WHAT, MAGIC, &record, sizeof record, &exists, error) != ALLFOLD_OK || !exists
        || compare(checkpoint, &record.identity, error) != ALLFOLD_OK)
        return error->status;
    if (record.shards_done > stream->shards)
        return error_set(error, ALLFOLD_BAD_INPUT, "%s: " WHAT " is beyond the input", file_shown(checkpoint->path));
    memcpy(stream->partial, &record.partial, monoid_bytes(stream->monoid, stream->type));
    stream->done = record.shards_done;
    return ALLFOLD_OK;
}

static allfold_status save(struct checkpoint *checkpoint, const struct stream *stream, struct error *error)
{
    struct record record;
    memset(&record, 0, sizeof record);
    record.identity = checkpoint->identity;
    record.shards_done = stream->done;
    memcpy(&record.partial, stream->partial, monoid_bytes(stream->monoid, stream->type));
    return record_file_write(checkpoint->path, WHAT, MAGIC, &record, sizeof record, error);
}

/* The hook's `after_shard`. */
static allfold_status save_if_due(void *user, const struct stream *stream, bool last, struct error *error)
{
    struct checkpoint *const checkpoint = user;
    if (!last && clock_seconds() - checkpoint->last < checkpoint->every)
        return ALLFOLD_OK;
    const enum phase before = phase_enter(checkpoint->progress, PHASE_CHECKPOINT);
    if (save(checkpoint, stream, error) != ALLFOLD_OK)
        return error->status;
    checkpoint->last = clock_seconds();
    phase_enter(checkpoint->progress, before);
    return ALLFOLD_OK;
}

allfold_status checkpoint_begin(struct checkpoint *checkpoint, const struct checkpoint_run *run, const struct array_info *input,
                                struct progress *progress, struct error *error)
{
    struct checkpoint_identity *const identity = &checkpoint->identity;
    memset(checkpoint, 0, sizeof *checkpoint);
    checkpoint->hook = (struct stream_hook){checkpoint, load, save_if_due};
    if (snprintf(checkpoint->path, sizeof checkpoint->path, "%s.%d", run->file, run->rank) >= (int)sizeof checkpoint->path - 4)
        return error_set(error, ALLFOLD_BAD_ARGUMENT, "%s: expected a name for " WHAT " of less than %zu bytes",
                         file_shown(run->file), sizeof checkpoint->path - 16);
    checkpoint->every = run->every;
    checkpoint->progress = progress;
    snprintf(identity->version, sizeof identity->version, "%s", allfold_version());
    snprintf(identity->command, sizeof identity->command, "%s", run->command);
    identity->format = input->format;
    identity->type = input->type;
    identity->count = input->count;
    identity->data_offset = input->data_offset;
    identity->file_bytes = input->file_bytes;
    identity->file_time = input->file_time;
    identity->generator = checksum(CHECKSUM_START, &input->generator, sizeof input->generator);
    identity->options = run->options;
    identity->ranks = (uint64_t)run->ranks;
    identity->rank = (uint64_t)run->rank;
    return ALLFOLD_OK;
}

allfold_status checkpoint_end(const struct checkpoint *checkpoint, struct error *error)
{
    return record_file_remove(checkpoint->path, WHAT, error);
}
