# Two hosts in one: network namespaces joined by a cable that can be pulled. Needs root; skips without.
PYTHON_TESTS += tests/multihost/test_cable.py
EXTRA_DIST += tests/multihost/agent
