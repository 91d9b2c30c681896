#!/usr/bin/env python3
"""allfold ladder: what it refuses, in every build; without a CUDA device every rung of the emulation against the oracle; with one at many
lengths, and whether the report's numbers fit each other. How fast the rungs are is not tested."""
import math
import os
import shutil
import subprocess
import tempfile

import cli
import tap
from cli import each_alone, refused, report, shown, told

RUNGS = ["host-recursion", "neighboured", "neighboured-packed", "interleaved", "unrolled-global", "modulo",
         "strided-index", "sequential", "first-add", "last-warp", "unrolled", "four-blocks", "four-blocks-dynamic",
         "many-elements", "shuffles", "engine", "cub"]
SOFTMAX = ["one-block", "many-blocks", "fused", "engine"]
LINES = {"rows": ["thread-a-row", "block-a-row", "warp-a-row", "row-vectors", "rows-a-warp", "split-rows", "engine"],
         "columns": ["block-a-column", "thread-a-column", "column-vectors", "split-columns", "engine"]}

EMULATION = os.path.join(tap.BUILD, "allfold-ladder.so")
GPU = "--backend=auto"  # else tests/cli.py hides devices


def alone(*words):
    return cli.alone("ladder", GPU, *words)


def check_list():
    lists = {(): RUNGS, ("softmax",): SOFTMAX, **{(topic,): rungs for topic, rungs in LINES.items()}}
    for (words, rungs), listed in zip(lists.items(), each_alone(["ladder", *words, "--list"] for words in lists)):
        tap.ok(listed.returncode == 0 and [line.split()[0] for line in listed.stdout.splitlines()] == rungs,
               f"ladder {' '.join(words)} --list names the rungs, in order", shown(listed))
    objects = (report(alone("--list", "--json")) or {}).get("rungs", [])
    tap.ok([rung["rung"] for rung in objects] == RUNGS and all(rung["idea"] for rung in objects),
           "so does --list --json", objects)
    process = cli.ranks(3, "ladder", "--list", "--quiet")
    tap.ok(process.returncode == 0 and process.stdout.count("modulo") == 1, "3 ranks list once", shown(process))


def check_usage():
    cases = [
        (["ladder", "softmx"], ["'softmx' is no topic", "did you mean softmax?"]),
        (["ladder", "softmax", "x"], ["[TOPIC]", "'x'"]),
        (["ladder", "--rung=module"], ["'module' is no rung", "did you mean modulo?", "--list"]),
        (["ladder", "--block=96"], ["--block", "64, 128, 256, 512, 1024 or all", "'96'"]),
        (["ladder", "--type=f16"], ["--type", "int32, f32, f64 or all", "'f16'"]),
        (["ladder", "--fold=mean"], ["--fold", "sum, max or all", "'mean'"]),
        (["ladder", "--count=9-3"], ["--count", "'9-3'"]),
        (["ladder", "--count=1,,2"], ["--count", "'1,,2'"]),
        (["ladder", "--count=0-9:0"], ["--count", "'0-9:0'"]),
        (["ladder", "softmax", "--type=f32"], ["ladder softmax takes no --type"]),
        (["ladder", "--columns=4"], ["takes no --columns"]),
        (["ladder", "--shape=4,4"], ["ladder takes no --shape"]),
        (["ladder", "rows", "--count=4"], ["ladder rows takes no --count"]),
        (["ladder", "rows", "--rung=warp-row"], ["'warp-row' is no rung", "did you mean warp-a-row?", "ladder rows --list"]),
        (["ladder", "columns", "--shape=4"], ["--shape", "ROWS,COLUMNS", "'4'"]),
        (["ladder", "columns", "--shape=4,x"], ["--shape", "ROWS,COLUMNS", "'4,x'"]),
        (["ladder", "columns", "--shape=2^31,1"], ["--shape", "below 2^31", "'2^31,1'"]),
        (["ladder", "rows", "--check", "--type=f32"], ["ladder rows takes no --type"]),
        (["ladder", "softmax", "--check"], ["ladder softmax takes no --check"]),
        (["ladder", "occupancy", "--list"], ["ladder occupancy takes no --list"]),
        (["ladder", "--nan=omit"], ["ladder takes no --nan"]),
        (["max", "--fold=sum", "x"], ["max takes no --fold", "ladder"]),
    ]
    for (words, expected), process in zip(cases, each_alone(words for words, _ in cases)):
        fault = refused(process, 2, *expected)
        tap.ok(not fault, f"refused: allfold {' '.join(words)}", fault)


def check_without():
    """Neither a device nor the emulation: a program that has its folder for itself."""
    with tempfile.TemporaryDirectory() as folder:
        program = shutil.copy(tap.ALLFOLD, folder)
        process = subprocess.run([program, "ladder"], env=cli.surroundings([], None), capture_output=True, text=True)
    fault = refused(process, 1, "no CUDA device (", "allfold-ladder.so", "--disable-emulation")
    tap.ok(not fault, "no device and no emulation: a message and status 1", fault)


def check_emulation():
    """Every rung but those of the library and CUB runs, is right, and has no time."""
    runs = [(rungs, ["ladder", topic, *words]) for topic, rungs in [("", RUNGS), *LINES.items()]
            for words in (["--count=0-3,1000,4097" if topic == "" else "--shape=0,3 3,70 33,1000 9000,2"], ["--check"]
                          + (["--count=0-70:7,515,20001"] if topic == "" else ["--shape=5,0 33,31 1,16400 16400,1 300,77"]))]
    runs += [(SOFTMAX, ["ladder", "softmax", "--count=1,511,5000"]), (["modulo"], ["ladder", "--rung=modulo", "--block=all", "--count=3000"])]
    commands = [[word for word in words if word] + ["--json"] for _, words in runs]
    for (rungs, _), words, process in zip(runs, commands, each_alone(commands)):
        name, found = " ".join(words), report(process) or {"tables": [], "devices": []}
        there = [rung for rung in rungs if rung not in ("engine", "cub")]
        tap.ok(found["tables"] and all([row["rung"] for row in table["rows"]] == there for table in found["tables"])
               and all(table.get("left_out", "").split(", ") == (rungs[len(there):] or [""]) for table in found["tables"])
               and [device["emulated"] for device in found["devices"]] == [True], f"{name}: the rungs that the emulation has", shown(process))
        rows = [row for table in found["tables"] for row in table["rows"]]
        tap.ok(found.get("correct") and all(row["correct"] and row.get("seconds") is None and row.get("checks", 1) > 0 for row in rows),
               f"{name}: correct, and without times", rows)
    barriers = {row["rung"]: row["barriers"] for row in json_rows("--count=4096")}
    tap.ok(barriers["sequential"] == 9 and barriers["last-warp"] == 3 and barriers["shuffles"] == 1, "barriers are counted", barriers)
    for words, expected in ((["coalescing"], ["ladder coalescing measures times", "CUDA device"]), (["--rung=cub"], ["cub", "on a GPU only"]),
                            (["--backend=cuda"], ["ladder: no CUDA device: "])):
        process = cli.alone("ladder", "--json", *words, env={"CUDA_VISIBLE_DEVICES": ""})
        fault = refused(process, 1, *expected)
        tap.ok(not fault, f"refused without a device: {' '.join(words)}", fault)
    process = cli.ranks(2, "ladder", "columns", "--shape=3,40", "--backend=cpu")
    tap.ok(process.returncode == 0 and process.stdout.count("No GPU: ") == 1 and "times need a GPU" in process.stdout
           and "GB/s" not in process.stdout and "spread" not in process.stdout, "so on 2 ranks, as text", shown(process))


def json_rows(*words):
    return [row for table in (report(cli.alone("ladder", "--json", *words)) or {"tables": []})["tables"] for row in table["rows"]]


def has_device():
    return cli.alone("sum", "--quiet", "--backend=cuda", "gen:ramp?n=10").returncode == 0


def rows_of(process, name):
    """The rows of all tables, each with its table's own fields; after a check that the report is there."""
    found = report(process)
    right = found is not None and found["correct"] and found["tables"]
    if not tap.ok(right, f"{name}: a correct report", shown(process)):
        return []
    return [{**{key: value for key, value in table.items() if key != "rows"}, **row}
            for table in found["tables"] for row in table["rows"]]


def check_oracle(rungs, *words):
    """--check: every rung, with its folds and types."""
    name = " ".join(words)
    rows = rows_of(alone(*words, "--check", "--json"), name)
    tap.ok([row["rung"] for row in rows] == rungs, f"{name}: every rung is checked", rows)
    tap.ok(all(row["correct"] and row["wrong"] == 0 and row["checks"] == rows[0]["checks"] > 0 for row in rows),
           f"{name}: every result is right", rows)


def near(a, b):
    return a is not None and b is not None and math.isclose(a, b, rel_tol=1e-4)


def fault_of(row, before, first):
    """What in a timed row does not fit, or ''. before: the row before; first: the first one on the GPU."""
    host = row["rung"] == "host-recursion"
    checks = {
        "correct": row["correct"] is True,
        "time": 0 < row["seconds"] <= row["seconds_p99"] and row["runs"] >= (3 if host else 20),
        "bandwidth": near(row["bytes_per_second"], (row["bytes_read"] + row["bytes_written"]) / row["seconds"]),
        "ceiling": host or near(row["of_read_ceiling"], row["bytes_per_second"] / row["read_ceiling"]),
        "datasheet": host or near(row["of_datasheet"], row["bytes_per_second"] / row["datasheet"]),
        "rate": near(row["operations_per_second"], (row["count"] - 1) / row["seconds"]),
        "before": before is None or near(row["speedup_before"], before["seconds"] / row["seconds"]),
        "first": host or near(row["speedup_first"], first["seconds"] / row["seconds"]),
        "occupancy": row["rung"] in ("host-recursion", "cub") or 0 < row["occupancy"] <= 1,
        "input read": row["bytes_read"] >= 0.99 * row["count"] * {"int32": 4, "f32": 4, "f64": 8}[row["dtype"]],
    }
    return " ".join(name for name, right in checks.items() if not right)


def check_times():
    words = ["--count=100000,4097", "--type=all", "--fold=all"]
    rows = rows_of(alone("--json", *words), "timed")
    tap.ok(len(rows) == 2 * 6 * len(RUNGS), "timed: a row for each rung, count, type and fold", len(rows))
    faults = []
    for start in range(0, len(rows), len(RUNGS)):
        table = rows[start:start + len(RUNGS)]
        faults += [(row["rung"], fault, row) for before, row in zip([None] + table, table)
                   for fault in [fault_of(row, before, table[1])] if fault]
    tap.ok(not faults, "the numbers of a row fit each other", faults[:3])
    process = alone("--count=5000", "--rung=shuffles")
    tap.ok(process.returncode == 0 and "correct" in process.stdout and "shuffles" in process.stdout
           and "modulo" not in process.stdout, "one rung, as text", shown(process))


def check_softmax():
    rows = rows_of(alone("softmax", "--json", "--count=1,2,511,1000,100001"), "softmax")
    tap.ok([row["rung"] for row in rows] == SOFTMAX * 5, "softmax: every rung at every count", rows)
    tap.ok(all(row["correct"] and row["error_ulp"] <= 2 for row in rows if row["rung"] == "engine"),
           "softmax: the engine is within 2 units in the last place", rows)


def check_lines():
    """Sums along rows and columns: the report's numbers fit each other, in every shape."""
    for topic, rungs in LINES.items():
        check_oracle(rungs, topic)
        rows = rows_of(alone(topic, "--json", "--shape=300,1000 0,3 70000,33"), topic)
        tap.ok([(row["rung"], row["matrix_rows"]) for row in rows] == [(rung, n) for n in (300, 0, 70000) for rung in rungs],
               f"{topic}: every rung in every shape", rows)
        wrong = [row for row in rows for n, m in [(row["matrix_rows"], row["matrix_columns"])]
                 if row["count"] != n * m or not 0 < row["seconds"] <= row["seconds_p99"] or row["runs"] < 20
                 or not near(row["bytes_per_second"], 4 * (n * m + (n if topic == "rows" else m)) / row["seconds"])
                 or (n > 0 and not near(row["of_read_ceiling"], row["bytes_per_second"] / row["read_ceiling"]))
                 or (n > 0 and row["rung"] != "engine" and not (row["launches"] >= 1 and row["threads"] >= 256))]
        tap.ok(not wrong, f"{topic}: the numbers of a row fit each other", wrong[:3])


def check_ranks():
    process = cli.ranks(2, "ladder", GPU, "--json", "--count=5000", "--rung=modulo")
    found = report(process) or {"tables": [], "devices": []}
    tap.ok([table["rank"] for table in found["tables"]] == [0, 1] and len(found["devices"]) == 2,
           "2 ranks: a table and a device of each", shown(process))
    process = cli.ranks(2, "ladder", GPU, "--count=5000", "--rung=modulo")
    tap.ok(process.returncode == 0 and "spread" in process.stdout, "2 ranks: compared in columns", shown(process))


def main():
    check_list()
    check_usage()
    check_without()
    if os.path.exists(EMULATION):
        check_emulation()
    else:
        tap.skip("configured without the emulation, or no C++17 compiler")
    if not has_device():
        tap.skip("no CUDA device for the ladder")
        tap.done()
    check_oracle(RUNGS)
    check_oracle(RUNGS, "--block=all", "--count=0-70,71-4200:431")
    check_lines()
    check_times()
    check_softmax()
    check_ranks()
    tap.done()


if __name__ == "__main__":
    main()
