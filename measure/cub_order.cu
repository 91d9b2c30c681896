/* CUB's sort and its histograms of even bins, beside which order statistics are measured. This CUB has no top-k. */
#include "measure/cub.cuh"

#include <cub/device/device_histogram.cuh>
#include <cub/device/device_radix_sort.cuh>
#include <cuda_bf16.h>

template <class T> static cudaError_t sort(const struct cub_call *call, void *scratch, size_t *bytes, cudaStream_t stream)
{
    return cub::DeviceRadixSort::SortKeys(scratch, *bytes, (const T *)call->x, (T *)call->result, (int32_t)call->count, 0, (int)(8 * sizeof(T)), stream);
}

template <class T, class Level> static cudaError_t count_bins(const struct cub_call *call, void *scratch, size_t *bytes, cudaStream_t stream)
{
    return cub::DeviceHistogram::HistogramEven(scratch, *bytes, (const T *)call->x, (unsigned int *)call->result, call->bins + 1, (Level)-call->max,
                                               (Level)call->max, (int32_t)call->count, stream);
}

cudaError_t cub_order_start(const struct cub_call *call, void *scratch, size_t *bytes, cudaStream_t stream)
{
    const bool sorts = call->work == CUB_SORT;
    switch (call->type) {
    case ALLFOLD_F32: return sorts ? sort<float>(call, scratch, bytes, stream) : count_bins<float, float>(call, scratch, bytes, stream);
    case ALLFOLD_F64: return sorts ? sort<double>(call, scratch, bytes, stream) : count_bins<double, double>(call, scratch, bytes, stream);
    case ALLFOLD_INT32: return sorts ? sort<int32_t>(call, scratch, bytes, stream) : count_bins<int32_t, double>(call, scratch, bytes, stream);
    case ALLFOLD_BF16: return sorts ? sort<__nv_bfloat16>(call, scratch, bytes, stream) : cudaErrorInvalidValue;
    default: return cudaErrorInvalidValue;
    }
}
