#!/usr/bin/env python3
"""tools/test-summary, on made-up results of `make check`: it counts all tests of a build folder and none of a folder in it,
names what failed, and does not pass where something failed or nothing ran. ALLFOLD_TEST_CASE, by which one check runs by itself.
./quickstart, with stand-ins for what it calls: what it does if packages are missing."""
import os
import shutil
import subprocess
import sys
import tempfile

import tap


def results(folder, name, *verdicts, log=""):
    """What the harness leaves of a test."""
    path = os.path.join(folder, name)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path + ".trs", "w", encoding="utf-8") as file:
        file.write("".join(f":test-result: {verdict}\n" for verdict in verdicts) + ":global-test-result: FAIL\n")
    with open(path + ".log", "w", encoding="utf-8") as file:
        file.write(log)


def summary(*folders):
    done = subprocess.run(["sh", os.path.join(tap.SOURCE, "tools", "test-summary"), *folders], capture_output=True, text=True)
    return done.returncode, done.stdout.splitlines(), done.stderr


def checks(case, *command):
    """The names of the checks that a test then has, or why it has none."""
    environment = {**os.environ, "ALLFOLD_TEST_CASE": case, "ALLFOLD_TEST_RANKS": "1 2", "ALLFOLD_TEST_BACKENDS": "cpu", "ALLFOLD_TEST_PREFIX": ""}
    done = subprocess.run(["sh", os.path.join(tap.SOURCE, "tests", "mpi-launch"), *command], capture_output=True, text=True, env=environment, cwd=tap.BUILD)
    return [line.split(" - ")[-1] for line in done.stdout.splitlines() if line.startswith("ok ") or "SKIP" in line]


def check_case(folder):
    axis = ["--mpi", "tests/test_axis", "tests/test_axis"]
    for case, due in (("2 ranks, cpu: types of results", ["2 ranks, cpu: types of results"]),
                      ("types of res", ["1 rank, cpu: types of results", "2 ranks, cpu: types of results"]),
                      ("3 ranks, cpu: types of results", ["1..0 # SKIP no check is named so"]), ("no such", ["1..0 # SKIP no check is named so"])):
        found = checks(case, *axis)
        tap.ok(found == due, f"one check by itself: {case}", found)
    script = os.path.join(folder, "test.py")
    with open(script, "w", encoding="utf-8") as file:
        file.write(f"import sys\nsys.path.insert(0, {os.path.dirname(tap.__file__)!r})\nimport tap\n"
                   "for name in ('one', 'two'):\n    if tap.wanted(f'{name} of'):\n        tap.ok(name == 'one', f'{name} of 3')\n"
                   "tap.skip('one is not here')\ntap.done()\n")
    for case, due in (("one of 3", ["one of 3"]), ("one", ["one of 3", "# SKIP one is not here"]), ("three", ["1..0 # SKIP no check is named so"])):
        found = checks(case, sys.executable, script)
        tap.ok(found == due, f"one check of a script by itself: {case}", found)


def quickstart(top, known):
    """APT=no ./quickstart where pkg-config knows these packages only."""
    for name, script in (("configure", "echo >config.status\necho >Makefile"), ("bin/pkg-config", f'case "$2" in {known}) exit 0 ;; esac\nexit 1'),
                         *((f"bin/{tool}", "") for tool in ("gcc", "g++", "make", "mpicc", "mpirun"))):
        path = os.path.join(top, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="ascii") as file:
            file.write(f"#!/bin/sh\n{script}\n")
        os.chmod(path, 0o755)
    os.makedirs(os.path.join(top, "tools"), exist_ok=True)
    with open(os.path.join(top, "tools", "quickstart-check.py"), "w", encoding="ascii") as file:
        file.write("print('checked')\n")
    shutil.copy(os.path.join(tap.SOURCE, "quickstart"), top)
    return subprocess.run(["sh", os.path.join(top, "quickstart")], capture_output=True, text=True,
                          env={**os.environ, "APT": "no", "PATH": f"{top}/bin:{os.environ['PATH']}"})


def main():
    with tempfile.TemporaryDirectory() as top:
        done = quickstart(top, "json-c*")
        tap.ok(done.returncode == 0 and "checked" in done.stdout
               and all(name in done.stdout for name in ("libhdf5-dev: HDF5", "libdeflate-dev: ", "libzstd-dev: ")),
               "quickstart goes on without optional packages, and says what is left out", done)
        done = quickstart(top, "hdf5*|lib*")
        tap.ok(done.returncode == 1 and "libjson-c-dev -" in done.stderr and not done.stdout, "and stops without others", done)
    with tempfile.TemporaryDirectory() as top:
        build, other, empty = (os.path.join(top, name) for name in ("build", "other", "empty"))
        os.makedirs(os.path.join(empty, "tests"))
        results(build, "tests/test_one", "PASS", "PASS", "SKIP")
        results(build, "tests/faults/test_two", "PASS", "XFAIL")
        for inner in ("ci/cpu", "allfold-1/_build/sub"):
            results(os.path.join(build, inner), "tests/test_one", "PASS", "FAIL")
            results(os.path.join(build, inner), "tests/faults/test_two", "ERROR")
        found = summary(build)
        tap.ok(found == (0, ["4 passed, 0 failed, 1 skipped"], ""), "all tests of a folder, none of folders in it", found)
        found = summary(empty)
        tap.ok(found[0] != 0 and found[1] == ["0 passed, 0 failed, 0 skipped"], "nothing ran: no success", found)

        results(other, "tests/slurm/test_three", "PASS", "FAIL", "XPASS", "ERROR",
                log="ok 1\nPASS: tests/slurm/test_three 1\nnot ok 2 - two\nFAIL: tests/slurm/test_three 2 - two\n"
                    "XPASS: tests/slurm/test_three 3\nERROR: tests/slurm/test_three - too many tests\n")
        results(other, "tests/test_cut")
        found = summary(build, other)
        expected = [f"{other}/tests/slurm/test_three.log:", "FAIL: tests/slurm/test_three 2 - two", "XPASS: tests/slurm/test_three 3",
                    "ERROR: tests/slurm/test_three - too many tests", f"{other}/tests/test_cut.log:",
                    "5 passed, 4 failed, 1 skipped"]
        tap.ok(found == (1, expected, ""), "names of what failed; a test that was cut off failed", found)
        check_case(top)
    tap.done()


if __name__ == "__main__":
    main()
