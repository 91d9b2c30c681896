/* Generated arrays for the tests. */
#pragma once

#include "array/array.h"
#include "array/draw.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A generator's description from its text, which follows "gen:". */
static inline struct array_info parsed(const char *text)
{
    static const struct array_hints none;
    struct array_info info;
    struct error error = {.status = ALLFOLD_OK};
    memset(&info, 0, sizeof info);
    if (generator_parse(text, &none, &info, &error) != ALLFOLD_OK) {
        printf("Bail out! %s\n", error.text);
        exit(1);
    }
    return info;
}

/* Elements [first, first + count) of it. */
static inline void fill(const struct array_info *info, uint64_t first, uint64_t count, void *elements)
{
    struct draw draw;
    draw_prepare(&info->generator, info->type, &draw);
    draw_elements(&draw, (struct range){first, count}, elements);
}

/* All its elements; the caller frees them. */
static inline void *elements_of(const char *text, uint64_t *count)
{
    const struct array_info info = parsed(text);
    void *elements = malloc(info.count * allfold_type_bytes(info.type) + 1);
    fill(&info, 0, info.count, elements);
    *count = info.count;
    return elements;
}
