#!/usr/bin/env python3
"""Signals that ask for a stop: one rank's is enough; the exit status is 75, one line says so, nothing is left behind.
Checkpoints: a run that was stopped, or killed, goes on to the identical bits; one that is not this run's is refused. Progress
on a terminal."""
import json
import os
import pty
import re
import select
import signal
import subprocess
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np

import faults  # first: it sets the path
import cli
import tap

try:
    import h5py
except ImportError:
    h5py = None

SIGNALS = [signal.SIGUSR1, signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGUSR2, signal.SIGXCPU]
ENDLESS = ["--backend=cpu", "--threads=1", "--staging=1M", "gen:normal?n=2e10&seed=1"]  # a minute's work and more
LONG = ["--backend=cpu", "--threads=1", "--staging=1M", "gen:normal?n=1e9&seed=1"]
SHARDS = ["--threads=1", "--staging=16k"]


def stopped(run, sent):
    """Why the run does not end as one that was asked to stop, or ''."""
    said = run.said()
    good = run.status == faults.STOPPED and not run.left and run.seconds < 12 and len(said) == 1 and not run.stdout \
        and f"stopped by {sent.name}" in said[0]
    return "" if good else run.shown()


def long_run(folder, ranks, writes):
    """A run that would take many seconds, in the middle of its work."""
    words = ["softmax", *LONG, "--output-type=f16", "-o", os.path.join(folder, "y.raw")] if writes else ["sum", *ENDLESS]
    run = faults.Launch(ranks, [tap.ALLFOLD, *words])
    began = run.ready(max(ranks, 1), *SIGNALS) and (not writes or faults.wait_for(lambda: os.listdir(folder)))
    time.sleep(0.3)
    return run, began


def test_signals(folder):
    for number, sent in enumerate(SIGNALS if faults.FULL else SIGNALS[:2]):
        ranks = [2, 0, 3, 0, 0, 2][number]
        run, began = long_run(folder, ranks, number % 3 == 0)
        os.kill(run.ranks()[number % max(ranks, 1)], sent)
        run.ended(30)
        wrong = stopped(run, sent) or os.listdir(folder)
        tap.ok(began and not wrong, f"{sent.name} to one rank of {max(ranks, 1)}", wrong)
    run, began = long_run(folder, 0, False)
    os.kill(run.ranks()[0], signal.SIGTERM)
    tap.ok(not stopped(run.ended(30), signal.SIGTERM), "SIGTERM to a run without a launcher", run.shown())


def test_ignored():
    meddles = {"LD_PRELOAD": os.path.join(tap.BUILD, "tests", "faults", "handlers.so")}
    run = faults.Launch(0, [tap.ALLFOLD, "sum", *ENDLESS], meddles, through=["nohup"])
    ignored = {signal.SIGHUP, signal.SIGXFSZ}  # the latter by the program itself
    began = run.ready(1, signal.SIGTERM) and faults.wait_for(lambda: ignored <= faults.signal_set(run.process.pid, "SigIgn"), 5)
    found = sorted(faults.signal_set(run.process.pid, "SigIgn"))
    run.process.send_signal(signal.SIGHUP)
    time.sleep(0.5)
    running = run.process.poll() is None
    run.process.send_signal(signal.SIGTERM)
    wrong = stopped(run.ended(30), signal.SIGTERM)
    tap.ok(began and running and not wrong, "SIGHUP that nohup has it ignore stays so, and SIGTERM is heeded, whatever MPI_Init made of them",
           f"ignored {found}\n{run.shown()}")


def test_late_threads():
    """A thread of MPI that has its turn only when the ranks end."""
    meddles = {"LD_PRELOAD": os.path.join(tap.BUILD, "tests", "faults", "handlers.so"), "ALLFOLD_LATE": "0.5"}
    run = tap.run(2, tap.ALLFOLD, "sum", "gen:ramp?n=9", "-q", env=meddles)
    tap.ok((run.returncode, run.stdout) == (0, "36.0\n"), "a thread of MPI that comes late to what MPI_Init has told it", run)


def hands_on(sent):
    """Whether the launcher here hands this signal on to its processes at all: to one that ends of it."""
    run = faults.Launch(1, ["sleep", "60"])
    faults.wait_for(run.ranks)
    launcher = run.launcher()
    if launcher:
        os.kill(launcher, sent)
    return run.ended(10).status != faults.HUNG and launcher is not None


def test_second_interrupt(folder):
    """A run that does not come to a safe point, because a rank reads for ever: a second SIGINT ends it at once."""
    run = faults.Launch(2, [faults.FAULTY.path, "softmax", "--backend=cpu", "gen:normal?n=1e5", "-o", os.path.join(folder, "y.npy")],
                        {"ALLFOLD_FAULT": "1:*>read:sleep"})
    began = run.ready(2, signal.SIGINT) and faults.wait_for(lambda: os.path.exists(run.struck))
    first = run.ranks()[0]
    os.kill(first, signal.SIGINT)
    time.sleep(0.5)
    running = run.process.poll() is None
    os.kill(first, signal.SIGINT)
    sent = time.monotonic()
    run.ended(30)
    seconds = time.monotonic() - sent
    tap.ok(began and running and run.status == faults.STOPPED and seconds < 5 and not run.left and not os.listdir(folder)
           and len(run.said()) == 1 and "stopped at once by a second SIGINT" in run.said()[0], "a second SIGINT ends the run at once",
           f"{seconds:.1f} s\n{run.shown()}")


def test_last_look(folder):
    """A signal as the last elements are written, and behind that: it is heeded before the output takes its name."""
    output = os.path.join(folder, "y.npy")
    for ranks, when in ((1, "read>write"), (3, "read>write"), (1, "write>exchange"), (3, "write>exchange")):
        words = [faults.FAULTY.path, "generate", "ramp?n=1000", "-o", output]
        run = faults.Launch(ranks if ranks > 1 else 0, words, {"ALLFOLD_FAULT": f"{ranks - 1}:{when}:usr1"}).ended(30)
        wrong = stopped(run, signal.SIGUSR1) or os.listdir(folder)
        tap.ok(not wrong, f"SIGUSR1 on the way from {when.replace('>', ' to ')}, on rank {ranks - 1}", wrong)


def test_launcher(folder):
    """What mpirun hands on."""
    if not hands_on(signal.SIGUSR1):
        tap.skip("SIGUSR1 to the launcher: this one does not hand it on")
        return
    for sent, statuses in ((signal.SIGUSR1, [faults.STOPPED]), (signal.SIGTERM, None))[:2 if faults.FULL else 1]:
        run, began = long_run(folder, 2, True)
        launcher = run.launcher()
        if launcher:
            os.kill(launcher, sent)
        run.ended(30)
        tap.ok(began and launcher and (run.status in statuses if statuses else run.status not in (0, faults.HUNG))
               and not run.left and not os.listdir(folder), f"{sent.name} to the launcher", run.shown())


def test_killed(folder):
    """SIGKILL to all ranks: nobody can remove the temporary output but the next run."""
    run, began = long_run(folder, 2, True)
    ranks = run.ranks()
    for pid in ranks:  # none may see another one die, and clean up
        os.kill(pid, signal.SIGSTOP)
    began = began and all(faults.wait_for(lambda pid=pid: faults.suspended(pid)) for pid in ranks)
    for pid in ranks:
        os.kill(pid, signal.SIGKILL)
    run.ended(30)
    left = os.listdir(folder)
    again = faults.Launch(2, [tap.ALLFOLD, "softmax", "--backend=cpu", "gen:normal?n=1000", "-o",
                              os.path.join(folder, "y.raw")]).ended(30)
    tap.ok(began and run.status not in (0, faults.HUNG) and not run.left and len(left) == 1 and left[0].endswith(".tmp")
           and again.status == 0 and os.listdir(folder) == ["y.raw"],
           "SIGKILL to all ranks leaves a temporary file, which the next run removes", f"{left}\n{run.shown()}{again.shown()}")


def bits(run):
    """All that is reported of the values."""
    report = json.loads(run.stdout)
    return {key: value for key, value in report.items() if key in ("value", "hex", "index", "text", "stats", "count", "values", "counts")}


def fold(ranks, fold_name, source, checkpoint, fault=None, more=(), program=faults.FAULTY):
    words = [program.path, *fold_name.split(), "--json", *program.words, *SHARDS, *source, *more]
    if checkpoint:
        words += [f"--checkpoint={checkpoint}", "--checkpoint-every=0"]
    return faults.Launch(ranks if ranks > 1 else 0, words, {**program.environment, **({"ALLFOLD_FAULT": fault} if fault else {})}
                         ).ended(30)


def resumes(name, ranks, source, program):
    """Whether a fold that is stopped, killed and finished gives the bits of one that is left alone; and what happened. The
    first run takes 5 shards, behind the pass that finds a histogram's range, which is not kept. The second dies as its thread is about to read its fourth: on the CPU it has taken three, on a
    device two, because there one is always under way, unless each is waited for, as by order statistics."""
    on, shards = ranks - 1, 8 if program == faults.FAULTY or name.startswith("quantile") else 7
    before = 50 if name == "histogram" else 0  # shards of 100,000 f64
    with tempfile.TemporaryDirectory() as folder:
        checkpoint = os.path.join(folder, "ck")
        whole = fold(ranks, name, source, None, program=program)
        first = fold(ranks, name, source, checkpoint, f"{on}:*>read:usr1:{before + 5}", program=program)
        kept = sorted(os.listdir(folder))
        second = fold(ranks, name, source, checkpoint, f"{on}:*>read:kill:4", program=program)
        last = fold(ranks, name, source, checkpoint, more=["--verbose"], program=program)
        resumed = dict(re.findall(r"rank (\d+): the checkpoint has (\d+) of", last.stderr))
        right = (whole.status == 0 and first.status == faults.STOPPED and second.status not in (0, faults.HUNG)
                 and last.status == 0 and bits(whole) == bits(last) and not os.listdir(folder) and f"ck.{on}" in kept
                 and int(resumed.get(str(on), 0)) == shards and len(resumed) == ranks)
        return right, "\n".join(run.shown() for run in (whole, first, second, last)) + f"{kept} {resumed}"


def test_checkpoints(source, program):
    cases = [(name, ranks) for number, name in enumerate(cli.FOLDS) for ranks in ((1, 2, 3) if faults.FULL else (
        1 if name != "argmax" else 3,) if number % (2 if program == faults.FAULTY else 6) == 1 else ())]
    cases += [("median", 2), ("topk --k=2000", 1), ("histogram --range=-1,1", 3), ("histogram", 1)] if program == faults.FAULTY else [("quantile --q=0.1,0.7", 2)]
    named = {f"checkpoint of {name} on {ranks} ranks, {program.name}: stopped, killed, the same bits at last": (name, ranks) for name, ranks in cases}
    chosen = [title for title in named if tap.wanted(title)]
    with ThreadPoolExecutor(faults.AT_ONCE) as pool:
        for title, (right, shown) in zip(chosen, pool.map(lambda title: resumes(*named[title], source, program), chosen)):
            tap.ok(right, title, shown)


def test_softmax(folder, source):
    checkpoint, outputs = os.path.join(folder, "ck"), [os.path.join(folder, name) for name in ("a.npy", "b.npy")]
    whole = fold(2, "softmax", source, None, more=["-o", outputs[0]])
    first = fold(2, "softmax", source, checkpoint, "1:*>read:usr1:9", ["-o", outputs[1]])
    second = fold(2, "softmax", source, checkpoint, "1:*>normalise:kill:3", ["-o", outputs[1]])
    kept = sorted(os.listdir(folder))
    last = fold(2, "softmax", source, checkpoint, None, ["-o", outputs[1], "--verbose"])
    same = all(map(os.path.exists, outputs)) and open(outputs[0], "rb").read() == open(outputs[1], "rb").read()
    tap.ok(whole.status == last.status == 0 and first.status == faults.STOPPED and second.status not in (0, faults.HUNG)
           and kept == ["a.npy", "ck.0", "ck.1"] and sorted(os.listdir(folder)) == ["a.npy", "b.npy"] and same
           and "the checkpoint has" in last.stderr, "checkpoint of softmax: stopped, killed in its second pass, the same file",
           "\n".join(run.shown() for run in (whole, first, second, last)) + f"{kept}")
    for output in outputs:
        os.remove(output)


# Along an axis: words, ranks, and how each run but the last ends. Rows that are finished at once, in one output and in two (the second
# run ends between their names); rows of which every rank has a part; columns that are read twice.
ALONG = [(["mean", "planes.npy", "--axis=1"], 1, ["0:*>read:usr1:9", "0:*>checkpoint:kill:20"]),
         (["argmax", "planes.npy", "--axis=2"], 2, ["1:*>checkpoint:kill:9", "0:*>rename:kill:2"]),
         (["stats", "row.npy", "--axis=1"], 3, ["1:*>read:usr1:3", "2:*>exchange:kill:18", "0:*>write:kill:1"]),
         (["softmax", "columns.npy", "--axis=0"], 2, ["0:*>read:kill:12", "1:*>normalise:kill:9"])]


ALONG_DEVICE = (["mean", "row.npy", "--axis=1"], 1, ["0:*>checkpoint:kill:20"])


def along(words, folder, name, ranks, fault=None, *, checkpoint=True, program=faults.FAULTY, cut=("--threads=1", "--staging=4096")):
    """A run along an axis, and the bytes of what it wrote."""
    outputs = [os.path.join(folder, name + (".npz" if words[0] == "stats" else ".npy"))]
    outputs += [os.path.join(folder, name + ".values")] * (words[0] == "argmax")
    more = [f"--checkpoint={os.path.join(folder, 'ck')}", "--checkpoint-every=0", "--verbose"] * checkpoint
    more += ["-o", outputs[0]] + [f"--values={output}" for output in outputs[1:]]
    run = faults.Launch(ranks if ranks > 1 else 0, [program.path, *words, *program.words, *cut, *more],
                        {**program.environment, **({"ALLFOLD_FAULT": fault} if fault else {})}).ended(30)
    return run, [open(output, "rb").read() for output in outputs if run.status == 0]


def resumes_along(folder, case, program=faults.FAULTY):
    words, ranks, ends = case
    words = [words[0], os.path.join(folder, words[1]), *words[2:]]
    with tempfile.TemporaryDirectory() as own:
        whole, expected = along(words, own, "whole", ranks, checkpoint=False, program=program)
        listing, runs = os.listdir(own), [whole]
        for end in ends:
            runs.append(along(words, own, "y", ranks, end, program=program)[0])
        last, found = along(words, own, "y", ranks, program=program)
        good = [run.status == faults.STOPPED if ":usr1:" in end else run.status not in (0, faults.HUNG) for run, end in zip(runs[1:], ends)]
        anew = ":rename:" in ends[-1].replace(">", ":") and "begins anew" in last.stderr
        right = last.status == 0 and found == expected and all(good) and ("the checkpoint has" in last.stderr or anew) \
            and len(os.listdir(own)) == 2 * len(listing)
        return right, "\n".join(run.shown() for run in (*runs, last)) + f"{good} {os.listdir(own)}"


def test_along(folder, programs):
    some = np.random.default_rng(3)
    for name, shape in (("planes", (64, 40, 30)), ("row", (1, 20000, 3)), ("columns", (3000, 40))):
        np.save(os.path.join(folder, name + ".npy"), some.standard_normal(shape).astype(np.float32))
    with ThreadPoolExecutor(faults.AT_ONCE) as pool:
        more = [pool.submit(lambda test: list(test(folder)), test) for test in (refuses_along, mixes_along)]
        for case, (right, shown) in zip(ALONG, pool.map(lambda case: resumes_along(folder, case), ALONG)):
            tap.ok(right, f"checkpoint of {' '.join(case[0])} on {case[1]} ranks: the same bytes at last", shown)
        for what, right, run in [found for test in more for found in test.result()]:
            tap.ok(right, f"along an axis: {what}", run.shown())
    for program in programs:
        right, shown = resumes_along(folder, ALONG_DEVICE, program)
        tap.ok(right, f"checkpoint of {' '.join(ALONG_DEVICE[0])}, {program.name}: the same bytes at last", shown)
    listing = os.listdir(folder)
    np.save(os.path.join(folder, "big.npy"), np.full((300, 100), 2 ** 62))
    run = along(["sum", os.path.join(folder, "big.npy"), "--axis=1"], folder, "z", 1)[0]
    tap.ok(run.status == 1 and "result [0, :]" in run.stderr and sorted(os.listdir(folder)) == sorted([*listing, "big.npy"]),
           "a run that fails before anything is finished leaves nothing", run.shown())


def test_slabs(folder):
    """Slabs of a range of the axis each, and threads that are ahead of what is saved: no shard is in the partials of a checkpoint that does not
    count it. They are saved at the end of a slab, but for the first, where only results of the shards that are counted are."""
    if h5py is None or cli.report(cli.alone("info", "--json"))["build"]["hdf5"] == "no":
        tap.skip("no h5py, or a build without HDF5")
        return
    with h5py.File(os.path.join(folder, "x.h5"), "w") as file:
        file.create_dataset("x", data=np.random.default_rng(4).integers(-9, 9, (400, 10, 40)).astype("f4"), chunks=(40, 10, 20))
    words, cut = ["mean", os.path.join(folder, "x.h5:x"), "--axis=0"], ["--threads=4", "--staging=1k"]
    expected = along(words, folder, "whole", 1, checkpoint=False, cut=cut)[1]
    runs = [along(words, folder, "y", 1, fault, cut=cut) for fault in ("0:*>checkpoint:kill:142", None)]
    done, due = map(int, re.findall(r"the checkpoint has (\d+) of (\d+) shards", runs[1][0].stderr)[-1])
    tap.ok(expected and runs[1][1] == expected and 0 < 5 * done < 5 * due and 5 * done % due == 0,
           "checkpoint of the mean of chunks by 4 threads, in the third of 5 slabs: the same bytes", "\n".join(run.shown() for run, _ in runs))


def refuses_along(folder):
    """Checkpoints and unfinished outputs that do not go with this run: (whether one is refused, with what message, the run)."""
    words = ["stats", os.path.join(folder, "planes.npy"), "--axis=2"]  # rows that are finished at once
    with tempfile.TemporaryDirectory() as own:
        def refused(what, said, more=(), name="y"):
            run = along([*words, *more], own, name, 1)[0]
            return f"refused: {what}", run.status == 1 and said in run.said()[-1] and sorted(os.listdir(own)) == kept, run
        expected = along(words, own, "whole", 1, checkpoint=False)[1]
        along(words, own, "y", 1, "0:*>checkpoint:kill:9")
        kept = sorted(os.listdir(own))
        part = next(os.path.join(own, name) for name in kept if name.endswith(".part"))
        for what, said in (("--keepdims", "--keepdims yes, found no"), ("--ddof=1", "--ddof 1, found 0"), ("--nan=omit", "--nan omit, found propagate"),
                           ("--output-type=f32", "--output-type f32, found none"), ("--axis=1", "--axis 1, found 2")):
            yield refused(what, said, [what])
        yield refused("another output", "output (-o)", name="z")
        if sorted(os.listdir(own)) != kept:  # what was not refused has ended the run
            return
        size = os.path.getsize(part)
        os.truncate(part, size - 1)
        yield refused("an unfinished output that was cut", f"expected the temporary file of {size} bytes, found a regular file of {size - 1}")
        os.remove(part)
        os.mkfifo(part)
        yield refused("a fifo in the place of the unfinished output", "found a fifo")
        os.remove(part)
        anew = along(words, own, "y", 1, "0:*>write:kill:1")[0]
        last, found = along(words, own, "y", 1)
        yield "no unfinished output: the work begins anew, and is killed at once", found == expected and "begins anew" in anew.stderr, last


def mixes_along(folder):
    """A rank that was killed before it saved that others went on has done as much as they. Ranks of two runs do not go together."""
    words = ["mean", os.path.join(folder, "row.npy"), "--axis=1"]
    with tempfile.TemporaryDirectory() as own:
        def checkpoint(put=None):
            if put is not None:
                with open(os.path.join(own, "ck.1"), "wb") as file:
                    file.write(put)
            with open(os.path.join(own, "ck.1"), "rb") as file:
                return file.read()
        expected = along(words, own, "whole", 2, checkpoint=False)[1]
        along(words, own, "y", 2, "1:*>read:usr1:3")
        others = checkpoint()
        for name in os.listdir(own):
            if "whole" not in name:
                os.remove(os.path.join(own, name))
        along(words, own, "y", 2, "1:*>read:usr1:3")
        early = checkpoint()
        checkpoint(others)
        run = along(words, own, "y", 2)[0]
        yield "checkpoints of two runs are refused", run.status == 1 and "ranks 0 and 1 are of different runs" in run.stderr, run
        checkpoint(early)
        killed = along(words, own, "y", 2, "0:*>rename:kill:1")[0]
        checkpoint(early)
        last, found = along(words, own, "y", 2)
        yield "a rank that has saved less than others: the same bytes", killed.status not in (0, faults.HUNG) and found == expected, last


def test_foreign(folder, source, other):
    """Checkpoints that are not this run's."""
    checkpoint = os.path.join(folder, "ck")

    def start_anew(ranks, words=source, fold_name="sum"):
        for name in os.listdir(folder):
            os.remove(os.path.join(folder, name))
        fold(ranks, fold_name, words, checkpoint, f"{ranks - 1}:*>read:usr1:5")
        return {name: open(os.path.join(folder, name), "rb").read() for name in os.listdir(folder)}

    def refused(what, run, words):
        said = run.said()
        tap.ok(run.status == 1 and len(said) == 1 and all(word in said[0] for word in words) and not run.stdout,
               f"a checkpoint is refused: {what}", run.shown())

    kept = start_anew(2)
    refused("another number of ranks", fold(3, "sum", source, checkpoint), ["of another run", "ranks 3, found 2"])
    kept = start_anew(1)
    refused("another fold", fold(1, "norm1", source, checkpoint), ["command norm1, found sum"])
    refused("another input", fold(1, "sum", other, checkpoint), ["of another run", "bytes of the input"])
    refused("other shards", fold(1, "sum", source, checkpoint, more=["--staging=32k"]), ["--staging"])
    os.utime(source[0])
    refused("a file that was written since", fold(1, "sum", source, checkpoint), ["time of the input"])
    tap.ok({name: open(os.path.join(folder, name), "rb").read() for name in os.listdir(folder)} == kept,
           "a checkpoint that is refused stays as it is")
    raw = [os.path.join(os.path.dirname(other[0]), "raw"), "--dtype=f64", "--count=90000"]
    np.arange(100_000.0).tofile(raw[0])
    start_anew(1, raw + ["--offset=8"])
    refused("another offset", fold(1, "sum", raw + ["--offset=16"], checkpoint), ["offset of the elements"])
    start_anew(1, fold_name="max")
    refused("another --nan", fold(1, "max", source, checkpoint, more=["--nan=omit"]), ["--nan omit, found propagate"])
    for what, change in (("a byte differs", lambda b: b[:100] + bytes([b[100] ^ 1]) + b[101:]), ("cut short", lambda b: b[:-1]),
                         ("a text file", lambda b: b"x" * len(b)), ("empty", lambda b: b"")):
        ranks = 2 if what == "empty" else 1
        name = f"ck.{ranks - 1}"
        kept = start_anew(ranks)
        with open(os.path.join(folder, name), "wb") as file:
            file.write(change(kept[name]))
        refused(what, fold(ranks, "sum", source, checkpoint), [name, *["rank 1 on ", "in phase checkpoint"][:2 * ranks - 2]])
    start_anew(2)
    os.remove(os.path.join(folder, "ck.0"))
    last = fold(2, "sum", source, checkpoint)
    tap.ok(last.status == 0 and bits(last) == bits(fold(2, "sum", source, None)) and not os.listdir(folder),
           "a rank without a checkpoint begins at its beginning", last.shown())
    unwritable = fold(1, "sum", source, os.path.join(folder, "no", "ck"))
    tap.ok(unwritable.status == 1 and "cannot create a file in the folder" in unwritable.stderr, "a folder that does not exist",
           unwritable.shown())


def test_progress(folder, quiet):
    """On a terminal after two seconds, never with --quiet."""
    ours, theirs = pty.openpty()
    with subprocess.Popen([tap.ALLFOLD, "sum", *ENDLESS, *(["--quiet"] if quiet else [])], stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=theirs, env=faults.apart(folder)) as process:
        os.close(theirs)
        text, end = b"", time.monotonic() + (3.5 if quiet else 15)
        while time.monotonic() < end and text.count(b" left") < 2:
            if select.select([ours], [], [], 0.1)[0]:
                text += os.read(ours, 4096)
        process.terminate()
        process.communicate(timeout=20)
    os.close(ours)
    shown = re.findall(rb"\rallfold: [\d.]+% of 80 GB, [\d.]+ .?B/s, [^\r]* left", text)
    tap.ok((not shown if quiet else len(shown) >= 2) and process.returncode == faults.STOPPED,
           f"progress on a terminal{', --quiet' if quiet else ''}", f"{process.returncode} {text!r}")


def in_a_folder(test, *arguments):
    """The test, to be called, with a folder of its own."""
    def run():
        with tempfile.TemporaryDirectory() as folder:
            test(folder, *arguments)
    return run


def main():
    rng = np.random.default_rng(1)
    with tempfile.TemporaryDirectory() as inputs:
        x, y, z = (os.path.join(inputs, name) for name in ("x.npy", "y.npy", "z.npy"))
        for name, count in ((x, 100_000), (y, 100_000), (z, 100_001)):
            np.save(name, 1 + rng.standard_normal(count) / 1000)
        devices = faults.devices("checkpoints")
        for program in devices:
            test_checkpoints([x], program)
        if not faults.CUDA_ONLY:
            faults.together(in_a_folder(test_signals), test_ignored, test_late_threads, in_a_folder(test_second_interrupt), in_a_folder(test_last_look), in_a_folder(test_launcher), in_a_folder(test_killed),
                            in_a_folder(test_foreign, [y], [z]))
            faults.together(lambda: test_checkpoints([x], faults.FAULTY), in_a_folder(test_softmax, [x]), in_a_folder(test_along, devices), in_a_folder(test_slabs),
                            in_a_folder(test_progress, False), in_a_folder(test_progress, True))
    tap.done()


if __name__ == "__main__":
    main()
