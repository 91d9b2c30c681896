/* Parses zip archives: see zip.h. The central directory at the end of the file is followed; a member's own header must agree with it. */
#include "array/formats/zip.h"

#include "array/formats/cursor.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define END_BYTES 22            /* of the record that ends an archive, without its comment */
#define COMMENT_BYTES_MAX 65535
#define LOCATOR_BYTES 20        /* zip64: of what stands before that record and points to another */
#define END64_BYTES 56
#define ENTRY_BYTES 46          /* of the directory, for a member, without its name */
#define LOCAL_BYTES 30          /* of a member's own header, without its name */
#define SEE_ZIP64 UINT32_C(0xffffffff)

#define SIGNATURE_LOCAL UINT32_C(0x04034b50)
#define SIGNATURE_ENTRY UINT32_C(0x02014b50)
#define SIGNATURE_END UINT32_C(0x06054b50)
#define SIGNATURE_END64 UINT32_C(0x06064b50)
#define SIGNATURE_LOCATOR UINT32_C(0x07064b50)

enum { FLAG_ENCRYPTED = 1, FLAG_SIZES_FOLLOW = 8 };

static allfold_status damaged(const char *expected, uint64_t at, struct error *error)
{
    return error_set(error, ALLFOLD_BAD_INPUT, "zip archive: expected %s at byte %" PRIu64 ", found otherwise: the file is damaged or cut short",
                     expected, at);
}

/* zip64: the record that has the numbers in 64 bits. *place is where the directory ends at the latest. */
static allfold_status read_end64(const struct input_file *file, uint64_t end_at, uint64_t numbers[3], uint64_t *limit, struct error *error)
{
    struct cursor c = {.error = error};
    cursor_open(&c, file, "zip archive", (struct range){end_at - LOCATOR_BYTES, LOCATOR_BYTES});
    const unsigned char *bytes = cursor_take(&c, LOCATOR_BYTES);
    if (bytes == NULL)
        return error->status;
    const uint64_t at = little_u64(bytes + 8);
    if (little_u32(bytes) != SIGNATURE_LOCATOR || little_u32(bytes + 4) != 0 || little_u32(bytes + 16) > 1
        || end_at < LOCATOR_BYTES + END64_BYTES || at > end_at - LOCATOR_BYTES - END64_BYTES)
        return damaged("the zip64 locator of an archive of one file", end_at - LOCATOR_BYTES, error);
    cursor_open(&c, file, "zip archive", (struct range){at, END64_BYTES});
    bytes = cursor_take(&c, END64_BYTES);
    if (bytes == NULL)
        return error->status;
    if (little_u32(bytes) != SIGNATURE_END64 || little_u32(bytes + 16) != 0 || little_u32(bytes + 20) != 0
        || little_u64(bytes + 24) != little_u64(bytes + 32))
        return damaged("the zip64 end record of an archive of one file", at, error);
    for (int i = 0; i < 3; i++)
        numbers[i] = little_u64(bytes + 32 + 8 * i);
    *limit = at;
    return ALLFOLD_OK;
}

/* The record that ends the archive, whose bytes begin at `at` of the file. */
static allfold_status read_end(const struct input_file *file, const unsigned char *bytes, uint64_t at, struct zip_directory *directory,
                               struct error *error)
{
    uint64_t limit = at; /* the directory ends here */
    uint64_t numbers[3] = {little_u16(bytes + 10), little_u32(bytes + 12), little_u32(bytes + 16)}; /* members, bytes, offset */
    const bool zip64 = numbers[0] == 0xffff || numbers[1] == SEE_ZIP64 || numbers[2] == SEE_ZIP64;
    if (zip64 && at >= LOCATOR_BYTES && read_end64(file, at, numbers, &limit, error) != ALLFOLD_OK)
        return error->status;
    if (!zip64 && (little_u16(bytes + 4) != 0 || little_u16(bytes + 6) != 0 || little_u16(bytes + 8) != numbers[0]))
        return error_set(error, ALLFOLD_UNSUPPORTED, "zip archive: expected one file, found a part of several: join them");
    if (numbers[1] > ZIP_DIRECTORY_BYTES_MAX)
        return error_set(error, ALLFOLD_UNSUPPORTED, "zip archive: expected a directory of at most %" PRIu64 " bytes, found %" PRIu64,
                         ZIP_DIRECTORY_BYTES_MAX, numbers[1]);
    if (numbers[1] > limit || numbers[2] != limit - numbers[1] || numbers[0] > numbers[1] / ENTRY_BYTES)
        return damaged("the end of the directory", limit, error);
    *directory = (struct zip_directory){{numbers[2], numbers[1]}, numbers[0]};
    return ALLFOLD_OK;
}

allfold_status zip_find_directory(const struct input_file *file, struct zip_directory *directory, struct error *error)
{
    const uint64_t bytes = u64_min(file->bytes, END_BYTES + COMMENT_BYTES_MAX), first = file->bytes - bytes;
    unsigned char *const tail = malloc((size_t)bytes + 1);
    if (tail == NULL)
        return error_set(error, ALLFOLD_NO_MEMORY, "no memory for the end of a zip archive");
    bool found = false;
    if (input_read(file, (struct range){first, bytes}, tail, error) == ALLFOLD_OK)
        for (uint64_t i = bytes >= END_BYTES ? bytes - END_BYTES + 1 : 0; i-- > 0 && !found;)
            if (little_u32(tail + i) == SIGNATURE_END && little_u16(tail + i + 20) == bytes - END_BYTES - i) {
                found = true;
                read_end(file, tail + i, first + i, directory, error);
            }
    free(tail);
    return found || error->status != ALLFOLD_OK ? error->status
                                                : damaged("the record that ends a zip archive", file->bytes, error);
}

/* zip64: numbers of 64 bits, for those of a member that do not fit the usual place. */
static bool read_extra(struct cursor *c, uint64_t bytes, struct zip_member *member)
{
    uint64_t *const numbers[] = {&member->bytes, &member->stored_bytes, &member->offset};
    const uint64_t end = c->at + bytes;
    while (end - c->at >= 4) {
        const unsigned char *const head = cursor_take(c, 4);
        if (head == NULL)
            return false;
        const unsigned id = little_u16(head), length = little_u16(head + 2);
        uint64_t left = u64_min(length, end - c->at);
        for (int i = 0; i < 3 && id == 1; i++)
            if (*numbers[i] == SEE_ZIP64 && left >= 8) {
                const unsigned char *const number = cursor_take(c, 8);
                if (number == NULL)
                    return false;
                *numbers[i] = little_u64(number);
                left -= 8;
            }
        if (!cursor_skip(c, left))
            return false;
    }
    return cursor_skip(c, end - c->at);
}

static bool read_name(struct cursor *c, size_t bytes, struct zip_member *member)
{
    const uint64_t at = c->at;
    const unsigned char *const name = bytes < ZIP_NAME_BYTES ? cursor_take(c, bytes) : NULL;
    if (name == NULL || memchr(name, '\0', bytes) != NULL)
        return cursor_expected(c, at, "a name of less than 4096 bytes without zeros", "another one");
    memcpy(member->name, name, bytes);
    member->name[bytes] = '\0';
    return true;
}

static bool read_entry(struct cursor *c, struct zip_member *member)
{
    const uint64_t at = c->at;
    const unsigned char *const bytes = cursor_take(c, ENTRY_BYTES);
    if (bytes == NULL)
        return false;
    if (little_u32(bytes) != SIGNATURE_ENTRY)
        return cursor_expected(c, at, "an entry for a member", "other bytes");
    member->flags = little_u16(bytes + 8);
    member->method = little_u16(bytes + 10);
    member->crc = little_u32(bytes + 16);
    member->stored_bytes = little_u32(bytes + 20);
    member->bytes = little_u32(bytes + 24);
    member->offset = little_u32(bytes + 42);
    const unsigned name = little_u16(bytes + 28), extra = little_u16(bytes + 30), comment = little_u16(bytes + 32);
    return read_name(c, name, member) && read_extra(c, extra, member) && cursor_skip(c, comment);
}

allfold_status zip_list(const struct input_file *file, const struct zip_directory *directory, zip_visit *visit, void *user,
                        struct error *error)
{
    struct cursor c = {.error = error};
    struct zip_member member;
    cursor_open(&c, file, "zip directory", directory->place);
    for (uint64_t i = 0; i < directory->members && read_entry(&c, &member); i++)
        visit(user, &member);
    if (c.at != c.end)
        cursor_expected(&c, c.at, "the end of the directory", "more bytes");
    return error->status;
}

allfold_status zip_locate(const struct input_file *file, const struct zip_directory *directory, const struct zip_member *member,
                          struct range *place, struct error *error)
{
    struct cursor c = {.error = error};
    struct zip_member own = *member;
    const uint64_t limit = directory->place.first;
    cursor_open(&c, file, "zip member", (struct range){member->offset, limit - u64_min(member->offset, limit)});
    const unsigned char *const bytes = cursor_take(&c, LOCAL_BYTES);
    if (bytes == NULL)
        return error->status;
    const uint32_t signature = little_u32(bytes);
    const unsigned name = little_u16(bytes + 26), extra = little_u16(bytes + 28);
    own.flags = little_u16(bytes + 6);
    own.method = little_u16(bytes + 8);
    own.crc = little_u32(bytes + 14);
    own.stored_bytes = little_u32(bytes + 18);
    own.bytes = little_u32(bytes + 22);
    own.offset = 0;
    if (signature != SIGNATURE_LOCAL || own.method != member->method || own.flags != member->flags)
        return damaged("the member's header as the directory says", member->offset, error);
    if (!read_name(&c, name, &own) || !read_extra(&c, extra, &own))
        return error->status;
    const bool later = (own.flags & FLAG_SIZES_FOLLOW) != 0; /* its numbers stand behind the member */
    if (strcmp(own.name, member->name) != 0
        || (!later && (own.crc != member->crc || own.stored_bytes != member->stored_bytes || own.bytes != member->bytes)))
        return damaged("the member's name, checksum and sizes as the directory says", member->offset, error);
    if (member->stored_bytes > limit - c.at || (member->method == ZIP_STORED && member->stored_bytes != member->bytes))
        return damaged("all bytes of a member", c.at, error);
    *place = (struct range){c.at, member->stored_bytes};
    if ((member->flags & FLAG_ENCRYPTED) != 0)
        return error_set(error, ALLFOLD_UNSUPPORTED, "zip archive: expected a member that is not encrypted, found one that is");
    return ALLFOLD_OK;
}
