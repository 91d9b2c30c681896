/* Linked last of the emulated kernels: their __shared__ variables lie before this (see emulation.cpp). */
extern __thread char emulation_shared_end[16];
__thread char emulation_shared_end[16];
