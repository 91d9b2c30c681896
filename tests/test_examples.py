#!/usr/bin/env python3
"""Runs the programs of examples/ on one rank and on several, and compares what they print with NumPy's numbers. Compiles the C
code at the head of allfold.h and in README.md and docs/library.md, as it stands there, and runs it likewise."""

import math
import os
import re
import subprocess
import tempfile

import numpy

import tap


def run(name, ranks):
    result = tap.run(ranks, os.path.join(tap.BUILD, "examples", name))
    numbers = [float(word) for word in re.findall(r"-?\d+\.?\d*(?:e[-+]?\d+)?", result.stdout)]
    return result, numbers


def close(a, b, tolerance):
    return abs(a - b) <= tolerance * abs(b)


for ranks in (1, 3):
    x = numpy.float32(1) / numpy.arange(1, ranks * 1000000 + 1, dtype=numpy.float32)
    exact = math.fsum(x)
    result, found = run("01_sum", ranks)
    tap.ok(
        result.returncode == 0
        and found[:2] == [x.size, ranks]
        and close(found[2], exact, 1e-10)
        and close(found[3], exact / x.size, 1e-6)
        and found[4:] == [1, 0],
        f"01_sum on {ranks} rank(s)",
        f"expected the sum {exact}, found: {result.stdout}{result.stderr}",
    )

    if os.path.exists(os.path.join(tap.BUILD, "examples", "03_fortran")):
        result, found = run("03_fortran", ranks)
        tap.ok(result.returncode == 0 and found[:2] == [x.size, ranks] and close(found[2], exact, 1e-10) and found[3:] == [1, 1, 1],
               f"03_fortran on {ranks} rank(s)", f"expected the sum {exact}, found: {result.stdout}{result.stderr}")
    else:
        tap.skip("no Fortran compiler")

    parts = []
    for rank in range(ranks):
        i = numpy.arange((rank + 1) * 1000)
        parts.append(1000.0 + (i % 97) * 0.125 - rank)
    logits = numpy.concatenate(parts)
    terms = numpy.exp(logits - logits.max())
    result, found = run("02_softmax", ranks)
    tap.ok(
        result.returncode == 0
        and found[:2] == [logits.size, ranks]
        and abs(found[2] - 1) < 1e-6
        and close(found[3], terms.max() / terms.sum(), 1e-6),
        f"02_softmax on {ranks} rank(s)",
        f"expected a largest of {terms.max() / terms.sum()}, found: {result.stdout}{result.stderr}",
    )

    words = numpy.arange(ranks * 1000)
    result, found = run("05_vocabulary", ranks)
    good = result.returncode == 0 and len(found) == 4 * 5
    for token in range(4 * good):
        terms = numpy.exp(numpy.where(words == 7 * token, 12.0, words % 31 * 0.125))
        good = good and found[5 * token:5 * token + 3] == [token, 7 * token, words.size] \
            and close(found[5 * token + 3], terms.max() / terms.sum(), 2e-6) and abs(found[5 * token + 4] - 1) < 2e-6
    tap.ok(good, f"05_vocabulary on {ranks} rank(s)", result.stdout + result.stderr)


def residuals(steps):
    """Of conjugate gradients as examples/04_conjugate_gradients.c has it."""
    i = numpy.arange(10007.0)
    r = 1 / (i + 1) - 0.3 * (i % 7)
    d, norms = r.copy(), [numpy.linalg.norm(r)]
    for _ in range(steps):
        q = (2 + i / i.size) * d
        q[1:] -= d[:-1]
        q[:-1] -= d[1:]
        rho = r @ r
        r = r - rho / (d @ q) * q
        d = r + (r @ r) / rho * d
        norms.append(numpy.linalg.norm(r))
    return norms


runs = []
for ranks in (1, 2, 3):
    result = tap.run(ranks, os.path.join(tap.BUILD, "examples", "04_conjugate_gradients"))
    runs.append([line.split() for line in result.stdout.splitlines() if re.match(r" +\d+ +0x", line)])
expected = residuals(40)[::5]
tap.ok(all(len(rows) == 9 and all(close(float.fromhex(row[column]), due, 1e-9) for row, due in zip(rows, expected) for column in (1, 2))
           for rows in runs), "04_conjugate_gradients: residuals", f"{expected}\n{runs}")
tap.ok(runs[0] and all([row[1] for row in rows] == [row[1] for row in runs[0]] for rows in runs),
       "04_conjugate_gradients: exact sums have the same bits on 1, 2 and 3 ranks", runs)
tap.ok(any([row[2] for row in rows] != [row[2] for row in runs[0]] for rows in runs),
       "04_conjugate_gradients: those of MPI_Allreduce have not", runs)


# What code that is no whole program is put into: a context, and this rank's part of the global array 1, 2, 3, ..., 10 a rank.
WRAPPING = """
#include <allfold.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
%s
int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    int rank;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    enum { n = 10 };
    float x[n];
    for (int i = 0; i < n; i++)
        x[i] = (float)(rank * n + i + 1);
    const allfold_array part = {x, n, ALLFOLD_F32};
%s
    (void)part;
    MPI_Finalize();
    return 0;
}
"""
OPEN = "allfold_context *context;\nif (allfold_open(MPI_COMM_WORLD, %s, &context, NULL, 0) != ALLFOLD_OK) return 1;\n"
SUM = ("allfold_result sum;\nif (allfold_reduce(context, ALLFOLD_SUM, &part, %s, &sum) != ALLFOLD_OK) return 1;\n"
       "if (rank == 0) printf(\"%%g\\n\", sum.value.f64);\n")
CLOSE = "allfold_close(context);\n"


def program_of(code):
    """The code as a program, in as little else as it needs."""
    if "int main(" in code:
        return code
    if "..." in code:  # a function, and code that uses it
        function, code = code.split("...\n")
        return WRAPPING % (function, code + OPEN % "&options" + SUM % "NULL" + CLOSE)
    if "allfold_source" in code:
        return WRAPPING.replace("allfold.h", "allfold_files.h") % ("", OPEN % "NULL" + code + CLOSE)
    if "ALLFOLD_OPTIONS_INIT" in code:
        return WRAPPING % ("", code + OPEN % "&options" + SUM % "&single" + CLOSE)
    if "allfold_open(" in code:
        return WRAPPING % ("", code)
    return WRAPPING % ("", OPEN % "NULL" + code + CLOSE)


def snippets():
    """(where it stands, code) of every C example for users."""
    with open(os.path.join(tap.SOURCE, "src", "allfold.h"), encoding="utf-8") as file:
        head = file.read().split("*/")[0]
    yield "allfold.h", "\n".join(line for line in head.splitlines() if line.startswith("       ") or line == "") + "\n"
    for name in ("README.md", "docs/library.md"):
        with open(os.path.join(tap.SOURCE, name), encoding="utf-8") as file:
            for number, code in enumerate(re.findall(r"^```c\n(.*?)^```$", file.read(), re.M | re.S), 1):
                yield f"{name}, {number}", code


def compile_snippet(folder, code):
    source, program = os.path.join(folder, "snippet.c"), os.path.join(folder, "snippet")
    with open(source, "w", encoding="utf-8") as file:
        code = program_of(code)
        file.write(code)
    words = tap.build_words("CC", "CFLAGS", "MPI_CFLAGS") + ["-std=c11", "-Wall", "-Wextra", "-Werror"]
    libraries = [os.path.join(tap.BUILD, "src", "liballfold.o")] + tap.build_words("CUDA_LIBS", "OPENMP_LIBS", "MPI_LIBS", "LIBS")
    if "allfold_files.h" in code:
        libraries = [os.path.join(tap.BUILD, "src", "liballfold-files.o")] + tap.build_words("LIBS_OF_FILES") + libraries
    include = ["-I", os.path.join(tap.SOURCE, "src")]
    result = subprocess.run(words + include + [source, "-o", program] + libraries + ["-lm", "-lpthread"],
                            capture_output=True, text=True)
    return program, result


def harmonic(count):
    return math.fsum(numpy.float32(1) / numpy.arange(1, count + 1, dtype=numpy.float32))


def norms(ranks):
    """Of two arrays, the second of which has the first three elements of each rank."""
    return sum(range(1, 10 * ranks + 1)), sum(30 * rank + 6 for rank in range(ranks))


def log_probability(ranks):
    """Of the second row of logits, whose element 3 is 9; and its logsumexp."""
    total = math.log(sum(math.exp(10 * rank + i) for rank in range(ranks) for i in range(6, 11)))
    return 9 - total, total


# What each prints, on that many ranks.
PRINTS = {
    "allfold.h": lambda ranks: [f"{sum(range(1, 10 * ranks + 1))}"] * ranks,
    "README.md, 1": lambda ranks: [f"{ranks * harmonic(1000):.10f}"] * ranks,
    "docs/library.md, 1": lambda ranks: [f"sum of {ranks}000000 elements: {harmonic(ranks * 10**6):.10f}, largest 1 at 0"],
    "docs/library.md, 2": lambda ranks: [f"{sum(i * i for i in range(1, 10 * ranks + 1))}"],
    "docs/library.md, 3": lambda ranks: ["{:g} {:g}".format(*log_probability(ranks))],
    "docs/library.md, 4": lambda ranks: [f"0 of {10 * ranks} outside"],
    "docs/library.md, 5": lambda ranks: ["{:g} and {:g}, together {:g}".format(*norms(ranks), sum(norms(ranks)))],
    "docs/library.md, 6": lambda ranks: [f"{sum(i * i for i in range(1, 10 * ranks + 1))}", f"{sum(range(1, 10 * ranks + 1))}"],
    "docs/library.md, 7": lambda ranks: [f"count = {10 * ranks}", "nan_count = 0", f"mean = {(10 * ranks + 1) / 2:g}"],
    "docs/library.md, 8": lambda ranks: [f"{sum(50 * r + 15 for r in range(ranks))} {sum(50 * r + 40 for r in range(ranks))}"],
    "docs/library.md, 9": lambda ranks: [f"{sum(40 * r + 14 for r in range(ranks))} {sum(40 * r + 22 for r in range(ranks))}"],
    "docs/library.md, 10": lambda ranks: ["499999.5"],
    "docs/library.md, 11": lambda ranks: [f"{sum(range(1, 10 * ranks + 1))}"],
    "docs/library.md, 13": lambda ranks: [f"{sum(range(1, 10 * ranks + 1))}"],
}
with tempfile.TemporaryDirectory() as folder:
    for name, code in snippets():
        if "cuda_runtime_api.h" in code:
            tap.skip(f"{name}: needs CUDA's header and a GPU")
            continue
        program, compiled = compile_snippet(folder, code)
        if not tap.ok(compiled.returncode == 0, f"{name} compiles without warnings", compiled.stderr):
            continue
        for ranks in (1, 2):
            result = tap.run(ranks, program)
            lines = result.stdout.splitlines()
            tap.ok(result.returncode == 0 and name in PRINTS and all(line in lines for line in PRINTS[name](ranks)),
                   f"{name} on {ranks} rank(s)", f"{result.returncode}: {result.stdout}{result.stderr}")

tap.done()
