# Examples: small programs that use the public header only. One more is one line: noinst_PROGRAMS += examples/name
# tests/test_examples.py runs them.
noinst_PROGRAMS += examples/01_sum examples/02_softmax
