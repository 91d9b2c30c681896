#!/usr/bin/env python3
"""The failing-call sweep: on one rank the k-th open, pread, pwrite, fsync, rename, malloc and so on fails, for every k until
a run has no k-th. Then either the result is right, or the status is not 0, a message says why, and the output is what it was.
Interrupted and short reads and writes are continued: with every other one of them the result is right. And a file system that
is full for real."""
import os
import re
import subprocess
import tempfile
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import numpy as np

import faults
import tap

LIBRARY = os.path.join(tap.BUILD, "tests", "faults", "failing.so")
CALLS = {  # call -> how it fails
    "open": ["EIO", "EINTR"],
    "pread": ["EIO", "EINTR", "short", "zero"],
    "preadv2": ["EOPNOTSUPP", "EAGAIN", "EIO", "EINTR", "short", "zero"],
    "pwrite": ["ENOSPC", "EIO", "EINTR", "short", "zero"],
    "fsync": ["ENOSPC", "EIO", "EINTR"],
    "rename": ["ENOSPC", "EIO"],
    "malloc": ["ENOMEM"],
    "close": ["EIO", "EINTR"],
    "fallocate": ["ENOSPC", "EINTR"],
    "flock": ["EIO"],
    "ftruncate": ["EIO"],
    "fchmod": ["EIO"],
    "stat": ["EIO"],
    "unlink": ["EIO"],
    "shm_open": ["ENOSPC"],
    "mmap": ["ENOMEM"],
    "pthread_create": ["ENOMEM"],
}
HDF5 = os.path.join(tap.SOURCE, "tests", "data", "types.h5:edges")
OLD = b"what was there before\n"
CHECKPOINTS = ("open", "pwrite", "fsync", "rename", "close", "unlink")  # calls that checkpoints are made with
EVERY = "every other one "  # before a way to fail
MOST = 200  # more calls than any of these runs makes
# MPI looks at the host with hwloc, whose plugins for devices may load C++ libraries that abort when memory is short.
NO_PLUGINS = {"HWLOC_COMPONENTS": "-opencl,-cuda,-nvml,-rsmi,-levelzero,-gl"}
COMMON = ["--threads=1", "--staging=16k", "--timeout=10"]


class Job:
    """A command of a program, what it gives when nothing fails, and how calls of it are made to fail."""

    def __init__(self, program, inputs, command):
        self.program, self.input, self.command = program, os.path.join(inputs, "x.npy"), command
        self.expected = {}

    def words(self, folder):
        words = [self.program.path, self.command, "--quiet", *self.program.words, *COMMON, self.input]
        return words + (["-o", f"{folder}/y.npy"] if self.command == "softmax" else
                        ["--checkpoint-every=0", f"--checkpoint={folder}/ck"])

    def run(self, ranks, fail=None):
        """A launch, the output's contents, and the names that are left. fail: the environment's words for it."""
        with tempfile.TemporaryDirectory() as folder:
            output = os.path.join(folder, "y.npy")
            if self.command == "softmax":
                with open(output, "wb") as file:
                    file.write(OLD)
            run = faults.Launch(ranks if ranks > 1 else 0, self.words(folder), {**self.program.environment, **NO_PLUGINS, **(fail or {})})
            run.ended(40)
            content = open(output, "rb").read() if os.path.exists(output) else b""
            return run, content, sorted(set(os.listdir(folder)) - {"y.npy"})


def judge(job, ranks, rank, call, how, k):
    """The outcome in words, capitals for a failure; or None where the run has no k-th call. And the launch."""
    fail = {"ALLFOLD_FAIL": f"{rank}:{call}:{k}:{how.removeprefix(EVERY)}", "LD_PRELOAD": LIBRARY} if how else \
        {"ALLFOLD_FAIL_CUDA": f"{rank}:{call}:{k}"}
    run, content, left = job.run(ranks, fail)
    if run.status == faults.HUNG or run.left:
        return "HANGS", run
    right = (run.stdout, content) == job.expected[ranks]
    if "failing: struck" not in run.stderr:
        return None if right and run.status == 0 else "FAILS ALTHOUGH NO CALL DID", run
    if run.status == 0:
        return ("right result, status 0" if right else "WRONG RESULT, STATUS 0"), run
    if not any(line.startswith("allfold:") for line in run.stderr.splitlines()):
        return "NO MESSAGE", run
    if right and "the output is complete" in run.stderr:
        return "whole output, status not 0, a message that says that its folder is not durable", run
    if job.command == "softmax" and content != OLD:
        return "OTHER OUTPUT", run
    left = [name for name in left if job.command == "softmax" or name.endswith(".tmp")]  # a checkpoint may stay
    if left and call != "unlink":
        return f"LEFT {left}", run
    return "refused with a message, status not 0, output as before", run


def sweep(job, ranks, rank, call, how):
    """Outcomes for k = 1, 2, ... and the first failure."""
    outcomes = []
    if how.startswith(EVERY):
        outcome, run = judge(job, ranks, rank, call, how, 0)
        return [outcome or "none"], "" if outcome == "right result, status 0" else f"{outcome}\n{run.shown()}"
    for k in range(1, MOST):
        outcome, run = judge(job, ranks, rank, call, how, k)
        if outcome is None:
            return outcomes, ""
        outcomes.append(outcome)
        if outcome.split(",")[0].split(" ")[0].isupper():
            return outcomes, f"number {k}: {outcome}\n{run.shown()}"
    return outcomes, f"more than {MOST} calls"


def cuda_calls():
    """The functions that can be made to fail."""
    with open(os.path.join(tap.SOURCE, "tests", "faults", "cuda_calls.h"), encoding="utf-8") as file:
        return re.findall(r"^ *X\((cuda\w+)\)", file.read(), flags=re.MULTILINE)


def cuda_cases():
    for command in ("softmax", "stats"):
        for number, call in enumerate(cuda_calls()):
            if faults.FULL:
                yield from ((command, ranks, rank, call, "") for ranks, rank in ((1, 0), (2, 0), (2, 1)))
            elif command == "softmax" and number % 4 == 2:
                yield command, 1, 0, call, ""


def cases():
    for command in ("softmax", "stats"):
        for call in ("pread", "preadv2", "pwrite"):
            yield from ((command, 1, 0, call, EVERY + how) for how in ("EINTR", "short"))
        for call, hows in CALLS.items():
            for how in hows:
                if faults.FULL:
                    yield from ((command, ranks, rank, call, how) for ranks, rank in ((1, 0), (2, 0), (2, 1)))
                elif (how == hows[0] and (command == "softmax" or call in CHECKPOINTS)) or (how == "zero" and "write" in call):
                    yield command, 1, 0, call, how
    if not faults.FULL:
        yield "softmax", 1, 0, "pread", "zero"
        yield "softmax", 2, 1, "pwrite", "ENOSPC"


def test_full(inputs):
    """No room for the output, on a file system of its own."""
    with tempfile.TemporaryDirectory() as folder:
        mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", folder], stdout=subprocess.PIPE,
                                 stderr=subprocess.STDOUT, text=True, check=False)
        if mounted.returncode != 0:
            tap.skip(f"a full tmpfs: {mounted.stdout.strip()}")
            return
        try:
            for what, words in (("output", ["softmax", "--backend=cpu", os.path.join(inputs, "big.npy"), "-o", f"{folder}/y.npy"]),
                                ("generated file", ["generate", "normal?n=1e6", "-o", f"{folder}/y.npy"])):
                run = faults.Launch(2, [tap.ALLFOLD, *words]).ended(30)
                tap.ok(run.status == 1 and "No space left on device" in run.stderr and not os.listdir(folder),
                       f"a full tmpfs: no room for the {what}", run.shown())
            with open(f"{folder}/filler", "wb") as file:
                file.write(b"x" * (256 * 1024 - 4096 * 2))
            run = faults.Launch(2, [tap.ALLFOLD, "sum", "--backend=cpu", *COMMON, os.path.join(inputs, "big.npy"), "--checkpoint-every=0",
                                    f"--checkpoint={folder}/ck"]).ended(30)
            tap.ok(run.status == 1 and "No space left on device" in run.stderr and "checkpoint" in run.stderr,
                   "a full tmpfs: no room for the checkpoint", run.shown())
        finally:
            subprocess.run(["umount", folder], check=False)


def run_sweep(program, inputs, chosen, title):
    """All of the cases; the calls that were struck."""
    def name(case):
        command, ranks, rank, call, how = case
        return f"{title}: {command}, rank {rank} of {ranks}: {call} fails {how}"

    chosen = [case for case in chosen if tap.wanted(name(case))]
    jobs = {command: Job(program, inputs, command) for command in ("softmax", "stats")}
    for job in jobs.values():
        for ranks in (1, 2):
            run, content, left = job.run(ranks)
            tap.ok(run.status == 0 and not left, f"{title}: {job.command} on {ranks} ranks when nothing fails", run.shown())
            job.expected[ranks] = (run.stdout, content)
    every, struck = [], set()
    with ThreadPoolExecutor(faults.AT_ONCE) as pool:
        for case, (outcomes, wrong) in zip(chosen, pool.map(lambda c: sweep(jobs[c[0]], *c[1:]), chosen)):
            if wrong or outcomes:
                tap.ok(not wrong, f"{name(case)}, {len(outcomes)} times", wrong)
                struck.add(case[3])
            else:
                tap.skip(f"{name(case)}: it is not called there")
            every += outcomes
    faults.summary(title, every)
    return struck


def test_calls(inputs):
    libraries = subprocess.run(["ldd", tap.ALLFOLD], stdout=subprocess.PIPE, check=False).stdout
    if b"libasan" in libraries or not os.path.exists(LIBRARY):
        tap.skip("the failing-call sweep: LD_PRELOAD does not go with the address sanitizer")
        return
    struck = run_sweep(faults.PLAIN, inputs, list(cases()), "failing calls")
    tap.ok(struck == set(CALLS) - (set() if faults.FULL else {"shm_open"}), "every call was struck",
           [call for call in CALLS if call not in struck])


def hdf5_outcome(fail):
    """Of a sum of a dataset in chunks, compressed, of which a call fails: in words, or None if there is no such call; and the launch."""
    words = [tap.ALLFOLD, "sum", "--quiet", "--backend=cpu", "--staging=512", "--threads=1", HDF5]
    run = faults.Launch(0, words, {**NO_PLUGINS, **fail}).ended(40)
    if fail and "failing: struck" not in run.stderr:
        return None, run
    if run.status == 0:
        return "right result, status 0" if run.stdout == "-492.4699729681015\n" else "WRONG RESULT, STATUS 0", run
    if run.status == faults.HUNG:
        return "HANGS", run
    return ("refused with a message" if run.said() else "killed in the library" if run.status < 0 else "NO MESSAGE"), run


def test_hdf5(inputs):
    """The program's own allocations for HDF5, and reads and allocations of the library. When its first allocations fail that library
    may end the program by a signal; it never gives a wrong result."""
    outcome, run = hdf5_outcome({})
    libraries = subprocess.run(["ldd", tap.ALLFOLD], stdout=subprocess.PIPE, check=False).stdout
    if b"libasan" in libraries or b"libhdf5" not in libraries or not os.path.exists(LIBRARY):
        tap.skip("failing calls of HDF5: a build without it, or with the address sanitizer")
        return
    tap.ok(outcome == "right result, status 0", "HDF5, when nothing fails", run.shown())
    step = 1 if faults.FULL else 5
    every = []
    for within, call, how, numbers in (("", "malloc", "ENOMEM", range(1, MOST)), ("libhdf5", "pread", "EIO", range(1, MOST, 3 * step)),
                                       ("libhdf5", "malloc", "ENOMEM", range(20, 4000, 80 * step))):
        fails = [{"ALLFOLD_FAIL": f"0:{call}:{k}:{how}", "LD_PRELOAD": LIBRARY, **({"ALLFOLD_FAIL_IN": within} if within else {})}
                 for k in numbers]
        with ThreadPoolExecutor(faults.AT_ONCE) as pool:
            found = [(outcome, run) for outcome, run in pool.map(hdf5_outcome, fails) if outcome is not None]
        wrong = [f"{outcome}\n{run.shown()}" for outcome, run in found if outcome.isupper() or (outcome[0] == "k" and not within)]
        tap.ok(found and not wrong, f"HDF5: {call} of {within or 'the program'} fails, {len(found)} times", "\n".join(wrong[:1]))
        every += [outcome for outcome, _ in found]
    faults.summary("failing calls of HDF5", every)


def test_cuda_calls(inputs):
    for program in faults.devices("failing CUDA calls"):
        struck = run_sweep(program, inputs, list(cuda_cases()), f"failing CUDA calls on {program.name}")
        if faults.FULL:
            spared = [call for call in cuda_calls() if call not in struck]
            print(f"# not called here, or not where it could fail: {', '.join(spared)}")


def main():
    with tempfile.TemporaryDirectory() as inputs:
        np.save(os.path.join(inputs, "x.npy"), np.random.default_rng(1).standard_normal(4000))
        np.save(os.path.join(inputs, "big.npy"), np.random.default_rng(1).standard_normal(100_000))
        tests = [test_cuda_calls] if faults.CUDA_ONLY else [test_cuda_calls, test_calls, test_hdf5, test_full]
        faults.together(*(partial(test, inputs) for test in tests))
    tap.done()


if __name__ == "__main__":
    main()
