# Tests. A new one is one line below:
#   MPI_TESTS     C programs (tests/NAME.c) run at several rank counts on each backend, which is argv[1]; see tests/tap.h
#   UNIT_TESTS    C programs (tests/NAME.c) run once, by themselves
#   PYTHON_TESTS  Python scripts, run once; see tests/tap.py
# tests/programs has what such scripts run.
# All print TAP. `make check TESTS=tests/NAME` runs one; ALLFOLD_TEST_RANKS, ALLFOLD_TEST_BACKENDS and ALLFOLD_TEST_SECONDS
# change what tests/mpi-launch does.
# Makefile.am has what starts first.
MPI_TESTS += tests/test_reduce tests/test_order tests/test_axis tests/test_log_probs tests/test_chunks tests/test_softmax tests/test_failures tests/test_allreduce tests/test_begin tests/test_many tests/test_source tests/test_fortran tests/audit/audit
UNIT_TESTS += tests/test_elements tests/test_array tests/test_plain tests/test_output tests/test_store tests/test_npy tests/test_generate tests/test_distributions tests/test_health tests/test_environment
PYTHON_TESTS += tests/test_python.py tests/test_install.py tests/test_cli_values.py tests/test_exact.py tests/test_axes.py tests/test_axis_files.py tests/test_dot.py tests/test_compare.py tests/test_weights.py tests/test_exchange.py tests/slurm/test_jobs.py tests/test_cli.py tests/test_files.py tests/test_reader.py tests/test_formats.py tests/test_inputs.py tests/test_hdf5.py tests/test_devices.py tests/test_bench.py
PYTHON_TESTS += tests/test_samples.py tests/test_ladder.py tests/test_examples.py tests/test_hard.py tests/test_nvtx.py tests/test_scaling_report.py tests/test_interface.py
PYTHON_TESTS += tests/test_draw_ladder.py tests/test_profile_ladder.py tests/test_plot_bench.py tests/test_summary.py tests/lint.py

noinst_HEADERS += tests/tap.h tests/files.h tests/generated.h tests/support.h tests/patterns.h tests/oracle.h tests/failures/failures.h
# A profiler that the program loads, for tests/test_nvtx.py.
if HAVE_NVTX
check_DATA += tests/programs/nvtx_profiler.so
tests/programs/nvtx_profiler.so: tests/programs/nvtx_profiler.c
	$(AM_V_CC)$(MKDIR_P) $(@D) && $(CC) $(NVTX_CPPFLAGS) $(CPPFLAGS) -D_GNU_SOURCE -Wall -Wextra -O1 -fPIC -shared \
	  $(srcdir)/tests/programs/nvtx_profiler.c -o $@
CLEANFILES += tests/programs/nvtx_profiler.so
endif

# What tests/mpi-launch loads into the ranks. Built without the sanitizers of CFLAGS.
check_DATA += tests/patient.so
tests/patient.so: tests/programs/patient.c
	$(AM_V_CCLD)$(MKDIR_P) $(@D) && $(CC) -O1 -D_GNU_SOURCE -Wall -Wextra -shared -fPIC -o $@ $(srcdir)/tests/programs/patient.c -ldl
EXTRA_DIST += tests/programs/patient.c
CLEANFILES += tests/patient.so

# Files of formats that the tests must not need a library to write; make_hdf5.py says what is in them.
EXTRA_DIST += tests/data/make_hdf5.py tests/data/expected.txt tests/data/damaged.h5 tests/data/netcdf4.nc tests/data/newest.h5 \
	tests/data/one.h5 tests/data/rare.h5 tests/data/refused.h5 tests/data/replaced-1.h5 \
	tests/data/replaced-2.h5 tests/data/types.h5 tests/data/unwritten.h5
# Hard cases, what makes them and what runs them.
EXTRA_DIST += tests/data/hard/README.md tests/data/hard/cases.txt tools/hard-cases tools/make-hard-cases
EXTRA_DIST += tests/exact_golden.txt tests/allfold.abi tests/allfold.abignore tests/programs/nvtx_profiler.c tests/mpi-launch tests/sanitize tests/slurm/cluster.py tests/cli.py tests/axis_reference.py tests/format_files.py tests/installed_library.py tests/python/all.py tests/python/arrays.py tests/python/axes.py tests/python/begun.py tests/python/communicators.py tests/python/files.py tests/python/folds.py tests/python/log_probs.py tests/python/many.py tests/python/order.py tests/python/ranks.py tests/tap.py tests/lsan.supp tests/tsan.supp $(PYTHON_TESTS)
CLEANFILES += tests/mpi.lock*

tests_test_failures_SOURCES = tests/test_failures.c tests/failures/backend.c tests/failures/calls.c tests/failures/open.c \
	tests/failures/pipelines.c
tests_test_environment_SOURCES = tests/test_environment.c src/cli/environment.c
tests_test_health_LDADD = libbench.a libmeasure.a $(LDADD)

if HAVE_FORTRAN
tests_test_fortran_SOURCES =
tests_test_fortran_LDADD = tests/test_fortran.o $(fortran_library)
tests_test_fortran_LINK = $(FORTRAN_LINK)
else
tests_test_fortran_SOURCES = tests/programs/no_fortran.c
tests_test_fortran_LINK = $(LINK)
endif
EXTRA_DIST += tests/programs/no_fortran.c

check_PROGRAMS += $(MPI_TESTS) $(UNIT_TESTS) tests/programs/axis_folds tests/programs/exact_folds tests/programs/dot_folds \
	tests/programs/exchange_calls tests/programs/format_folds
TESTS = $(MPI_TESTS) $(UNIT_TESTS) $(PYTHON_TESTS)
# config.h is up to date by then. If make looked at its rule, tests of programs that depend on it would start after all others.
run_tests = check-TESTS # automake would take the name itself for a rule of ours
$(run_tests): AM_MAKEFLAGS = -o config.h
TEST_EXTENSIONS = .py
TAP_DRIVER = env AM_TAP_AWK='$(AWK)' $(SHELL) $(top_srcdir)/build-aux/tap-driver.sh
LAUNCHER = $(SHELL) $(top_srcdir)/tests/mpi-launch
LOG_DRIVER = $(TAP_DRIVER)
LOG_COMPILER = $(LAUNCHER)
AM_LOG_FLAGS = --mpi "$(MPI_TESTS)"
PY_LOG_DRIVER = $(TAP_DRIVER)
if HAVE_PYTHON
PY_LOG_COMPILER = $(LAUNCHER)
AM_PY_LOG_FLAGS = $(PYTHON)
else
PY_LOG_COMPILER = echo '1..0 \# SKIP configure found no Python 3 with NumPy:'
endif
AM_TESTS_ENVIRONMENT = \
	MPIEXEC='$(MPIEXEC)'; export MPIEXEC; \
	PYTHON='$(PYTHON)'; export PYTHON; PYTHONDONTWRITEBYTECODE=1; export PYTHONDONTWRITEBYTECODE; \
	ALLFOLD=$(abs_top_builddir)/allfold; export ALLFOLD; \
	ALLFOLD_SOURCE=$(abs_top_srcdir); export ALLFOLD_SOURCE; \
	ALLFOLD_BUILD=$(abs_top_builddir); export ALLFOLD_BUILD; \
	ALLFOLD_TEST_LOCK=$(abs_top_builddir)/tests/mpi.lock; export ALLFOLD_TEST_LOCK;

UNIT_TESTS += tests/audit/terms
noinst_HEADERS += tests/audit/wide.h
# The audit of numbers, a hundred times as long as `make check` has it: minutes. It prints the table of docs/numerics.md, but its last column.
.PHONY: check-numerics
check-numerics: tests/audit/audit tests/audit/terms
	@ALLFOLD_AUDIT_STEP=1 tests/audit/terms
	@for backend in $${ALLFOLD_TEST_BACKENDS:-cpu cuda}; do \
	    echo "# $$backend"; ALLFOLD_AUDIT_ROWS=$${ALLFOLD_AUDIT_ROWS:-300000} tests/audit/audit $$backend || exit 1; \
	done

# The GPU tests under compute-sanitizer; needs a GPU, takes many minutes.
.PHONY: check-sanitize
check-sanitize: $(MPI_TESTS) allfold
	$(SHELL) $(top_srcdir)/tests/sanitize
