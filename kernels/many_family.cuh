/* Body of many_VALUE.cu: folds of several arrays of any lengths in two launches, with what kernels along an axis are made of.

       many_fold, a block for each split:     its threads take the split's elements as those of a long row; partials[split] = what they found
       many_combine, a block for each array:  results[array] = the partials of its splits, combined

   How an array is cut follows from its length alone (many_cut), so its bits depend neither on the other arrays nor on the device. */
#include "kernels/axis_finish.cuh"

#include "kernels/axis_kernels.cuh"
#include "kernels/many_family.h"

/* Threads add at most two digits of 32 bits of an element to a word: those of arrays of up to 2^28 elements add up in 64 bits without carries. */
constexpr uint64_t MANY_UNCARRIED = (uint64_t)1 << 28;

template <class Axis> constexpr int many_warps = axis_plan<Axis>::threads / 32;
template <class Axis> constexpr size_t many_room = larger(larger(Axis::words, 1), axis_tile_bytes<Axis> * axis_plan<Axis>::threads / sizeof(int64_t));

template <class Axis>
static __device__ __forceinline__ typename Axis::whole *many_partial(unsigned char *partials, uint64_t i)
{
    return (typename Axis::whole *)(partials + i * PARTIAL_STRIDE<typename Axis::whole>);
}

/* Takes this thread's elements of a split, as those of one of a row. */
template <class Axis>
static __device__ __forceinline__ void split_take(typename Axis::state *state, const struct many_array &array, uint64_t split)
{
    struct axis_cut cut = {};
    cut.box = {1, array.n, 1, array.n, 1};
    cut.type = array.type;
    cut.bytes_bits = array.bytes_bits;
    cut.chunk = array.split;
    cut.aligned = (uintptr_t)array.x % 16 == 0;
    member_take<Axis>(state, array.x, cut, {0, split, threadIdx.x, axis_plan<Axis>::threads});
}

template <class Axis>
static __global__ void __launch_bounds__(axis_plan<Axis>::threads, axis_plan<Axis>::blocks)
many_fold(const struct many_array *arrays, const uint32_t *owners, unsigned char *partials)
{
    constexpr int threads = axis_plan<Axis>::threads;
    __shared__ typename Axis::ordered slots[many_warps<Axis>];
    __shared__ __align__(16) int64_t words[many_room<Axis>]; /* or room for tiles */
    const struct many_array array = arrays[owners[blockIdx.x]];
    typename Axis::whole *const to = many_partial<Axis>(partials, blockIdx.x);
    typename Axis::state state;
    for (int i = threadIdx.x; i < Axis::words; i += threads)
        words[i] = 0;
    __syncthreads();
    fold_begin<Axis::monoid, typename Axis::value>();
    Axis::start(&state, words, true);
    split_take<Axis>(&state, array, blockIdx.x - array.first);
    __syncwarp();
    Axis::flush(&state, words, true);
    if constexpr (Axis::is_ordered) {
        typename Axis::ordered end = Axis::end_of(state);
        members_combine<Axis>(&end, slots, {0, threadIdx.x, true}, threads, 1);
        if (threadIdx.x == 0)
            to->end = end;
    }
    if constexpr (Axis::words > 0) {
        __syncthreads();
        if (array.n > MANY_UNCARRIED) {
            if (threadIdx.x == 0)
                Axis::normalise(words);
            __syncthreads();
        }
        for (int i = threadIdx.x; i < Axis::words; i += threads)
            to->of[i] = words[i];
    }
}

template <class Axis>
static __global__ void __launch_bounds__(axis_plan<Axis>::threads)
many_combine(const struct many_array *arrays, unsigned char *partials, unsigned char *results)
{
    constexpr int threads = axis_plan<Axis>::threads;
    __shared__ typename Axis::ordered slots[many_warps<Axis>];
    const struct many_array array = arrays[blockIdx.x];
    typename Axis::whole *const to = many_partial<Axis>(results, blockIdx.x);
    if constexpr (Axis::is_ordered) {
        typename Axis::ordered end = Axis::end_identity();
#pragma unroll 1
        for (uint32_t split = threadIdx.x; split < array.splits; split += threads)
            Axis::combine(&end, &many_partial<Axis>(partials, array.first + split)->end);
        members_combine<Axis>(&end, slots, {0, threadIdx.x, true}, threads, 1);
        if (threadIdx.x == 0)
            to->end = end;
    }
    if constexpr (Axis::words > 0) {
        constexpr int parts = Axis::words < threads ? threads / Axis::words : 1; /* of the splits, side by side */
        __shared__ int64_t words[Axis::words];
        for (int i = threadIdx.x; i < Axis::words; i += threads)
            words[i] = 0;
        __syncthreads();
        for (int i = threadIdx.x; i < Axis::words * parts; i += threads) {
            int64_t sum = 0;
#pragma unroll 8
            for (uint32_t split = i / Axis::words; split < array.splits; split += parts)
                sum += many_partial<Axis>(partials, array.first + split)->of[i % Axis::words];
            atomicAdd((unsigned long long *)&words[i % Axis::words], (unsigned long long)sum);
        }
        __syncthreads();
        if (threadIdx.x == 0)
            Axis::normalise(words); /* ranks add limbs, too */
        __syncthreads();
        for (int i = threadIdx.x; i < Axis::words; i += threads)
            to->of[i] = words[i];
    }
}

template <class Axis> static cudaError_t many_start(const struct many_work *work, void *stream)
{
    constexpr int threads = axis_plan<Axis>::threads;
    unsigned char *const partials = (unsigned char *)work->partials;
    const cudaLaunchConfig_t folds = launch_config(work->splits, threads, stream), combines = launch_config(work->count, threads, stream);
    const cudaError_t code = cudaLaunchKernelEx(&folds, many_fold<Axis>, work->arrays, work->owners, partials);
    return code != cudaSuccess ? code : cudaLaunchKernelEx(&combines, many_combine<Axis>, work->arrays, partials, (unsigned char *)work->results);
}

int FN_EXPAND(many_launch, FAMILY)(const struct many_work *work, void *stream)
{
    return with_axis<FN_EXPAND(value, FAMILY)>(work->monoid, [=](auto axis) {
        typedef typename decltype(axis)::type Axis;
        if constexpr (monoid_has_mark(Axis::monoid)) /* log-probabilities have one view */
            return cudaErrorInvalidValue;
        else
            return many_start<Axis>(work, stream);
    });
}
