/* What gpu_fold_bench.cu measures with, beside allfold and CUB: random data whose exact sums are known, and the plainest
   kernels that do the same work. */
#ifndef GPU_DATA_CUH
#define GPU_DATA_CUH

#include "base/base.h"

#include <cuda_bf16.h>
#include <stdint.h>

/* Elements of the benchmark: integers `steps` times a power of two, so that sums are known exactly. */
template <class T> struct data;
template <> struct data<float> {
    static constexpr allfold_type type = ALLFOLD_F32;
    typedef float cub_sum;
    static constexpr double step = 0x1p-23;
    static __device__ int64_t steps(uint64_t bits) { return (int64_t)(bits >> 40) - (1 << 23); }
    static __device__ float make(int64_t steps) { return (float)steps * 0x1p-23f; }
};
template <> struct data<double> {
    static constexpr allfold_type type = ALLFOLD_F64;
    typedef double cub_sum;
    static constexpr double step = 0x1p-52;
    static __device__ int64_t steps(uint64_t bits) { return (int64_t)(bits >> 11) - (1ll << 52); }
    static __device__ double make(int64_t steps) { return (double)steps * 0x1p-52; }
};
template <> struct data<int32_t> {
    static constexpr allfold_type type = ALLFOLD_INT32;
    typedef int32_t cub_sum;
    static constexpr double step = 1.0;
    static __device__ int64_t steps(uint64_t bits) { return (int32_t)(bits >> 32); }
    static __device__ int32_t make(int64_t steps) { return (int32_t)steps; }
};
template <> struct data<__nv_bfloat16> {
    static constexpr allfold_type type = ALLFOLD_BF16;
    typedef float cub_sum;
    static constexpr double step = 0x1p-7;
    static __device__ int64_t steps(uint64_t bits) { return (int64_t)(bits >> 56) - 128; }
    static __device__ __nv_bfloat16 make(int64_t steps) { return __float2bfloat16((float)steps * 0x1p-7f); }
};

static __device__ uint64_t random_bits(uint64_t i) /* splitmix64 */
{
    uint64_t z = (i + 1) * 0x9e3779b97f4a7c15ull;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
    return z ^ (z >> 31);
}

template <class T> __global__ void fill(T *x, uint64_t n)
{
    for (uint64_t i = blockIdx.x * (uint64_t)blockDim.x + threadIdx.x; i < n; i += (uint64_t)gridDim.x * blockDim.x)
        x[i] = data<T>::make(data<T>::steps(random_bits(i)));
}

/* What is known of the first n elements, in steps: the sum in two halves, that integer atomics cannot get wrong. */
struct known {
    unsigned long long high, low; /* sum = (signed) high * 2^32 + low */
    long long max;
};
template <class T> __global__ void find_known(uint64_t n, known *result)
{
    long long high = 0, low = 0, max = INT64_MIN;
    for (uint64_t i = blockIdx.x * (uint64_t)blockDim.x + threadIdx.x; i < n; i += (uint64_t)gridDim.x * blockDim.x) {
        const int64_t steps = data<T>::steps(random_bits(i));
        high += steps >> 32;
        low += (uint32_t)steps;
        max = steps > max ? steps : max;
    }
    atomicAdd(&result->high, (unsigned long long)high);
    atomicAdd(&result->low, (unsigned long long)low);
    atomicMax(&result->max, max);
}

/* The plainest read: xor of everything. */
template <int flight> __global__ void read_all(const uint4 *x, uint64_t n, unsigned int *sink)
{
    const uint64_t stride = (uint64_t)gridDim.x * blockDim.x;
    uint64_t i = blockIdx.x * (uint64_t)blockDim.x + threadIdx.x;
    uint4 all = make_uint4(0, 0, 0, 0);
    for (; i + (flight - 1) * stride < n; i += flight * stride) {
        uint4 v[flight];
#pragma unroll
        for (int k = 0; k < flight; k++)
            v[k] = __ldg(x + i + k * stride);
#pragma unroll
        for (int k = 0; k < flight; k++)
            all = make_uint4(all.x ^ v[k].x, all.y ^ v[k].y, all.z ^ v[k].z, all.w ^ v[k].w);
    }
    for (; i < n; i += stride)
        all.x ^= __ldg(x + i).x;
    if ((all.x ^ all.y ^ all.z ^ all.w) == 0x12345678u)
        *sink = 1;
}

__global__ void nothing() {}

/* sum of exp(x - max), plainly. */
__global__ void plain_sumexp(const float *x, uint64_t n, double max, double *sum)
{
    double mine = 0;
    for (uint64_t i = blockIdx.x * (uint64_t)blockDim.x + threadIdx.x; i < n; i += (uint64_t)gridDim.x * blockDim.x)
        mine += exp((double)x[i] - max);
    for (int lanes = 16; lanes > 0; lanes /= 2)
        mine += __shfl_down_sync(0xffffffffu, mine, lanes);
    if (threadIdx.x % 32 == 0)
        atomicAdd(sum, mine);
}

#endif
