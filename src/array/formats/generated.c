/* Arrays that are computed: "gen:normal?n=1e9". Their elements are made when they are read. */
#include "array/formats/formats.h"

#include <stdlib.h>
#include <string.h>

#define PREFIX "gen:"

struct generated_source {
    struct source source;
    struct array_info info;
};

static bool recognises_name(const struct input_file *file) { return strncmp(file->name, PREFIX, strlen(PREFIX)) == 0; }

static allfold_status describe_generated(const struct input_file *file, const struct array_hints *hints, struct array_info *info,
                                         struct error *error)
{
    return generator_parse(file->name + strlen(PREFIX), hints, info, error);
}

static allfold_status read_generated(struct source *source, uint64_t first, uint64_t count, void *destination, int threads,
                                     struct error *error)
{
    const struct generated_source *s = (const struct generated_source *)source;
    if (array_check_range(&s->info, first, count, error) == ALLFOLD_OK)
        generator_fill(&s->info.generator, s->info.type, first, count, destination, threads);
    return error->status;
}

static void close_generated(struct source *source) { free(source); }

static allfold_status open_generated(const struct array_info *info, struct source **source, struct error *error)
{
    struct generated_source *s = calloc(1, sizeof *s);
    if (s == NULL)
        return error_set(error, ALLFOLD_NO_MEMORY, "%s: no memory to open it", file_shown(info->path));
    s->source = (struct source){.read = read_generated, .close = close_generated, .type = info->type};
    memcpy(&s->info, info, sizeof *info);
    *source = &s->source;
    return ALLFOLD_OK;
}

const struct format format_generated = {
    .name = "generated", .recognises = recognises_name, .describe = describe_generated, .open = open_generated};
