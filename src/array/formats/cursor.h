/* Reads a file's header from front to back, a window at a time, for the parsers of binary formats. No number of the file is trusted:
   nothing is read beyond the end of the cursor's range. */
#pragma once

#include "array/formats/formats.h"

#define CURSOR_WINDOW_BYTES 8192

struct cursor {
    const struct input_file *file;
    const char *part;    /* what is read, in messages: "NetCDF header" */
    uint64_t at, end;    /* the next byte of the file, and the byte at which the part ends */
    struct error *error;
    uint64_t window_at, window_bytes;
    unsigned char window[CURSOR_WINDOW_BYTES];
};

/* Those bytes of the file, cut to its size. The caller has set cursor->error. */
void cursor_open(struct cursor *cursor, const struct input_file *file, const char *part, struct range bytes);

/* The next `bytes` (at most CURSOR_WINDOW_BYTES), good until the next call. NULL: the part ends before, or an error; *error says so.
   After an error all further calls fail. */
const unsigned char *cursor_take(struct cursor *cursor, size_t bytes);
bool cursor_skip(struct cursor *cursor, uint64_t bytes);

/* Fails with "PART: expected WHAT, found FOUND at byte AT". */
bool cursor_expected(struct cursor *cursor, uint64_t at, const char *what, const char *found);

/* Numbers in memory. */
static inline uint16_t little_u16(const unsigned char *b) { return (uint16_t)(b[0] | b[1] << 8); }
static inline uint32_t little_u32(const unsigned char *b) { return little_u16(b) | (uint32_t)little_u16(b + 2) << 16; }
static inline uint64_t little_u64(const unsigned char *b) { return little_u32(b) | (uint64_t)little_u32(b + 4) << 32; }
static inline uint32_t big_u32(const unsigned char *b) { return (uint32_t)b[0] << 24 | (uint32_t)b[1] << 16 | (uint32_t)b[2] << 8 | b[3]; }
static inline uint64_t big_u64(const unsigned char *b) { return (uint64_t)big_u32(b) << 32 | big_u32(b + 4); }
