/* Reads headers a window at a time: see cursor.h. */
#include "array/formats/cursor.h"

#include <inttypes.h>

void cursor_open(struct cursor *cursor, const struct input_file *file, const char *part, struct range bytes)
{
    cursor->file = file;
    cursor->part = part;
    cursor->at = u64_min(bytes.first, file->bytes);
    cursor->end = cursor->at + u64_min(bytes.count, file->bytes - cursor->at);
    cursor->window_at = cursor->window_bytes = 0;
}

/* Whether `bytes` more bytes are in the part. */
static bool has(struct cursor *cursor, uint64_t bytes)
{
    if (cursor->error->status != ALLFOLD_OK)
        return false;
    if (bytes <= cursor->end - cursor->at)
        return true;
    error_set(cursor->error, ALLFOLD_BAD_INPUT, "%s: expected %" PRIu64 " more bytes at byte %" PRIu64 ", found that it ends after %" PRIu64,
              cursor->part, bytes, cursor->at, cursor->end - cursor->at);
    return false;
}

const unsigned char *cursor_take(struct cursor *cursor, size_t bytes)
{
    if (!has(cursor, bytes))
        return NULL;
    if (cursor->at < cursor->window_at || cursor->at + bytes > cursor->window_at + cursor->window_bytes) {
        cursor->window_at = cursor->at;
        cursor->window_bytes = u64_min(sizeof cursor->window, cursor->end - cursor->at);
        if (input_read(cursor->file, (struct range){cursor->window_at, cursor->window_bytes}, cursor->window, cursor->error) != ALLFOLD_OK)
            return NULL;
    }
    const unsigned char *const found = cursor->window + (cursor->at - cursor->window_at);
    cursor->at += bytes;
    return found;
}

bool cursor_skip(struct cursor *cursor, uint64_t bytes)
{
    if (!has(cursor, bytes))
        return false;
    cursor->at += bytes;
    return true;
}

bool cursor_expected(struct cursor *cursor, uint64_t at, const char *what, const char *found)
{
    error_set(cursor->error, ALLFOLD_BAD_INPUT, "%s: expected %s, found %s at byte %" PRIu64, cursor->part, what, found, at);
    return false;
}
