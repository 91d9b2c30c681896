/* Elements of a row that are missing. Readers leave them out, and say which; here the others get their places back, each with a byte that
   says that it is there. In the places between them stands an element that changes no partial. Monoids that have none such fold the
   rows again of which elements are missing, each by itself. See axis_stream.h. */
#include "core/axis_stream.h"

#include <math.h>
#include <string.h>

/* ---- the element that changes no partial */

static const double reals[] = {[NEUTRAL_NONE] = 0, [NEUTRAL_ZERO] = -0.0, [NEUTRAL_ONE] = 1, [NEUTRAL_LARGEST] = INFINITY,
                               [NEUTRAL_SMALLEST] = -INFINITY, [NEUTRAL_INFINITE] = -INFINITY};

/* The least or the largest integer of a type; of bool 0 or 1. */
static uint64_t integer_bound(allfold_type type, bool largest)
{
    const unsigned bits = 8 * (unsigned)allfold_type_bytes(type);
    if (type_kind(type) == 'b')
        return largest;
    if (type_kind(type) == 'u')
        return largest ? UINT64_MAX : 0;
    return largest ? (UINT64_C(1) << (bits - 1)) - 1 : UINT64_C(1) << (bits - 1);
}

static bool has_neutral(enum monoid monoid, allfold_type type)
{
    const enum neutral neutral = monoid_facts[monoid].neutral;
    return neutral != NEUTRAL_NONE && (neutral != NEUTRAL_INFINITE || type_kind(type) == 'f');
}

/* Its bytes are the first of the result's; 0 if there is none. Little-endian, as all hosts are. */
static uint64_t neutral_element(enum monoid monoid, allfold_type type)
{
    const enum neutral neutral = monoid_facts[monoid].neutral;
    if (type_kind(type) == 'f')
        return type_real_bits(type, reals[neutral]);
    return neutral == NEUTRAL_ONE ? 1 : neutral == NEUTRAL_LARGEST || neutral == NEUTRAL_SMALLEST
                                            ? integer_bound(type, neutral == NEUTRAL_LARGEST) : 0;
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

void axis_missing_spread(const struct axis_stream *s, const struct piece *piece, uint64_t n, unsigned char *there)
{
    const allfold_type type = s->array->type;
    void *const elements = (void *)(uintptr_t)piece->elements; /* in the buffer of the request */
    functions[function_of(type)].spread(elements, piece->count, n, piece->kept, neutral_element(s->monoid, type));
    for (uint64_t start = 0; start < n; start += 64) {
        const uint64_t word = piece->kept[start / 64], count = u64_min(64, n - start);
        if (word == 0 || word == UINT64_MAX)
            memset(there + start, (int)(word & 1), count);
        else
            for (uint64_t i = 0; i < count; i++)
                there[start + i] = word >> i & 1;
    }
}

static unsigned char *there_of(const struct axis_stream *s, const struct axis_task *task)
{
    return (unsigned char *)task->queue->staging + s->there_at;
}

static uint64_t *counts_of(const struct axis_stream *s, const struct axis_task *task)
{
    return (uint64_t *)(void *)((char *)task->queue->staging + s->counts_at);
}

void axis_missing_begin(const struct axis_stream *s, struct axis_task *task)
{
    task->holes = false;
    task->counts = NULL;
    if (s->array->omits)
        memset(there_of(s, task), 1, task->piece.outer * task->piece.length * task->piece.inner);
}

void axis_missing_count(const struct axis_stream *s, struct axis_task *task)
{
    const struct axis_part *const piece = &task->piece;
    const unsigned char *const there = there_of(s, task);
    uint64_t *const counts = counts_of(s, task);
    if (!s->array->omits)
        return;
    for (uint64_t r = 0; r < piece->outer * piece->inner; r++)
        counts[r] = task->holes ? 0 : piece->length;
    for (uint64_t row = 0; task->holes && row < piece->outer * piece->length; row++) {
        uint64_t *const of_plane = counts + row / piece->length * piece->inner;
        for (uint64_t i = 0; i < piece->inner; i++)
            of_plane[i] += there[row * piece->inner + i];
    }
    task->counts = counts;
}

/* ---- monoids without such an element */

/* A row: the number of its first element among those of the piece, and how many it has, which are piece.inner apart. */
static struct range row_of(const struct axis_task *task, uint64_t r)
{
    const struct axis_part *const piece = &task->piece;
    return (struct range){r / piece->inner * piece->length * piece->inner + r % piece->inner, piece->length};
}

/* The place along the axis of the element of a row that is number k of those that are there. */
static uint64_t place_of(const struct axis_stream *s, const struct axis_task *task, uint64_t r, uint64_t k)
{
    const struct axis_part *const piece = &task->piece;
    const unsigned char *const there = there_of(s, task) + row_of(task, r).first;
    uint64_t l = 0;
    for (k += 1; (k -= there[l * piece->inner]) > 0; l++)
        ;
    return piece->l + l;
}

static allfold_status fold_row(const struct axis_stream *s, const struct axis_task *task, uint64_t r, struct partial *partial,
                               struct error *error)
{
    const struct backend *const backend = task->queue->device->backend;
    char *const host = (char *)task->queue->staging + s->row_at, *const device = (char *)task->queue->buffer + s->row_at;
    uint64_t *indices[MONOID_INDICES_MAX];
    const uint64_t count = functions[function_of(s->array->type)].gather(task->host, there_of(s, task), row_of(task, r), task->piece.inner, host);
    const struct work work = {s->monoid, s->array->type, device, count, 0, NULL};
    if (backend->upload(task->queue, host, device, work.n * allfold_type_bytes(work.type), error) != ALLFOLD_OK
        || backend->fold(task->queue, &work, error) != ALLFOLD_OK || backend->wait(task->queue, error) != ALLFOLD_OK)
        return error->status;
    memcpy(partial, task->queue->partial, monoid_bytes(s->monoid, work.type));
    const int found = monoid_indices(s->monoid, work.type, partial, indices);
    for (int i = 0; i < found; i++)
        if (*indices[i] != ALLFOLD_NO_INDEX)
            *indices[i] = place_of(s, task, r, *indices[i]);
    return ALLFOLD_OK;
}

static bool folds_again(const struct axis_stream *s, const struct axis_task *task, uint64_t r)
{
    return task->holes && !has_neutral(s->monoid, s->array->type) && task->counts[r] < task->piece.length;
}

static struct partial *again(const struct axis_stream *s, const struct axis_task *task, uint64_t r)
{
    return (struct partial *)((char *)task->queue->staging + s->again_at + r * s->stride);
}

allfold_status axis_missing_fold(const struct axis_stream *s, const struct axis_task *task, struct error *error)
{
    for (uint64_t r = 0; r < task->piece.outer * task->piece.inner && error->status == ALLFOLD_OK; r++)
        if (folds_again(s, task, r) && task->counts[r] > 0)
            fold_row(s, task, r, again(s, task, r), error);
    return error->status;
}

void axis_missing_take(const struct axis_stream *s, const struct axis_task *task, unsigned char *partials)
{
    for (uint64_t r = 0; r < task->piece.outer * task->piece.inner; r++)
        if (folds_again(s, task, r) && task->counts[r] == 0)
            monoid_identity(s->monoid, s->array->type, (struct partial *)(partials + r * s->stride));
        else if (folds_again(s, task, r))
            memcpy(partials + r * s->stride, again(s, task, r), s->stride);
}
