#!/usr/bin/env python3
"""The hard cases of tests/data/hard: allfold keeps its promises on all of them, in one part and in three; and the answers that are
rational numbers, which MPFR gave, are those of Python's fractions."""
import importlib.machinery
import importlib.util
import math
import os
import re
import sys
from fractions import Fraction

import tap

TOOL = os.path.join(tap.SOURCE, "tools", "hard-cases")
LIBRARY = os.path.join(tap.BUILD, ".libs", "liballfold.so")
RIGHT = ("sum", "mean", "norm2", "variance", "dot")  # rounded once


def square_root_is(root, square):
    """Whether root is the f64 next to the root of a rational number."""
    below, above = (Fraction(root) + Fraction(math.nextafter(root, 0))) / 2, Fraction(root) + Fraction(math.ulp(root)) / 2
    return below ** 2 <= square <= above ** 2


def agrees(fold, arrays, answer):
    """Whether a finite answer is right."""
    x = [Fraction(float(one)) for one in arrays[0]]
    if fold == "dot":
        return float(sum(a * Fraction(float(b)) for a, b in zip(x, arrays[1]))) == answer
    if fold == "norm2":
        return square_root_is(answer, sum(one * one for one in x))
    total, squares = sum(x), sum(one * one for one in x) if fold == "variance" else 0
    return answer == float({"sum": lambda: total, "mean": lambda: total / len(x),
                            "variance": lambda: (squares - total * total / len(x)) / len(x)}[fold]())


def check_answers():
    loader = importlib.machinery.SourceFileLoader("hard_cases", TOOL)
    spec = importlib.util.spec_from_loader("hard_cases", loader)
    tool = importlib.util.module_from_spec(spec)
    loader.exec_module(tool)
    wrong, count = [], 0
    for fold, kind, name, arrays, answer in tool.read_cases():
        finite = all(map(math.isfinite, [answer[0], *(one for array in arrays if array.size < 5000 for one in array)]))
        if fold in RIGHT and arrays[0].size < 5000 and finite:
            count += 1
            wrong += [] if agrees(fold, arrays, answer[0]) else [(fold, kind, name)]
    tap.ok(count > 100 and not wrong, "rational answers of the hard cases", (count, wrong))


def main():
    check_answers()
    if not os.path.exists(LIBRARY) or any("-fsanitize" in word for word in tap.build_words("CFLAGS")):
        tap.skip("no shared library, or one with sanitizers, which Python cannot load", 2)
        tap.done()
    for ranks in (1, 3):
        run = tap.run(ranks, sys.executable, TOOL, "allfold",
                      env={"ALLFOLD_LIBRARY": LIBRARY, "PYTHONPATH": os.path.join(tap.SOURCE, "python")})
        rows = re.findall(r"^(\S+) +(\d+) +(\d+) ", run.stdout, flags=re.M)
        tap.ok(run.returncode == 0 and len(rows) == 8 and all(cases == right for fold, cases, right in rows if fold in RIGHT),
               f"{ranks} rank(s): hard cases", (run, rows))
    tap.done()


if __name__ == "__main__":
    main()
