/* Stands in for the ladder in a build without CUDA: the lists are there, but no GPU to run on. */
#include "kernels/ladder/ladder.h"

static allfold_status absent(struct error *error)
{
    return error_set(error, ALLFOLD_UNSUPPORTED,
                     "the ladder runs on a CUDA device, and this build has no CUDA: configure it --with-cuda");
}

allfold_status ladder_check_begin(int rung, struct ladder_table *table, struct error *error)
{
    (void)rung;
    (void)table;
    return absent(error);
}

allfold_status ladder_check(struct gpu *gpu, const struct ladder_request *request, struct ladder_table *table,
                            struct error *error)
{
    (void)gpu;
    (void)request;
    (void)table;
    return absent(error);
}
