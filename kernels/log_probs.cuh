/* What the kernels of log_probs.cu and log_probs_counted.cu share: how rows are cut among blocks, where the maximum is, and what becomes of the
   partials of rows. */
#pragma once

#define EXACT_TOTAL_DIGITS 48
#define FAMILY f32
#include "kernels/axis_finish.cuh"
#include "kernels/axis_softmax_fast.cuh"
#include "kernels/kernels.h"

#include "fold/targets.h"

/* ---- partials become results */

/* What becomes of the partials of some rows: they get their marks, if there are targets, and results are made of them, or they are stored. */
struct logits_ends {
    struct axis_targets targets;
    const void *x;
    allfold_type type;
    struct box box;
    uint64_t first; /* the index along the axis of x[0] */
    bool finishes;
    struct axis_finish finish;
};

static struct logits_ends ends_of(const struct axis_work *work)
{
    struct logits_ends ends = {work->targets, work->x, work->type, work->box, work->first, work->finish != nullptr, {}};
    if (ends.finishes)
        ends.finish = *work->finish;
    return ends;
}

static __device__ __forceinline__ allfold_status partial_results(const struct logits &partial, const struct finish *finish)
{
    return log_probs_finish_f32(&partial, finish);
}
static __device__ __forceinline__ allfold_status partial_results(const struct logits_exact &partial, const struct finish *finish)
{
    return log_probs_exact_finish_f32(&partial, finish);
}

template <class Partial> static __device__ __forceinline__ void partial_mark(Partial *partial, const struct logits_ends &ends, uint64_t r)
{
    if (ends.targets.of != nullptr)
        mark_combine(&partial->target, target_mark(&ends.targets, r, ends.x, ends.type, &ends.box, ends.first));
}

template <class Partial> static __device__ __forceinline__ void partial_end(const Partial &partial, const struct logits_ends &ends, uint64_t r)
{
    const struct axis_finish &call = ends.finish;
    struct fold_results found;
    struct error error;
    const uint64_t place = call.first + result_place(r, call.run, call.step);
    const struct finish finish = {call.count, call.nan, call.ddof, call.format, false, &found, &error, nullptr, nullptr};
    found.field_count = 0;
    if (partial_results(partial, &finish) != ALLFOLD_OK)
        *call.refused = 1;
    else
#pragma unroll
        for (int i = 0; i < 4; i++)
            result_store(&found.fields[i], &call.of[i], place);
    result_tell(call, r);
}

/* ---- rows */

/* What a thread has found of a row; the sums, relative to exp(max), are those of level fast. */
struct row_logits {
    float max; /* -inf before there is any element above it */
    bool nan;
    uint32_t best; /* the first vector of the tile in which max is */
    double sum, weighted;
};

/* A row's elements in vectors; in the last, what is behind the end is -inf. */
template <class Element> struct row_vectors {
    const typename Element::stored *x;
    uint32_t length;
    __device__ __forceinline__ uint4 at(uint32_t v) const
    {
        constexpr uint32_t count = Element::per_vector;
        if ((v + 1) * count <= length)
            return load_read_only(x + v * count);
        uint4 vector = least_vector<Element>();
        if (v * count >= length)
            return vector;
        typename Element::stored elements[count];
#pragma unroll
        for (uint32_t i = 0; i < count; i++)
            elements[i] = v * count + i < length ? x[v * count + i] : vector_element<typename Element::stored>(vector, (int)i);
        return vector_of(elements);
    }
};

/* The first of a thread's elements, in `vectors` vectors that are `step` apart, that is the maximum, or NaN. */
template <class Element>
static __device__ __forceinline__ uint32_t row_place(const row_vectors<Element> &row, uint32_t first, uint32_t end, uint32_t step, float max)
{
    for (uint32_t v = first; v < end; v += step) {
        const uint4 x = row.at(v);
#pragma unroll
        for (uint32_t i = 0; i < Element::per_vector; i++) {
            const float element = Element::load(vector_element<typename Element::stored>(x, (int)i));
            if (max != max ? element != element : element == max)
                return v * Element::per_vector + i;
        }
    }
    return UINT32_MAX;
}

/* The first place of a block's maximum, or of its first NaN; UINT32_MAX: there is none above -inf. */
template <int threads, class Element>
static __device__ __forceinline__ uint32_t block_place(const row_vectors<Element> &elements, const struct row_logits &row, uint32_t begin, uint32_t end, float max)
{
    uint32_t place = UINT32_MAX;
    if (max != max && row.nan)
        place = row_place(elements, begin + threadIdx.x, end, threads, NAN);
    else if (max > -INFINITY && row.max == max)
        place = row_place(elements, row.best, end, threads, max);
    group_share<threads>(&place, threads, [](uint32_t *a, uint32_t b) { *a = b < *a ? b : *a; });
    return place;
}

/* How rows are cut among blocks: `splits` of them have one row, `chunk` vectors each. */
struct logits_rows {
    const void *x;
    uint64_t results, stride; /* of rows, in elements */
    uint32_t length, splits, chunk;
    unsigned char *partials;
};

template <class Partial> constexpr size_t PARTIAL_STRIDE = partial_bytes_aligned(sizeof(Partial));

/* Where the partial of a split is stored. */
static __device__ __forceinline__ uint64_t item_place(const struct logits_rows &rows, uint64_t r, uint32_t split) { return split * rows.results + r; }

/* A block has its row's partial, or that of a split. */
template <class Partial>
static __device__ __forceinline__ void block_end(const Partial &partial, const struct logits_rows &rows, const struct logits_ends &ends, uint64_t r, uint32_t split)
{
    if (ends.finishes && rows.splits == 1)
        partial_end(partial, ends, r);
    else
        *(Partial *)(rows.partials + item_place(rows, r, split) * PARTIAL_STRIDE<Partial>) = partial;
}

/* Rows that lie as vectors. */
static bool rows_fit(const struct axis_work *work)
{
    const struct box *const box = &work->box;
    const size_t bytes = allfold_type_bytes(work->type);
    return bytes <= 4 && box->outer > 0 && box->inner == 1 && box->axis_stride == 1 && box->length < UINT32_MAX / 2 && (uintptr_t)work->x % 16 == 0
           && (box->outer == 1 || box->outer_stride * bytes % 16 == 0);
}

/* How rows are cut into `wanted` splits, or fewer: a block has at least `each` vectors, and there is room for the partials. */
static struct logits_rows rows_cut(const struct axis_work *work, uint64_t wanted, uint32_t each, size_t partial_bytes)
{
    const uint32_t per_vector = (uint32_t)(16 / allfold_type_bytes(work->type)), vectors = ((uint32_t)work->box.length + per_vector - 1) / per_vector;
    const uint64_t room = work->bytes / (work->box.outer * partial_bytes * 2), fit = u64_min((vectors + each - 1) / each, room);
    const uint64_t splits = u64_max(1, u64_min(u64_max(1, wanted / work->box.outer), fit));
    return {work->x, work->box.outer, work->box.outer_stride, (uint32_t)work->box.length, (uint32_t)splits,
            (uint32_t)((vectors + splits - 1) / splits), (unsigned char *)work->partials};
}
