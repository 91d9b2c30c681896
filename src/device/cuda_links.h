/* How the GPUs of a host reach one another; used by cuda.c. */
#ifndef ALLFOLD_CUDA_LINKS_H
#define ALLFOLD_CUDA_LINKS_H

#include "device/device.h"

/* The link between the devices of two PCI addresses, as backend->link says it. */
void cuda_link_text(const char *pci, const char *peer, char text[LINK_BYTES]);

#endif
