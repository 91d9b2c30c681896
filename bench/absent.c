/* Stands in for the GPU that data lies on in a build without CUDA. */
#include "bench/machine.h"

allfold_status machine_open_cuda(int local_rank, const struct bench_bytes *bytes, struct machine **machine, struct error *error)
{
    (void)local_rank;
    (void)bytes;
    (void)machine;
    return error_set(error, ALLFOLD_UNSUPPORTED, "this build has no CUDA");
}
