#!/usr/bin/env python3
"""Runs the programs of examples/ on one rank and on several, and compares what they print with NumPy's numbers."""

import math
import os
import re

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

tap.done()
