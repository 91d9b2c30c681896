# Fuzzing of the parsers of file formats. `make check` runs the corpus, cut and damaged; `make fuzz` runs libFuzzer (clang) on each.
UNIT_TESTS += tests/fuzz/test_corpus
noinst_HEADERS += tests/fuzz/parse.h
tests_fuzz_test_corpus_SOURCES = tests/fuzz/test_corpus.c tests/fuzz/parse.c
fuzz_corpus = \
	tests/fuzz/corpus/npy/c.npy \
	tests/fuzz/corpus/npy/fortran.npy \
	tests/fuzz/corpus/npy/scalar.npy \
	tests/fuzz/corpus/npy/structured.npy \
	tests/fuzz/corpus/npy/version2.npy \
	tests/fuzz/corpus/npz/comment.npz \
	tests/fuzz/corpus/npz/deflated.npz \
	tests/fuzz/corpus/npz/stored.npz \
	tests/fuzz/corpus/npz/zip64.npz \
	tests/fuzz/corpus/safetensors/hole.safetensors \
	tests/fuzz/corpus/safetensors/none.safetensors \
	tests/fuzz/corpus/safetensors/odd.safetensors \
	tests/fuzz/corpus/safetensors/two.safetensors \
	tests/fuzz/corpus/netcdf/empty.nc \
	tests/fuzz/corpus/netcdf/scalar.nc \
	tests/fuzz/corpus/netcdf/v1.nc \
	tests/fuzz/corpus/netcdf/v2.nc \
	tests/fuzz/corpus/netcdf/v5.nc
EXTRA_DIST += $(fuzz_corpus) tests/fuzz/target.c

# FUZZ_RUNS: of each parser. What is found is left in the build folder, under tests/fuzz/.
FUZZ_CC = clang
FUZZ_RUNS = 10000000
FUZZ_FLAGS = -g -O1 -fsanitize=fuzzer,address,undefined -fno-sanitize-recover=undefined -fno-omit-frame-pointer
FUZZ_TARGETS = npy npz safetensors netcdf
fuzz_formats = cursor directory input netcdf npy npz parts plain safetensors shape swap zip
fuzz_sources = tests/fuzz/target.c tests/fuzz/parse.c $(fuzz_formats:%=src/array/formats/%.c) src/array/data_file.c \
	src/array/encoding.c src/array/file.c src/base/error.c src/base/parse.c src/base/types.c
.PHONY: fuzz
fuzz:
	@for target in $(FUZZ_TARGETS); do \
	    mkdir -p tests/fuzz/found/$$target && echo "fuzzing $$target" && \
	    $(FUZZ_CC) -D_GNU_SOURCE $(PROJECT_CPPFLAGS) $(JSON_C_CFLAGS) $(FUZZ_FLAGS) -DFUZZ_FORMAT=format_$$target \
	      $(addprefix $(srcdir)/,$(fuzz_sources)) -o tests/fuzz/fuzz_$$target $(JSON_C_LIBS) -lm && \
	    tests/fuzz/fuzz_$$target -runs=$(FUZZ_RUNS) -print_final_stats=1 -verbosity=0 -artifact_prefix=tests/fuzz/$$target- \
	      tests/fuzz/found/$$target $(srcdir)/tests/fuzz/corpus/$$target || exit 1; \
	done
CLEANFILES += $(FUZZ_TARGETS:%=tests/fuzz/fuzz_%)
