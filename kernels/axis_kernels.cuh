/* The kernels that fold along an axis, for any monoid and value type, as axis.cuh takes rows, and exact sums by words. Included by axis_family.cuh and many_family.cuh.

     axis_fold      each group: its members take the tiles of its row, or split, in turns; staged rows (axis_stage.cuh) from shared memory
                        members combine their partials, by shuffles and through shared memory
                        exact sums: first by accumulators (axis_quick.cuh). Rows that these do not hold are folded again: members add
                        to words in shared memory, as in exact.cuh. Of rows that are split axis_combine finds and marks these
                        one member finishes the result, or stores the partial
     axis_columns   the same of columns of short elements: each group takes as many that lie side by side as share a word
     axis_splits    exact sums of splits, or of long rows, by accumulators; sums of f32 are pairs
     axis_again     those of rows that axis_combine has marked, by words, when the host calls once more
     axis_combine   each group: the partials of a row's splits, combined
     words_finish   each thread: a result of words */
#pragma once

#include "kernels/axis.cuh"

/* The same of rows whose partials begin with words. failed: these rows alone; NULL: all. */
template <class Axis>
static __device__ __forceinline__ void words_fold(const void *x, const struct axis_cut &cut, unsigned char *partials, int64_t *words,
                                                  typename Axis::ordered *slots, const struct failed_rows *failed)
{
    constexpr uint32_t row_words = axis_plan<Axis>::row_words;
    const struct axis_block &block = cut.word_block;
    const struct axis_thread thread = thread_of(block);
    const struct axis_rows rows = rows_of(x, cut);
    int64_t *const own = words + (thread.works ? thread.group * row_words : 0);
#pragma unroll 1
    for (uint64_t turn = 0; turn < rows.count; turn += block.groups) {
        const uint64_t r = rows.first + turn + thread.group;
        bool is_row = thread.works && turn + thread.group < rows.count;
        if (failed != nullptr) {
            bool some = false;
            for (uint32_t i = (uint32_t)turn; i < turn + block.groups && i < rows.count; i++)
                some = some || failed->has(i, (uint32_t)rows.count);
            if (!some)
                continue;
            is_row = is_row && failed->has((uint32_t)turn + thread.group, (uint32_t)rows.count);
        }
        __syncthreads();
        for (uint32_t i = threadIdx.x; i < block.groups * row_words; i += blockDim.x)
            words[i] = 0;
        __syncthreads();
        typename Axis::state state;
        Axis::start(&state, own, block.members > 1);
        if (is_row)
            member_take<Axis>(&state, x, cut, {r, rows.split, thread.member, block.members});
        const bool together = block.members >= 32 && !block.columns;
        __syncwarp();
        if (together || is_row)
            Axis::flush(&state, own, together);
        if constexpr (Axis::is_ordered) {
            typename Axis::ordered end = Axis::end_of(state);
            members_combine<Axis>(&end, slots, thread, block.members, block.columns ? block.groups : 1);
            if (is_row && thread.member == 0)
                ((typename Axis::whole *)own)->end = end;
        }
        __syncthreads();
        if (is_row && thread.member == 0)
            Axis::normalise(own);
        if constexpr (Axis::tries)
            if (cut.quick) {
                if (is_row && thread.member == 0)
                    result_apart<Axis::monoid>((const typename Axis::partial *)own, &cut.finish, cut.from + r);
                continue;
            }
        __syncthreads();
        int64_t *const to = (int64_t *)partial_at<Axis>(partials, cut, r, rows.split);
        for (uint32_t i = thread.member; i < row_words - 1 && is_row; i += block.members)
            to[i] = own[i];
    }
}

/* Folds a block's rows by sums without words. Of those that fail it does not tell that results are there: they are written again. */
template <class Quick>
static __device__ __forceinline__ void quick_fold(const void *x, const struct axis_cut &cut, unsigned char *stage, typename Quick::ordered *slots,
                                                  struct failed_rows *failed)
{
    const struct axis_rows rows = rows_of(x, cut);
    failed->clear();
    __syncthreads();
    any_fold<Quick>(x, cut, nullptr, stage, slots, failed);
    __syncthreads();
    if (cut.finish.done != nullptr)
        for (uint32_t i = threadIdx.x; i < rows.count; i += blockDim.x)
            if (!failed->has(i, (uint32_t)rows.count))
                result_tell(cut.finish, cut.from + rows.first + i);
}

template <class Axis>
static __global__ void __launch_bounds__(axis_plan<Axis>::threads, axis_plan<Axis>::blocks)
axis_fold(const void *x, const __grid_constant__ struct axis_cut cut, unsigned char *partials)
{
    __shared__ __align__(16) unsigned char slots[axis_plan<Axis>::slots_bytes];
    extern __shared__ __align__(16) unsigned char bytes[]; /* of words, or staged elements, or tiles */
    if constexpr (Axis::words == 0) {
        fold_begin<Axis::monoid, typename Axis::value>();
        any_fold<Axis>(x, cut, partials, bytes, (typename Axis::ordered *)(Axis::slots_in_room ? bytes : slots), nullptr);
    } else {
        struct failed_rows *again = nullptr;
        if constexpr (Axis::tries) {
            typedef typename Axis::quick quick;
            __shared__ struct failed_rows failed;
            if (cut.quick) {
                quick_fold<quick>(x, cut, bytes, (typename quick::ordered *)(quick::slots_in_room ? bytes : slots), &failed);
                if (failed.any == 0)
                    return;
                again = &failed;
            }
        }
        words_fold<Axis>(x, cut, partials, (int64_t *)bytes, (typename Axis::ordered *)slots, again);
    }
}

/* Accumulators without words of splits, or of whole rows. */
template <class Splits>
static __global__ void __launch_bounds__(axis_plan<Splits>::threads, axis_plan<Splits>::blocks)
axis_splits(const void *x, const __grid_constant__ struct axis_cut cut, unsigned char *partials)
{
    __shared__ __align__(16) unsigned char slots[axis_plan<Splits>::slots_bytes];
    typename Splits::ordered *const of_warps = (typename Splits::ordered *)slots;
    if constexpr (Splits::shares_words)
        if (cut.rows > cut.block.groups)
            return columns_fold<Splits>(x, cut, partials, of_warps, nullptr);
    ordered_fold<Splits>(x, cut, partials, nullptr, of_warps, nullptr);
}

/* Whether a result is made of words, now. */
static __device__ __forceinline__ bool is_marked(const struct axis_cut &cut, uint64_t r)
{
    return cut.again == nullptr || cut.again[cut.from + r] != 0;
}

/* By words, the rows that are marked. */
template <class Axis>
static __global__ void __launch_bounds__(axis_plan<Axis>::threads, axis_plan<Axis>::blocks)
axis_again(const void *x, const __grid_constant__ struct axis_cut cut, unsigned char *partials)
{
    __shared__ __align__(16) unsigned char slots[axis_plan<Axis>::slots_bytes];
    __shared__ struct failed_rows marked;
    extern __shared__ __align__(16) unsigned char bytes[];
    const struct axis_rows rows = rows_of(x, cut);
    marked.clear();
    __syncthreads();
    for (uint32_t i = threadIdx.x; i < rows.count; i += blockDim.x)
        if (is_marked(cut, rows.first + i))
            marked.add(i, (uint32_t)rows.count);
    __syncthreads();
    if (marked.any != 0)
        words_fold<Axis>(x, cut, partials, (int64_t *)bytes, (typename Axis::ordered *)slots, &marked);
}

/* A kernel of its own, as others have fewer registers. Not for words. */
template <class Axis>
static __global__ void __launch_bounds__(axis_plan<Axis>::threads, axis_plan<Axis>::blocks)
axis_columns(const void *x, const __grid_constant__ struct axis_cut cut, unsigned char *partials)
{
    __shared__ __align__(16) unsigned char slots[axis_plan<Axis>::slots_bytes];
    fold_begin<Axis::monoid, typename Axis::value>();
    columns_fold<Axis>(x, cut, partials, (typename Axis::ordered *)slots, nullptr);
}

/* Combines the splits of each row in the first. A group of threads a row; words are added one by one. */
template <class Axis>
static __global__ void __launch_bounds__(axis_plan<Axis>::threads)
axis_combine(unsigned char *partials, const __grid_constant__ struct axis_cut cut, const __grid_constant__ struct axis_block block,
             const __grid_constant__ struct axis_parts parts)
{
    __shared__ typename Axis::ordered slots[Axis::is_ordered ? axis_plan<Axis>::threads : 1];
    const struct axis_thread thread = thread_of(block);
    const uint64_t r = (uint64_t)blockIdx.x * block.groups + thread.group;
    bool is_row = thread.works && r < cut.results;
    if constexpr (Axis::tries)
        is_row = is_row && is_marked(cut, r);
    const auto split_at = [&](uint64_t split) {
        const bool here = parts.memory == nullptr || split == parts.own;
        return (const typename Axis::whole *)((here ? partials + split * cut.results * cut.stride : parts.memory + split * parts.step) + r * cut.stride);
    };
    typename Axis::whole *const combined = (typename Axis::whole *)(partials + r * cut.stride);
    if constexpr (Axis::is_ordered) {
        typename Axis::ordered end = Axis::end_identity();
#pragma unroll 1
        for (uint64_t split = is_row ? thread.member : cut.splits; split < cut.splits; split += block.members)
            Axis::combine(&end, &split_at(split)->end);
        members_combine<Axis>(&end, slots, thread, block.members, 1);
        if (is_row && thread.member == 0) {
            if constexpr (Axis::words < 0) {
                const bool is_done = Axis::finish(end, cut.finish, r);
                cut.again[r] = !is_done;
                if (!is_done)
                    *cut.finish.uncertain = 1;
                result_tell(cut.finish, r);
                return;
            }
            if constexpr (Axis::words == 0)
                if (cut.finishes) {
                    Axis::finish(end, cut.finish, cut.from + r);
                    return;
                }
            combined->end = end;
        }
    }
    if constexpr (Axis::words > 0)
#pragma unroll 1
        for (uint32_t i = thread.member; i < Axis::words && is_row; i += block.members) {
            int64_t sum = 0; /* of carried limbs, and of counts */
#pragma unroll 4
            for (uint64_t split = 0; split < cut.splits; split++)
                sum += split_at(split)->of[i];
            combined->of[i] = sum;
        }
}

/* Finishes results of words: a thread a row, because it takes many steps. It tells that the others are there, too, as it is the last kernel. */
template <class Axis>
static __global__ void __launch_bounds__(AXIS_SHAPE.threads)
words_finish(const unsigned char *partials, const __grid_constant__ struct axis_cut cut)
{
    typedef typename Axis::partial partial;
    static_assert(sizeof(partial) == sizeof(typename Axis::whole), "one layout");
    const uint64_t r = (uint64_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (r >= cut.results)
        return;
    if constexpr (Axis::tries)
        if (!is_marked(cut, r))
            return result_tell(cut.finish, cut.from + r);
    result_finish<Axis::monoid>(*(const partial *)(partials + r * cut.stride), cut.finish, cut.from + r);
}

template <class Axis> struct axis_of {
    typedef Axis type;
};
template <> struct axis_of<axis_struct<fold_of<MONOID_stats, float>>> {
    typedef axis_stats type;
};

/* Calls start with the axis_of the monoid's kernels, if they exist for the value type. */
template <class Value, class Start> static cudaError_t with_axis(enum monoid monoid, const Start &start)
{
    constexpr unsigned int mine = 1u << FN_EXPAND(VALUE, FAMILY);
    switch (monoid) {
#define CASE(name, ...)                                                                                      \
    case MONOID_##name:                                                                                      \
        if constexpr (monoid_facts[MONOID_##name].operands == 1 && (monoid_facts[MONOID_##name].values & mine) != 0) \
            return start(axis_of<axis_struct<fold_of<MONOID_##name, Value>>>());                             \
        break;
        STRUCT_MONOIDS(CASE)
#undef CASE
#define CASE(name, ...)                                                                                      \
    case MONOID_##name:                                                                                      \
        if constexpr (monoid_facts[MONOID_##name].operands == 1 && (monoid_facts[MONOID_##name].values & mine) != 0) \
            return start(axis_of<axis_words<exact_of<MONOID_##name, Value>>>());                             \
        break;
        WORD_MONOIDS(CASE)
#undef CASE
#define CASE(name, ...) case MONOID_##name: /* weighted.cu */
        WEIGHTED_MONOIDS(CASE)
#undef CASE
    case MONOID_COUNT:
        break;
    }
    return cudaErrorInvalidValue;
}
