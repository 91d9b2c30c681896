/* Linked first of the emulated kernels: their __shared__ variables lie behind this (see emulation.cpp). */
extern __thread char emulation_shared_begin[16];
__thread char emulation_shared_begin[16];
