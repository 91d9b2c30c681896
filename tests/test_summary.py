#!/usr/bin/env python3
"""tools/test-summary, on made-up results of `make check`: it counts all tests of a build folder and none of a folder in it,
names what failed, and does not pass where something failed or nothing ran."""
import os
import subprocess
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


def main():
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
    tap.done()


if __name__ == "__main__":
    main()
