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


def strike(program, ranks, rank, phase, kind, old):
    """The outcome in a word, and a launch; a word in capitals is a failure. The input is a file: a device makes generated elements
    itself, and uploads none."""
    with tempfile.TemporaryDirectory() as folder, tempfile.NamedTemporaryFile() as x:
        x.write(bytes(800_000))
        x.flush()
        return strike_in(folder, [x.name, "--dtype=f32"], program, ranks, rank, phase, kind, old)


def strike_in(folder, source, program, ranks, rank, phase, kind, old):
    name = os.path.join(folder, "y.npy")
    if old:
        with open(name, "wb") as file:
            file.write(OLD)
    command = [program.path, "softmax", f"--timeout={TIMEOUT}", *program.words, "--threads=1", "--staging=64k",
               *source, "-o", name]
    run = faults.Launch(ranks, command, {**program.environment, "ALLFOLD_FAULT": f"{rank}:{PHASES[phase][0]}:{kind}"})
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


def cases(program):
    """On the CPU no rank uploads: it works on what it has read where that lies."""
    number = 0
    for ranks in (2, 4):
        for place, (phase, (_, first_only)) in enumerate(PHASES.items()):
            for kind in KINDS if phase != "upload" or program.name != faults.FAULTY.name else []:
                number += 1
                if faults.FULL or (ranks == 2 and kind == KINDS[place % len(KINDS)]):
                    yield ranks, 0 if first_only else [ranks - 1, 0, ranks // 2][number % 3], phase, kind, number % 2 == 0


def test_cases(program):
    """All of the list, some at a time: mostly they wait. The outcomes."""
    outcomes, slowest = [], {}

    def name(case):
        ranks, rank, phase, kind, _ = case
        return f"{program.name}: {kind} on rank {rank} of {ranks} in phase {phase}"

    with ThreadPoolExecutor(faults.AT_ONCE) as pool:
        chosen = [case for case in cases(program) if tap.wanted(name(case))]
        for case, (outcome, run) in zip(chosen, pool.map(lambda case: strike(program, *case), chosen)):
            outcomes.append(outcome)
            slow = "stop" if case[3] == "stop" else "others"
            slowest[slow] = max(slowest.get(slow, 0), run.seconds)
            tap.ok(not outcome.split(",")[0].isupper(), name(case), f"{outcome}\n{run.shown()}")
    print(f"# slowest end: {', '.join(f'{kind} {seconds:.1f} s' for kind, seconds in slowest.items())} "
          f"(--timeout={TIMEOUT})", flush=True)
    return outcomes


def small_sum(ranks, timeout, fault):
    """A run whose result is 1001."""
    return faults.Launch(ranks, [faults.FAULTY.path, "sum", f"--timeout={timeout}", "--backend=cpu", "--threads=1",
                                 "gen:constant?n=1001&value=1"], {"ALLFOLD_FAULT": fault})


def lost(outcomes):
    if not tap.wanted("messages that never arrive"):
        return
    run = small_sum(2, TIMEOUT, "1:fold>exchange:lost").ended(30)
    words = f"all ranks have waited in phase exchange for {TIMEOUT} s"
    good = run.status not in (0, faults.HUNG) and not run.left and run.seconds < TIMEOUT + 5 and len(run.said()) == 1 \
        and words in run.said()[0]
    tap.ok(good, "messages that never arrive", run.shown())
    outcomes.append("gone in time, status not 0, nothing to write" if good else "WRONG")


def finishing(ranks, rank, kind, outcomes):
    """The result is printed, and is whole; then a rank is killed, or stopped: on its way into MPI_Finalize, in it, after it, or
    where no other rank is left to see it and say so; or MPI_Finalize does not return."""
    name = f"{kind} on rank {rank} of {ranks} in phase finish"
    if not tap.wanted(name):
        return
    run = small_sum(ranks, TIMEOUT, f"{rank}:*>finish:{kind}").ended(30)
    said, lines = run.said(), run.stdout.splitlines()
    named = len(said) == 1 and f"rank {rank} on " in said[0] and "in phase finish" in said[0] \
        and ("to leave MPI" in said[0]) == (kind == "hang-inside")
    good = run.status not in (0, faults.HUNG) and not run.left and run.seconds < TIMEOUT + 5 \
        and (not said if kind == "stop-last" else named) and len(lines) == 1 and lines[0].startswith("sum = 1001.0 ")
    tap.ok(good, name, run.shown())
    outcomes.append("gone in time, status not 0, result printed before" if good else "WRONG")


def finishing_cases():
    if not faults.FULL:
        return [(3, 1, "stop"), (2, 0, "kill"), (3, 0, "stop-inside"), (3, 1, "hang-inside"), (2, 1, "stop-left"), (2, 0, "stop-last")]
    return [(ranks, rank, kind) for ranks in (2, 3) for rank in (0, ranks - 1)
            for kind in ("stop", "kill", "stop-inside", "hang-inside", "stop-left", "stop-last")]


def test_without_timeout():
    """With --timeout=0 a rank that is stopped as it leaves is waited for; and the others leave without it: were they to wait for
    it in MPI_Finalize, mpirun might lock up when they are ended there."""
    run = small_sum(3, 0, "1:*>finish:stop-inside")
    alone = faults.wait_for(lambda: os.path.exists(run.struck)) and faults.wait_for(lambda: len(run.ranks()) == 1, 10)
    time.sleep(1)
    left = run.ranks()
    for pid in left:
        os.kill(pid, signal.SIGCONT)
    run.ended(30)
    tap.ok(alone and len(left) == 1 and run.status == 0 and run.stdout.startswith("sum = 1001.0 ") and not run.said(),
           "--timeout=0: a stopped rank is waited for, but not in MPI_Finalize", f"alone {alone} left {left}\n{run.shown()}")


def test_pause():
    """All ranks are suspended for longer than the timeout, as a scheduler does: the job lives on."""
    run = faults.Launch(2, [tap.ALLFOLD, "sum", "--timeout=2", "--backend=cpu", "--threads=1", "gen:normal?n=2e10"])
    began = run.ready(2, signal.SIGUSR1)
    time.sleep(0.5)
    ranks = run.ranks()
    for sent, seconds in ((signal.SIGSTOP, 6), (signal.SIGCONT, 1.5)):
        for pid in ranks:
            os.kill(pid, sent)
        time.sleep(seconds)
    alive = run.ranks() == ranks and run.process.poll() is None
    for pid in ranks[:1] if alive else ():
        os.kill(pid, signal.SIGUSR1)
    run.ended(30)
    tap.ok(began and alive and run.status == faults.STOPPED and len(run.said()) == 1 and "stopped by SIGUSR1" in run.said()[0],
           "all ranks are suspended for three times the timeout, and go on", run.shown())


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


def test_touched():
    """The input changes between the reading of its header and its opening."""
    with tempfile.NamedTemporaryFile() as x:
        x.write(bytes(4000))
        x.flush()
        run = faults.Launch(0, [faults.FAULTY.path, "sum", "--backend=cpu", "--dtype=f32", x.name],
                            {"ALLFOLD_FAULT": "0:start>exchange:touch", "ALLFOLD_FAULT_STRUCK": x.name}).ended(30)
    tap.ok(run.status == 1 and not run.stdout and len(run.said()) == 1 and f"{x.name}: the file has changed since its header" in run.said()[0],
           "an input of the same size that changes before it is opened", run.shown())


def test_cpu():
    outcomes = []
    finish = [lambda case=case: finishing(*case, outcomes) for case in finishing_cases()]
    faults.together(test_no_safe_point, test_pause, test_touched, lambda: outcomes.extend(test_cases(faults.FAULTY)))
    faults.together(test_without_timeout, lambda: lost(outcomes), *finish)
    faults.summary(f"phases on {faults.FAULTY.name}", outcomes)


def main():
    if not faults.CUDA_ONLY:
        test_cpu()
    for program in faults.devices("phases") if faults.FULL else ():
        faults.summary(f"phases on {program.name}", test_cases(program))
    tap.done()


if __name__ == "__main__":
    main()
