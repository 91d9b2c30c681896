#!/usr/bin/env python3
"""tests/test_softmax, tests/test_failures, tests/test_begin and tests/test_axes.py with the CUDA backend on devices that stand in for
GPUs: two of them, for one rank, for two and for three, of which two share one."""
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import tap  # noqa: E402

HERE = os.path.join(tap.BUILD, "tests", "emulation")
# The leaks of MPI are of no use to the address sanitizer.
ENVIRONMENT = {"ALLFOLD_STANDIN_DEVICES": "2", "ASAN_OPTIONS": os.environ.get("ASAN_OPTIONS", "") + ":detect_leaks=0"}


def run(case):
    program, ranks = case
    return program, ranks, tap.run(ranks, os.path.join(HERE, program), "cuda", env=ENVIRONMENT)


if not os.path.exists(os.path.join(HERE, "test_softmax")):
    tap.skip("configured without the emulation, or no C++17 compiler")
elif "cuda" not in os.environ.get("ALLFOLD_TEST_BACKENDS", "cuda"):
    tap.skip("ALLFOLD_TEST_BACKENDS leaves cuda out")
else:
    with ThreadPoolExecutor(2) as pool:
        for name, ranks, done in pool.map(run, [("test_softmax", 2), ("test_softmax", 1), ("test_failures", 3), ("test_begin", 2)]):
            lines = done.stdout.splitlines()
            good = [line for line in lines if line.startswith("ok ")]
            tap.ok(done.returncode == 0 and f"1..{len(good)}" in lines and len(good) >= 10,
                   f"{name} on {ranks} ranks with stand-in devices: {len(good)} checks", done.stdout + done.stderr)
    for ranks, cases, more in (("1 3", "100", {}), ("2", "20", {"ALLFOLD_TEST_EXCHANGE": "mpi"})):
        environment = dict(os.environ, **ENVIRONMENT, ALLFOLD_AXIS_FOLDS=os.path.join(HERE, "axis_folds"), ALLFOLD_TEST_BACKENDS="cuda",
                           ALLFOLD_TEST_RANKS=ranks, ALLFOLD_TEST_CASES=cases, **more)
        done = subprocess.run([sys.executable, os.path.join(tap.SOURCE, "tests", "test_axes.py")], env=environment, capture_output=True,
                              text=True, check=False)
        lines = done.stdout.splitlines()
        tap.ok(done.returncode == 0 and sum(line.startswith("ok ") for line in lines) == len(ranks.split()) and "not ok" not in done.stdout,
               "test_axes.py with stand-in devices" + (", exchanged by MPI" if more else ""), done.stdout + done.stderr)
tap.done()
