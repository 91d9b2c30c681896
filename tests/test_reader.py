#!/usr/bin/env python3
"""Reading and writing by many threads: sizes around shards and windows, the same bits for any number of threads, a run that is
killed and goes on, files that change while they are read, and file systems that refuse the fast ways of reading."""
import json
import math
import os
import signal
import subprocess
import sys

import numpy as np

import cli
import tap

sys.path.insert(0, os.path.join(tap.SOURCE, "tests", "faults"))
import faults  # noqa: E402

FAILING = os.path.join(tap.BUILD, "tests", "faults", "failing.so")
SHARD = 65536 // 4  # f32 elements of a shard with --staging=64Ki


def sums(words, **more):
    return json.loads(cli.alone("sum", "--json", "--backend=cpu", *words, **more).stdout or "{}").get("value")


def test_sizes(folder):
    """Against math.fsum, with a file whose elements are aligned and one whose elements are not."""
    x = np.random.default_rng(1).standard_normal(40 * SHARD + 7).astype(np.float32)
    with open(folder.name("odd"), "wb") as file:
        file.write(b"odd" + x.tobytes())
    for count in (1, SHARD - 1, SHARD, SHARD + 1, 3 * SHARD, len(x)):
        np.save(folder.name("x.npy"), x[:count])
        words = {"aligned": [folder.name("x.npy")], "not aligned": [folder.name("odd"), "--dtype=f32", "--offset=3", f"--count={count}"]}
        expected = math.fsum(x[:count].tolist())
        for name, which in words.items():
            found = [sums([*which, "--staging=64Ki", f"--threads={threads}"]) for threads in (1, 7)]
            tap.ok(found == [expected] * 2, f"the sum of {count} elements, {name}, by 1 and 7 threads", (found, expected))
    np.save(folder.name("x.npy"), x)
    for ranks in (1, 3):
        run = cli.ranks(ranks, "argmax", "--json", "--staging=4Ki", "--threads=5", folder.name("x.npy"))
        tap.ok(run.returncode == 0 and json.loads(run.stdout)["index"] == int(x.argmax()), f"argmax by 5 threads of {ranks} ranks",
               cli.shown(run))


def test_bits(folder):
    """The same bits at level fast, and the same files, for any number of threads."""
    x = folder.name("x.npy")
    commands = [["sum", "--sum=fast", "--json", x], ["stats", "--sum=fast", "--json", x]]
    for words in commands:
        found = [json.loads(cli.alone(*words, "--backend=cpu", "--staging=20k", f"--threads={threads}").stdout) for threads in (1, 2, 7)]
        for one in found:
            for key in ("seconds", "bytes_per_second", "phases", "threads"):
                one.pop(key, None)
        tap.ok(found[0] == found[1] == found[2], f"{words[0]} at level fast by 1, 2 and 7 threads", found)
    for words in (["softmax", x], ["log-softmax", x, "--output-type=f64"], ["generate", "normal?n=300000&seed=3"]):
        contents = []
        for threads in (1, 7):
            name = folder.name(f"y{threads}.npy")
            cli.alone(*words, "--backend=cpu", "--staging=20k", f"--threads={threads}", "-o", name)
            with open(name, "rb") as file:
                contents.append(file.read())
        tap.ok(contents[0] == contents[1] and len(contents[0]) > 10**6, f"{words[0]} by 1 and 7 threads")


def test_resume(folder):
    """Killed in the middle, with several threads at work, and taken up by another number of them."""
    x, kept = folder.name("x.npy"), folder.name("ck")
    words = ["sum", "--sum=fast", "--json", "--backend=cpu", "--staging=20k", x]
    whole = json.loads(cli.alone(*words).stdout)["value"]
    for fault, threads in (("kill", 3), ("usr1", 3)):
        run = faults.Launch(0, [faults.FAULTY.path, *words, f"--threads={threads}", f"--checkpoint={kept}", "--checkpoint-every=0"],
                            {"ALLFOLD_FAULT": f"0:*>read:{fault}:60"}).ended(30)
        there = os.path.exists(kept + ".0")
        found = cli.alone(*words, "--threads=2", "--verbose", f"--checkpoint={kept}")
        resumed = "the checkpoint has" in found.stderr
        tap.ok(run.status != 0 and there and resumed and json.loads(found.stdout)["value"] == whole,
               f"resumed after {fault}: the same bits", f"{run.shown()}\n{cli.shown(found)}")


def change(name, how):
    if how == "truncated":
        os.truncate(name, os.stat(name).st_size // 2)
    elif how == "grown":
        with open(name, "ab") as file:
            file.write(b"more")
    elif how == "replaced":
        np.save(name + ".new.npy", np.zeros(10))
        os.replace(name + ".new.npy", name)
    elif how == "removed":
        os.unlink(name)
    else:
        with open(name, "r+b") as file:
            file.seek(1000)
            file.write(b"other")


def test_changes(folder):
    """The run stops itself where it enters a read; the file is changed meanwhile."""
    for how, says in (("truncated", ""), ("grown", "changed while it was read"), ("replaced", "replaced while it was read"),
                      ("removed", "removed or replaced"), ("overwritten", "written to")):
        for command in ("sum", "softmax"):
            name, output = folder.name("z.npy"), folder.name("out.npy")
            np.save(name, np.random.default_rng(2).standard_normal(100_000))
            os.utime(name, (10**9, 10**9))
            run = faults.Launch(0, [faults.FAULTY.path, command, "--backend=cpu", "--threads=2", "--staging=20k", name,
                                    *(["-o", output] if command == "softmax" else [])], {"ALLFOLD_FAULT": "0:*>read:stop:5"})
            faults.wait_for(lambda: os.path.exists(run.struck))
            change(name, how)
            for pid in run.ranks():
                os.kill(pid, signal.SIGCONT)
            run.ended(30)
            said = [line for line in run.stderr.splitlines() if line.startswith("allfold:")]
            tap.ok(run.status == 1 and len(said) == 1 and says in said[0] and "z.npy" in said[0] and not run.stdout
                   and not os.path.exists(output), f"{command} of a file that is {how} while it is read", run.shown())


def test_refusals(folder):
    """Bytes that are not in the cache, file systems that do not say what is, and that refuse direct reads."""
    if b"libasan" in subprocess.run(["ldd", tap.ALLFOLD], stdout=subprocess.PIPE, check=False).stdout:
        tap.skip("calls that are refused: LD_PRELOAD does not go with the address sanitizer")
        return
    x = np.random.default_rng(1).standard_normal(1_500_000)
    name = folder.name("large.npy")
    np.save(name, x)
    expected = math.fsum(x.tolist())
    for call, number, how in (("preadv2", 0, "EAGAIN"), ("preadv2", 1, "EOPNOTSUPP"), ("preadv2", 3, "EINVAL"), ("preadv2", 0, "short"),
                              ("open_direct", 1, "EINVAL"), ("open_direct", 1, "EIO"), ("pread", 5, "EINVAL"), ("pread", 0, "short")):
        descriptor = os.open(name, os.O_RDONLY)
        os.fsync(descriptor)
        os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
        os.close(descriptor)
        fail = {"ALLFOLD_FAIL": f"0:{call}:{number}:{how}", "LD_PRELOAD": FAILING}
        for staging in ("4Mi", "64Mi"):
            found = cli.alone("sum", "--json", "--backend=cpu", "--threads=3", f"--staging={staging}", name, env=fail)
            tap.ok(found.returncode == 0 and json.loads(found.stdout)["value"] == expected,
                   f"{call} number {number}: {how}, shards of {staging}", cli.shown(found))


def main():
    with cli.Folder() as folder:
        test_sizes(folder)
        test_bits(folder)
        test_resume(folder)
        test_changes(folder)
        test_refusals(folder)
    tap.done()


if __name__ == "__main__":
    main()
