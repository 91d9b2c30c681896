# The benchmark: a library of its own, which the program links and the C library never does. A subject is one line in
# bench/subjects.c, a peer one in bench/peers.c.
noinst_LIBRARIES += libbench.a
libbench_a_SOURCES = \
	bench/axis.c \
	bench/cpu.c \
	bench/cublas.c \
	bench/expected.c \
	bench/file.c \
	bench/health.c \
	bench/nccl.c \
	bench/order.c \
	bench/peers.c \
	bench/run.c \
	bench/subjects.c
libbench_a_CPPFLAGS = $(AM_CPPFLAGS) $(NCCL_CPPFLAGS)
# Its loops are the machine's ceilings: they may use what the machine has, as the library's do.
libbench_a_CFLAGS = $(AM_CFLAGS)
bench_kernels = bench/cuda.cu
if HAVE_CUDA
libbench_a_SOURCES += $(bench_kernels)
cuda_depends += $(bench_kernels:.cu=.d)
else
libbench_a_SOURCES += bench/absent.c
endif

noinst_HEADERS += \
	bench/bench.h \
	bench/cuda_machine.h \
	bench/data.h \
	bench/file.h \
	bench/machine.h \
	bench/run.h

# A short set of measurements. `make bench BENCH_FLAGS="--json --type=all"` passes options; under mpirun: allfold bench.
.PHONY: bench
bench: allfold
	./allfold bench $(BENCH_FLAGS)
