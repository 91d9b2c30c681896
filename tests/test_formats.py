#!/usr/bin/env python3
"""Formats of files: the folds of arrays that NumPy and other libraries have written, on several ranks, against Python's exact sums;
what is listed and what is refused. docs/formats.md."""
import math
import os

import numpy as np

import cli
import tap

PROGRAM = os.path.join(tap.BUILD, "tests", "format_folds")
RANDOM = np.random.default_rng(20261122)


def integers(dtype, shape):
    """Numbers of the type that tell places apart; for floating point halves, too."""
    kind = np.dtype(dtype).kind
    if kind == "b":
        return RANDOM.integers(0, 2, shape).astype(dtype)
    least = 0 if kind == "u" else -100
    return (RANDOM.integers(least, 100, shape) * (1.5 if kind == "f" else 1)).astype(dtype)


def expected(fold, x):
    """What format_folds prints for an array, of which the first axis varies slowest in the file; x may be big-endian."""
    flat = x.ravel()
    if fold == "argmax":
        place = int(flat.argmax())
        return f"{value_text(flat[place])}@{place}"
    return value_text(math.fsum(flat.astype(float)) if x.dtype.kind == "f" else sum(flat.tolist()))


def value_text(value):
    """As C's %a has it."""
    if isinstance(value, (float, np.floating)):
        mantissa, _, exponent = float(value).hex().partition("p")
        return f"{mantissa.rstrip('0').rstrip('.')}p{exponent}" if "." in mantissa else f"{mantissa}p{exponent}"
    return str(int(value))


class Cases:
    """Folds of inputs and what they must be."""

    def __init__(self, folder):
        self.folder, self.lines, self.wanted = folder, [], []

    def name(self, name):
        return os.path.join(self.folder, name)

    def add(self, name, x):
        """An input, relative to the folder, and its elements in the order of the file."""
        for fold in ("sum", "argmax") if x.size > 0 else ("sum",):
            self.lines.append(f"{fold} {self.name(name)}")
            self.wanted.append(expected(fold, x))

    def check(self, ranks, backend, staging):
        cases = self.name("cases")
        with open(cases, "w", encoding="ascii") as file:
            file.write("\n".join(self.lines) + "\n")
        done = tap.run(ranks, PROGRAM, backend, staging, cases)
        found = done.stdout.splitlines()
        wrong = [f"{line}: expected {wanted}, found {got}" for line, wanted, got in zip(self.lines, self.wanted, found) if wanted != got]
        tap.ok(done.returncode == 0 and len(found) == len(self.lines) and not wrong,
               f"{len(self.lines)} folds of {ranks} ranks on {backend} in pieces of {staging} bytes", "\n".join(wrong) or cli.shown(done))


def make_npy(cases):
    for dtype in (">f2", ">f4", ">f8", ">i2", ">i4", ">u8", "|i1", "|b1"):
        x = integers(dtype, (61, 1031))
        np.save(cases.name(f"big_{dtype[1:]}.npy"), x)
        cases.add(f"big_{dtype[1:]}.npy", x)


def make_npz(cases):
    arrays = {"w": integers("<f4", (300, 41)), "b": integers(">i4", (7,)), "empty": np.zeros((0, 4)), "wide": integers("<f8", (5, 700)),
              "scalar": np.array(3.5)}
    np.savez(cases.name("x.npz"), strings=np.array(["a"]), **arrays)
    np.savez(cases.name("one.npz"), only=arrays["w"])
    for name, x in arrays.items():
        cases.add(f"x.npz:{name}", x)
    cases.add("x.npz:wide.npy", arrays["wide"])
    cases.add("one.npz", arrays["w"])
    with open(cases.name("one.npz:only"), "wb") as file:  # a file of the whole name comes first
        np.save(file, arrays["b"])
    cases.add("one.npz:only", arrays["b"])


def test_folds(folder):
    cases = Cases(folder.path)
    for make in (make_npy, make_npz):
        make(cases)
    for backend in os.environ.get("ALLFOLD_TEST_BACKENDS", "cpu cuda").split():
        probe = cli.alone("info", f"--backend={backend}")
        if probe.returncode != 0:
            tap.skip(f"{backend}: {' '.join(cli.told(probe))}")
            continue
        for ranks, staging in ((1, 1 << 20), (2, 16384), (3, 4096), (5, 100000)):
            if str(ranks) in os.environ.get("ALLFOLD_TEST_RANKS", "1 2 3 5").split():
                cases.check(ranks, backend, staging)


def main():
    cli.ignore_leaks()
    with cli.Folder() as folder:
        test_folds(folder)
    tap.done()


main()
