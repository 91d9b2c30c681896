/* Host recursion: the tree itself, on one thread of the CPU. No GPU. All rungs have the same shape, and start
   from this one.

   Idea: add the second half of the array onto the first half, element by element (interleaved pairs), and do the same
   with what is left, until one element remains. An odd length has an element without a partner: it is carried along, in
   the middle.

       7 elements   0+4 1+5 2+6 3      stride 4
       4            0+2 1+3            stride 2
       2            0+1                stride 1

   What it fixes: nothing yet. On one thread it is slower than adding from left to right: more memory traffic for as many
   additions. But within a step no addition waits for another, which is what a GPU needs. And a number
   takes part in log2(n) additions, not in up to n - 1, so the rounding errors of a floating-point sum grow far more
   slowly.
   What it leaves: one thread does all the work.

   The tutorial it comes from halves the length and drops the last element of each odd one. The first step reads the
   input and writes elsewhere, as in every rung. */
#include "kernels/ladder/levels.h"

template <class Op> static void fold_in_place(typename Op::value *x, uint64_t n)
{
    if (n <= 1)
        return;
    const uint64_t stride = n - n / 2;
    for (uint64_t i = 0; i + stride < n; i++)
        x[i] = Op::combine(x[i], x[i + stride]);
    fold_in_place<Op>(x, stride);
}

template <class Op> static void fold_to(const void *input, uint64_t n, void *result)
{
    typedef typename Op::value T;
    const T *const x = (const T *)input;
    T *const work = (T *)result;
    const uint64_t stride = n - n / 2;
    work[0] = Op::identity();
    for (uint64_t i = 0; i < stride; i++)
        work[i] = i + stride < n ? Op::combine(x[i], x[i + stride]) : x[i];
    fold_in_place<Op>(work, stride);
}

static cudaError_t start(void *argument, cudaStream_t)
{
    const struct rung_reduction *const r = (const struct rung_reduction *)argument;
    const bool sum = r->fold == ALLFOLD_SUM;
    if (r->type == ALLFOLD_INT32)
        (sum ? fold_to<sum_of<int32_t>> : fold_to<max_of<int32_t>>)(r->scratch, r->n, r->result);
    else if (r->type == ALLFOLD_F32)
        (sum ? fold_to<sum_of<float>> : fold_to<max_of<float>>)(r->scratch, r->n, r->result);
    else
        (sum ? fold_to<sum_of<double>> : fold_to<max_of<double>>)(r->scratch, r->n, r->result);
    return cudaSuccess;
}

/* A copy of the input in host memory, and room for half as much. */
static allfold_status plan(struct rung_reduction *r, struct error *error)
{
    const size_t bytes = allfold_type_bytes(r->type), input = (size_t)r->n * bytes;
    for (uint64_t n = r->n; n > 1; n -= n / 2) {
        r->bytes_read += n / 2 * 2 * bytes;
        r->bytes_written += n / 2 * bytes;
        r->roundings += 1.0;
    }
    r->launches = 0;
    if (gpu_host_buffer(r->gpu, 0, input + 16, &r->scratch, error) == ALLFOLD_OK
        && gpu_host_buffer(r->gpu, 1, input / 2 + 16, &r->result, error) == ALLFOLD_OK)
        gpu_fetch(r->gpu, r->scratch, r->x, input, error);
    return error->status;
}

static allfold_status answer(struct rung_reduction *r, struct ladder_answer *answer, struct error *)
{
    *answer = reduction_answer_at(r, r->result);
    return ALLFOLD_OK;
}

static const struct rung_driver host_driver = {true, plan, start, answer};
extern const struct rung rung_host_recursion;
const struct rung rung_host_recursion = {&host_driver, 1, 0, {}};
