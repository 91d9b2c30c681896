/* Stands in for the other files of this folder in a build without CUDA: a backend that cannot be opened, and that says why. */
#include "device/device.h"

#define WHY "this build has no CUDA backend: configure --with-cuda"

static struct visible absent_visible(struct error *why)
{
    error_set(why, ALLFOLD_UNSUPPORTED, WHY);
    return (struct visible){0};
}

static allfold_status absent_open(int number, int local_size, const allfold_options *options, struct device **device,
                                  struct error *error)
{
    (void)number;
    (void)local_size;
    (void)options;
    (void)device;
    return error_set(error, ALLFOLD_UNSUPPORTED, WHY);
}

/* The rest is never called: it takes a device. */
const struct backend backend_cuda = {.id = ALLFOLD_BACKEND_CUDA, .name = "cuda", .devices = "CUDA", .own_memory = true,
                                     .visible = absent_visible, .open = absent_open};
