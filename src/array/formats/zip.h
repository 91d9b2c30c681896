/* The members of a zip archive, which .npz files are: https://pkware.cachefly.net/webdocs/casestudies/APPNOTE.TXT. Read are archives of
   one file without encryption, zip64 included. */
#pragma once

#include "array/formats/formats.h"

#define ZIP_NAME_BYTES 4096
#define ZIP_DIRECTORY_BYTES_MAX ((uint64_t)64 << 20)

enum zip_method { ZIP_STORED = 0, ZIP_DEFLATED = 8 }; /* others have their numbers in the specification */

struct zip_member {
    char name[ZIP_NAME_BYTES];
    unsigned method, flags;
    uint32_t crc;
    uint64_t offset;             /* of its local header */
    uint64_t stored_bytes, bytes; /* in the archive, and as they were before */
};

/* An archive's central directory, where its members are listed. */
struct zip_directory {
    struct range place; /* bytes of the file */
    uint64_t members;
};

/* Finds the directory at the end of the file. */
allfold_status zip_find_directory(const struct input_file *file, struct zip_directory *directory, struct error *error);

/* Calls visit for each member, in the directory's order. */
typedef void zip_visit(void *user, const struct zip_member *member);
allfold_status zip_list(const struct input_file *file, const struct zip_directory *directory, zip_visit *visit, void *user,
                        struct error *error);

/* The place of the member's stored bytes. Checks that its local header says what the directory says. */
allfold_status zip_locate(const struct input_file *file, const struct zip_directory *directory, const struct zip_member *member,
                          struct range *place, struct error *error);
