/* A profiler for tests/test_nvtx.py: NVTX loads it into the program (NVTX_INJECTION64_PATH), and it writes what it is told to
   the file descriptor 9, a line each: the thread's number, then "domain NAME", "push NAME" or "pop". */
#include <nvtx3/nvToolsExt.h>

#include <stdio.h>
#include <unistd.h>

static int handle; /* of the one domain */

static nvtxDomainHandle_t domain_create(const char *name)
{
    dprintf(9, "%d domain %s\n", (int)gettid(), name);
    return (nvtxDomainHandle_t)&handle;
}

static int range_push(nvtxDomainHandle_t domain, const nvtxEventAttributes_t *range)
{
    dprintf(9, "%d push %s\n", (int)gettid(), domain == (nvtxDomainHandle_t)&handle ? range->message.ascii : "in another domain");
    return 0;
}

static int range_pop(nvtxDomainHandle_t domain)
{
    (void)domain;
    dprintf(9, "%d pop\n", (int)gettid());
    return 0;
}

int InitializeInjectionNvtx2(NvtxGetExportTableFunc_t get_table)
{
    const NvtxExportTableCallbacks *const callbacks = get_table(NVTX_ETID_CALLBACKS);
    NvtxFunctionTable table;
    unsigned int size;
    if (callbacks == NULL || !callbacks->GetModuleFunctionTable(NVTX_CB_MODULE_CORE2, &table, &size))
        return 0;
    *table[NVTX_CBID_CORE2_DomainCreateA] = (NvtxFunctionPointer)domain_create;
    *table[NVTX_CBID_CORE2_DomainRangePushEx] = (NvtxFunctionPointer)range_push;
    *table[NVTX_CBID_CORE2_DomainRangePop] = (NvtxFunctionPointer)range_pop;
    return 1;
}
