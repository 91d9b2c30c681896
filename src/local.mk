# The library: one static, position-independent archive, and its public header.
lib_LIBRARIES += liballfold.a
include_HEADERS += src/allfold.h
liballfold_a_SOURCES = \
	src/array/data_file.c \
	src/array/draw.c \
	src/array/encoded.c \
	src/array/encoding.c \
	src/array/file.c \
	src/array/formats/chunk_filters.c \
	src/array/formats/cdf.c \
	src/array/formats/cursor.c \
	src/array/formats/formats.c \
	src/array/formats/generated.c \
	src/array/formats/hdf5_signature.c \
	src/array/formats/input.c \
	src/array/formats/name.c \
	src/array/formats/netcdf.c \
	src/array/formats/npy.c \
	src/array/formats/npz.c \
	src/array/formats/npz_deflated.c \
	src/array/formats/parts.c \
	src/array/formats/plain.c \
	src/array/formats/raw.c \
	src/array/formats/safetensors.c \
	src/array/formats/safetensors_index.c \
	src/array/formats/swap.c \
	src/array/formats/zip.c \
	src/array/generate.c \
	src/array/output.c \
	src/array/replacement.c \
	src/base/error.c \
	src/base/parse.c \
	src/base/phase.c \
	src/base/host.c \
	src/base/types.c \
	src/device/backends.c \
	src/device/cpu/cpu.c \
	src/api.c \
	src/api_reduce.c \
	src/api_softmax.c \
	src/comm/comm.c \
	src/comm/in_host.c \
	src/comm/shared_memory.c \
	src/core/copy.c \
	src/core/engine.c \
	src/core/generated.c \
	src/core/reduce.c \
	src/core/softmax.c \
	src/core/stream.c \
	src/core/team.c \
	src/fold/exact_total.c \
	src/fold/packed.c \
	src/fold/table.c \
	src/store/checkpoint.c \
	src/store/partial_file.c \
	src/store/record_file.c

noinst_HEADERS += \
	src/api.h \
	src/array/array.h \
	src/array/draw.h \
	src/array/data_file.h \
	src/array/encoded.h \
	src/array/encoding.h \
	src/array/file.h \
	src/array/formats/chunk_filters.h \
	src/array/formats/cdf.h \
	src/array/formats/cursor.h \
	src/array/formats/formats.h \
	src/array/formats/hdf5_dataset.h \
	src/array/formats/npy.h \
	src/array/formats/npz_deflated.h \
	src/array/formats/parts.h \
	src/array/formats/safetensors.h \
	src/array/formats/swap.h \
	src/array/formats/zip.h \
	src/array/generate.h \
	src/array/replacement.h \
	src/base/base.h \
	src/base/draw.h \
	src/base/generator.h \
	src/base/elements.h \
	src/base/error.h \
	src/base/host.h \
	src/base/parse.h \
	src/base/phase.h \
	src/base/range.h \
	src/base/types.h \
	src/comm/comm.h \
	src/comm/in_host.h \
	src/comm/shared_memory.h \
	src/core/core.h \
	src/core/pipeline.h \
	src/core/stream.h \
	src/core/team.h \
	src/device/cpu/loops.h \
	src/device/cuda/cuda.h \
	src/device/device.h \
	src/fold/additive.h \
	src/fold/argextreme.h \
	src/fold/argextreme_template.h \
	src/fold/arithmetic.h \
	src/fold/exact.h \
	src/fold/exact_template.h \
	src/fold/exact_total.h \
	src/fold/exact_exponential.h \
	src/fold/exponential.h \
	src/fold/extreme.h \
	src/fold/extreme_template.h \
	src/fold/finish.h \
	src/fold/folds.h \
	src/fold/monoids.h \
	src/fold/norm1.h \
	src/fold/norm2.h \
	src/fold/norm2_exact.h \
	src/fold/norminf.h \
	src/fold/packed.h \
	src/fold/prod.h \
	src/fold/softmax_constants.h \
	src/fold/stats.h \
	src/fold/stats_exact.h \
	src/fold/stats_finish.h \
	src/fold/sum.h \
	src/fold/sum_exact.h \
	src/fold/sumexp.h \
	src/fold/sumexp_exact_template.h \
	src/fold/sumexp_template.h \
	src/fold/table.h \
	src/store/checkpoint.h \
	src/store/partial_file.h \
	src/store/record_file.h

# The loops of the CPU backend and of generators, once for each instruction set; the program picks one when it starts.
liballfold_a_LIBADD =
liballfold_a_DEPENDENCIES = $(liballfold_a_LIBADD)
liballfold_a_LIBADD += $(libcpu_base_a_OBJECTS)
EXTRA_LIBRARIES += libcpu_base.a
libcpu_base_a_SOURCES = src/array/draw_loops.c src/device/cpu/loops.c
libcpu_base_a_CPPFLAGS = $(AM_CPPFLAGS) -DCPU_ISA=base
libcpu_base_a_CFLAGS = $(AM_CFLAGS)
if HAVE_X86_ISA
liballfold_a_LIBADD += $(libcpu_avx2_a_OBJECTS) $(libcpu_avx512_a_OBJECTS)
EXTRA_LIBRARIES += libcpu_avx2.a libcpu_avx512.a
libcpu_avx2_a_SOURCES = src/array/draw_loops.c src/device/cpu/loops.c
libcpu_avx2_a_CPPFLAGS = $(AM_CPPFLAGS) -DCPU_ISA=avx2
libcpu_avx2_a_CFLAGS = $(AM_CFLAGS) $(AVX2_CFLAGS)
libcpu_avx512_a_SOURCES = src/array/draw_loops.c src/device/cpu/loops.c
libcpu_avx512_a_CPPFLAGS = $(AM_CPPFLAGS) -DCPU_ISA=avx512
libcpu_avx512_a_CFLAGS = $(AM_CFLAGS) $(AVX512_CFLAGS)
endif

cuda_backend = \
	src/device/cuda/check.c \
	src/device/cuda/device.c \
	src/device/cuda/links.c \
	src/device/cuda/queue.c \
	src/device/cuda/softmax.c
if HAVE_CUDA
liballfold_a_SOURCES += $(cuda_backend)
else
liballfold_a_SOURCES += src/device/cuda/absent.c
endif

if HAVE_HDF5
liballfold_a_SOURCES += src/array/formats/hdf5.c src/array/formats/hdf5_dataset.c src/array/formats/hdf5_file.c \
	src/array/formats/hdf5_read.c
else
liballfold_a_SOURCES += src/array/formats/hdf5_absent.c
endif
