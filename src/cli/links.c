/* Tells how the GPUs of a host reach one another (ranks.h), from NVML: CUDA itself tells of visible devices only, and under the
   one-GPU-per-task binding of batch systems a rank sees none but its own.

   NVML comes with the driver, not with the toolkit, so it is looked for when it is needed; without it links are not
   known. The declarations are those of NVIDIA's documentation of its stable interface. */
#include "cli/ranks.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LINKS_OF_A_DEVICE = 18, REMOTE_SWITCH = 2, P2P_NVLINK = 2 };

struct pci_info { /* nvmlPciInfo_t */
    char legacy[16];
    unsigned int domain, bus, device, identity, subsystem;
    char text[32];
};

/* What is called of NVML; all return 0 for success. */
static struct {
    int (*init)(void);
    int (*device_by_pci)(const char *pci, void **device);
    int (*common_ancestor)(void *device, void *peer, unsigned int *level);
    int (*p2p_status)(void *device, void *peer, unsigned int what, unsigned int *status);
    int (*link_state)(void *device, unsigned int link, unsigned int *enabled);
    int (*link_remote_type)(void *device, unsigned int link, unsigned int *type);
    int (*link_remote_pci)(void *device, unsigned int link, struct pci_info *pci);
} nvml;

static bool load(void)
{
    static int loaded; /* 1 yes, -1 no */
    const struct {
        const char *name;
        void *function; /* where its address goes */
    } symbols[] = {
        {"nvmlInit_v2", &nvml.init},
        {"nvmlDeviceGetHandleByPciBusId_v2", &nvml.device_by_pci},
        {"nvmlDeviceGetTopologyCommonAncestor", &nvml.common_ancestor},
        {"nvmlDeviceGetP2PStatus", &nvml.p2p_status},
        {"nvmlDeviceGetNvLinkState", &nvml.link_state},
        {"nvmlDeviceGetNvLinkRemoteDeviceType", &nvml.link_remote_type},
        {"nvmlDeviceGetNvLinkRemotePciInfo_v2", &nvml.link_remote_pci},
    };
    if (loaded != 0)
        return loaded > 0;
    loaded = -1;
    void *const library = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL); /* for as long as the program lives */
    if (library == NULL)
        return false;
    for (size_t i = 0; i < sizeof symbols / sizeof *symbols; i++) {
        void *const address = dlsym(library, symbols[i].name);
        if (address == NULL)
            return false;
        memcpy(symbols[i].function, &address, sizeof address);
    }
    loaded = nvml.init() == 0 ? 1 : -1;
    return loaded > 0;
}

/* The NVLinks of a device that lead to the peer, or to a switch that leads to all. */
static int count_links(void *device, const char *peer)
{
    unsigned int domain, bus, slot;
    int count = 0;
    if (sscanf(peer, "%x:%x:%x", &domain, &bus, &slot) != 3)
        return 0;
    for (unsigned int link = 0; link < LINKS_OF_A_DEVICE; link++) {
        unsigned int enabled = 0, type = 0;
        struct pci_info remote;
        if (nvml.link_state(device, link, &enabled) != 0 || enabled == 0)
            continue;
        if (nvml.link_remote_type(device, link, &type) == 0 && type == REMOTE_SWITCH)
            count++;
        else if (nvml.link_remote_pci(device, link, &remote) == 0)
            count += remote.domain == domain && remote.bus == bus && remote.device == slot;
    }
    return count;
}

void link_text(const char *pci, const char *peer, char text[LINK_BYTES])
{
    static const char *const levels[] = {"PIX", "PIX", "PXB", "PHB", "NODE", "SYS"}; /* by tens */
    void *device, *other;
    unsigned int level = 0, status = 1;
    text[0] = '\0';
    if (!load() || nvml.device_by_pci(pci, &device) != 0 || nvml.device_by_pci(peer, &other) != 0)
        return;
    const int links = nvml.p2p_status(device, other, P2P_NVLINK, &status) == 0 && status == 0 ? count_links(device, peer) : 0;
    if (links > 0)
        snprintf(text, LINK_BYTES, "NV%d", links);
    else if (nvml.common_ancestor(device, other, &level) == 0 && level / 10 < sizeof levels / sizeof *levels)
        snprintf(text, LINK_BYTES, "%s", levels[level / 10]);
}
