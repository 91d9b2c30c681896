#!/usr/bin/env python3
"""allfold ladder: what it refuses, in every build; and where there is a CUDA device every rung against the oracle at
many lengths, and whether the report's numbers fit each other. How fast the rungs are is not tested."""
import math

import cli
import tap
from cli import alone, each_alone, refused, report, shown, told

RUNGS = ["host-recursion", "neighboured", "neighboured-packed", "interleaved", "unrolled-global", "modulo",
         "strided-index", "sequential", "first-add", "last-warp", "unrolled", "four-blocks", "four-blocks-dynamic",
         "many-elements", "shuffles", "engine", "cub"]
SOFTMAX = ["one-block", "many-blocks", "fused", "engine"]
LINES = {"rows": ["thread-a-row", "block-a-row", "warp-a-row", "row-vectors", "rows-a-warp", "split-rows", "engine"],
         "columns": ["block-a-column", "thread-a-column", "column-vectors", "split-columns", "engine"]}


def check_list():
    lists = {(): RUNGS, ("softmax",): SOFTMAX, **{(topic,): rungs for topic, rungs in LINES.items()}}
    for (words, rungs), listed in zip(lists.items(), each_alone(["ladder", *words, "--list"] for words in lists)):
        tap.ok(listed.returncode == 0 and [line.split()[0] for line in listed.stdout.splitlines()] == rungs,
               f"ladder {' '.join(words)} --list names the rungs, in order", shown(listed))
    objects = (report(alone("ladder", "--list", "--json")) or {}).get("rungs", [])
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
        (["ladder", "--backend=cpu"], ["GPU", "cpu"]),
        (["ladder", "--nan=omit"], ["ladder takes no --nan"]),
        (["max", "--fold=sum", "x"], ["max takes no --fold", "ladder"]),
    ]
    for (words, expected), process in zip(cases, each_alone(words for words, _ in cases)):
        fault = refused(process, 2, *expected)
        tap.ok(not fault, f"refused: allfold {' '.join(words)}", fault)


def has_device():
    """Whether the ladder can run; where not, whether it says so."""
    process = alone("ladder", "--check", "--count=1", "--rung=modulo")
    if process.returncode == 0:
        return True
    fault = refused(process, 1, "needs a CUDA device")
    tap.ok(not fault, "without a CUDA device: a message and status 1", fault)
    process = cli.ranks(2, "ladder", "rows")
    tap.ok(process.returncode != 0 and len(told(process)) == 1, "so on 2 ranks", shown(process))
    return False


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
    rows = rows_of(alone("ladder", *words, "--check", "--json"), name)
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
    rows = rows_of(alone("ladder", "--json", *words), "timed")
    tap.ok(len(rows) == 2 * 6 * len(RUNGS), "timed: a row for each rung, count, type and fold", len(rows))
    faults = []
    for start in range(0, len(rows), len(RUNGS)):
        table = rows[start:start + len(RUNGS)]
        faults += [(row["rung"], fault, row) for before, row in zip([None] + table, table)
                   for fault in [fault_of(row, before, table[1])] if fault]
    tap.ok(not faults, "the numbers of a row fit each other", faults[:3])
    process = alone("ladder", "--count=5000", "--rung=shuffles")
    tap.ok(process.returncode == 0 and "correct" in process.stdout and "shuffles" in process.stdout
           and "modulo" not in process.stdout, "one rung, as text", shown(process))


def check_softmax():
    rows = rows_of(alone("ladder", "softmax", "--json", "--count=1,2,511,1000,100001"), "softmax")
    tap.ok([row["rung"] for row in rows] == SOFTMAX * 5, "softmax: every rung at every count", rows)
    tap.ok(all(row["correct"] and row["error_ulp"] <= 2 for row in rows if row["rung"] == "engine"),
           "softmax: the engine is within 2 units in the last place", rows)


def check_lines():
    """Sums along rows and columns: the report's numbers fit each other, in every shape."""
    for topic, rungs in LINES.items():
        check_oracle(rungs, topic)
        rows = rows_of(alone("ladder", topic, "--json", "--shape=300,1000 0,3 70000,33"), topic)
        tap.ok([(row["rung"], row["matrix_rows"]) for row in rows] == [(rung, n) for n in (300, 0, 70000) for rung in rungs],
               f"{topic}: every rung in every shape", rows)
        wrong = [row for row in rows for n, m in [(row["matrix_rows"], row["matrix_columns"])]
                 if row["count"] != n * m or not 0 < row["seconds"] <= row["seconds_p99"] or row["runs"] < 20
                 or not near(row["bytes_per_second"], 4 * (n * m + (n if topic == "rows" else m)) / row["seconds"])
                 or (n > 0 and not near(row["of_read_ceiling"], row["bytes_per_second"] / row["read_ceiling"]))
                 or (n > 0 and row["rung"] != "engine" and not (row["launches"] >= 1 and row["threads"] >= 256))]
        tap.ok(not wrong, f"{topic}: the numbers of a row fit each other", wrong[:3])


def check_ranks():
    process = cli.ranks(2, "ladder", "--json", "--count=5000", "--rung=modulo")
    found = report(process) or {"tables": [], "devices": []}
    tap.ok([table["rank"] for table in found["tables"]] == [0, 1] and len(found["devices"]) == 2,
           "2 ranks: a table and a device of each", shown(process))
    process = cli.ranks(2, "ladder", "--count=5000", "--rung=modulo")
    tap.ok(process.returncode == 0 and "spread" in process.stdout, "2 ranks: compared in columns", shown(process))


def main():
    check_list()
    check_usage()
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
