# Faults on purpose: docs/reliability.md. `make check` runs a part of the lists, `make check-faults` all of them.
PYTHON_TESTS += tests/faults/test_phases.py tests/faults/test_signals.py
EXTRA_DIST += tests/faults/faults.py

# The program as it is, with one more object, which looks in at its phases.
check_PROGRAMS += tests/faults/allfold-faulty
tests_faults_allfold_faulty_SOURCES = tests/faults/hook.c
tests_faults_allfold_faulty_LDADD = $(allfold_OBJECTS) $(allfold_LDADD)
EXTRA_tests_faults_allfold_faulty_DEPENDENCIES = $(allfold_OBJECTS)

# For LD_PRELOAD. Built without the sanitizers of CFLAGS, with which it cannot work; the test then skips.
PYTHON_TESTS += tests/faults/test_calls.py
check_DATA += tests/faults/failing.so
tests/faults/failing.so: tests/faults/failing.c
	$(AM_V_CCLD)$(MKDIR_P) $(@D) && $(CC) -O1 -g -Wall -Wextra -shared -fPIC \
	  -o $@ $(srcdir)/tests/faults/failing.c -ldl -lpthread
check_DATA += tests/faults/handlers.so
tests/faults/handlers.so: tests/faults/handlers.c
	$(AM_V_CCLD)$(MKDIR_P) $(@D) && $(CC) $(MPI_CFLAGS) -O1 -g -D_GNU_SOURCE -Wall -Wextra -shared -fPIC -o $@ $(srcdir)/tests/faults/handlers.c $(MPI_LIBS) -ldl
EXTRA_DIST += tests/faults/failing.c tests/faults/handlers.c
CLEANFILES += tests/faults/failing.so tests/faults/handlers.so

# The whole lists of faults; minutes.
check-faults:
	$(MAKE) check TESTS="tests/faults/test_phases.py tests/faults/test_calls.py tests/faults/test_signals.py tests/multihost/test_cable.py" \
	  ALLFOLD_TEST_FAULTS=full ALLFOLD_TEST_SECONDS=1800
.PHONY: check-faults

UNIT_TESTS += tests/faults/test_progress
tests_faults_test_progress_SOURCES = tests/faults/test_progress.c src/cli/number.c

# The program whose CUDA calls can be made to fail, on devices that stand in for GPUs (tests/emulation/), so that it runs
# anywhere; and in a build with CUDA the same with the real runtime, for machines with GPUs.
noinst_HEADERS += tests/faults/cuda_calls.h
EXTRA_DIST += tests/faults/cuda_calls.c
cuda_wraps = `sed -n 's/^ *X(\(cuda[A-Za-z]*\)).*/-Wl,--wrap=\1/p' $(srcdir)/tests/faults/cuda_calls.h`
if HAVE_KERNEL_TESTS
check_PROGRAMS += tests/faults/allfold-standin
tests_faults_allfold_standin_SOURCES = tests/faults/cuda_calls.c tests/faults/hook.c
tests_faults_allfold_standin_LDADD = $(tests_emulation_allfold_LDADD)
tests_faults_allfold_standin_LINK = $(EMULATION_LINK) $(cuda_wraps)
endif
if HAVE_CUDA
check_PROGRAMS += tests/faults/allfold-cuda
tests_faults_allfold_cuda_SOURCES = tests/faults/cuda_calls.c tests/faults/hook.c
tests_faults_allfold_cuda_LDADD = $(allfold_OBJECTS) $(allfold_LDADD)
tests_faults_allfold_cuda_LINK = $(LINK) $(cuda_wraps)
endif
