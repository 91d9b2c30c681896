# Benchmarks. `make bench/gpu_fold_bench`: the kernels on one GPU against CUB and the ceilings of the memory.
if HAVE_CUDA
EXTRA_PROGRAMS += bench/gpu_fold_bench
bench_gpu_fold_bench_SOURCES = bench/gpu_fold_bench.cu
cuda_depends += bench/gpu_fold_bench.d
endif
noinst_HEADERS += bench/gpu_data.cuh
