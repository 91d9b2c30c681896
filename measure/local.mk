# What ladder and benchmark measure with: a library of the program's own.
noinst_LIBRARIES += libmeasure.a
libmeasure_a_SOURCES = measure/table.c measure/times.c
measure_kernels = \
	measure/ceiling.cu \
	measure/cub.cu \
	measure/cub_order.cu \
	measure/gpu.cu \
	measure/read.cu \
	measure/timing.cu
if HAVE_CUDA
libmeasure_a_SOURCES += $(measure_kernels)
cuda_depends += $(measure_kernels:.cu=.d)
else
libmeasure_a_SOURCES += measure/absent.c
endif

noinst_HEADERS += \
	measure/cub.cuh \
	measure/cub.h \
	measure/gpu.cuh \
	measure/gpu.h \
	measure/launch.cuh \
	measure/numbers.h \
	measure/table.h \
	measure/times.h
