#!/usr/bin/env python3
"""tools/draw-ladder: the index formulas that are drawn do reduce; every picture is well-formed; what is in docs/img is
what the tool draws; tables come out of a ladder's JSON. The numbers in that JSON are made up, to exercise the tool."""
import json
import os
import subprocess
import sys
import tempfile
import xml.etree.ElementTree

import tap

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(tap.SOURCE, "tools"))
import ladder_json  # noqa: E402
import ladder_patterns  # noqa: E402
import ladder_plots  # noqa: E402
import ladder_tables  # noqa: E402

TOOL = os.path.join(tap.SOURCE, "tools", "draw-ladder")
IMAGES = os.path.join(tap.SOURCE, "docs", "img")
RATES = {"seconds": 1e-4, "seconds_p99": 1.1e-4, "runs": 20, "bytes_per_second": 2e12, "of_read_ceiling": 0.5,
         "of_datasheet": 0.4, "correct": True}
NOTHING = dict.fromkeys(RATES)


def report(topic, *tables):  # made up
    device = {"device": "no GPU at all", "cuda_driver": 13000, "cuda_runtime": 12080}
    common = {"rank": 0, "title": f"{topic}, made up", "count": 1 << 24, "read_ceiling": 4e12, "datasheet": 5e12}
    return {"command": "ladder", "topic": topic, "devices": [device], "tables": [{**common, **table} for table in tables]}


def rung(name, **more):
    return {"rung": name, "idea": "made up", **RATES, "input_of_read_ceiling": 0.4, "speedup_before": 1.5,
            "speedup_first": None, "occupancy": None, **more}


def occupancy_row(**more):
    return {"sums": 1, "blocks_wanted": 1, "registers": 32, "local_bytes": 0, "dynamic_shared_bytes": 1024, "blocks": 8,
            "occupancy": 1.0, "bytes_in_flight": 32768, "seconds_in_flight": 1e-6, **RATES, **more}


def flight_row(flight, load_bytes, **more):
    return {"threads": 64, "loads": 1, "load_bytes": load_bytes, "bytes_in_flight": flight, "seconds_in_flight": 6e-7,
            **RATES, **more}


REPORTS = [
    report("rungs", *({"dtype": "int32", "fold": "sum", "block": 256, "count": count,
                       "rows": [rung("modulo"), rung("last-warp", seconds=5e-5, speedup_first=3.0)]}
                      for count in (1 << 24, 1 << 28))),
    report("softmax", {"rows": [{"rung": "fused", "idea": "made up", "trips": 3, "speedup_before": 1.0, "speedup_first": 2.0,
                                 "error_ulp": 0.7, **RATES}]}),
    *(report(topic, *({"matrix_rows": n, "matrix_columns": (1 << 24) // n, "rows": [
        {"rung": name, "idea": "made up", "threads": threads, "launches": threads and 2, "speedup_before": 1.5, "speedup_first": 2.0,
         **RATES} for name, threads in (("a-line", 65536), ("engine", None))]} for n in shapes))
      for topic, shapes in (("rows", (1 << 19, 3)), ("columns", (1 << 9,)))),
    report("coalescing", *({"part": part, "matrix_rows": 3, "matrix_columns": 4, "rows": [
        {"way": "naive", "pattern": "a lane a row", "sectors": 32, "registers": 32, "occupancy": 1.0, "speedup_first": 1.0,
         **RATES}]}
        for part in ("row sums", "column sums"))),
    report("parallelism", {"rows": [flight_row(256, 4), flight_row(131072, 16), flight_row(262144, 16, **NOTHING)]}),
    report("granularity", {"block": 64, "rows": [{"elements": 2 ** n, "blocks": 10, "launches": 3, "registers": 20,
                                                  "occupancy": 1.0, **RATES} for n in range(6)]}),
    report("occupancy", *({"part": part, "rows": [occupancy_row(), occupancy_row(blocks=6, occupancy=0.75, registers=33)]}
                          for part in ("registers", "register caps", "shared memory"))),
]


def reduce(steps, block):
    """The sum of 0 .. block - 1 by those steps, all threads of a step at once."""
    x = list(range(block))
    for s, threads in steps(block):
        sums = {i: x[i] + x[i + s] for i in threads.values()}
        for i, value in sums.items():
            x[i] = value
    return x[0]


def test_patterns():
    for steps in (ladder_patterns.neighboured, ladder_patterns.packed, ladder_patterns.sequential):
        tap.ok(all(reduce(steps, block) == block * (block - 1) // 2 for block in (2, 16, 64, 1024)),
               f"{steps.__name__} pairs reduce")
    divergent = {steps.__name__: ladder_patterns.totals(steps, 256)[1] for steps in
                 (ladder_patterns.neighboured, ladder_patterns.packed, ladder_patterns.sequential)}
    tap.ok(divergent["neighboured"] == ladder_patterns.totals(ladder_patterns.neighboured, 256)[0]
           and divergent["packed"] == 5 and divergent["sequential"] == 5,
           "every warp diverges, or only the last one in its last five steps", divergent)
    tap.ok([ladder_patterns.conflict([2 * s * t for t in range(32)]) for s in (1, 2, 4, 8, 16)] == [2, 4, 8, 16, 32]
           and ladder_patterns.conflict(range(32)) == 1 and ladder_patterns.conflict([33 * t for t in range(32)]) == 1,
           "bank conflicts")


def test_pictures():
    drawn = dict(ladder_patterns.pictures())
    plotted = dict(ladder_plots.plots(REPORTS))
    for name, page in {**drawn, **plotted}.items():
        for dark in (None, False, True):
            xml.etree.ElementTree.fromstring(page.svg(dark))
    tap.ok(len(drawn) == 6 and len(plotted) == 11, "every picture is well-formed", [*drawn, *plotted])
    for name, page in drawn.items():
        path = os.path.join(IMAGES, name + ".svg")
        with open(path, encoding="utf-8") as file:
            tap.ok(file.read() == page.svg(), f"docs/img/{name}.svg is what tools/draw-ladder draws",
                   "run tools/draw-ladder")


def test_tables():
    text = ladder_tables.all_tables(REPORTS)
    tap.ok("| `last-warp` | made up | 50 |" in text, "the rungs", text)
    tap.ok("### rows, made up" in text and "| `a-line` | made up | 65,536 | 2 | 100 | 2,000 | 50.0 | 1.50x | 2.00x | yes |" in text
           and "| `engine` | made up | – | – |" in text, "rows and columns, with what is not known", text)
    tap.ok(text.count("\n### ") + text.startswith("### ") == 13, "a table for each that was measured", text)
    tap.ok(ladder_json.count_text(1 << 24) == "2^24" and ladder_json.count_text(1000) == "1,000" and
           ladder_json.microseconds(1.2345e-5) == "12.35" and ladder_json.percent(None) == "–", "numbers for people")


def test_program():
    with tempfile.TemporaryDirectory() as folder:
        results, page, emulated = (os.path.join(folder, name) for name in ("results.json", "page.md", "emulated.json"))
        with open(emulated, "w", encoding="utf-8") as file:
            json.dump({**REPORTS[0], "devices": [{"device": "emulation", "emulated": True}]}, file)
        with open(results, "w", encoding="utf-8") as file:
            file.write("\n".join(json.dumps(one) for one in REPORTS))
        with open(page, "w", encoding="utf-8") as file:
            file.write("before\n<!-- measured: begin. -->\nold\n<!-- measured: end -->\nafter\n")
        done = [subprocess.run([sys.executable, TOOL, *words], capture_output=True, text=True) for words in
                ([results, "--out", folder], ["--update", page, results], ["--update", page, results], ["--table", page],
                 ["--table"], ["--table", emulated])]
        with open(page, encoding="utf-8") as file:
            text = file.read()
        tap.ok(done[0].returncode == 0 and os.path.exists(os.path.join(folder, "ladder-time.svg")),
               "pictures are written", done[0])
        tap.ok(done[1].returncode == done[2].returncode == 0 and text.startswith("before\n<!-- measured: begin. -->\n\n![")
               and text.endswith("<!-- measured: end -->\nafter\n") and "old" not in text and text.count("ladder-time") == 1,
               "a page is brought up to date, and again", text)
        tap.ok(done[3].returncode == 1 and "is not what" in done[3].stderr, "another file is refused", done[3])
        tap.ok(done[5].returncode == 1 and "without a GPU" in done[5].stderr, "a report without times is refused", done[5])
        tap.ok(done[4].returncode == 1 and "found none" in done[4].stderr, "tables of nothing are refused", done[4])


def main():
    test_patterns()
    test_pictures()
    test_tables()
    test_program()
    tap.done()


if __name__ == "__main__":
    main()
