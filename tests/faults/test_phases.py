#!/usr/bin/env python3
"""One rank is killed, crashes, is stopped, calls exit(0), or returns an error by itself, in each phase of softmax: all ranks must
be gone in time, with a status that is not 0, a message that names rank and phase, and the output that was there or none."""
import os
import signal
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor

import faults
import tap

TIMEOUT = 3  # --timeout
PHASES = {  # phase -> the way into it that is meant, and whether rank 0 alone goes it
    "start": ("exchange>start", False),
    "read": ("*>read", False),
    "upload": ("*>upload", False),
    "fold": ("*>fold", False),
    "exchange": ("fold>exchange", False),
    "normalise": ("*>normalise", False),
    "write": ("*>write", False),
    "rename": ("*>rename", True),
}
KINDS = ["kill", "segfault", "stop", "exit", "error"]
OLD = b"what was there before\n"


def strike(ranks, rank, phase, kind, old):
    """The outcome in a word, and a launch; a word in capitals is a failure."""
    with tempfile.TemporaryDirectory() as folder:
        return strike_in(folder, ranks, rank, phase, kind, old)


def strike_in(folder, ranks, rank, phase, kind, old):
    name = os.path.join(folder, "y.npy")
    if old:
        with open(name, "wb") as file:
            file.write(OLD)
    command = [faults.FAULTY.path, "softmax", f"--timeout={TIMEOUT}", "--backend=cpu", "--threads=1", "--staging=64k",
               "gen:normal?n=200000&seed=1", "-o", name]
    run = faults.Launch(ranks, command, {"ALLFOLD_FAULT": f"{rank}:{PHASES[phase][0]}:{kind}"})
    run.ended(30)
    said = run.said()
    files = os.listdir(folder)
    content = open(name, "rb").read() if os.path.exists(name) else None
    named = [line for line in said if f"rank {rank} on " in line and f"in phase {phase}" in line]
    if run.status == faults.HUNG or run.left:
        return "HANGS", run
    if run.seconds > (TIMEOUT + 5 if kind == "stop" else 10):
        return "LATE", run
    if run.status == 0:
        return "STATUS 0", run
    if content != (OLD if old else None) or files != (["y.npy"] if old else []):
        return "OTHER OUTPUT", run
    if len(said) != 1 or len(named) != 1:
        return "NOT NAMED", run
    return "gone in time, status not 0, output " + ("old" if old else "absent"), run


def cases():
    number = 0
    for ranks in (2, 4):
        for place, (phase, (_, first_only)) in enumerate(PHASES.items()):
            for kind in KINDS:
                number += 1
                if faults.FULL or (ranks == 2 and kind == KINDS[place % len(KINDS)]):
                    yield ranks, 0 if first_only else [ranks - 1, 0, ranks // 2][number % 3], phase, kind, number % 2 == 0


def test_cases():
    """All of the list, three at a time: most of the time they wait. The outcomes."""
    outcomes, slowest = [], {}
    with ThreadPoolExecutor(3) as pool:
        for (ranks, rank, phase, kind, _), (outcome, run) in pool.map(lambda case: (case, strike(*case)), cases()):
            outcomes.append(outcome)
            slow = "stop" if kind == "stop" else "others"
            slowest[slow] = max(slowest.get(slow, 0), run.seconds)
            tap.ok(not outcome.split(",")[0].isupper(), f"{kind} on rank {rank} of {ranks} in phase {phase}",
                   f"{outcome}\n{run.shown()}")
    print(f"# slowest end: {', '.join(f'{kind} {seconds:.1f} s' for kind, seconds in slowest.items())} "
          f"(--timeout={TIMEOUT})", flush=True)
    return outcomes


def test_other(kind, phase, way, words):
    """What can go wrong but in these ways. The outcome."""
    command = [faults.FAULTY.path, "sum", f"--timeout={TIMEOUT}", "--backend=cpu", "--threads=1", "gen:normal?n=1000&seed=1"]
    run = faults.Launch(2, command, {"ALLFOLD_FAULT": f"1:{way}:{kind}"}).ended(30)
    good = run.status not in (0, faults.HUNG) and not run.left and run.seconds < TIMEOUT + 5 and len(run.said()) == 1 \
        and words in run.said()[0] and f"in phase {phase}" in run.said()[0]
    tap.ok(good, f"{kind} in phase {phase}", run.shown())
    return "gone in time, status not 0, nothing to write" if good else "WRONG"


def test_no_safe_point():
    with tempfile.TemporaryDirectory() as folder:
        name = os.path.join(folder, "z.npy")
        run = faults.Launch(2, [faults.FAULTY.path, "softmax", "--backend=cpu", "gen:normal?n=1e5", "-o", name],
                            {"ALLFOLD_FAULT": "1:*>read:sleep"})
        run.ready(2, signal.SIGUSR1)
        time.sleep(1)
        os.kill(run.ranks()[0], signal.SIGUSR1)
        run.ended(30)
        tap.ok(run.status == faults.STOPPED and 10 < run.seconds < 14 and not run.left and not os.path.exists(name)
               and any("came to no safe point" in line and "in phase " in line for line in run.said()),
               "a run that comes to no safe point within 10 s of a signal", run.shown())


def main():
    outcomes = []
    tests = [lambda: outcomes.extend(test_cases()), lambda: outcomes.append(
        test_other("lost", "exchange", "fold>exchange", f"all ranks have waited in phase exchange for {TIMEOUT} s"))]
    if faults.FULL:
        tests += [lambda: outcomes.append(test_other("stop", "finish", "*>finish", "rank 1 on")), test_no_safe_point]
    faults.together(*tests)
    faults.summary("phases", outcomes)
    tap.done()


if __name__ == "__main__":
    main()
