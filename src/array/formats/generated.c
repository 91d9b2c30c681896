/* Arrays that are computed: "gen:normal?n=1e9". Their elements are made when they are read. */
#include "array/formats/formats.h"

#include "array/draw.h"

#include <stdlib.h>
#include <string.h>

#define PREFIX "gen:"

struct generated_source {
    struct source source;
    struct array_info info;
    struct draw draw;
};

static bool recognises_name(const struct input_file *file) { return strncmp(file->name, PREFIX, strlen(PREFIX)) == 0; }

static allfold_status read_text(const struct input_file *file, struct directory *directory, struct error *error)
{
    struct array_entry *const entry = directory_entry(directory, file, NULL, NULL);
    if (entry != NULL && generator_parse(file->name + strlen(PREFIX), file->hints, &entry->info, error) == ALLFOLD_OK)
        directory_add(directory);
    return error->status;
}

static allfold_status read_generated(struct reader *reader, const struct read_request *request, struct piece *piece,
                                     struct error *error)
{
    const struct generated_source *const source = (const struct generated_source *)reader->source;
    const struct range *const range = &request->range;
    if (array_check_range(&source->info, range->first, range->count, error) != ALLFOLD_OK)
        return error->status;
    draw_elements(&source->draw, *range, request->buffer);
    *piece = (struct piece){.elements = request->buffer, .count = range->count};
    return ALLFOLD_OK;
}

static allfold_status open_generated(const struct array_info *info, struct source **source, struct error *error)
{
    struct generated_source *s = calloc(1, sizeof *s);
    if (s == NULL)
        return error_set(error, ALLFOLD_NO_MEMORY, "%s: no memory to open it", file_shown(info->path));
    s->source = (struct source){.read = read_generated, .type = info->type};
    memcpy(&s->info, info, sizeof *info);
    draw_prepare(&info->generator, info->type, &s->draw);
    s->source.draw = &s->draw;
    *source = &s->source;
    return ALLFOLD_OK;
}

const struct format format_generated = {
    .name = "generated", .recognises = recognises_name, .read_directory = read_text, .open = open_generated, .headless = true};
