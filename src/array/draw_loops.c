/* Draws a block of elements at a time, in loops that compilers turn into vectors. Compiled once for each instruction set
   (CPU_ISA); the bits are the same in all. */
#include "array/draw.h"

#include <string.h>

#define BLOCK 512 /* elements at a time: their numbers stay in the first cache */

/* The numbers of one block: element i has index first + i. */
struct block {
    uint64_t first;
    int n;
    double x[BLOCK];
    uint64_t bits[BLOCK];
};

static void normal_block(const struct draw *d, struct block *b)
{
    double q[BLOCK], tail[BLOCK];
    int32_t place[BLOCK + 1];
    int tails = 0;
    int64_t far = 0; /* how many; as wide as the numbers, for the vectors' sake */
    for (int i = 0; i < b->n; i++) {
        b->bits[i] = draw_hash(d, b->first + (uint64_t)i); /* kept for logits */
        q[i] = draw_cell(b->bits[i]);
        b->x[i] = draw_normal(d, draw_centre(q[i]));
    }
    for (int i = 0; i < b->n; i++) { /* so that the tails, one after the other, are vectors too */
        place[tails] = i;
        tail[tails] = q[i];
        tails += draw_in_tail(q[i]);
    }
    for (int i = 0; i < tails; i++) {
        const double argument = draw_tail_argument(tail[i]);
        far += argument > DRAW_FAR ? 1 : 0;
        q[i] = draw_near_tail(tail[i], argument);
    }
    for (int i = 0; far > 0 && i < tails; i++)
        if (draw_tail_argument(tail[i]) > DRAW_FAR)
            q[i] = draw_far_tail(tail[i], draw_tail_argument(tail[i]));
    for (int i = 0; i < tails; i++)
        b->x[place[i]] = draw_normal(d, q[i]);
    for (int i = 0; d->outliers > 0 && i < b->n; i++)
        b->x[i] *= draw_outlier(d, b->bits[i]);
}

static void real_block(const struct draw *d, struct block *b)
{
    if (d->kind == DRAW_NORMAL)
        normal_block(d, b);
    else if (d->kind == DRAW_UNIFORM)
        for (int i = 0; i < b->n; i++)
            b->x[i] = draw_uniform(d, draw_hash(d, b->first + (uint64_t)i));
    else
        for (int i = 0; i < b->n; i++)
            b->x[i] = draw_ramp(d, b->first + (uint64_t)i);
}

static void bits_block(const struct draw *d, struct block *b)
{
    switch (d->kind) { /* kinds that the compiler sees: a loop each */
#define CASE(kind)                                                        \
    case kind:                                                            \
        for (int i = 0; i < b->n; i++)                                    \
            b->bits[i] = draw_bits(d, kind, b->first + (uint64_t)i);      \
        break;
        CASE(DRAW_UNIFORM_WHOLE)
        CASE(DRAW_RAMP_WHOLE)
        CASE(DRAW_WIDE)
#undef CASE
    default:
        for (int i = 0; i < b->n; i++)
            b->bits[i] = d->whole;
    }
}

/* To elements, rounded to nearest even; beyond the greatest they become it. */
static void store_reals(const struct draw *d, const struct block *b, void *elements)
{
#define CASE(ID, name, ...)                                                                                              \
    case ALLFOLD_##ID:                                                                                                   \
        for (int i = 0; i < b->n; i++)                                                                                   \
            ((element_##name *)elements)[i] = round_##name(draw_clamp(b->x[i], d->least, d->greatest));                  \
        break;
    switch (d->type) {
        FLOAT_TYPES(CASE)
    default: break;
    }
#undef CASE
}

static void store_bits(size_t bytes, const struct block *b, void *elements)
{
    switch (bytes) {
#define CASE(bytes, type)                                \
    case bytes:                                          \
        for (int i = 0; i < b->n; i++)                   \
            ((type *)elements)[i] = (type)b->bits[i];    \
        break;
        CASE(1, uint8_t)
        CASE(2, uint16_t)
        CASE(4, uint32_t)
        CASE(8, uint64_t)
#undef CASE
    }
}

static void draw_block(const struct draw *d, struct block *b, void *elements)
{
    const bool real = d->kind == DRAW_NORMAL || d->kind == DRAW_UNIFORM || d->kind == DRAW_RAMP;
    if (real)
        real_block(d, b);
    else
        bits_block(d, b);
    if (real && d->floating) {
        store_reals(d, b, elements);
        return;
    }
    for (int i = 0; real && i < b->n; i++)
        b->bits[i] = draw_whole(d, b->x[i]);
    store_bits(allfold_type_bytes(d->type), b, elements);
}

#define JOIN(a, b) a##b
#define EXPAND(a, b) JOIN(a, b)
void EXPAND(draw_, CPU_ISA)(const struct draw *draw, struct range range, void *elements)
{
    const struct draw d = *draw; /* which no store to the elements can change */
    const size_t bytes = allfold_type_bytes(d.type);
    for (uint64_t i = 0; i < range.count; i += BLOCK) {
        struct block block;
        block.first = range.first + i;
        block.n = (int)u64_min(BLOCK, range.count - i);
        draw_block(&d, &block, (char *)elements + i * bytes);
    }
}
