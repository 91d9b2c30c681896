/* Stands in for the ladder in a build without CUDA: the lists are there, but no GPU to run on. */
#include "kernels/ladder/ladder.h"

static allfold_status absent(struct error *error)
{
    return error_set(error, ALLFOLD_UNSUPPORTED,
                     "the ladder runs on a CUDA device, and this build has no CUDA: configure it --with-cuda");
}

allfold_status ladder_open(int local_rank, struct ladder **ladder, struct error *error)
{
    (void)local_rank;
    *ladder = NULL;
    return absent(error);
}

void ladder_close(struct ladder *ladder) { (void)ladder; }

const struct ladder_device *ladder_device_of(const struct ladder *ladder)
{
    (void)ladder;
    return NULL;
}

allfold_status ladder_check_begin(int rung, struct ladder_table *table, struct error *error)
{
    (void)rung;
    (void)table;
    return absent(error);
}

allfold_status ladder_check(struct ladder *ladder, const struct ladder_request *request, struct ladder_table *table,
                            struct error *error)
{
    (void)ladder;
    (void)request;
    (void)table;
    return absent(error);
}
