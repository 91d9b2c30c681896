/* Finds chunks, and the places of their elements: see chunking.h. */
#include "array/array.h"

uint64_t chunk_grid_make(struct chunk_grid *grid, uint32_t dimensions, const uint64_t *shape, const uint64_t *first, const uint64_t *extent)
{
    uint64_t chunks = 1;
    *grid = (struct chunk_grid){.rows = {0, dimensions > 0 ? shape[0] : 1}};
    for (uint32_t i = 0; i < dimensions; i++) {
        grid->extent[i] = extent[i];
        grid->lead[i] = first[i] % extent[i];
        grid->count[i] = shape[i] > 0 ? (grid->lead[i] + shape[i] - 1) / extent[i] + 1 : 0;
        chunks *= grid->count[i];
    }
    return chunks;
}

/* The grid that has the row, or in which the chunk of that number lies. */
static uint64_t find_grid(const struct chunking *c, uint64_t number, bool is_row)
{
    uint64_t low = 0, high = c->grid_count; /* it is in [low, high) */
    while (high - low > 1) {
        const uint64_t middle = low + (high - low) / 2;
        if ((is_row ? c->grids[middle].rows.first : c->grids[middle].before) <= number)
            low = middle;
        else
            high = middle;
    }
    return low;
}

/* The indices along a dimension, from the grid's first on, that the chunks of one number there have. */
static struct range along(const struct chunking *c, const struct chunk_grid *grid, uint32_t dimension, uint64_t number)
{
    const uint64_t length = dimension == 0 ? grid->rows.count : c->shape[dimension], lead = grid->lead[dimension];
    const uint64_t first = number > 0 ? number * grid->extent[dimension] - lead : 0;
    return (struct range){first, u64_min((number + 1) * grid->extent[dimension] - lead, length) - first};
}

struct chunk_box chunking_box(const struct chunking *c, uint64_t number)
{
    struct chunk_box box = {.elements = 1, .grid = find_grid(c, number, false)};
    const struct chunk_grid *const grid = &c->grids[box.grid];
    number -= grid->before;
    for (uint32_t i = c->dimensions; i-- > 0; number /= grid->count[i]) {
        const struct range indices = along(c, grid, i, number % grid->count[i]);
        box.start[i] = indices.first + (i == 0 ? grid->rows.first : 0);
        box.extent[i] = indices.count;
        box.elements *= indices.count;
    }
    return box;
}

uint64_t chunking_index(const struct chunking *c, uint64_t position, uint64_t *run)
{
    const struct chunk_box box = chunking_box(c, position / c->granule);
    uint64_t rest = position % c->granule, index = 0, stride = 1;
    *run = c->dimensions == 0 ? 1 : box.extent[c->dimensions - 1] - rest % box.extent[c->dimensions - 1];
    for (uint32_t i = c->dimensions; i-- > 0;) {
        index += (box.start[i] + rest % box.extent[i]) * stride;
        rest /= box.extent[i];
        stride *= c->shape[i];
    }
    return index;
}

/* The chunks along a dimension of a grid that have indices of a box: none, if it lies in others. */
static struct range chunks_along(const struct chunk_grid *grid, uint32_t dimension, const struct range *box)
{
    const uint64_t start = dimension == 0 ? grid->rows.first : 0, end = dimension == 0 ? start + grid->rows.count : UINT64_MAX;
    const uint64_t low = u64_max(box->first, start), high = u64_min(box->first + box->count, end);
    const uint64_t lead = grid->lead[dimension], extent = grid->extent[dimension], first = (low - start + lead) / extent;
    return (struct range){first, low < high ? (high - 1 - start + lead) / extent - first + 1 : 0};
}

static uint64_t count_in(const struct chunking *c, const struct chunk_grid *grid, const struct range *box)
{
    uint64_t count = 1;
    for (uint32_t i = 0; i < c->dimensions; i++)
        count *= chunks_along(grid, i, &box[i]).count;
    return count;
}

/* Whether there is such a grid, and it does not lie behind the box. */
static bool has_rows(const struct chunking *c, uint64_t grid, const struct range *box)
{
    return grid < c->grid_count && (c->dimensions == 0 || c->grids[grid].rows.first < box[0].first + box[0].count);
}

uint64_t chunking_count(const struct chunking *c, const struct range *box)
{
    uint64_t count = 0;
    for (uint64_t grid = find_grid(c, c->dimensions > 0 ? box[0].first : 0, true); has_rows(c, grid, box); grid++)
        count += count_in(c, &c->grids[grid], box);
    return count;
}

uint64_t chunking_find(const struct chunking *c, const struct range *box, uint64_t which)
{
    const struct chunk_grid *grid = &c->grids[find_grid(c, c->dimensions > 0 ? box[0].first : 0, true)];
    uint64_t number = 0, below = 1;
    for (uint64_t count; which >= (count = count_in(c, grid, box)); grid++)
        which -= count;
    for (uint32_t i = c->dimensions; i-- > 0; below *= grid->count[i]) {
        const struct range chunks = chunks_along(grid, i, &box[i]);
        number += (chunks.first + which % chunks.count) * below;
        which /= chunks.count;
    }
    return grid->before + number;
}

struct range array_part(const struct array_info *info, uint64_t part, uint64_t parts)
{
    const uint64_t positions = info->positions > 0 ? info->positions : info->count;
    const uint64_t granules = positions / info->granule + (positions % info->granule != 0);
    const struct range range = range_part(granules, part, parts);
    const uint64_t first = u64_min(range.first * info->granule, positions);
    return (struct range){first, u64_min(range.count * info->granule, positions - first)};
}
