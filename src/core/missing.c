/* Elements of a row that are missing. Readers leave them out, and say which; here the others get their places back, each with a byte that
   says that it is there. In the places between them stands an element that changes no partial. Monoids that have none such fold the
   rows again of which elements are missing, each by itself. See pieces.h. */
#include "core/pieces.h"
#include "fold/compare_ends.h"

#include <math.h>
#include <string.h>

/* ---- the element that changes no partial */

static const double reals[] = {[NEUTRAL_NONE] = 0, [NEUTRAL_ZERO] = -0.0, [NEUTRAL_ONE] = 1, [NEUTRAL_LARGEST] = INFINITY,
                               [NEUTRAL_SMALLEST] = -INFINITY, [NEUTRAL_INFINITE] = -INFINITY};

/* Its bytes are the first of the result's; 0 if there is none. Little-endian, as all hosts are. */
static uint64_t neutral_element(enum monoid monoid, allfold_type type)
{
    const enum neutral neutral = monoid_facts[monoid].neutral;
    if (type_kind(type) == 'f')
        return type_real_bits(type, reals[neutral]);
    return neutral == NEUTRAL_ONE ? 1 : neutral == NEUTRAL_LARGEST || neutral == NEUTRAL_SMALLEST
                                            ? type_whole_limit(type, neutral == NEUTRAL_LARGEST) : 0;
}

/* ---- places */

/* Moves elements to where they were among n, the last first, 64 at a time; and gathers those of a row that are there, `step` apart. */
#define DEFINE(type)                                                                                              \
    static void spread_##type(void *elements, uint64_t count, uint64_t n, const uint64_t *kept, uint64_t neutral) \
    {                                                                                                             \
        type *const x = elements;                                                                                 \
        for (uint64_t end = n, start; end > 0; end = start) {                                                     \
            start = (end - 1) / 64 * 64;                                                                          \
            if (kept[start / 64] == UINT64_MAX) {                                                                 \
                count -= end - start;                                                                             \
                memmove(x + start, x + count, (end - start) * sizeof *x);                                         \
                continue;                                                                                         \
            }                                                                                                     \
            for (uint64_t i = end; i-- > start;)                                                                  \
                x[i] = kept[i / 64] >> i % 64 & 1 ? x[--count] : (type)neutral;                                   \
        }                                                                                                         \
    }                                                                                                             \
    static uint64_t gather_##type(const void *elements, const unsigned char *there, struct range row, uint64_t step, void *to) \
    {                                                                                                             \
        const type *const x = (const type *)elements + row.first;                                                 \
        type *const y = to; /* one more than there are */                                                         \
        uint64_t count = 0;                                                                                       \
        for (uint64_t l = 0; l < row.count; l++) {                                                                \
            y[count] = x[l * step];                                                                               \
            count += there[row.first + l * step];                                                                 \
        }                                                                                                         \
        return count;                                                                                             \
    }
DEFINE(uint8_t)
DEFINE(uint16_t)
DEFINE(uint32_t)
DEFINE(uint64_t)
#undef DEFINE

/* By the bytes of an element: 1, 2, 4, 8 as 0, 1, 2, 3. */
static const struct {
    void (*spread)(void *elements, uint64_t count, uint64_t n, const uint64_t *kept, uint64_t neutral);
    uint64_t (*gather)(const void *elements, const unsigned char *there, struct range row, uint64_t step, void *to);
} functions[] = {{spread_uint8_t, gather_uint8_t}, {spread_uint16_t, gather_uint16_t}, {spread_uint32_t, gather_uint32_t},
                 {spread_uint64_t, gather_uint64_t}};
static int function_of(allfold_type type) { return __builtin_ctz((unsigned)allfold_type_bytes(type)); }

void missing_spread(const struct pieces *p, const struct piece *piece, uint64_t n, unsigned char *there)
{
    const allfold_type type = p->array->type;
    void *const elements = (void *)(uintptr_t)piece->elements; /* in the buffer of the request */
    functions[function_of(type)].spread(elements, piece->count, n, piece->kept, neutral_element(p->monoid, type));
    for (uint64_t start = 0; start < n; start += 64) {
        const uint64_t word = piece->kept[start / 64], count = u64_min(64, n - start);
        if (word == 0 || word == UINT64_MAX)
            memset(there + start, (int)(word & 1), count);
        else
            for (uint64_t i = 0; i < count; i++)
                there[start + i] = word >> i & 1;
    }
}

static unsigned char *there_of(const struct pieces *p, const struct lane *lane) { return lane_host(lane, p->there_at); }

void missing_begin(const struct pieces *p, struct lane *lane)
{
    if (p->array->omits && !piece_closes_gaps(p, &lane->part))
        memset(there_of(p, lane), 1, part_elements(&lane->part));
}

void missing_count(const struct pieces *p, struct lane *lane)
{
    const struct part *const part = &lane->part;
    const unsigned char *const there = there_of(p, lane);
    uint64_t *const counts = lane_host(lane, p->counts_at);
    if (!p->array->omits || piece_closes_gaps(p, part))
        return;
    for (uint64_t r = 0; r < part_results(part); r++)
        counts[r] = lane->holes ? 0 : part->length;
    for (uint64_t row = 0; lane->holes && row < part->outer * part->length; row++) {
        uint64_t *const of_plane = counts + row / part->length * part->inner;
        for (uint64_t i = 0; i < part->inner; i++)
            of_plane[i] += there[row * part->inner + i];
    }
    lane->counts = counts;
}

/* ---- monoids without such an element */

/* A row: the number of its first element among those of the piece, and how many it has, which are part.inner apart. */
static struct range row_of(const struct lane *lane, uint64_t r)
{
    const struct part *const part = &lane->part;
    return (struct range){r / part->inner * part->length * part->inner + r % part->inner, part->length};
}

/* The place along the axis of the element of a row that is number k of those that are there. */
static uint64_t place_of(const struct pieces *p, const struct lane *lane, uint64_t r, uint64_t k)
{
    const unsigned char *const there = there_of(p, lane) + row_of(lane, r).first;
    uint64_t l = 0;
    for (k += 1; (k -= there[l * lane->part.inner]) > 0; l++)
        ;
    return lane->part.l + l;
}

static allfold_status fold_row(const struct pieces *p, struct lane *lane, uint64_t r, struct partial *partial, struct error *error)
{
    const struct backend *const backend = lane->queue->device->backend;
    char *const host = lane_host(lane, p->row_at), *const device = lane_device(lane, p->row_at);
    const allfold_type type = p->array->type;
    uint64_t *indices[MONOID_INDICES_MAX];
    const uint64_t count = functions[function_of(type)].gather(lane->host, there_of(p, lane), row_of(lane, r), lane->part.inner, host);
    const struct work work = {p->monoid, type, device, count, 0, NULL, NULL};
    if (backend->copy(lane->queue, host, device, work.n * allfold_type_bytes(type), error) != ALLFOLD_OK
        || backend->fold(lane->queue, &work, error) != ALLFOLD_OK || backend->wait(lane->queue, error) != ALLFOLD_OK)
        return error->status;
    memcpy(partial, lane->queue->partial, monoid_bytes(p->monoid, type));
    const int found = monoid_indices(p->monoid, type, partial, indices);
    for (int i = 0; i < found; i++)
        if (*indices[i] != ALLFOLD_NO_INDEX)
            *indices[i] = place_of(p, lane, r, *indices[i]);
    return ALLFOLD_OK;
}

allfold_status missing_mend(const struct pieces *p, struct lane *lane, unsigned char *partials, struct error *error)
{
    if (!lane->holes || monoid_has_neutral(p->monoid, type_kind(p->array->type) == 'f'))
        return ALLFOLD_OK;
    for (uint64_t r = 0; r < part_results(&lane->part) && error->status == ALLFOLD_OK; r++) {
        struct partial *const partial = (struct partial *)(partials + r * p->stride);
        if (lane->counts[r] == 0)
            monoid_identity(p->monoid, p->array->type, partial);
        else if (lane->counts[r] < lane->part.length)
            fold_row(p, lane, r, partial, error);
    }
    return error->status;
}

/* ---- two operands */

/* Positions of the piece that are not empty: of a source in chunks the last ones of a chunk may be. */
static uint64_t filled(const struct pieces *p, const struct lane *lane)
{
    const struct chunking *const chunking = p->array->source->chunking;
    return chunking == NULL ? lane->part.length : u64_min(chunking_box(chunking, lane->part.l / chunking->granule).elements, lane->part.length);
}

void missing_join(const struct pieces *p, struct lane *lane, const struct piece *second)
{
    const size_t bytes = allfold_type_bytes(p->array->type);
    const struct piece first = {lane->host, lane->count, lane->kept};
    char *const a = lane_host(lane, 0), *const b = lane_host(lane, p->second_at);
    uint64_t *const joint = lane_host(lane, p->joint_at), n = filled(p, lane);
    uint64_t of_a = 0, of_b = 0, both = 0;
    if (first.count == second->count && first.count == n)
        return;
    memset(joint, 0, (size_t)(lane->part.length + 63) / 64 * 8);
    for (uint64_t i = 0; i < n; i++) {
        const bool in_a = piece_has(&first, n, i), in_b = piece_has(second, n, i);
        if (in_a && in_b) {
            memmove(a + both * bytes, lane->host + of_a * bytes, bytes);
            memmove(b + both * bytes, lane->second + of_b * bytes, bytes);
            joint[i / 64] |= UINT64_C(1) << i % 64;
            both++;
        }
        lane->alone[0] += in_a && !in_b;
        lane->alone[1] += in_b && !in_a;
        of_a += in_a;
        of_b += in_b;
    }
    lane->host = a;
    lane->second = b;
    lane->count = both;
    lane->kept = joint;
}

void missing_count_alone(const struct pieces *p, const struct lane *lane, struct partial *partial)
{
    struct compare_ends *const ends = compare_ends_of(p->array->type, partial);
    ends->missing_a += lane->alone[1];
    ends->missing_b += lane->alone[0];
}
