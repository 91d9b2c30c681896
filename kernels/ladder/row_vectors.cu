/* Row vectors: a warp a row, as before, that loads 16 bytes a lane, four times before it adds (vector_share in line_parts.cuh).

   Idea: bytes in flight keep the memory busy, and so a lane has 64 of them. It also needs a quarter of the load instructions.

   A load of 16 bytes needs an address that is a multiple of 16. A row of a length that is no multiple of 4 begins anywhere, so the
   elements before the first such address, and those behind the last whole vector, are loaded one by one.

   What it fixes: rows of some hundreds of elements and more.
   What it leaves: a row of 32 elements is 8 vectors, for 8 lanes; the other 24 load nothing, yet all take part in the shuffles. */
#include "kernels/ladder/line_parts.cuh"

static cudaError_t start(struct line_job *job, cudaStream_t stream) { return group_a_row<32>(job, job->x, job->lines, stream); }

extern const struct line_rung line_row_vectors;
const struct line_rung line_row_vectors = {start, 0, nullptr, nullptr};
