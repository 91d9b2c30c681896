/* Marks phases as NVTX ranges, which nsys and other profilers draw above a rank's kernels and copies. */
#include "cli/nvtx.h"

#ifdef HAVE_CONFIG_H
#include "config.h"
#endif

#ifdef ALLFOLD_HAVE_NVTX
#include "base/phase.h"

#include <nvtx3/nvToolsExt.h>

#include <stdbool.h>
#include <string.h>

static nvtxDomainHandle_t domain;
static void (*before)(enum phase left, enum phase entered); /* the observer before this one */

static void observe(enum phase left, enum phase entered)
{
    static _Thread_local bool open; /* a range of this thread is */
    nvtxEventAttributes_t range;
    if (open)
        nvtxDomainRangePop(domain);
    open = entered != PHASE_COUNT;
    memset(&range, 0, sizeof range);
    range.version = NVTX_VERSION;
    range.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
    range.messageType = NVTX_MESSAGE_TYPE_ASCII;
    range.message.ascii = phase_name(entered);
    if (open)
        nvtxDomainRangePushEx(domain, &range);
    if (before != NULL)
        before(left, entered);
}

void nvtx_name_phases(void)
{
    domain = nvtxDomainCreateA("allfold");
    before = phase_observer;
    phase_observer = observe;
}
#else
void nvtx_name_phases(void) {}
#endif
