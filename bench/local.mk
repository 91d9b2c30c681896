# Benchmarks. `make bench/cpu_bench`: the library on the CPU beside the ceiling of the memory (tools/bench-numpy: its peers). `make bench/gpu_fold_bench`: the kernels on one GPU against CUB and the ceilings of the memory.
if HAVE_CUDA
EXTRA_PROGRAMS += bench/gpu_fold_bench
bench_gpu_fold_bench_SOURCES = bench/gpu_fold_bench.cu
cuda_depends += bench/gpu_fold_bench.d
endif
noinst_HEADERS += bench/gpu_data.cuh
EXTRA_PROGRAMS += bench/cpu_bench
EXTRA_DIST += tools/bench-numpy
