/* A folder for the tests of array files, and what they do in it. */
#pragma once

#include "array/array.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char folder[] = "test_files.XXXXXX";

/* A name in the test's folder; good until 64 others have been asked for. */
static inline const char *in_folder(const char *name)
{
    static char paths[64][512];
    static int next;
    char *path = paths[next++ % 64];
    snprintf(path, sizeof paths[0], "%s/%s", folder, name);
    return path;
}

/* The number of files in the folder. */
static inline int files(void)
{
    int n = 0;
    DIR *dir = opendir(folder);
    for (const struct dirent *entry; dir != NULL && (entry = readdir(dir)) != NULL;)
        n += strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0;
    closedir(dir);
    return n;
}

static inline void must(bool condition, const char *what)
{
    if (!condition) {
        perror(what);
        exit(1);
    }
}

static inline void make_file(const char *path, const void *bytes, size_t length)
{
    FILE *file = fopen(path, "wb");
    must(file != NULL && fwrite(bytes, 1, length, file) == length && fclose(file) == 0, path);
}

static inline bool holds(const char *path, const char *text)
{
    char found[64] = "";
    FILE *file = fopen(path, "rb");
    const size_t length = file != NULL ? fread(found, 1, sizeof found - 1, file) : 0;
    if (file != NULL)
        fclose(file);
    return file != NULL && length == strlen(text) && memcmp(found, text, length) == 0;
}

/* Reads elements of a source, with a reader of its own, into memory of any alignment. */
static inline allfold_status read_elements(struct source *source, struct range range, void *elements, struct error *error)
{
    const size_t bytes = range.count * allfold_type_bytes(source->type);
    struct read_request request = {.range = range, .buffer = aligned_alloc(4096, (bytes + READER_SLACK + 4095) / 4096 * 4096)};
    struct reader *reader = NULL;
    struct piece piece;
    must(request.buffer != NULL, "memory");
    if (range.count > 0 && source_open_reader(source, &reader, error) == ALLFOLD_OK
        && reader_read(reader, &request, &piece, error) == ALLFOLD_OK)
        memcpy(elements, piece.elements, bytes);
    reader_close(reader);
    free(request.buffer);
    return error->status;
}

/* Writes elements in three ranges, the last first, as if by three ranks. */
static inline bool write_array(const char *path, const struct array_info *info, const char *elements, struct error *error)
{
    struct output output;
    struct sink *sink;
    if (output_create(path, info, NULL, &output, error) != ALLFOLD_OK)
        return false;
    for (uint64_t part = 3; part-- > 0;) {
        const struct range range = range_part(info->count, part, 3);
        if (output_open(&output, &sink, error) != ALLFOLD_OK)
            break;
        sink->write(sink, range.first, range.count, elements + range.first * allfold_type_bytes(info->type), error);
        sink->close(sink, error);
    }
    if (error->status == ALLFOLD_OK)
        return replacement_commit(&output.file, error) == ALLFOLD_OK;
    replacement_discard(&output.file);
    return false;
}
