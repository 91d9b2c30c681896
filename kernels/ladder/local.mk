# The ladder: a library of its own, which the program links and the C library never does. A new rung or experiment is one
# name below.
noinst_LIBRARIES += libladder.a
libladder_a_SOURCES = \
	kernels/ladder/oracle.c \
	kernels/ladder/topics.c
# One file each: the rungs that are a kernel, in order; tests run them on the host, too (tests/emulation).
ladder_classic_rungs = \
	kernels/ladder/neighboured.cu \
	kernels/ladder/neighboured_packed.cu \
	kernels/ladder/interleaved.cu \
	kernels/ladder/unrolled_global.cu \
	kernels/ladder/modulo.cu \
	kernels/ladder/strided_index.cu \
	kernels/ladder/sequential.cu \
	kernels/ladder/first_add.cu \
	kernels/ladder/last_warp.cu \
	kernels/ladder/unrolled.cu \
	kernels/ladder/four_blocks.cu \
	kernels/ladder/four_blocks_dynamic.cu \
	kernels/ladder/many_elements.cu \
	kernels/ladder/shuffles.cu
ladder_softmax_rungs = \
	kernels/ladder/softmax_one_block.cu \
	kernels/ladder/softmax_many_blocks.cu \
	kernels/ladder/softmax_fused.cu
# Rungs for rows and columns, and what runs them; whole on the host in tests, with the experiments.
ladder_line_rungs = \
	kernels/ladder/thread_a_line.cu \
	kernels/ladder/block_a_line.cu \
	kernels/ladder/warp_a_row.cu \
	kernels/ladder/row_vectors.cu \
	kernels/ladder/rows_a_warp.cu \
	kernels/ladder/split_rows.cu \
	kernels/ladder/column_vectors.cu \
	kernels/ladder/split_columns.cu \
	kernels/ladder/line_engine.cu \
	kernels/ladder/line_sums.cu
# The other rungs, and what all share.
ladder_shared = \
	kernels/ladder/host_recursion.cu \
	kernels/ladder/engine.cu \
	kernels/ladder/softmax_engine.cu \
	kernels/ladder/cub.cu \
	kernels/ladder/input.cu \
	kernels/ladder/levels.cu \
	kernels/ladder/runner.cu \
	kernels/ladder/rungs.cu \
	kernels/ladder/softmax_ladder.cu
# The experiments: one file each, and what they share.
ladder_experiments = \
	kernels/ladder/coalescing.cu \
	kernels/ladder/parallelism.cu \
	kernels/ladder/granularity.cu \
	kernels/ladder/occupancy.cu \
	kernels/ladder/experiment.cu

ladder_kernels = $(ladder_classic_rungs) $(ladder_softmax_rungs) $(ladder_line_rungs) $(ladder_shared) $(ladder_experiments)
if HAVE_CUDA
libladder_a_SOURCES += $(ladder_kernels)
cuda_depends += $(ladder_kernels:.cu=.d)
endif

noinst_HEADERS += \
	kernels/ladder/experiment.cuh \
	kernels/ladder/input.h \
	kernels/ladder/ladder.h \
	kernels/ladder/ladder_experiments.h \
	kernels/ladder/levels.h \
	kernels/ladder/line_parts.cuh \
	kernels/ladder/lines.h \
	kernels/ladder/oracle.h \
	kernels/ladder/parts.cuh \
	kernels/ladder/rung.cuh \
	kernels/ladder/runner.h \
	kernels/ladder/softmax.h \
	kernels/ladder/softmax_steps.cuh
