# Examples: small programs that use the public header only. One more is one line: noinst_PROGRAMS += examples/name
# tests/test_examples.py runs them.
noinst_PROGRAMS += examples/01_sum examples/02_softmax
# Linked as users do: without the libraries of file formats.
examples_01_sum_LDADD = liballfold.a $(MPI_LIBS) $(CUDA_LIBS) -lm
examples_02_softmax_LDADD = $(examples_01_sum_LDADD)
