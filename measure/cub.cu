/* cub::DeviceReduce for sums and maxima, and softmax of three CUB passes: the maximum, the sum of exponentials
   (TransformReduce), the quotients (DeviceTransform). Called as its documentation says, the temporary storage allocated
   beforehand. Sums of 16-bit floating point are asked for in f32; by itself CUB would add them in 16 bits. If CUB has them (CCCL
   3.1, which came after CUDA 13.0), also its sums with the same bits on any GPU, gpu_to_gpu. */
#include "measure/cub.cuh"

#include <cub/device/device_reduce.cuh>
#include <cub/device/device_segmented_reduce.cuh>
#include <cub/device/device_transform.cuh>
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda/functional>

#define CUB_HAS_GPU_TO_GPU (CCCL_MAJOR_VERSION * 1000 + CCCL_MINOR_VERSION >= 3001)
#define CUB_HAS_ROWS (CCCL_MAJOR_VERSION * 1000 + CCCL_MINOR_VERSION >= 3004)
#if CUB_HAS_GPU_TO_GPU
#include <cuda/memory_resource>
#include <cuda/stream_ref>
#endif

#include <math.h>

/* CUB's own names of the types: T of an element; Sum, in which it adds and takes exponentials; Addend, as which it reads
   what it adds. */
template <allfold_type type> struct cub_types;
template <> struct cub_types<ALLFOLD_F32> { typedef float T, Sum, Addend; };
template <> struct cub_types<ALLFOLD_F64> { typedef double T, Sum, Addend; };
template <> struct cub_types<ALLFOLD_BF16> { typedef __nv_bfloat16 T, Addend; typedef float Sum; };
template <> struct cub_types<ALLFOLD_F16> { typedef __half T, Addend; typedef float Sum; };
template <> struct cub_types<ALLFOLD_INT32> { typedef int32_t T; typedef uint32_t Sum, Addend; };

static __device__ __forceinline__ float exponential(float x) { return __expf(x); }
static __device__ __forceinline__ double exponential(double x) { return exp(x); }

template <class T, class Sum> struct exponential_of {
    Sum max;
    __device__ __forceinline__ Sum operator()(T x) const { return exponential((Sum)x - max); }
};
template <class T, class Sum> struct softmax_of {
    Sum max, inverse;
    __device__ __forceinline__ T operator()(T x) const { return (T)(exponential((Sum)x - max) * inverse); }
};

/* One call, with CUB's own temporary storage. */
struct cub_run {
    const struct cub_call *call;
    void *scratch; /* NULL: only *bytes is written */
    size_t *bytes;
    cudaStream_t stream;
};

template <class T> static T lowest() { return std::is_integral<T>::value ? (T)INT32_MIN : (T)-INFINITY; }

template <class T, class Out, class Op> static cudaError_t reduce(const struct cub_run *run, Op op, Out identity)
{
    const T *const x = (const T *)run->call->x;
    Out *const out = (Out *)run->call->result;
    const uint64_t n = run->call->count;
    if (run->call->length > 0) {
#if CUB_HAS_ROWS
        return cub::DeviceSegmentedReduce::Reduce(run->scratch, *run->bytes, x, out, (int64_t)(n / run->call->length),
                                                  (int)run->call->length, op, identity, run->stream);
#else
        return cudaErrorNotSupported;
#endif
    }
    if (n <= INT32_MAX) /* lengths are int if they fit, as most callers have it */
        return cub::DeviceReduce::Reduce(run->scratch, *run->bytes, x, out, (int32_t)n, op, identity, run->stream);
    return cub::DeviceReduce::Reduce(run->scratch, *run->bytes, x, out, (int64_t)n, op, identity, run->stream);
}

template <class T, class Sum, class Count> static cudaError_t sumexp(const struct cub_run *run, Count n)
{
    return cub::DeviceReduce::TransformReduce(run->scratch, *run->bytes, (const T *)run->call->x, (Sum *)run->call->result, n,
                                              ::cuda::std::plus<Sum>{}, exponential_of<T, Sum>{(Sum)run->call->max}, Sum(),
                                              run->stream);
}

template <class T, class Sum, class Count> static cudaError_t normalise(const struct cub_run *run, Count n)
{
    const softmax_of<T, Sum> quotient = {(Sum)run->call->max, (Sum)(1.0 / run->call->sum)};
    return cub::DeviceTransform::Transform((const T *)run->call->x, (T *)run->call->result, n, quotient, run->stream);
}

#if CUB_HAS_GPU_TO_GPU
/* These sums allocate for themselves: they get the scratch space. */
struct scratch_resource {
    void *memory;
    size_t bytes;
    void *allocate_sync(size_t wanted, size_t) const { return wanted <= bytes ? memory : nullptr; }
    void deallocate_sync(void *, size_t, size_t) const noexcept {}
    void *allocate(cuda::stream_ref, size_t wanted, size_t align) const { return allocate_sync(wanted, align); }
    void deallocate(cuda::stream_ref, void *, size_t, size_t) const noexcept {}
    void *allocate_async(cuda::stream_ref, size_t wanted, size_t align) const { return allocate_sync(wanted, align); }
    void deallocate_async(cuda::stream_ref, void *, size_t, size_t) const noexcept {}
    bool operator==(const scratch_resource &other) const { return memory == other.memory; }
    bool operator!=(const scratch_resource &other) const { return memory != other.memory; }
    friend constexpr void get_property(const scratch_resource &, cuda::mr::device_accessible) noexcept {}
};

template <class T> static cudaError_t sum_gpu_to_gpu(const struct cub_run *run)
{
    if (run->scratch == NULL) { /* what it will ask for is not known beforehand */
        *run->bytes = 64 << 20;
        return cudaSuccess;
    }
    const auto same_bits = cuda::execution::require(cuda::execution::determinism::gpu_to_gpu);
    const auto memory = cuda::std::execution::prop{cuda::mr::get_memory_resource, scratch_resource{run->scratch, *run->bytes}};
    const cuda::std::execution::env env{cuda::stream_ref{run->stream}, memory, same_bits};
    return cub::DeviceReduce::Reduce((const T *)run->call->x, (T *)run->call->result, (int32_t)run->call->count,
                                     ::cuda::std::plus<T>{}, T(), env);
}
#endif

bool cub_has_gpu_to_gpu(void) { return CUB_HAS_GPU_TO_GPU; }
bool cub_has_rows(void) { return CUB_HAS_ROWS; }

template <allfold_type type> static cudaError_t start(const struct cub_run *run)
{
    typedef typename cub_types<type>::T T;
    typedef typename cub_types<type>::Sum Sum;
    const uint64_t n = run->call->count;
    switch (run->call->work) {
    case CUB_SUM:
        return reduce<typename cub_types<type>::Addend>(run, ::cuda::std::plus<Sum>{}, Sum());
    case CUB_SUM_GPU_TO_GPU:
#if CUB_HAS_GPU_TO_GPU
        if constexpr (std::is_floating_point<T>::value)
            return sum_gpu_to_gpu<T>(run);
#endif
        break;
    case CUB_MAX:
        return reduce<T>(run, ::cuda::maximum<>{}, lowest<T>());
    case CUB_SUMEXP:
        if constexpr (!std::is_integral<T>::value)
            return n <= INT32_MAX ? sumexp<T, Sum>(run, (int32_t)n) : sumexp<T, Sum>(run, (int64_t)n);
        break;
    case CUB_NORMALISE:
        if constexpr (!std::is_integral<T>::value)
            return n <= INT32_MAX ? normalise<T, Sum>(run, (int32_t)n) : normalise<T, Sum>(run, (int64_t)n);
        break;
    case CUB_SORT:
    case CUB_BINS:
        return cub_order_start(run->call, run->scratch, run->bytes, run->stream);
    }
    return cudaErrorInvalidValue;
}

#define CUB_TYPES(X) X(F32) X(F64) X(BF16) X(F16) X(INT32)

cudaError_t cub_start(const struct cub_call *call, void *scratch, size_t *scratch_bytes, cudaStream_t stream)
{
    const struct cub_run run = {call, scratch, scratch_bytes, stream};
    switch (call->type) {
#define CASE(ID)         \
    case ALLFOLD_##ID:   \
        return start<ALLFOLD_##ID>(&run);
        CUB_TYPES(CASE)
#undef CASE
    default:
        return cudaErrorInvalidValue;
    }
}

template <allfold_type type> static double value_of(const void *value, enum cub_work work)
{
    typedef cub_types<type> types;
    if (work != CUB_MAX)
        return (double)*(const typename types::Sum *)value;
    if constexpr (sizeof(typename types::T) == 2)
        return (double)(float)*(const typename types::T *)value;
    else
        return (double)*(const typename types::T *)value;
}

double cub_value(enum cub_work work, allfold_type type, const void *value)
{
    switch (type) {
#define CASE(ID)         \
    case ALLFOLD_##ID:   \
        return value_of<ALLFOLD_##ID>(value, work);
        CUB_TYPES(CASE)
#undef CASE
    default:
        return NAN;
    }
}
