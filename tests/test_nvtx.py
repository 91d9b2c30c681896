#!/usr/bin/env python3
"""A profiler sees each phase of each thread of a rank as a range of that name. The profiler is tests/programs/nvtx_profiler.c, which NVTX loads into
the program as it would load nsys's."""
import os

import numpy as np

import cli
import tap

PROFILER = os.path.join(tap.BUILD, "tests", "programs", "nvtx_profiler.so")


def ranges(folder, *words, count=1):
    """What the profiler of each rank was told by each thread: dictionaries of lists of lines, in the order of the threads' first."""
    script = 'exec "$0" "$@" 9>"$FOLDER/ranges.${OMPI_COMM_WORLD_RANK:-$PMIX_RANK}"'
    process = tap.run(count, "sh", "-c", script, tap.ALLFOLD, *words,
                      env={"NVTX_INJECTION64_PATH": PROFILER, "FOLDER": folder.path})
    tap.ok(process.returncode == 0, f"allfold {words[0]} runs under a profiler", cli.shown(process))
    for rank in range(count):
        threads = {}
        with open(folder.name(f"ranges.{rank}"), encoding="utf-8") as file:
            for line in file:
                thread, told = line.rstrip("\n").split(" ", 1)
                threads.setdefault(thread, []).append(told)
        yield threads


def alternate(told):
    """Whether each range ends before the next begins."""
    return all(line == "pop" if i % 2 == 1 else line.startswith("push ") for i, line in enumerate(told))


def main():
    if not os.path.isfile(PROFILER):
        tap.skip("configure found no nvtx3/nvToolsExt.h")
        tap.done()
    with cli.Folder() as folder:
        np.save(folder.name("x.npy"), np.ones(100000, np.float32))
        for rank, threads in enumerate(ranges(folder, "softmax", "--threads=3", "--staging=64Ki", folder.name("x.npy"), "-o",
                                              folder.name("y.npy"), count=2)):
            (domain, *first), *others = threads.values()
            tap.ok(domain == "domain allfold" and all(map(alternate, [first, *others])), f"rank {rank}: in each thread one range "
                   "after the other", threads)
            tap.ok(len(others) == 2 and all(told[-1] == "pop" for told in others),
                   f"rank {rank}: each thread has ranges of its own, which end with its work", threads)
            names = {line[len("push "):] for told in threads.values() for line in told if line.startswith("push ")}
            wanted = {"read", "fold", "exchange", "normalise", "write"} | ({"rename"} if rank == 0 else set())
            tap.ok(wanted <= names, f"rank {rank}: named after the phases", sorted(names))
    tap.done()


if __name__ == "__main__":
    main()
