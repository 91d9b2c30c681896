/* The peer that everybody has: cub::DeviceReduce for sums and maxima, and softmax of three CUB passes: the maximum, the
   sum of exponentials (TransformReduce), the quotients (DeviceTransform). Sums of 16-bit floating point are asked for in
   f32, by itself CUB would add them in 16 bits; sums of int32 as uint32, which wrap. And where CUB has them (CCCL 3.1, which
   came after CUDA 13.0) its sums with the same bits on any GPU, gpu_to_gpu. */
#include "bench/cuda_machine.h"
#include "kernels/cub_reduce.cuh"

#include <cub/device/device_transform.cuh>
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#define CUB_HAS_GPU_TO_GPU (CCCL_MAJOR_VERSION * 1000 + CCCL_MINOR_VERSION >= 3001)
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

template <class T> static T lowest() /* no element of the data is smaller */
{
    return (T)(std::is_integral<T>::value ? -2147483648.0 : -65504.0);
}

template <class T, class Sum, class Count>
static cudaError_t sumexp(struct machine *m, Count n, Sum max, void *scratch, size_t *bytes)
{
    return cub::DeviceReduce::TransformReduce(scratch, *bytes, (const T *)m->x, (Sum *)m->result, n,
                                              ::cuda::std::plus<Sum>{}, exponential_of<T, Sum>{max}, Sum(),
                                              (cudaStream_t)m->stream);
}

template <class T, class Sum, class Count>
static cudaError_t normalise(struct machine *m, Count n, Sum max, Sum inverse)
{
    return cub::DeviceTransform::Transform((const T *)m->x, (T *)m->y, n, softmax_of<T, Sum>{max, inverse},
                                           (cudaStream_t)m->stream);
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

template <class T> static cudaError_t sum_gpu_to_gpu(struct machine *m, uint64_t n, void *scratch, size_t *bytes)
{
    if (scratch == NULL) { /* what it will ask for is not known beforehand */
        *bytes = 64 << 20;
        return cudaSuccess;
    }
    const auto same_bits = cuda::execution::require(cuda::execution::determinism::gpu_to_gpu);
    const auto memory = cuda::std::execution::prop{cuda::mr::get_memory_resource, scratch_resource{scratch, *bytes}};
    const cuda::std::execution::env env{cuda::stream_ref{(cudaStream_t)m->stream}, memory, same_bits};
    return cub::DeviceReduce::Reduce((const T *)m->x, (T *)m->result, (int32_t)n, ::cuda::std::plus<T>{}, T(), env);
}
#endif

bool cub_has_gpu_to_gpu(void) { return CUB_HAS_GPU_TO_GPU; }

template <allfold_type type>
static cudaError_t run(struct machine *m, const struct cub_call *call, void *scratch, size_t *bytes)
{
    const uint64_t n = call->count;
    const double max = call->max, sum = call->sum;
    typedef cub_types<type> types;
    typedef typename types::T T;
    typedef typename types::Sum Sum;
    const cudaStream_t stream = (cudaStream_t)m->stream;
    switch (call->work) {
    case CUB_SUM:
        return cub_reduce((const typename types::Addend *)m->x, n, ::cuda::std::plus<Sum>{}, Sum(), (Sum *)m->result,
                          scratch, bytes, stream);
    case CUB_SUM_GPU_TO_GPU:
#if CUB_HAS_GPU_TO_GPU
        if constexpr (std::is_floating_point<T>::value)
            return sum_gpu_to_gpu<T>(m, n, scratch, bytes);
#endif
        break;
    case CUB_MAX:
        return cub_reduce((const T *)m->x, n, ::cuda::maximum<>{}, lowest<T>(), (T *)m->result, scratch, bytes, stream);
    case CUB_SUMEXP:
        if constexpr (!std::is_integral<T>::value)
            return n <= INT32_MAX ? sumexp<T, Sum>(m, (int32_t)n, (Sum)max, scratch, bytes)
                                  : sumexp<T, Sum>(m, (int64_t)n, (Sum)max, scratch, bytes);
        break;
    case CUB_NORMALISE:
        if constexpr (!std::is_integral<T>::value)
            return n <= INT32_MAX ? normalise<T, Sum>(m, (int32_t)n, (Sum)max, (Sum)(1.0 / sum))
                                  : normalise<T, Sum>(m, (int64_t)n, (Sum)max, (Sum)(1.0 / sum));
        break;
    }
    return cudaErrorInvalidValue;
}

static cudaError_t run_type(struct machine *m, const struct cub_call *call, void *scratch, size_t *bytes)
{
    switch (call->type) {
#define CASE(ID, name, bits) \
    case ALLFOLD_##ID:       \
        return run<ALLFOLD_##ID>(m, call, scratch, bytes);
        BENCH_TYPES(CASE)
#undef CASE
    default:
        return cudaErrorInvalidValue;
    }
}

allfold_status cub_prepare(struct machine *machine, const struct cub_call *call, struct error *error)
{
    struct cuda_machine *const cuda = cuda_of(machine);
    size_t bytes = 0;
    void *scratch;
    if (call->work == CUB_NORMALISE)
        return ALLFOLD_OK;
    if (ladder_cuda(run_type(machine, call, NULL, &bytes), "asking CUB for its scratch space", error)
        != ALLFOLD_OK)
        return error->status;
    cuda->scratch_bytes = u64_max(cuda->scratch_bytes, u64_max(bytes, 64));
    return ladder_room(cuda->ladder, LADDER_SCRATCH, cuda->scratch_bytes, &scratch, error);
}

allfold_status cub_start(struct machine *machine, const struct cub_call *call, struct error *error)
{
    struct cuda_machine *const cuda = cuda_of(machine);
    size_t bytes = cuda->scratch_bytes;
    return ladder_cuda(run_type(machine, call, cuda->ladder->places[LADDER_SCRATCH], &bytes),
                       "running CUB", error);
}

allfold_status cub_fetch(struct machine *machine, struct error *error)
{
    struct cuda_machine *const cuda = cuda_of(machine);
    return ladder_cuda(cudaMemcpyAsync(cuda->cub_value, machine->result, 8, cudaMemcpyDeviceToHost, cuda->ladder->stream),
                       "copying CUB's result", error);
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

double cub_value(const struct machine *machine, enum cub_work work, allfold_type type)
{
    const void *const value = ((const struct cuda_machine *)machine)->cub_value;
    switch (type) {
#define CASE(ID, name, bits) \
    case ALLFOLD_##ID:       \
        return value_of<ALLFOLD_##ID>(value, work);
        BENCH_TYPES(CASE)
#undef CASE
    default:
        return NAN;
    }
}
