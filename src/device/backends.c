/* Lists the backends, one line each, and picks the one that does the work. */
#include "device/device.h"

const struct backend *const backends[] = {
    &backend_cuda,
    &backend_cpu,
};
const int backend_count = sizeof backends / sizeof *backends;

allfold_status backend_choose(allfold_backend choice, const struct backend **backend, struct error *error)
{
    for (int i = 0; i < backend_count; i++) {
        struct error why = {0};
        if (choice != ALLFOLD_BACKEND_AUTO && choice != backends[i]->id)
            continue;
        if (backends[i]->visible(&why).count > 0) {
            *backend = backends[i];
            return ALLFOLD_OK;
        }
        if (choice != ALLFOLD_BACKEND_AUTO)
            return error_set(error, ALLFOLD_UNSUPPORTED, "no %s device to use: %s", backends[i]->devices,
                             why.status != ALLFOLD_OK ? why.text : "none is visible");
    }
    return error_set(error, ALLFOLD_BAD_ARGUMENT, "backend %d: expected one of allfold_backend", (int)choice);
}

bool backend_prepares(allfold_backend choice)
{
    for (int i = 0; i < backend_count; i++)
        if (backends[i]->prepare != NULL && (choice == ALLFOLD_BACKEND_AUTO || choice == backends[i]->id))
            return true;
    return false;
}

void backend_prepare(allfold_backend choice, int local_rank)
{
    const struct backend *backend = NULL;
    struct error ignored = {0};
    if (backend_choose(choice, &backend, &ignored) == ALLFOLD_OK && backend->prepare != NULL)
        backend->prepare(local_rank);
}
