# Examples: small programs that use the public header only. One more is one line: noinst_PROGRAMS += examples/name
# tests/test_examples.py runs them.
noinst_PROGRAMS += examples/01_sum examples/02_softmax examples/04_conjugate_gradients examples/05_vocabulary
# Linked with what is in both libraries that are installed: its internal names are local, and it needs no library of file formats.
examples_01_sum_LDADD = src/liballfold.o $(MPI_LIBS) $(CUDA_LIBS) -lm
examples_02_softmax_LDADD = $(examples_01_sum_LDADD)
examples_04_conjugate_gradients_LDADD = $(examples_01_sum_LDADD)
examples_05_vocabulary_LDADD = $(examples_01_sum_LDADD)
# In Python, 06 with PyTorch: run from here.
EXTRA_DIST += examples/06_cross_entropy.py examples/07_clip_gradients.py examples/08_train.py
# In Fortran, if there is a compiler.
if HAVE_FORTRAN
noinst_PROGRAMS += examples/03_fortran
examples_03_fortran_SOURCES =
examples_03_fortran_LDADD = examples/03_fortran.o $(fortran_library)
examples_03_fortran_LINK = $(FORTRAN_LINK)
endif
