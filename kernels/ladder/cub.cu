/* CUB, the library that comes with CUDA, for comparison (kernels/cub_reduce.cuh).

   Its kernels are internal to it, so their occupancy is not known here. It makes two launches, except for small arrays. Sums of
   int32 are computed as uint32, which wrap as the rungs' do. */
#include "kernels/ladder/levels.h"

#include "kernels/cub_reduce.cuh"

/* Asks for the scratch space where scratch is NULL. */
template <class T>
static cudaError_t reduce(const struct reduction *r, void *scratch, size_t *scratch_bytes, cudaStream_t stream)
{
    typedef typename std::conditional<std::is_same<T, int32_t>::value, uint32_t, T>::type addend;
    if (r->fold == ALLFOLD_SUM)
        return cub_reduce((const addend *)r->x, r->n, ::cuda::std::plus<>{}, (addend)0, (addend *)r->result, scratch,
                          scratch_bytes, stream);
    return cub_reduce((const T *)r->x, r->n, ::cuda::maximum<>{}, max_of<T>::identity(), (T *)r->result, scratch,
                      scratch_bytes, stream);
}

static cudaError_t reduce_type(const struct reduction *r, void *scratch, size_t *scratch_bytes, cudaStream_t stream)
{
    return r->type == ALLFOLD_INT32 ? reduce<int32_t>(r, scratch, scratch_bytes, stream)
           : r->type == ALLFOLD_F32 ? reduce<float>(r, scratch, scratch_bytes, stream)
                                    : reduce<double>(r, scratch, scratch_bytes, stream);
}

static cudaError_t start(void *argument, cudaStream_t stream)
{
    const struct reduction *const r = (const struct reduction *)argument;
    size_t bytes = r->scratch_bytes;
    return reduce_type(r, r->scratch, &bytes, stream);
}

static allfold_status plan(struct reduction *r, struct error *error)
{
    const uint64_t bytes = allfold_type_bytes(r->type);
    r->bytes_read = r->n * bytes; /* and its partials, whose number it keeps to itself */
    r->bytes_written = bytes;
    r->roundings = (double)(r->n / (256 * (uint64_t)r->ladder->device.multiprocessors)) + 256.0;
    if (ladder_room(r->ladder, LADDER_RESULT, 16, &r->result, error) != ALLFOLD_OK
        || ladder_cuda(reduce_type(r, NULL, &r->scratch_bytes, r->ladder->stream), "asking CUB for its scratch space",
                       error)
               != ALLFOLD_OK)
        return error->status;
    r->scratch_bytes = u64_max(r->scratch_bytes, 16);
    return ladder_room(r->ladder, LADDER_SCRATCH, r->scratch_bytes, &r->scratch, error);
}

static const struct rung_way cub_way = {false, plan, start, reduction_answer_device};
extern const struct rung rung_cub;
const struct rung rung_cub = {&cub_way, 1, 0, {}};
