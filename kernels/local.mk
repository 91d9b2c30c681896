# CUDA kernels, part of the library. A new .cu file is one line in kernel_sources; headers go to noinst_HEADERS.
kernel_sources = \
	kernels/axis.cu \
	kernels/axis_f32.cu \
	kernels/axis_f64.cu \
	kernels/axis_i32.cu \
	kernels/axis_i64.cu \
	kernels/axis_softmax.cu \
	kernels/axis_softmax_columns.cu \
	kernels/axis_u32.cu \
	kernels/axis_u64.cu \
	kernels/deliver.cu \
	kernels/extremes.cu \
	kernels/fold.cu \
	kernels/fold_bf16.cu \
	kernels/fold_f16.cu \
	kernels/fold_f32.cu \
	kernels/fold_f64.cu \
	kernels/fold_i32.cu \
	kernels/fold_i64.cu \
	kernels/fold_u32.cu \
	kernels/fold_u64.cu \
	kernels/generate.cu \
	kernels/log_probs.cu \
	kernels/log_probs_counted.cu \
	kernels/log_probs_exact.cu \
	kernels/many.cu \
	kernels/many_f32.cu \
	kernels/many_f64.cu \
	kernels/many_i32.cu \
	kernels/many_i64.cu \
	kernels/many_u32.cu \
	kernels/many_u64.cu \
	kernels/normalise.cu \
	kernels/order.cu \
	kernels/order_brackets.cu \
	kernels/order_digits.cu \
	kernels/order_even.cu \
	kernels/order_sample.cu \
	kernels/order_search.cu \
	kernels/order_table.cu \
	kernels/softmax_chained.cu \
	kernels/softmax_resident.cu \
	kernels/strided.cu \
	kernels/weighted.cu
if HAVE_CUDA
libcore_a_SOURCES += $(kernel_sources)
cuda_depends += $(kernel_sources:.cu=.d)
endif

noinst_HEADERS += \
	kernels/axis.cuh \
	kernels/axis_kernels.cuh \
	kernels/axis_element.cuh \
	kernels/axis_family.cuh \
	kernels/axis_family.h \
	kernels/axis_ends.cuh \
	kernels/axis_finish.cuh \
	kernels/axis_monoid.cuh \
	kernels/axis_quick.cuh \
	kernels/found.cuh \
	kernels/axis_softmax.cuh \
	kernels/axis_softmax_fast.cuh \
	kernels/axis_softmax_few.cuh \
	kernels/axis_softmax_exact.cuh \
	kernels/axis_softmax_heavy.cuh \
	kernels/axis_softmax_registers.cuh \
	kernels/axis_softmax_whole.cuh \
	kernels/axis_stage.cuh \
	kernels/axis_stats.cuh \
	kernels/element.cuh \
	kernels/columns.cuh \
	kernels/compare.cuh \
	kernels/exact_compare.cuh \
	kernels/exact.cuh \
	kernels/exact_monoid.cuh \
	kernels/fold.cuh \
	kernels/fold_family.cuh \
	kernels/fold_family.h \
	kernels/kernels.h \
	kernels/many_family.cuh \
	kernels/many_family.h \
	kernels/order.cuh \
	kernels/order_brackets.cuh \
	kernels/order_digits.cuh \
	kernels/log_probs.cuh \
	kernels/log_probs_fast.cuh \
	kernels/message.cuh \
	kernels/softmax.cuh \
	kernels/ptx.cuh \
	kernels/tuning.h
