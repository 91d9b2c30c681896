/* NumPy's .npz: a zip archive whose members are .npy files. Stored members (np.savez) are read where they lie. The checksums of their
   bytes are not compared: that would read every byte before the work. Deflated members: npz_deflated.c. */
#include "array/formats/npy.h"
#include "array/formats/npz_deflated.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ENDING ".npy"
#define NAME_BYTES (ARRAY_PATH_BYTES + ZIP_NAME_BYTES)

static bool recognises_npz(const struct input_file *file)
{
    const bool zip = file->head_bytes >= 4 && (memcmp(file->head, "PK\3\4", 4) == 0 || memcmp(file->head, "PK\5\6", 4) == 0);
    return zip || file_name_ends(file->name, ".npz");
}

/* Whether it is an .npy file; *length: of its name as NumPy knows it, without the ending. */
static bool is_array(const struct zip_member *member, size_t *length)
{
    const size_t bytes = strlen(member->name), ending = strlen(ENDING);
    *length = bytes - ending;
    return bytes >= ending && strcmp(member->name + bytes - ending, ENDING) == 0;
}

/* Describes a member, whose elements lie in the archive. */
static allfold_status describe_member(const struct input_file *file, const struct zip_directory *directory,
                                      const struct zip_member *member, struct array_info *info, struct error *error)
{
    char name[NAME_BYTES];
    struct range place;
    snprintf(name, sizeof name, "%s:%s", file->name, member->name);
    if (zip_locate(file, directory, member, &place, error) != ALLFOLD_OK)
        return error->status;
    if (member->method == ZIP_DEFLATED)
        return npz_deflated_describe(file, name, &(struct npz_deflated){.place = place, .bytes = member->bytes, .crc = member->crc}, info,
                                     error);
    if (member->method != ZIP_STORED)
        return error_set(error, ALLFOLD_UNSUPPORTED, "%s: expected a stored or a deflated member, found compression method %u: write it "
                         "again with np.savez or np.save", file_shown(name), member->method);
    return npy_describe(&(struct npy_place){.name = name, .fd = file->fd, .offset = place.first, .bytes = place.count}, info, error);
}

struct npz_listing {
    const struct input_file *file;
    const struct zip_directory *directory;
    array_visit *visit;
    void *user;
};

/* The message without the name in front. */
static const char *reason(const struct error *error)
{
    const char *const end = strstr(error->text, ENDING ": ");
    return end != NULL ? end + strlen(ENDING ": ") : error->text;
}

static bool list_member(void *user, const struct zip_member *member)
{
    const struct npz_listing *const listing = user;
    char name[ZIP_NAME_BYTES];
    size_t length;
    struct array_info *const info = calloc(1, sizeof *info);
    struct error why = {.status = ALLFOLD_OK};
    if (info != NULL && is_array(member, &length)) {
        describe_member(listing->file, listing->directory, member, info, &why);
        snprintf(name, sizeof name, "%.*s", (int)length, member->name);
        const bool readable = why.status == ALLFOLD_OK;
        const struct array_entry entry = {.name = name,
                                          .type = readable ? info->type : ALLFOLD_TYPE_NONE,
                                          .type_text = readable ? NULL : "unknown",
                                          .refused = readable ? NULL : reason(&why),
                                          .dimensions = readable ? info->dimensions : 0,
                                          .shape = readable ? info->shape : NULL,
                                          .fortran_order = info->fortran_order != 0,
                                          .big_endian = info->layout.swapped != 0,
                                          .filters = member->method == ZIP_DEFLATED ? "deflate" : NULL};
        listing->visit(listing->user, &entry);
        free(info->details);
    }
    free(info);
    return true;
}

static allfold_status list_npz(const struct input_file *file, array_visit *visit, void *user, struct error *error)
{
    struct zip_directory directory;
    struct npz_listing listing = {file, &directory, visit, user};
    if (zip_find_directory(file, &directory, error) != ALLFOLD_OK)
        return error->status;
    return zip_list(file, &directory, list_member, &listing, error);
}

/* The members that match a name. */
struct search {
    const char *name;
    struct zip_member found;
    unsigned count;
};

/* "w" is w.npy, and so is "w.npy". */
static bool match_member(void *user, const struct zip_member *member)
{
    struct search *const search = user;
    size_t length;
    if (is_array(member, &length)
        && (strcmp(search->name, member->name) == 0
            || (strlen(search->name) == length && strncmp(search->name, member->name, length) == 0))) {
        memcpy(&search->found, member, sizeof *member);
        search->count++;
    }
    return true;
}

static allfold_status find_and_describe(const struct input_file *file, struct search *search, struct array_info *info,
                                        struct error *error)
{
    struct zip_directory directory;
    size_t length;
    if (zip_find_directory(file, &directory, error) != ALLFOLD_OK
        || zip_list(file, &directory, match_member, search, error) != ALLFOLD_OK)
        return error->status;
    if (search->count == 0)
        return input_refuse_member(file, &format_npz, error);
    if (search->count > 1)
        return error_set(error, ALLFOLD_BAD_INPUT, "%s: expected one member called '%s', found %u", file_shown(file->name),
                         file_shown(file->member), search->count);
    is_array(&search->found, &length);
    if (describe_member(file, &directory, &search->found, info, error) == ALLFOLD_OK)
        info->member[length] = '\0'; /* without .npy */
    return error->status;
}

static allfold_status describe_npz(const struct input_file *file, const struct array_hints *hints, struct array_info *info,
                                   struct error *error)
{
    struct search search = {.name = file->member};
    if (find_and_describe(file, &search, info, error) != ALLFOLD_OK)
        return error->status;
    if (plain_cut(hints, info, error) == ALLFOLD_OK && search.found.method == ZIP_DEFLATED)
        info->plain = 0;
    return error->status;
}

const struct format format_npz = {
    .name = "npz", .recognises = recognises_npz, .list = list_npz, .describe = describe_npz, .open = npz_deflated_open};
