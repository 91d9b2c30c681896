# The kernels' own sources, compiled by the C++ compiler for the host and run there. Needs no CUDA. The lists of kernels are
# kernels/local.mk and kernels/ladder/local.mk.
UNIT_TESTS += tests/emulation/test_kernels tests/emulation/test_generated tests/emulation/test_order_kernels tests/emulation/test_experiments tests/emulation/test_emulation \
	tests/emulation/test_ladder
emulation_sources = \
	tests/emulation/emulation.cpp \
	tests/emulation/machine.cpp \
	tests/emulation/measure.cpp \
	tests/emulation/shared_begin.cpp \
	tests/emulation/shared_end.cpp \
	tests/emulation/test_emulation.cpp \
	tests/emulation/test_kernels.cpp \
	tests/emulation/test_generated.cpp \
	tests/emulation/test_order_kernels.cpp \
	tests/emulation/test_experiments.cpp \
	tests/emulation/test_ladder.cpp
noinst_HEADERS += tests/emulation/cuda_host.h tests/emulation/cuda_runtime.h tests/emulation/emulation.h \
	tests/emulation/standin/cuda_runtime_api.h
EXTRA_DIST += tests/emulation/standin/standin.c
EXTRA_DIST += $(emulation_sources) tests/emulation/no_compiler.c $(kernel_sources) $(ladder_kernels) $(measure_kernels)

if HAVE_EMULATION
# _FORTIFY_SOURCE, which some compilers define, takes the poisoning of all __shared__ memory for an overflow.
# tests/emulation stands before all folders that might hold the real cuda_runtime.h; nvcc, too, includes that first.
EMULATION_COMPILE = $(CXX) -std=c++17 -I$(top_srcdir)/tests/emulation $(PROJECT_CPPFLAGS) $(CPPFLAGS) \
	-Wall -Wextra -Wno-unknown-pragmas -Wno-attributes -ffp-contract=off -fno-strict-aliasing -U_FORTIFY_SOURCE $(CXXFLAGS) \
	-MD -MP -MF $(@:.o=.d)
EMULATION_LINK = $(CXX) $(EMULATION_SANITIZE) $(CXXFLAGS) $(LDFLAGS) -o $@
AM_V_CXX = $(am__v_CXX_@AM_V@)
am__v_CXX_ = $(am__v_CXX_@AM_DEFAULT_V@)
am__v_CXX_0 = @echo "  CXX     " $@;
am__v_CXX_1 =
# What `allfold ladder` loads where there is no GPU: its rungs, which are compiled a second time, as the tests' have sanitizers.
machinedir = $(pkglibdir)
machine_PROGRAMS = allfold-ladder.so
allfold_ladder_so_SOURCES =
machine_objects = $(addprefix tests/emulation/plain/, \
	emulation.o \
	shared_begin.o \
	measure.o \
	machine.o \
	$(patsubst %.cu,%.o,$(ladder_classic_rungs) $(ladder_softmax_rungs) $(filter-out %_engine.cu,$(ladder_line_rungs))) \
	$(addprefix kernels/ladder/,host_recursion.o input.o levels.o runner.o rungs.o softmax_ladder.o topics.o) \
	shared_end.o)
allfold_ladder_so_LDADD = $(machine_objects) libladder.a libmeasure.a libcore.a $(OPENMP_LIBS) -lm
allfold_ladder_so_LINK = $(CXX) -shared $(CXXFLAGS) $(LDFLAGS) -o $@
PLAIN_FLAGS = -fPIC -fvisibility=hidden
tests/emulation/plain/%.o: tests/emulation/%.cpp
	$(AM_V_CXX)$(MKDIR_P) $(@D) && $(EMULATION_COMPILE) $(PLAIN_FLAGS) -c $< -o $@
tests/emulation/plain/kernels/%.o: kernels/%.cu
	$(AM_V_CXX)$(MKDIR_P) $(@D) && $(EMULATION_COMPILE) $(PLAIN_FLAGS) -x c++ -include cuda_runtime.h -c $< -o $@
tests/emulation/plain/kernels/%.o: kernels/%.c
	$(AM_V_CC)$(MKDIR_P) $(@D) && $(CC) -D_GNU_SOURCE -DLADDER_EMULATED $(PROJECT_CPPFLAGS) $(CPPFLAGS) $(AM_CFLAGS) $(CFLAGS) \
	  -MD -MP -MF $(@:.o=.d) -c $< -o $@
cuda_depends += $(machine_objects:.o=.d)
CLEANFILES += $(machine_objects)
endif

PYTHON_TESTS += tests/emulation/test_library.py
check_PROGRAMS += tests/emulation/allfold
if HAVE_KERNEL_TESTS
# Everything between shared_begin.o and shared_end.o may have __shared__ variables.
emulation_begin = tests/emulation/emulation.o tests/emulation/shared_begin.o
emulated_kernels = $(addprefix tests/emulation/,$(kernel_sources:.cu=.o))
emulated_rungs = $(addprefix tests/emulation/,$(ladder_classic_rungs:.cu=.o) $(ladder_softmax_rungs:.cu=.o))
tests_emulation_test_emulation_SOURCES =
tests_emulation_test_emulation_LDADD = \
	$(emulation_begin) \
	tests/emulation/test_emulation.o \
	tests/emulation/shared_end.o \
	-lpthread
tests_emulation_test_emulation_LINK = $(EMULATION_LINK)
tests_emulation_test_kernels_SOURCES =
tests_emulation_test_kernels_LDADD = \
	$(emulation_begin) \
	tests/emulation/test_kernels.o \
	$(emulated_kernels) \
	tests/emulation/shared_end.o \
	libfiles.a libcore.a -lm
tests_emulation_test_kernels_LINK = $(EMULATION_LINK)
tests_emulation_test_generated_SOURCES =
tests_emulation_test_generated_LDADD = \
	$(emulation_begin) \
	tests/emulation/test_generated.o \
	tests/emulation/kernels/generate.o \
	tests/emulation/shared_end.o \
	libfiles.a libcore.a $(OPENMP_LIBS) -lm
tests_emulation_test_generated_LINK = $(EMULATION_LINK)
tests_emulation_test_order_kernels_SOURCES =
tests_emulation_test_order_kernels_LDADD = \
	$(emulation_begin) \
	tests/emulation/test_order_kernels.o \
	$(addprefix tests/emulation/kernels/,order.o order_brackets.o order_digits.o order_even.o order_sample.o order_search.o \
		order_table.o) \
	tests/emulation/shared_end.o \
	libfiles.a libcore.a $(OPENMP_LIBS) -lm
tests_emulation_test_order_kernels_LINK = $(EMULATION_LINK)
tests_emulation_test_ladder_SOURCES =
tests_emulation_test_ladder_LDADD = \
	$(emulation_begin) \
	tests/emulation/test_ladder.o \
	$(emulated_rungs) \
	tests/emulation/shared_end.o \
	tests/emulation/kernels/ladder/oracle.o \
	libfiles.a libcore.a -lm
tests_emulation_test_ladder_LINK = $(EMULATION_LINK)
emulated_experiments = $(addprefix tests/emulation/,$(ladder_experiments:.cu=.o) $(ladder_line_rungs:.cu=.o)) \
	tests/emulation/kernels/ladder/input.o \
	tests/emulation/kernels/ladder/levels.o \
	tests/emulation/kernels/ladder/runner.o
tests_emulation_test_experiments_SOURCES =
tests_emulation_test_experiments_LDADD = \
	$(emulation_begin) \
	tests/emulation/test_experiments.o \
	tests/emulation/measure.o \
	$(emulated_experiments) \
	$(emulated_kernels) \
	tests/emulation/shared_end.o \
	tests/emulation/kernels/ladder/oracle.o \
	tests/emulation/standin/kernels/ladder/topics.o \
	$(addprefix tests/emulation/standin/measure/,absent.o table.o times.o) \
	libfiles.a libcore.a -lm
tests_emulation_test_experiments_LINK = $(EMULATION_LINK)

# The whole program with the CUDA backend's own sources on devices that stand in for GPUs: standin/cuda_runtime_api.h.
# Ladder and benchmark, which would want the real runtime, are those of a build without CUDA.
tests_emulation_allfold_SOURCES =
standin_objects = \
	tests/emulation/standin/standin.o \
	$(patsubst src/%.c,tests/emulation/standin/%.o,$(cuda_backend)) \
	$(addprefix tests/emulation/standin/,$(filter kernels/%.o,$(libladder_a_SOURCES:.c=.o))) \
	$(addprefix tests/emulation/standin/,$(sort bench/absent.o $(filter bench/%.o,$(libbench_a_SOURCES:.c=.o)))) \
	$(addprefix tests/emulation/standin/measure/,absent.o table.o times.o)
tests_emulation_allfold_LDADD = \
	$(emulation_begin) \
	$(emulated_kernels) \
	tests/emulation/shared_end.o \
	$(standin_objects) $(allfold_OBJECTS) \
	libfiles.a libcore.a $(MPI_LIBS) $(JSON_C_LIBS) $(FORMAT_LIBS) $(OPENMP_LIBS) -lpthread -ldl -lm
tests_emulation_allfold_LINK = $(EMULATION_LINK)
EXTRA_tests_emulation_allfold_DEPENDENCIES = $(allfold_OBJECTS)

# And the tests of the library, so that several ranks with a device each meet where there is none.
check_PROGRAMS += tests/emulation/axis_folds tests/emulation/test_softmax tests/emulation/test_failures tests/emulation/test_begin tests/emulation/test_log_probs tests/emulation/test_many tests/emulation/test_order tests/emulation/dot_folds
standin_library = \
	$(emulation_begin) \
	$(emulated_kernels) \
	tests/emulation/shared_end.o \
	$(filter %/standin.o tests/emulation/standin/device/%.o,$(standin_objects)) \
	libfiles.a libcore.a $(MPI_LIBS) $(FORMAT_LIBS) $(OPENMP_LIBS) -lpthread -ldl -lm
tests_emulation_axis_folds_SOURCES =
tests_emulation_axis_folds_LDADD = tests/programs/axis_folds.$(OBJEXT) $(standin_library)
tests_emulation_axis_folds_LINK = $(EMULATION_LINK)
tests_emulation_test_softmax_SOURCES =
tests_emulation_test_softmax_LDADD = tests/test_softmax.$(OBJEXT) $(standin_library)
tests_emulation_test_softmax_LINK = $(EMULATION_LINK)
tests_emulation_test_failures_SOURCES =
tests_emulation_test_failures_LDADD = $(tests_test_failures_OBJECTS) $(standin_library)
# automake makes no prerequisite of a list of objects in LDADD
EXTRA_tests_emulation_test_failures_DEPENDENCIES = $(tests_test_failures_OBJECTS)
tests_emulation_test_failures_LINK = $(EMULATION_LINK)
tests_emulation_test_log_probs_SOURCES =
tests_emulation_test_log_probs_LDADD = tests/test_log_probs.$(OBJEXT) $(standin_library)
tests_emulation_test_log_probs_LINK = $(EMULATION_LINK)
tests_emulation_test_begin_SOURCES =
tests_emulation_test_begin_LDADD = tests/test_begin.$(OBJEXT) $(standin_library)
tests_emulation_test_begin_LINK = $(EMULATION_LINK)
tests_emulation_test_many_SOURCES =
tests_emulation_test_many_LDADD = tests/test_many.$(OBJEXT) $(standin_library)
tests_emulation_test_many_LINK = $(EMULATION_LINK)
tests_emulation_test_order_SOURCES =
tests_emulation_test_order_LDADD = tests/test_order.$(OBJEXT) $(standin_library)
tests_emulation_test_order_LINK = $(EMULATION_LINK)
tests_emulation_dot_folds_SOURCES =
tests_emulation_dot_folds_LDADD = tests/programs/dot_folds.$(OBJEXT) $(standin_library)
tests_emulation_dot_folds_LINK = $(EMULATION_LINK)
STANDIN_COMPILE = $(CC) -D_GNU_SOURCE -I$(top_srcdir)/tests/emulation/standin $(MPI_CFLAGS) $(JSON_C_CFLAGS) \
	$(filter-out -DALLFOLD_HAVE_CUDA=1,$(PROJECT_CPPFLAGS)) $(CPPFLAGS) $(AM_CFLAGS) $(CFLAGS) -MD -MP -MF $(@:.o=.d)
tests/emulation/standin/standin.o: tests/emulation/standin/standin.c
	$(AM_V_CC)$(MKDIR_P) $(@D) && $(STANDIN_COMPILE) -c $< -o $@
tests/emulation/standin/device/%.o: src/device/%.c
	$(AM_V_CC)$(MKDIR_P) $(@D) && $(STANDIN_COMPILE) -c $< -o $@
tests/emulation/standin/measure/%.o: measure/%.c
	$(AM_V_CC)$(MKDIR_P) $(@D) && $(STANDIN_COMPILE) -c $< -o $@
tests/emulation/standin/bench/%.o: bench/%.c
	$(AM_V_CC)$(MKDIR_P) $(@D) && $(STANDIN_COMPILE) -c $< -o $@
tests/emulation/standin/kernels/ladder/%.o: kernels/ladder/%.c
	$(AM_V_CC)$(MKDIR_P) $(@D) && $(STANDIN_COMPILE) -c $< -o $@

tests/emulation/emulation.o: tests/emulation/emulation.cpp
	$(AM_V_CXX)$(MKDIR_P) $(@D) && $(EMULATION_COMPILE) -O2 $(filter -D%,$(EMULATION_SANITIZE)) -c $< -o $@
# What the kernels are compared with takes a tenth less time so; of the kernels themselves, -O1 doubles the time to compile.
tests/emulation/%.o: tests/emulation/%.cpp
	$(AM_V_CXX)$(MKDIR_P) $(@D) && $(EMULATION_COMPILE) -O1 $(EMULATION_SANITIZE) -c $< -o $@
tests/emulation/kernels/%.o: kernels/%.cu
	$(AM_V_CXX)$(MKDIR_P) $(@D) && $(EMULATION_COMPILE) $(EMULATION_SANITIZE) -x c++ -include cuda_runtime.h -c $< -o $@
# Without OpenMP, whose library $(CXX) may not know.
tests/emulation/kernels/ladder/oracle.o: kernels/ladder/oracle.c
	$(AM_V_CC)$(MKDIR_P) $(@D) && $(CC) -D_GNU_SOURCE $(PROJECT_CPPFLAGS) $(CPPFLAGS) -Wall -Wextra -Wno-unknown-pragmas \
	  $(CFLAGS) -MD -MP -MF $(@:.o=.d) -c $< -o $@
emulation_objects = $(emulation_sources:.cpp=.o) $(emulated_kernels) $(emulated_rungs) $(emulated_experiments) \
	tests/emulation/kernels/ladder/oracle.o $(standin_objects)
cuda_depends += $(emulation_objects:.o=.d)
CLEANFILES += $(emulation_objects)
else
tests_emulation_test_emulation_SOURCES = tests/emulation/no_compiler.c
tests_emulation_test_emulation_LINK = $(LINK)
tests_emulation_test_kernels_SOURCES = tests/emulation/no_compiler.c
tests_emulation_test_kernels_LINK = $(LINK)
tests_emulation_test_generated_SOURCES = tests/emulation/no_compiler.c
tests_emulation_test_generated_LINK = $(LINK)
tests_emulation_test_order_kernels_SOURCES = tests/emulation/no_compiler.c
tests_emulation_test_order_kernels_LINK = $(LINK)
tests_emulation_test_ladder_SOURCES = tests/emulation/no_compiler.c
tests_emulation_test_ladder_LINK = $(LINK)
tests_emulation_test_experiments_SOURCES = tests/emulation/no_compiler.c
tests_emulation_test_experiments_LINK = $(LINK)
tests_emulation_allfold_SOURCES = tests/emulation/no_compiler.c
tests_emulation_allfold_LINK = $(LINK)
endif
