#!/usr/bin/env python3
"""Files that a run writes beside its result: --partial and --checkpoint. What they may not replace; that a link is written through and
the permissions stay; that nothing else is left behind. docs/reliability.md."""
import json
import os
import stat
import struct
import subprocess
import time

import numpy as np

import cli
import tap


def state(folder):
    """Everything in the folder, as far as a run could harm it."""
    def one(name):
        path = os.path.join(folder, name)
        found = os.lstat(path)
        content = open(path, "rb").read() if stat.S_ISREG(found.st_mode) else os.readlink(path) if stat.S_ISLNK(found.st_mode) else ""
        return stat.S_IFMT(found.st_mode), stat.S_IMODE(found.st_mode), content
    return {name: one(name) for name in os.listdir(folder)}


def prepare(folder):
    """An input, names that lead to it, and what else may be in the way of a file."""
    np.save(folder.name("x.npy"), np.arange(1000.0))
    os.link(folder.name("x.npy"), folder.name("hard"))
    os.symlink("x.npy", folder.name("soft"))
    os.symlink("x.npy", folder.name("ck.0"))
    os.symlink("nothing", folder.name("dangling"))
    for name in ("text", "ck-text.0"):
        with open(folder.name(name), "w", encoding="ascii") as file:
            file.write("a user's own file")
    np.save(folder.name("x2.npy"), np.arange(9.0))
    os.mkfifo(folder.name("fifo"))
    os.mkdir(folder.name("folder"))
    os.mkdir(folder.name("folder.0"))
    for name in ("a", "b"):
        cli.alone("sum", "-q", folder.name("x.npy"), f"--partial={folder.name(name)}")


    np.arange(100.0).tofile(folder.name("raw"))
    for part in range(2):
        np.save(folder.name(f"part-{part}.npy"), np.ones(3))
    with open(folder.name("held"), "wb") as file:  # .npz by another name
        np.savez(file, a=np.ones((2, 3)), b=np.ones(2))
    os.symlink("held", folder.name("to-held"))
    header = json.dumps({"t": {"dtype": "F64", "shape": [2], "data_offsets": [0, 16]}}).encode()
    with open(folder.name("m.safetensors"), "wb") as file:
        file.write(struct.pack("<Q", len(header)) + header + bytes(16))
    with open(folder.name("m.safetensors.index.json"), "w", encoding="ascii") as file:
        json.dump({"weight_map": {"t": "m.safetensors"}}, file)
    with open(folder.name("kept.h5"), "w", encoding="ascii") as file:
        file.write("another format's")
    os.symlink("kept.h5", folder.name("to-h5"))
    os.symlink("x.npy", folder.name("to-npy"))


ENDINGS = (".npz", ".safetensors", ".h5", ".hdf5", ".nc", ".zarr", ".json", ".csv", ".txt", ".H5")


def refusals(name):
    """(words, exit status, what the message says)"""
    x = name("x.npy")
    for words, target in ((["softmax", f"{name('held')}:a"], "held"), (["softmax", f"{name('held')}:a"], "to-held"),
                          (["softmax", f"{name('to-held')}:a", "--axis=1"], "held"), (["softmax", name("part-*.npy")], "part-1.npy"),
                          (["softmax", x, "--offset=1"], "x.npy"), (["softmax", x, "--count=3"], "hard"),
                          (["softmax", name("raw"), "--dtype=f64", "--offset=16"], "raw"), (["softmax", name("raw"), "--dtype=f64", "--count=3"], "raw")):
        yield [*words, "-o", name(target)], 2, "--output would replace the input"
    yield ["sum", f"{name('m.safetensors.index.json')}:t", f"--partial={name('m.safetensors.index.json')}"], 2, "--partial would replace the input"
    for ending in ENDINGS:
        yield ["softmax", x, "-o", name(f"y{ending}")], 2, f"no {ending.lower()} is written"
    yield ["generate", "ramp?n=4", "-o", name("y.h5")], 2, "no .h5 is written"
    yield ["softmax", x, "--axis=0", "-o", name("y.nc")], 2, "no .nc is written"
    yield ["argmax", x, "--axis=0", "-o", name("y.npy"), f"--values={name('v.csv')}"], 2, "no .csv is written"
    yield ["softmax", x, "-o", name("to-h5")], 2, "leads to a file that ends in .h5"
    yield ["generate", "ramp?n=4", "-o", name("to-npy")], 2, "leads to a file that ends in .npy"
    for option, ending in (("partial", ""), ("checkpoint", ".0")):
        for target, status, said in (("none/p", 1, "none/"), ("folder", 2, "a directory"), (f"{'x' * 254}", 1, "too long"),
                                     ("/proc/p", 1, "cannot create a file in the folder")):
            if target[0] != "x" or ending:
                yield ["sum", x, f"--{option}={name(target)}"], status, said
    for target, status, said in (("x.npy", 2, "the input"), ("hard", 2, "the input"), ("soft", 2, "the input"), ("fifo", 2, "a fifo"),
                                 ("/dev/null", 2, "a character device"), ("dangling", 1, "symbolic link"), ("p/", 2, "expected the name of a file")):
        yield ["sum", x, f"--partial={name(target)}"], status, said
    for target in ("x2.npy", "text"):
        yield ["sum", x, f"--partial={name(target)}"], 1, "a file of another kind, which is not replaced"
    yield ["merge", "--partial", name("x2.npy"), name("a"), name("b")], 1, "a file of another kind, which is not replaced"
    yield ["sum", x, f"--checkpoint={name('ck-text')}"], 1, "a file of another kind, which is not replaced"
    yield ["sum", x, f"--checkpoint={name('ck')}"], 2, "the input"
    yield ["sum", x, f"--checkpoint={name('new')}", f"--partial={name('new.0')}"], 2, "the partial"
    yield ["sum", x, f"--checkpoint={name('new')}", f"--partial={name('folder/../new.0')}"], 2, "the partial"
    yield ["softmax", x, f"--checkpoint={name('new')}", "-o", name("new.0")], 2, "the output"
    yield ["merge", name("a"), name("b"), f"--partial={name('b')}"], 2, "the input"
    yield ["merge", name("a"), name("b"), f"--partial={name('none/p')}"], 1, "none/"


def test_refusals(folder):
    before = state(folder.path)
    cases = list(refusals(folder.name))
    for (words, status, said), done in zip(cases, cli.each_alone([words for words, _, _ in cases])):
        fault = cli.refused(done, status, said)
        tap.ok(not fault, f"refused: {words[0]} {words[-1].replace(folder.path, '')[:40]}: {said}", fault)
    tap.ok(state(folder.path) == before and stat.S_ISCHR(os.stat("/dev/null").st_mode), "and everything is as it was")
    done = cli.ranks(3, "sum", folder.name("x.npy"), f"--checkpoint={folder.name('new')}", f"--partial={folder.name('new.2')}")
    fault = cli.refused(done, 2, "rank 2", "the partial")
    tap.ok(not fault and state(folder.path) == before, "refused: a partial that is the checkpoint of another rank", fault)


def test_replaced(folder):
    """What may be replaced is replaced, and nothing else."""
    kept, new = folder.name("kept"), folder.name("kept.tmp")
    for name, text in ((kept, "allfoldP, cut short"), (new, "a user's own file"), (folder.name("empty"), "")):
        with open(name, "w", encoding="ascii") as file:
            file.write(text)
    os.chmod(kept, 0o604)
    os.symlink("kept", folder.name("link"))
    runs = cli.each_alone([["sum", "-q", folder.name("x.npy"), f"--partial={folder.name(name)}"] for name in ("link", "link", "empty", "link", "link")])
    merged = cli.alone("merge", "-q", folder.name("link"), folder.name("empty"))
    found = state(folder.path)
    tap.ok(all(done.returncode == 0 for done in runs) and merged.stdout == "999000.0\n" and found["kept"][1] == 0o604
           and found["link"][2] == "kept" and found["kept.tmp"][2] == b"a user's own file" and not [n for n in found if n[0] == "."],
           "four runs at a time write one partial through a link: it is whole, its permissions stay, nothing else changes",
           cli.shown(merged) + "".join(map(cli.shown, runs)))


def test_in_place(folder):
    """Softmax of all that a file holds may take its place."""
    for words, target in ((["own.npy"], "own.npy"), (["own.raw", "--dtype=f64"], "own.raw"), (["own.npy", "--axis=0"], "own-link.npy")):
        np.save(folder.name("own.npy"), np.zeros(4))
        np.zeros(4).tofile(folder.name("own.raw"))
        if not os.path.islink(folder.name("own-link.npy")):
            os.symlink("own.npy", folder.name("own-link.npy"))
        done = cli.ranks(2, "softmax", folder.name(words[0]), *words[1:], "-o", folder.name(target))
        found = np.load(folder.name(target)) if target.endswith("npy") else np.fromfile(folder.name(target))
        tap.ok(done.returncode == 0 and np.array_equal(found, np.full(4, 0.25)), f"softmax {' '.join(words)} -o {target}", cli.shown(done))


def test_two_runs(folder):
    """A second run with a checkpoint that is in use is refused, and does the first no harm."""
    words = ["gen:normal?n=4e9", "--backend=cpu", "--threads=1", f"--checkpoint={folder.name('used')}"]
    before = state(folder.path)
    with subprocess.Popen([tap.ALLFOLD, "sum", *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                          env={**os.environ, "OMPI_MCA_ess_singleton_isolated": "1"}) as first:
        end = time.monotonic() + 60
        while not os.path.exists(folder.name("used.0")) and time.monotonic() < end:
            time.sleep(0.05)
        second = cli.alone("sum", *words)
        held = os.path.exists(folder.name("used.0"))
        first.terminate()
        said = first.communicate(timeout=60)[1]
    fault = cli.refused(second, 1, "another run that is under way")
    left = set(os.listdir(folder.path)) - set(before)
    tap.ok(not fault and held and first.returncode == 75 and left == {"used.0"}, "a second run with the same checkpoint is refused",
           f"{fault}{said}{left}")


def main():
    cli.ignore_leaks()
    with cli.Folder() as folder:
        prepare(folder)
        test_refusals(folder)
        test_replaced(folder)
        test_in_place(folder)
        test_two_runs(folder)
    tap.done()


if __name__ == "__main__":
    main()
