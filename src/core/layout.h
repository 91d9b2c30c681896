/* Arrays of which any dimensions are folded. Each dimension is part of one of an element's three coordinates (o, l, i), which counts its
   dimensions in their order, the last the fastest. So pieces are boxes of three dimensions, however the elements lie; where they lie is
   asked here. Sources: chunks.c reads them, whole chunks at a time. Memory: load.c copies pieces together. */
#pragma once

#include "array/array.h"
#include "core/team.h"
#include "fold/rows.h"

enum coordinate { COORDINATE_OUTER, COORDINATE_AXIS, COORDINATE_INNER };

struct dimension {
    uint64_t extent;
    int64_t stride; /* in elements; of a source in its own order */
    enum coordinate of;
};

struct layout {
    uint32_t count;
    struct dimension dimensions[STRIDED_DIMENSIONS_MAX];
    /* a source: the dimensions in the order of the elements, the last the fastest */
    const struct chunking *chunking; /* the source's, or of what is read together: runs */
    struct chunking runs;
    struct chunk_grid grid;
    bool scattered;                  /* folded dimensions are not neighbours */
    uint32_t inner, tail;            /* dimensions at the end that are COORDINATE_INNER; and with them the folded ones before */
    uint64_t tail_length;            /* product of the latter */
};

/* A source's. most: elements of an array without chunks that are read together, at most. */
void layout_of_source(struct layout *layout, const struct rows_shape *shape, const struct source *source, uint64_t most);

/* Adds a dimension behind the others: to the one before of its coordinate, if their strides allow that. */
void layout_add(struct layout *layout, struct dimension dimension);

/* The number of steps of the coordinate that, like its multiples, cuts no chunk, as a rule. */
uint64_t layout_grain(const struct layout *layout, enum coordinate of);

/* Calls visit for each box of elements of a part: all steps are set, from_step in the array and to_step in the dense part; from_at and to_at
   are the places of the first element. */
typedef void layout_visit(void *user, const struct strided_copy *box, int64_t from_at, int64_t to_at);
void layout_visit_part(const struct layout *layout, const struct part *part, layout_visit *visit, void *user);

/* Exchanges the steps. */
void strided_reverse(struct strided_copy *copy);
/* Copies in host memory. */
void strided_copy_host(const struct strided_copy *copy);
