#!/usr/bin/env python3
"""tests/test_softmax and tests/test_failures with the CUDA backend on devices that stand in for GPUs: two of them, for one rank,
for two and for three, of which two share one."""
import os
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
        for name, ranks, done in pool.map(run, [("test_softmax", 2), ("test_softmax", 1), ("test_failures", 3)]):
            lines = done.stdout.splitlines()
            good = [line for line in lines if line.startswith("ok ")]
            tap.ok(done.returncode == 0 and f"1..{len(good)}" in lines and len(good) >= 10,
                   f"{name} on {ranks} ranks with stand-in devices: {len(good)} checks", done.stdout + done.stderr)
tap.done()
