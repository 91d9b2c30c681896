/* Which backend does the work. */
#include "device/device.h"

allfold_status backend_choose(allfold_backend choice, const struct backend **backend, struct error *error)
{
    struct error why = {0};
    switch (choice) {
    case ALLFOLD_BACKEND_AUTO:
        *backend = backend_cuda.visible(&why) > 0 ? &backend_cuda : &backend_cpu;
        return ALLFOLD_OK;
    case ALLFOLD_BACKEND_CPU:
        *backend = &backend_cpu;
        return ALLFOLD_OK;
    case ALLFOLD_BACKEND_CUDA:
        if (backend_cuda.visible(&why) == 0)
            return error_set(error, ALLFOLD_UNSUPPORTED, "no CUDA device to use: %s",
                             why.status != ALLFOLD_OK ? why.text : "none is visible");
        *backend = &backend_cuda;
        return ALLFOLD_OK;
    }
    return error_set(error, ALLFOLD_BAD_ARGUMENT, "backend %d: expected auto, cuda or cpu", (int)choice);
}
