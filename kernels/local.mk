# CUDA kernels, part of the library. A new .cu file is one line in kernel_sources.
if HAVE_CUDA
kernel_sources =
liballfold_a_SOURCES += $(kernel_sources)
cuda_depends += $(kernel_sources:.cu=.d)
endif
