#!/usr/bin/env python3
"""A profiler sees each phase of a rank as a range of that name. The profiler is tests/nvtx_profiler.c, which NVTX loads into
the program as it would load nsys's."""
import os

import numpy as np

import cli
import tap

PROFILER = os.path.join(tap.BUILD, "tests", "nvtx_profiler.so")


def ranges(folder, *words, count=1):
    """What the profiler of each rank was told, as lists of lines."""
    script = 'exec "$0" "$@" 9>"$FOLDER/ranges.${OMPI_COMM_WORLD_RANK:-$PMIX_RANK}"'
    process = tap.run(count, "sh", "-c", script, tap.ALLFOLD, *words,
                      env={"NVTX_INJECTION64_PATH": PROFILER, "FOLDER": folder.path})
    tap.ok(process.returncode == 0, f"allfold {words[0]} runs under a profiler", cli.shown(process))
    lines = []
    for rank in range(count):
        try:
            with open(folder.name(f"ranges.{rank}"), encoding="utf-8") as file:
                lines.append(file.read().split("\n")[:-1])
        except OSError as error:
            lines.append([str(error)])
    return lines


def main():
    if not os.path.isfile(PROFILER):
        tap.skip("configure found no nvtx3/nvToolsExt.h")
        tap.done()
    with cli.Folder() as folder:
        np.save(folder.name("x.npy"), np.ones(100000, np.float32))
        for rank, told in enumerate(ranges(folder, "softmax", "--staging=64Ki", folder.name("x.npy"), "-o", folder.name("y.npy"),
                                           count=2)):
            names = [line[len("push "):] for line in told if line.startswith("push ")]
            nested = [line for line in told[1:] if line != "pop" and not line.startswith("push ")]
            alternate = all((line == "pop") == (i % 2 == 1) for i, line in enumerate(told[1:]))
            tap.ok(told[0] == "domain allfold" and not nested and alternate, f"rank {rank}: one range after the other", told[:9])
            wanted = {"read", "fold", "exchange", "normalise", "write"} | ({"rename"} if rank == 0 else set())
            tap.ok(wanted <= set(names), f"rank {rank}: named after the phases", sorted(set(names)))
    tap.done()


if __name__ == "__main__":
    main()
