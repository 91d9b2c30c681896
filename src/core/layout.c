/* Where the elements of a part lie if any dimensions are folded: see layout.h. */
#include "core/layout.h"

#include <stdlib.h>
#include <string.h>

/* ---- sources */

/* A dimension of 1 separates nothing, whether it is folded or not. */
static void find_coordinates(struct layout *layout, const struct rows_shape *shape)
{
    bool folded = false, between = false; /* such a dimension is behind; and before it one that is not */
    uint64_t stride = 1;
    for (uint32_t i = layout->count; i-- > 0;) {
        const uint32_t dimension = shape->fortran_order ? layout->count - 1 - i : i;
        const uint64_t extent = shape->extents[dimension];
        const bool along = rows_fold(shape, dimension) && extent != 1;
        layout->scattered = layout->scattered || (along && between);
        between = between || (folded && !along && extent != 1);
        folded = folded || along;
        layout->dimensions[i] = (struct dimension){extent, (int64_t)stride, along    ? COORDINATE_AXIS
                                                                            : folded ? COORDINATE_OUTER
                                                                                     : COORDINATE_INNER};
        stride *= extent;
    }
}

static void find_tail(struct layout *layout)
{
    uint32_t d = layout->count;
    while (d > 0 && layout->dimensions[d - 1].of == COORDINATE_INNER)
        d--;
    layout->inner = layout->count - d;
    for (layout->tail_length = 1; d > 0 && layout->dimensions[d - 1].of == COORDINATE_AXIS; d--)
        layout->tail_length *= layout->dimensions[d - 1].extent;
    layout->tail = layout->count - d;
}

/* The last dimensions, as many as there is room for, and some of the one before. */
static void find_runs(struct layout *layout, uint64_t most)
{
    static const uint64_t none[ARRAY_DIMENSIONS_MAX];
    struct chunking *const runs = &layout->runs;
    uint64_t chunk[ARRAY_DIMENSIONS_MAX];
    *runs = (struct chunking){.dimensions = layout->count, .granule = 1, .grid_count = 1, .grids = &layout->grid};
    for (uint32_t i = layout->count; i-- > 0;) {
        const uint64_t extent = runs->shape[i] = layout->dimensions[i].extent;
        chunk[i] = u64_max(u64_min(extent, most), 1);
        most = chunk[i] < extent ? 1 : most / chunk[i];
        runs->granule *= chunk[i];
    }
    chunk_grid_make(&layout->grid, layout->count, runs->shape, none, chunk);
}

void layout_of_source(struct layout *layout, const struct rows_shape *shape, const struct source *source, uint64_t most)
{
    layout->count = shape->dimensions;
    layout->scattered = false;
    layout->chunking = source->chunking != NULL ? source->chunking : &layout->runs;
    find_coordinates(layout, shape);
    find_tail(layout);
    if (source->chunking == NULL)
        find_runs(layout, most);
}

void layout_add(struct layout *layout, struct dimension dimension)
{
    struct dimension *before = NULL;
    for (uint32_t d = 0; d < layout->count; d++)
        if (layout->dimensions[d].of == dimension.of)
            before = &layout->dimensions[d];
    if (dimension.extent == 1)
        return;
    if (before == NULL || before->stride != (int64_t)dimension.extent * dimension.stride) {
        layout->dimensions[layout->count++] = dimension;
        return;
    }
    before->extent *= dimension.extent;
    before->stride = dimension.stride;
}

uint64_t layout_grain(const struct layout *layout, enum coordinate of)
{
    uint64_t grain = 1;
    for (uint32_t i = 0; i < layout->count; i++) {
        const uint64_t extent = layout->dimensions[i].extent;
        if (layout->dimensions[i].of == of)
            grain = grain > 1 ? grain * extent : u64_min(layout->chunking->grids->extent[i], extent);
    }
    return u64_max(grain, 1);
}

/* ---- the boxes of a part: a range of a coordinate is at most one row of its slowest dimension that begins late, whole ones, and one that
   ends early */

struct walk {
    const struct layout *layout;
    struct range along[3];
    uint64_t unit[3]; /* of each coordinate, in the dense part */
    struct strided_copy copy;
    int64_t from_at, to_at;
    layout_visit *visit;
    void *user;
};

static void append_dimension(struct strided_copy *copy, uint64_t extent, int64_t from_step, int64_t to_step)
{
    const uint32_t last = copy->dimensions - 1;
    if (copy->dimensions > 0 && copy->from_step[last] == (int64_t)extent * from_step && copy->to_step[last] == (int64_t)extent * to_step) {
        copy->extent[last] *= extent;
        copy->from_step[last] = from_step;
        copy->to_step[last] = to_step;
        return;
    }
    copy->extent[copy->dimensions] = extent;
    copy->from_step[copy->dimensions] = from_step;
    copy->to_step[copy->dimensions++] = to_step;
}

static void walk_range(struct walk *w, enum coordinate of, uint32_t from, struct range range);

/* Goes on with places [range) of a dimension, which are `below` of the coordinate each, and of the dimensions behind it with `rest`. */
static void walk_dimension(struct walk *w, uint32_t d, struct range places, uint64_t below, struct range rest)
{
    const struct dimension *const dimension = &w->layout->dimensions[d];
    const int64_t to_step = (int64_t)(below * w->unit[dimension->of]), from_at = w->from_at, to_at = w->to_at;
    const struct strided_copy *const copy = &w->copy;
    const uint32_t dimensions = copy->dimensions, last = dimensions > 0 ? dimensions - 1 : 0;
    const uint64_t extent = copy->extent[last];
    const int64_t steps[] = {copy->from_step[last], copy->to_step[last]};
    w->from_at += (int64_t)places.first * dimension->stride;
    w->to_at += (int64_t)places.first * to_step;
    if (places.count > 1)
        append_dimension(&w->copy, places.count, dimension->stride, to_step);
    walk_range(w, dimension->of, d + 1, rest);
    w->from_at = from_at;
    w->to_at = to_at;
    w->copy.dimensions = dimensions;
    w->copy.extent[last] = extent;
    w->copy.from_step[last] = steps[0];
    w->copy.to_step[last] = steps[1];
}

static void walk_range(struct walk *w, enum coordinate of, uint32_t from, struct range range)
{
    const struct layout *const layout = w->layout;
    uint64_t below = 1;
    while (from < layout->count && layout->dimensions[from].of != of)
        from++;
    if (from == layout->count) {
        if (of == COORDINATE_INNER)
            w->visit(w->user, &w->copy, w->from_at, w->to_at);
        else
            walk_range(w, of + 1, 0, w->along[of + 1]);
        return;
    }
    for (uint32_t d = from + 1; d < layout->count; d++)
        below *= layout->dimensions[d].of == of ? layout->dimensions[d].extent : 1;
    const uint64_t first = range.first / below, behind = range.first % below, end = (range.first + range.count) / below;
    const uint64_t rest = (range.first + range.count) % below;
    if (first == end) {
        walk_dimension(w, from, (struct range){first, 1}, below, (struct range){behind, range.count});
        return;
    }
    if (behind > 0)
        walk_dimension(w, from, (struct range){first, 1}, below, (struct range){behind, below - behind});
    if (first + (behind > 0) < end)
        walk_dimension(w, from, (struct range){first + (behind > 0), end - first - (behind > 0)}, below, (struct range){0, below});
    if (rest > 0)
        walk_dimension(w, from, (struct range){end, 1}, below, (struct range){0, rest});
}

void layout_visit_part(const struct layout *layout, const struct part *part, layout_visit *visit, void *user)
{
    struct walk w = {.layout = layout, .along = {{part->o, part->outer}, {part->l, part->length}, {part->i, part->inner}},
                     .unit = {part->length * part->inner, part->inner, 1}, .visit = visit, .user = user};
    for (int c = 0; c < 3; c++) {
        w.to_at -= (int64_t)(w.along[c].first * w.unit[c]);
        if (w.along[c].count == 0)
            return;
    }
    walk_range(&w, COORDINATE_OUTER, 0, w.along[COORDINATE_OUTER]);
}

/* ---- copies */

void strided_reverse(struct strided_copy *copy)
{
    for (uint32_t d = 0; d < copy->dimensions; d++) {
        const int64_t step = copy->from_step[d];
        copy->from_step[d] = copy->to_step[d];
        copy->to_step[d] = step;
    }
}

#define DEFINE(type)                                                                                            \
    static void copy_line_##type(const void *from, int64_t from_step, void *to, int64_t to_step, uint64_t count) \
    {                                                                                                           \
        const type *x = from;                                                                                   \
        type *y = to;                                                                                           \
        for (uint64_t i = 0; i < count; i++)                                                                    \
            y[(int64_t)i * to_step] = x[(int64_t)i * from_step];                                                \
    }
DEFINE(uint8_t)
DEFINE(uint16_t)
DEFINE(uint32_t)
DEFINE(uint64_t)
#undef DEFINE

static void copy_line(const struct strided_copy *copy, uint32_t line, const char *from, char *to)
{
    static void (*const lines[])(const void *, int64_t, void *, int64_t, uint64_t) = {copy_line_uint8_t, copy_line_uint16_t, copy_line_uint32_t,
                                                                                      copy_line_uint64_t};
    if (copy->from_step[line] == 1 && copy->to_step[line] == 1)
        memcpy(to, from, copy->extent[line] * copy->bytes);
    else
        lines[__builtin_ctz((unsigned)copy->bytes)](from, copy->from_step[line], to, copy->to_step[line], copy->extent[line]);
}

/* All dimensions from d on, the one of the lines last. */
static void copy_dimensions(const struct strided_copy *copy, uint32_t d, uint32_t line, const char *from, char *to)
{
    d += d == line;
    if (d >= copy->dimensions) {
        copy_line(copy, line, from, to);
        return;
    }
    const int64_t from_step = copy->from_step[d] * (int64_t)copy->bytes, to_step = copy->to_step[d] * (int64_t)copy->bytes;
    for (int64_t i = 0; i < (int64_t)copy->extent[d]; i++)
        copy_dimensions(copy, d + 1, line, from + i * from_step, to + i * to_step);
}

void strided_copy_host(const struct strided_copy *copy)
{
    uint32_t line = 0;
    for (uint32_t d = 1; d < copy->dimensions; d++) /* that of the nearest neighbours */
        if (llabs(copy->from_step[d]) + llabs(copy->to_step[d]) < llabs(copy->from_step[line]) + llabs(copy->to_step[line]))
            line = d;
    if (copy->dimensions > 0)
        copy_dimensions(copy, 0, line, copy->from, copy->to);
    else
        memcpy(copy->to, copy->from, copy->bytes);
}
