#!/usr/bin/env python3
"""The main job, shown step by step: makes an array of logits, runs allfold's sum, stats and softmax on two ranks, and
prints each number beside NumPy's. Fails if they disagree. Usage: quickstart-check.py BUILD_FOLDER"""
import json
import math
import os
import shlex
import shutil
import subprocess
import sys

import numpy as np

COUNT = 4_000_000
failures = 0


def allfold(build, *words):
    """Runs the program on two ranks, showing the command; gives its JSON report."""
    launcher = shlex.split(os.environ.get("MPIEXEC") or ("mpirun" if shutil.which("mpirun") else "mpiexec"))
    command = launcher + ["-n", "2", os.path.join(build, "allfold"), *words]
    print("\n$ " + shlex.join(command))
    done = subprocess.run(command + ["--json"], stdout=subprocess.PIPE, text=True, timeout=300)
    if done.returncode != 0:
        sys.exit(f"quickstart: exit status {done.returncode}")
    return json.loads(done.stdout)


def compare(name, ours, numpy, tolerance):
    """One line: both numbers and their relative difference (absolute below 1)."""
    global failures
    error = abs(ours - numpy) / max(abs(numpy), 1.0)
    right = error <= tolerance  # false for NaN
    failures += not right
    print(f"  {name:<16} allfold {ours:<24.17g} NumPy {numpy:<24.17g} {'agree' if right else 'DISAGREE'}"
          f" (error {error:.1e}, allowed {tolerance:.0e})")


def check_sum(build, path, x):
    report = allfold(build, "sum", path)
    compare("sum", float(report["value"]), math.fsum(x), 0)
    compare("count", report["count"], x.size, 0)


def check_stats(build, path, x):
    stats = {name: field["value"] for name, field in allfold(build, "stats", path)["stats"].items()}
    wide = x.astype(np.float64)
    expected = {
        "count": (x.size, 0), "nan_count": (0, 0), "sum": (math.fsum(wide), 1e-12), "mean": (wide.mean(), 1e-12),
        "variance": (wide.var(), 1e-9), "min": (wide.min(), 0), "max": (wide.max(), 0),
        "norm1": (np.abs(wide).sum(), 1e-11), "norm2": (np.linalg.norm(wide), 1e-11), "norminf": (np.abs(wide).max(), 0),
    }
    for name, (value, tolerance) in expected.items():
        compare(name, float(stats[name]), float(value), tolerance)


def check_softmax(build, path, x):
    global failures
    output = os.path.join(os.path.dirname(path), "softmax.npy")
    allfold(build, "softmax", path, "-o", output)
    y = np.load(output)
    shifted = x.astype(np.float64) - float(x.max())
    expected = np.exp(shifted)
    expected /= expected.sum()
    normal = expected >= np.finfo(np.float32).tiny
    ulps = np.abs(y[normal] - expected[normal]) / np.spacing(expected[normal].astype(np.float32))
    right = y.dtype == np.float32 and y.shape == x.shape and bool(ulps.max() <= 2)
    failures += not right
    print(f"  {'softmax':<16} {y.size} elements, the worst {ulps.max():.2f} ulp from NumPy's in float64: "
          f"{'agree' if right else 'DISAGREE'} (allowed 2)")
    compare("sum of softmax", float(y.sum(dtype=np.float64)), 1.0, 1e-6)


def main():
    build = os.path.relpath(sys.argv[1])
    folder = os.path.join(build, "quickstart")
    os.makedirs(folder, exist_ok=True)
    path = os.path.join(folder, "logits.npy")
    # Outliers, or a softmax that forgets to subtract the maximum would pass.
    random = np.random.default_rng(1)
    x = (random.standard_normal(COUNT) * 4).astype(np.float32)
    x[random.integers(0, COUNT, 20)] += 80
    np.save(path, x)
    print(f"{path}: {COUNT} logits, float32, from {x.min():.2f} to {x.max():.2f}")
    check_sum(build, path, x)
    check_stats(build, path, x)
    check_softmax(build, path, x)
    if failures:
        sys.exit(f"\nquickstart: {failures} numbers disagree with NumPy")
    print(f"\nAll agree. Next: {build}/allfold --help, README.md")


if __name__ == "__main__":
    main()
