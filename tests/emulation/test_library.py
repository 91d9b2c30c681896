#!/usr/bin/env python3
"""tests/test_softmax, tests/test_failures, tests/test_begin, tests/test_many, tests/test_order, tests/test_log_probs and tests/test_axes.py with the CUDA backend
on devices that stand in for GPUs: two of them, for two ranks and for three, of which two share one."""
import os
import sys
from concurrent.futures import ThreadPoolExecutor

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import tap  # noqa: E402

HERE = os.path.join(tap.BUILD, "tests", "emulation")
# The leaks of MPI are of no use to the address sanitizer.
ENVIRONMENT = {"ALLFOLD_STANDIN_DEVICES": "2", "ASAN_OPTIONS": os.environ.get("ASAN_OPTIONS", "") + ":detect_leaks=0"}


def program(name, ranks):
    tap.relay(f"{name} on {ranks} rank{'s' * (ranks > 1)}, stand-in devices", ranks, os.path.join(HERE, name), "cuda", env=ENVIRONMENT, least=10)


def axes(ranks, cases, more):
    """A part of the calls: kernels take all of them on GPUs, and host code on CPUs; here they are compared on ranks whose devices are apart."""
    environment = {**ENVIRONMENT, "ALLFOLD_AXIS_FOLDS": os.path.join(HERE, "axis_folds"), "ALLFOLD_TEST_BACKENDS": "cuda",
                   "ALLFOLD_TEST_RANKS": ranks, "ALLFOLD_TEST_CASES": cases, "ALLFOLD_TEST_EVERY": "12", **more}
    tap.relay("test_axes.py, stand-in devices" + (", exchanged by MPI" if more else ""), 0, sys.executable,
              os.path.join(tap.SOURCE, "tests", "test_axes.py"), env=environment, least=len(ranks.split()))


if not os.path.exists(os.path.join(HERE, "test_softmax")):
    tap.skip("configured without the emulation, or no C++17 compiler")
elif "cuda" not in os.environ.get("ALLFOLD_TEST_BACKENDS", "cuda"):
    tap.skip("ALLFOLD_TEST_BACKENDS leaves cuda out")
else:
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(program, *zip(("test_softmax", 2), ("test_failures", 3), ("test_begin", 2), ("test_many", 2), ("test_log_probs", 2), ("test_order", 2))))
    axes("1 3", "12", {})
    axes("2", "5", {"ALLFOLD_TEST_EXCHANGE": "mpi"})
tap.done()
