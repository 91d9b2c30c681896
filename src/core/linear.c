/* A source of another one's elements in the order of their indices, whatever the order in which that one reads them, and converted to a wider
   type. So two arrays can be read alike that differ in chunks and types. Of an array in chunks all chunks are decoded that have elements of
   a request: each once, if requests are whole granules. See pieces.h. */
#include "core/pieces.h"

#include <stdlib.h>
#include <string.h>

struct linear_reader {
    struct reader reader;
    char *room; /* for what the inner reader reads */
    size_t room_bytes;
};

/* ---- conversion */

#define DEFINE(ID, name, numpy, bytes, kind, value)                               \
    static void f32_of_##name(const void *from, void *to, uint64_t n)             \
    {                                                                             \
        for (uint64_t i = 0; i < n; i++)                                          \
            ((float *)to)[i] = (float)load_##name(((const element_##name *)from)[i]); \
    }                                                                             \
    static void f64_of_##name(const void *from, void *to, uint64_t n)             \
    {                                                                             \
        for (uint64_t i = 0; i < n; i++)                                          \
            ((double *)to)[i] = (double)load_##name(((const element_##name *)from)[i]); \
    }                                                                             \
    static void int64_of_##name(const void *from, void *to, uint64_t n)           \
    {                                                                             \
        for (uint64_t i = 0; i < n; i++)                                          \
            ((int64_t *)to)[i] = (int64_t)load_##name(((const element_##name *)from)[i]); \
    }
ALLFOLD_TYPES(DEFINE)
#undef DEFINE
#define CELL(ID, name, ...) [ALLFOLD_##ID] = {f32_of_##name, f64_of_##name, int64_of_##name},
static const struct {
    void (*f32)(const void *from, void *to, uint64_t n), (*f64)(const void *from, void *to, uint64_t n),
        (*int64)(const void *from, void *to, uint64_t n);
} conversions[ALLFOLD_TYPE_COUNT] = {ALLFOLD_TYPES(CELL)};
#undef CELL

/* Elements of a type to f32, f64 or int64 (of uint64: its bits), or to the same type. */
static void convert(allfold_type from_type, allfold_type to_type, const void *from, void *to, uint64_t n)
{
    if (from_type == to_type)
        memcpy(to, from, n * allfold_type_bytes(to_type));
    else if (to_type == ALLFOLD_F32)
        conversions[from_type].f32(from, to, n);
    else if (to_type == ALLFOLD_F64)
        conversions[from_type].f64(from, to, n);
    else
        conversions[from_type].int64(from, to, n);
}

/* ---- reading */

static allfold_status make_room(struct linear_reader *r, uint64_t elements, struct error *error)
{
    const size_t bytes = pages(reader_room(elements, allfold_type_bytes(r->reader.source->inner->type)));
    if (bytes <= r->room_bytes)
        return ALLFOLD_OK;
    free(r->room);
    r->room_bytes = 0;
    if ((r->room = aligned_alloc(4096, bytes)) == NULL)
        return error_set(error, ALLFOLD_NO_MEMORY, "no memory for %zu bytes of an array's elements", bytes);
    r->room_bytes = bytes;
    return ALLFOLD_OK;
}

/* Elements whose order is that of their indices already. */
static allfold_status read_converted(struct linear_reader *r, const struct read_request *request, struct piece *piece, struct error *error)
{
    const allfold_type from = r->reader.source->inner->type, to = r->reader.source->type;
    if (from == to)
        return reader_read(r->reader.inner, request, piece, error);
    if (make_room(r, request->range.count, error) != ALLFOLD_OK
        || reader_read(r->reader.inner, &(struct read_request){request->range, request->ahead, r->room, false}, piece, error) != ALLFOLD_OK)
        return error->status;
    convert(from, to, piece->elements, request->buffer, piece->count);
    piece->elements = request->buffer;
    return ALLFOLD_OK;
}

/* A request that is being gathered from chunks. */
struct gathering {
    struct linear_reader *r;
    struct range range;
    char *to;        /* element i of the range at place i */
    uint64_t *there; /* bit i: it is not missing */
    uint64_t count;
};

static bool bit_of(const uint64_t *bits, uint64_t i) { return bits == NULL || (bits[i / 64] >> i % 64 & 1) != 0; }

/* Takes what the request wants of a run of neighbours: run.first is the index of the first, at its position in the chunk; `before` elements of
   the chunk that are not missing lie before it. Returns how many of the run are not missing. */
static uint64_t gather_run(struct gathering *g, struct range run, uint64_t at, uint64_t before, const struct piece *chunk)
{
    const struct source *const s = g->r->reader.source;
    const allfold_type from = s->inner->type, to = s->type;
    const size_t from_bytes = allfold_type_bytes(from), to_bytes = allfold_type_bytes(to);
    const char *const elements = chunk->elements;
    const uint64_t low = u64_max(run.first, g->range.first), high = u64_min(run.first + run.count, g->range.first + g->range.count);
    uint64_t present = 0;
    if (chunk->kept == NULL && low < high)
        convert(from, to, elements + (before + low - run.first) * from_bytes, g->to + (low - g->range.first) * to_bytes, high - low);
    for (uint64_t i = 0; i < run.count; i++) {
        const uint64_t index = run.first + i, place = index - g->range.first;
        const bool wanted = index >= low && index < high, is_there = bit_of(chunk->kept, at + i);
        if (wanted && is_there) {
            g->there[place / 64] |= UINT64_C(1) << place % 64;
            g->count++;
            if (chunk->kept != NULL)
                convert(from, to, elements + (before + present) * from_bytes, g->to + place * to_bytes, 1);
        }
        present += is_there;
    }
    return present;
}

/* Whether a request wants only some of a chunk's elements. */
static bool lies_in_part(const struct gathering *g, uint64_t number, uint64_t elements)
{
    const struct chunking *const chunking = g->r->reader.source->inner->chunking;
    uint64_t run;
    return chunking_index(chunking, number * chunking->granule, &run) < g->range.first
           || chunking_index(chunking, number * chunking->granule + elements - 1, &run) >= g->range.first + g->range.count;
}

static allfold_status gather_chunk(struct gathering *g, uint64_t number, struct error *error)
{
    const struct source *const inner = g->r->reader.source->inner;
    const uint64_t elements = chunking_box(inner->chunking, number).elements;
    const struct read_request request = {{number * inner->granule, inner->granule}, 0, g->r->room, lies_in_part(g, number, elements)};
    struct piece piece = {.count = request.range.count};
    if (reader_read(g->r->reader.inner, &request, &piece, error) != ALLFOLD_OK)
        return error->status;
    for (uint64_t at = 0, before = 0, run; at < elements; at += run) {
        const uint64_t index = chunking_index(inner->chunking, request.range.first + at, &run);
        run = u64_min(run, elements - at);
        before += gather_run(g, (struct range){index, run}, at, before, &piece);
    }
    return ALLFOLD_OK;
}

/* The box in which a run of indices lies. */
static void set_box(const struct chunking *chunking, struct range run, struct range box[ARRAY_DIMENSIONS_MAX])
{
    uint64_t lowest = run.first, highest = run.first + run.count - 1, below = 1;
    bool differ = false;
    for (uint32_t i = 0; i < chunking->dimensions; i++)
        below *= chunking->shape[i];
    for (uint32_t i = 0; i < chunking->dimensions; i++) {
        below /= chunking->shape[i];
        const uint64_t low = differ ? 0 : lowest / below, high = differ ? chunking->shape[i] - 1 : highest / below;
        differ = differ || low != high;
        lowest %= below;
        highest %= below;
        box[i] = (struct range){low, high - low + 1};
    }
}

/* Moves the elements that are not missing to the front. */
static void close_gaps(const struct gathering *g)
{
    const size_t bytes = allfold_type_bytes(g->r->reader.source->type);
    uint64_t count = 0;
    for (uint64_t i = 0; i < g->range.count; i++)
        if (bit_of(g->there, i))
            memmove(g->to + count++ * bytes, g->to + i * bytes, bytes);
}

static allfold_status read_gathered(struct linear_reader *r, const struct read_request *request, struct piece *piece, struct error *error)
{
    const struct chunking *const chunking = r->reader.source->inner->chunking;
    const uint64_t n = request->range.count, bytes = n * allfold_type_bytes(r->reader.source->type);
    struct gathering g = {r, request->range, request->buffer, NULL, 0};
    g.there = (uint64_t *)(void *)(g.to + (bytes + 4096 + READER_SLACK + 7) / 8 * 8); /* as encoded.c has it */
    memset(g.there, 0, (n + 63) / 64 * 8);
    struct range box[ARRAY_DIMENSIONS_MAX];
    if (make_room(r, chunking->granule, error) != ALLFOLD_OK)
        return error->status;
    set_box(chunking, request->range, box);
    for (uint64_t k = 0, count = chunking_count(chunking, box); k < count && error->status == ALLFOLD_OK; k++)
        gather_chunk(&g, chunking_find(chunking, box, k), error);
    if (g.count < n)
        close_gaps(&g);
    *piece = (struct piece){g.to, g.count, g.count < n ? g.there : NULL};
    return error->status;
}

static allfold_status read_linear(struct reader *reader, const struct read_request *request, struct piece *piece, struct error *error)
{
    struct linear_reader *const r = (struct linear_reader *)reader;
    return reader->source->inner->chunking == NULL ? read_converted(r, request, piece, error) : read_gathered(r, request, piece, error);
}

static void close_reader(struct reader *reader) { free(((struct linear_reader *)reader)->room); }

/* ---- granules */

enum { ROOM_BYTES = 64 << 20 };

/* The elements of the chunks that lie side by side across all dimensions behind one, while they fit the room: in these no chunk is cut. If
   chunks are longer than 1 in a dimension before it, they are decoded once for each granule of them. */
static uint64_t granule_of(const struct source *inner, size_t bytes)
{
    const struct chunking *const chunking = inner->chunking;
    uint64_t below = 1, found = 1;
    if (chunking == NULL)
        return inner->granule;
    for (uint32_t i = chunking->dimensions; i-- > 0; below *= chunking->shape[i]) {
        const uint64_t length = u64_min(chunking->grids[0].extent[i], chunking->shape[i]);
        if (length <= ROOM_BYTES / bytes / u64_max(below, 1))
            found = u64_max(length * below, 1);
    }
    return found;
}

uint64_t linear_granule(const struct source *a, const struct source *b, allfold_type type)
{
    const size_t bytes = allfold_type_bytes(type);
    const uint64_t of_a = granule_of(a, bytes), of_b = granule_of(b, bytes), longer = u64_max(of_a, of_b);
    for (uint64_t both = longer; both <= ROOM_BYTES / bytes; both += longer)
        if (both % of_a == 0 && both % of_b == 0)
            return both;
    return longer;
}

allfold_status linear_open(struct source *inner, allfold_type type, uint64_t granule, struct source **source, struct error *error)
{
    struct source *const s = calloc(1, sizeof *s);
    if (s == NULL)
        return error_set(error, ALLFOLD_NO_MEMORY, "no memory to open an array");
    *s = (struct source){.read = read_linear, .reader_bytes = sizeof(struct linear_reader), .close_reader = close_reader, .inner = inner,
                         .borrows = true, .leaves_out = inner->leaves_out, .note = inner->note, .type = type, .granule = granule};
    *source = s;
    return ALLFOLD_OK;
}
