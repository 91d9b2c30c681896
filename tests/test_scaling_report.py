#!/usr/bin/env python3
"""tools/scaling-report: the model finds the numbers that a study was made up with, and where the exchange overtakes the
fold; the page is well-formed, has every plot, and says what it cannot say. The studies are made up, to exercise the tool."""
import contextlib
import io
import json
import math
import os
import re
import runpy
import subprocess
import sys
import tempfile
import unittest.mock
import xml.etree.ElementTree

import numpy as np

import tap

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(tap.SOURCE, "tools"))
import scaling_study  # noqa: E402

TOOL = os.path.join(tap.SOURCE, "tools", "scaling-report")
LAUNCH, BANDWIDTH, ALPHA, BETA = 8e-6, 4.5e12, 1.7e-6, 2.5e-6


def made_up(ranks_list, counts, totals, hosts=lambda ranks: (ranks + 7) // 8, noise=0.0, seed=1, alpha=ALPHA):
    """Reports as allfold bench prints them, one for each number of ranks."""
    random = np.random.default_rng(seed)

    def row(count, ranks, timing_point, seconds, **more):
        seconds *= 1 + noise * random.standard_normal()
        return {"fold": "sum", "dtype": "f32", "count": count, "ranks": ranks, "data": "device", "peer": "allfold", "timing_point": timing_point,
                "seconds": seconds, **more}

    for ranks in ranks_list:
        rows = []
        for count in sorted({*counts, *(total // ranks for total in totals)}):
            fold, exchange = LAUNCH + 4 * count / BANDWIDTH, alpha * math.log2(ranks) + BETA if ranks > 1 else 0.0
            split = {"kernel": fold - 4e-6, "hand_over": 4e-6, "exchange": exchange, "rest": -1e-8}
            rows += [row(count, ranks, "partial", fold), row(count, ranks, "exchange", exchange or 1e-7),
                     row(count, ranks, "host", fold + exchange, split=split), {**row(count, ranks, "host", 1.0), "peer": "cub"}]
        machines = [{"rank": rank, "host": f"n{rank * hosts(ranks) // ranks}", "device": "made up", "uuid": f"GPU-{rank}"}
                    for rank in range(ranks)]
        yield {"command": "bench", "schema": 1, "version": "0.0", "backend": "cuda", "results": rows,
               "surveys": [{"ranks": ranks, "machines": machines}]}


RANKS, COUNTS, TOTALS = [8, 16, 32, 64, 128, 256], [2 ** 12, 2 ** 20, 2 ** 28], [2 ** 30]


def study_of(folder, reports):
    path = os.path.join(folder, "study.json")
    with open(path, "w", encoding="utf-8") as file:
        file.writelines(json.dumps(report) + "\n" for report in reports)
    study = scaling_study.Study([path])
    study.choose("sum", "f32")
    return study


def near(found, expected, tolerance=1e-6):
    return abs(found - expected) <= tolerance * abs(expected)


def test_model(folder):
    study = study_of(folder, made_up(RANKS, COUNTS, TOTALS))
    launch, per_byte = study.fit_fold.coefficients
    alpha, beta = study.fit_exchange.coefficients
    tap.ok(near(launch, LAUNCH) and near(1 / per_byte, BANDWIDTH) and near(alpha, ALPHA) and near(beta, BETA),
           "without noise the model has the numbers that made it", (launch, 1 / per_byte, alpha, beta))
    tap.ok(list(study.weak()) == COUNTS and list(study.strong()[2 ** 30]) == RANKS, "weak and strong series are found",
           (study.weak(), study.strong()))
    # the first P for which alpha log2 P + beta > launch + total * 4 / P / bandwidth, tried one by one
    total = 2 ** 28
    expected = next(p for p in range(2, 10001) if ALPHA * math.log2(p) + BETA > LAUNCH + total * 4 / p / BANDWIDTH)
    found = study.overtaken(lambda ranks: total / ranks)[0]
    tap.ok(abs(found - expected) <= 0.01 * expected + 1, "where the exchange overtakes the fold", (found, expected))
    tap.ok(study.overtaken(lambda ranks: np.full(len(ranks), 2.0 ** 34))[0] is None, "and where it does not")
    noisy = [study_of(folder, made_up(RANKS, COUNTS, TOTALS, noise=0.05, seed=seed)) for seed in range(40)]
    exact = ALPHA * math.log2(10000) + BETA
    inside = sum(abs(time[0] - exact) <= band[0] for time, band in (study.exchange_time(10000) for study in noisy))
    tap.ok(inside >= 34, "the 95 % band holds the truth of 10,000 ranks in 34 of 40 noisy studies or more", inside)
    falling = study_of(folder, made_up(RANKS, COUNTS, [], alpha=-1e-7))
    tap.ok(falling.fit_exchange.coefficients[0] == 0 and falling.fit_exchange.coefficients[1] > 0,
           "no coefficient is negative", falling.fit_exchange.coefficients)
    tap.ok(study_of(folder, made_up(RANKS, COUNTS, [], hosts=lambda ranks: 1)).one_host and not study.one_host,
           "an exchange inside one host is known as such")


def run(*words):
    """The tool in this process, where matplotlib is loaded already; as subprocess.run."""
    said = io.StringIO()
    done = subprocess.CompletedProcess([TOOL, *words], 0)
    with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said), unittest.mock.patch("sys.argv", done.args):
        try:
            runpy.run_path(TOOL, run_name="__main__")
        except SystemExit as end:
            done.returncode = 1 if isinstance(end.code, str) else end.code or 0
            said.write(end.code if isinstance(end.code, str) else "")
    done.stderr = said.getvalue()
    return done


def test_page(folder):
    path, page = os.path.join(folder, "study.json"), os.path.join(folder, "report.html")
    study_of(folder, made_up(RANKS, COUNTS, TOTALS, noise=0.02))
    process = subprocess.run([sys.executable, TOOL, path, "-o", page], capture_output=True, text=True, check=False)
    with open(page, encoding="utf-8") as file:
        text = file.read()
    pictures = re.findall(r"<svg.*?</svg>", text, flags=re.DOTALL)
    for picture in pictures:
        xml.etree.ElementTree.fromstring(picture)
    identities = re.findall(r'id="([^"]+)"', text)
    tap.ok(process.returncode == 0 and len(pictures) == 7 and len(set(identities)) == len(identities),
           "HTML: seven pictures in one well-formed file", (process, len(pictures)))
    tap.ok(all(words in text for words in ("bandwidth of a rank", "On 10,000 ranks", "overtakes", "95 %"))
           and "Warning" not in text and "nan" not in text, "and the words", text[-3000:])
    process = run(path, "-o", os.path.join(folder, "report.md"))
    names = sorted(os.listdir(os.path.join(folder, "report_files"))) if process.returncode == 0 else []
    tap.ok({"weak.svg", "strong.svg", "efficiency.svg", "exchange.svg", "extrapolation.svg"} <= set(names) and len(names) == 7,
           "Markdown: the pictures beside it", (process, names))
    study_of(folder, made_up([1, 2], [2 ** 20], [], hosts=lambda ranks: 1))
    process = run(path, "-o", page)
    with open(page, encoding="utf-8") as file:
        text = file.read()
    tap.ok(process.returncode == 0 and "Not measured" in text and "no extrapolation" in text and "nan" not in text,
           "a study too small says so", (process, text[-2000:]))
    study_of(folder, made_up(RANKS, COUNTS, TOTALS, noise=0.7))
    process = run(path, "-o", page)
    with open(page, encoding="utf-8") as file:
        text = file.read()
    tap.ok(process.returncode == 0 and "off the model" in text, "as does one that the model does not fit", (process, text[-2000:]))


def test_refused(folder):
    for name, text in (("none.json", None), ("empty.json", ""), ("text.json", "hello"), ("ladder.json", '{"command": "ladder"}'),
                       ("array.json", "[1, 2]")):
        path, page = os.path.join(folder, name), os.path.join(folder, "never.html")
        if text is not None:
            with open(path, "w", encoding="utf-8") as file:
                file.write(text)
        process = run(path, "-o", page)
        tap.ok(process.returncode == 1 and process.stderr.startswith("scaling-report: ") and "Traceback" not in process.stderr
               and not os.path.exists(page), f"{name} is refused", process)
    first, *more = made_up([1, 2], COUNTS, [])
    first["results"] = [{**row, "range": 64} for row in first["results"]]
    try:
        study_of(folder, [first, *more])
        tap.ok(False, "rows of two ranges are refused")
    except scaling_study.StudyError as error:
        tap.ok("range" in str(error), "rows of two ranges are refused", error)


def main():
    try:
        import matplotlib  # noqa: F401
    except ImportError:
        tap.skip("no matplotlib")
        tap.done()
    with tempfile.TemporaryDirectory() as folder:
        test_model(folder)
        test_page(folder)
        test_refused(folder)
    tap.done()


if __name__ == "__main__":
    main()
