# Faults on purpose: docs/reliability.md. `make check` runs a part of the lists, `make check-faults` all of them.
PYTHON_TESTS += tests/faults/test_phases.py tests/faults/test_signals.py
EXTRA_DIST += tests/faults/faults.py

# The program as it is, with one more object, which looks in at its phases.
check_PROGRAMS += tests/faults/allfold-faulty
tests_faults_allfold_faulty_SOURCES = tests/faults/hook.c
tests_faults_allfold_faulty_LDADD = $(allfold_OBJECTS) $(allfold_LDADD)
