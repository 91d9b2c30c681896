#!/usr/bin/env python3
"""allfold bench: its options and refusals; the numbers of its JSON fit each other; a baseline that is slower, faster, of
something else; slow ranks; the table; tools/bench-peers prints the same. Sizes are tiny and nothing is asked of the times."""
import json
import math
import os
import subprocess
import sys

import cli
import tap
from cli import alone, each_alone, refused, report, shown

PEERS = os.path.join(tap.SOURCE, "tools", "bench-peers")
TINY = ["bench", "--backend=cpu", "--threads=1", "--warm", "--seconds=0.001"]
FOLDS = ("sum", "sum-exact", "max", "argmax", "norm2", "norm2-exact", "stats", "stats-exact", "dot", "dot-exact", "compare", "sumexp", "softmax",
         "softmax-exact", "logsumexp", "logsumexp-exact", "median", "quantile", "quantile-7", "topk", "histogram", "histogram-65536")
ORDER = FOLDS[-6:]
EXPONENTIALS = ("sumexp", "softmax", "softmax-exact", "logsumexp", "logsumexp-exact")
ROW = {"fold", "dtype", "range", "count", "shape", "cut", "ranks", "data", "caches", "peer", "timing_point", "runs", "seconds", "seconds_p10",
       "seconds_p99", "slowest_rank", "seconds_by_rank", "bytes", "bytes_per_second", "of_read_ceiling", "of_datasheet", "floor_seconds",
       "of_floor", "correct"}


def check_usage():
    cases = [
        (["--count=0"], ["--count", "'0'"]), (["--count=5,,6"], ["--count"]), (["--count=many"], ["--count", "'many'"]),
        (["--type=int8"], ["--type", "'int8'", "bf16"]), (["--fold=mean"], ["'mean'", "--list"]),
        (["--ranks=2"], ["--ranks", "start more"]), (["--ranks=0"], ["--ranks"]), (["--data=disk"], ["--data", "device, host or file"]),
        (["--type=int32", "--fold=softmax"], ["floating-point"]), (["--data=host", "--backend=cpu"], ["--data=host", "GPU"]),
        (["--length=0"], ["--length", "'0'"]), (["--length=2", "--axis=0"], ["--axis", "last,middle,first", "'0'"]),
        (["--axis=last"], ["--length"]), (["--cut-axis"], ["--length"]), (["--length=2", "--data=file"], ["--length", "--data"]),
        (["--length=8", "--count=7"], ["as many elements as --count"]), (["--length=8", "--fold=dot"], ["no sumexp, dot"]), (["--length=8", "--fold=median"], ["order statistics"]),
        (["--data=file", "--fold=dot"], ["--data=file"]),
        *((["--range=" + wrong], ["--range", "256 or 512", f"'{wrong}'"]) for wrong in ("0", "3", "1024", "-8", "wide")),
        (["--seconds=0"], ["--seconds"]), (["--seconds=soon"], ["--seconds", "'soon'"]), (["--tolerance=5"], ["--baseline"]),
        (["--slow=101"], ["--slow"]), (["--rung=modulo"], ["bench takes no --rung"]), (["sum"], ["options only"]),
    ]
    words = [["bench", "--backend=cpu", *case] for case, _ in cases]
    for (case, expected), process in zip(cases, each_alone(words)):
        fault = refused(process, 2, *expected)
        tap.ok(not fault, f"refused: bench {' '.join(case)}", fault)
    process = alone("bench", "--list", "--backend=cpu")
    tap.ok(process.returncode == 0 and all(word in process.stdout for word in ("sumexp", "cub+nccl+copy", "three-pass")),
           "--list: the subjects and the peers", shown(process))


def near(a, b):
    return a is not None and b is not None and math.isclose(a, b, rel_tol=1e-4)


def output_bytes(row):
    """Of the results of rows: those of 32 and 16 bits are f32, those of integers have 64 bits."""
    fold, dtype = row["fold"], row["dtype"]
    if not row["shape"] or row["peer"] in ("read", "copy"):
        return 0
    result = 8 if dtype in ("f64", "int32") else 4
    return row["shape"][0] * row["shape"][2] * (8 if fold == "argmax" else 16 + 8 * result if fold.startswith("stats") else result)


def fault_of(row, machine):
    """Which numbers of a row do not fit, or ''."""
    size, softmax = row["count"] * cli.BYTES[row["dtype"]], row["fold"].startswith("softmax") and row["peer"] != "read"
    size *= 2 if row["fold"].startswith(("dot", "compare")) else 1
    rate = row["bytes_per_second"]
    exchange = row["timing_point"] == "exchange"
    moved = 2 * size if softmax else (4 if row["peer"] == "begun-4" else 1) * (size + output_bytes(row))
    floor = 2 * size / machine["copy"] + (0 if row["shape"] else size / machine["read"]) if softmax else moved / machine["read"]
    floor = 2 * size / machine["copy"] if row["peer"] == "copy" else floor
    split = row.get("split")
    checks = {
        "keys": set(row) - {"split"} == ROW,
        "quantiles": 0 < row["seconds_p10"] <= row["seconds"] <= row["seconds_p99"] and row["runs"] >= 15,
        "ranks": len(row["seconds_by_rank"]) == row["ranks"] and row["seconds"] == max(row["seconds_by_rank"])
        and row["seconds_by_rank"][row["slowest_rank"]] == row["seconds"],
        "bytes": row["bytes"] == (None if exchange else moved),
        "rate": exchange or near(rate, row["bytes"] / row["seconds"]),
        "ceiling": exchange or near(row["of_read_ceiling"], rate / machine["read"]),
        "floor": exchange or near(row["floor_seconds"], floor) and near(row["of_floor"], floor / row["seconds"]),
        "range": row["range"] == (None if row["dtype"] == "int32" else 8),
        "correct": row["correct"] is (None if exchange or row["peer"] in ("read", "copy") else True),
        "datasheet": exchange or machine["datasheet"] is None or near(row["of_datasheet"], rate / machine["datasheet"]),
        "split": (split is not None) == (row["timing_point"] == "host" and row["peer"] == "allfold" and not row["shape"] and row["fold"] not in ORDER)
        and (split is None or abs(sum(split.values()) - row["seconds"]) <= 1e-4 * row["seconds"] + 1e-9),
    }
    return " ".join(name for name, right in checks.items() if not right)


def expected_rows(counts, ranks, dtypes):
    """The library's rows: all folds, types and counts at all timing points, but for those that do not go together."""
    def fits(fold, dtype, peer, moment):
        return not (fold == "sumexp" and moment == "host") and not (dtype == "int32" and fold in EXPONENTIALS) \
            and (peer == "allfold" or not fold.startswith(("sumexp", "softmax", "compare"))) and (fold not in ORDER or (peer, moment) == ("allfold", "host"))
    moments = [("allfold", moment) for moment in ("kernel", "partial", "exchange", "host")] + [("begun", "host"), ("begun-4", "host")]
    return {(n, dtype, count, fold, peer, moment) for n in ranks for dtype in dtypes for count in counts for fold in FOLDS
            for peer, moment in moments if fits(fold, dtype, peer, moment)}


def check_rows(found, counts, ranks, dtypes, name):
    machines = {survey["ranks"]: survey["machines"] for survey in found["surveys"]}
    tap.ok(list(machines) == ranks and all(len(machines[n]) == n for n in ranks), f"{name}: a survey for each number of ranks",
           machines)
    rows = found["results"]
    seen = {(row["ranks"], row["dtype"], row["count"], row["fold"], row["peer"], row["timing_point"]) for row in rows}
    expected = expected_rows(counts, ranks, dtypes)
    tap.ok(expected <= seen and len(seen) == len(rows), f"{name}: every fold, type, count and timing point, once", expected - seen)
    faults = [(fault, row) for row in rows
              for fault in [fault_of(row, machines[row["ranks"]][row["slowest_rank"]])] if fault]
    tap.ok(not faults and found["correct"] is True, f"{name}: the numbers of a row fit each other, results are right", faults[:2])


def check_json():
    found = report(alone(*TINY, "--count=1,4097", "--type=all", "--fold=all", "--json"))
    if found:
        check_rows(found, [1, 4097], [1], ["f32", "f64", "bf16", "f16", "int32"], "one rank")
        tap.ok(found["command"] == "bench" and found["schema"] == 1 and found["backend"] == "cpu", "what the report is of")
    found = report(cli.ranks(2, *TINY, "--count=1000", "--fold=all", "--ranks=all", "--json"))
    if found:
        check_rows(found, [1000], [1, 2], ["f32"], "one and two ranks")
    found = report(cli.ranks(2, *TINY, "--count=1000", "--fold=sum", "--total", "--ranks=2", "--json")) or {"results": []}
    tap.ok({row["count"] for row in found["results"]} == {500}, "--total: counts are divided among the ranks", found)
    process = alone("bench", "--backend=cpu", "--threads=1", "--count=2^12", "--fold=sum,softmax", "--seconds=0.001")
    tap.ok(process.returncode == 0 and all(word in process.stdout for word in (
        "sum of 2^12 f32", "softmax of 2^12 f32", "read GB/s", "% ceiling", "hand-over", "correct")) and "WRONG" not in process.stdout,
        "the table", shown(process))


def check_ranges():
    """Results are right in the least and the largest range, too, and in one in which sums of exponentials need several bins."""
    words = [*TINY, "--json", "--type=all", "--fold=all", "--range=64"]
    processes = {"one rank": alone(*words, "--count=1,4097"), "two ranks": cli.ranks(2, *words, "--count=4097"),
                 "rows": cli.ranks(2, *words, "--count=6000", "--length=100", "--cut-axis"),
                 **{f"range {r}": alone(*words, "--count=1000", f"--range={r}") for r in (1, 512)}}
    for name, process in processes.items():
        found = report(process) or {"results": [], "correct": None}
        wanted = int(name.split()[1]) if name.startswith("range") else 64
        tap.ok(found["correct"] is True and len(found["results"]) > 100 and all(
            row["range"] == (None if row["dtype"] == "int32" else wanted) for row in found["results"]), f"--range, {name}: results are right",
            shown(process))
    process = alone(*TINY, "--count=2^12", "--fold=max", "--type=f32,int32", "--range=64")
    tap.ok("max of 2^12 f32 in [-64, 64) a rank" in process.stdout and "max of 2^12 int32 a rank" in process.stdout,
           "--range: the heading", shown(process))


def check_axes():
    """Rows and columns, of each rank and spread over ranks; all results are compared with what is known of them."""
    words = [*TINY, "--count=60", "--length=1,10,60", "--axis=last,middle,first", "--fold=all", "--type=f32,bf16,int32", "--json"]
    for name, process in (("one rank", alone(*words)), ("two ranks", cli.ranks(2, *words, "--cut-axis"))):
        found = report(process) or {"results": [], "surveys": [{"machines": []}]}
        machines, rows = found["surveys"][0]["machines"], found["results"]
        seen = {(row["fold"], row["dtype"], tuple(row["shape"])) for row in rows if row["peer"] == "allfold"}
        shapes = ((60, 1, 1), (15, 1, 4), (1, 1, 60), (6, 10, 1), (3, 10, 2), (1, 10, 6), (1, 60, 1))
        expected = {(fold, dtype, shape) for fold in FOLDS for dtype in ("f32", "bf16", "int32") for shape in shapes
                    if not fold.startswith(("dot", "compare", "sumexp")) and fold not in ORDER and not (dtype == "int32" and fold in EXPONENTIALS)}
        faults = [(fault, row) for row in rows for fault in [fault_of(row, machines[row["slowest_rank"]])] if fault]
        tap.ok(seen == expected and not faults and found["correct"] is True and {row["cut"] for row in rows} == {
            "axis" if name == "two ranks" else "outer"}, f"along axes, {name}: all shapes, the numbers of a row fit each other",
            faults[:2] or expected ^ seen)
    process = alone(*TINY, "--count=2^12", "--length=2^5", "--fold=sum")
    tap.ok(process.returncode == 0 and "sum of 2^7 x 2^5 x 1 f32 a rank along the middle dimension" in process.stdout, "the table of rows",
           shown(process))


def check_baseline():
    words = TINY + ["--count=1000", "--fold=sum"]
    found = report(alone(*words, "--json"))
    if not found:
        return

    def changed(factor=1.0, **more):
        rows = [{**row, "seconds": row["seconds"] * factor, **more} for row in found["results"]]
        return {**found, "results": rows}
    other = json.loads(json.dumps(found).replace(found["surveys"][0]["machines"][0]["device"], "another device"))
    with cli.Folder() as folder:
        texts = {"slow": json.dumps(changed(1000.0)), "fast": json.dumps(changed(0.001)), "count": json.dumps(changed(count=7)),
                 "shape": json.dumps(changed(shape=[10, 100, 1])), "range": json.dumps(changed(range=64)),
                 "earlier": json.dumps(changed(1000.0, range=None)),
                 "other": json.dumps(other), "text": "seconds: 5", "ladder": '{"command": "ladder"}'}
        for name, text in texts.items():
            with open(folder.name(name), "w", encoding="utf-8") as file:
                file.write(text)
        for name in ("slow", "earlier"):
            process = alone(*words, "--json", f"--baseline={folder.name(name)}")
            against = (report(process) or {}).get("baseline", {})
            tap.ok(against == {"tolerance": 0.1, "compared": 4, "slower": []}, f"a baseline that is slower ({name}): all is well", shown(process))
        process = alone(*words, "--json", "--tolerance=50", f"--baseline={folder.name('fast')}")
        against = json.loads(process.stdout or "{}").get("baseline", {})
        tap.ok(process.returncode == 1 and against.get("tolerance") == 0.5 and len(against.get("slower", [])) == 4
               and "slower than the baseline by more than 50% in 4 of 4 times" in process.stderr,
               "a faster baseline: status 1, and what became slower", shown(process))
        process = alone(*words, "--tolerance=10000", f"--baseline={folder.name('slow')}")
        tap.ok(process.returncode == 0 and "compared with the baseline: 4 times, 0 of them" in process.stdout,
               "the comparison for people", shown(process))
        for name, expected in (("other", ["another device"]), ("count", ["none of the folds"]), ("shape", ["none of the folds"]),
                               ("range", ["none of the folds"])):
            process = alone(*words, f"--baseline={folder.name(name)}")
            tap.ok(process.returncode == 1 and all(word in process.stderr for word in expected),
                   f"a baseline of another {name} is refused", shown(process))
        os.mkfifo(folder.name("fifo"))
        for name, expected in (("text", "--baseline"), ("text", "JSON"), ("ladder", "schema 1"), ("absent", "cannot find the file"),
                               ("fifo", "found a fifo"), ("/dev/zero", "found a character device")):
            fault = refused(alone(*words, f"--baseline={folder.name(name)}"), 1, expected)
            tap.ok(not fault, f"no baseline at all: {name}", fault)


def check_health():
    process = cli.ranks(2, "bench", "--backend=cpu", "--threads=1", "--survey", "--json")
    found = report(process) or {"results": [0], "surveys": [{"machines": []}]}
    machines = found["surveys"][0]["machines"]
    tap.ok(found["results"] == [] and len(machines) == 2 and all(
        machine["read"] > 0 and machine["copy"] > 0 and machine["message"] > 0 and machine["link_in"] is None
        for machine in machines), "--survey: the machines, and nothing else", shown(process))
    process = cli.ranks(2, "bench", "--backend=cpu", "--threads=1", "--survey", "--slow=100")
    tap.ok(process.returncode == 1 and "slow: rank" in process.stderr and "of the ranks' median" in process.stderr
           and "SLOW" in process.stdout, "--slow: the slower of two is named, and is an error", shown(process))


def check_gpu():
    """The same on a GPU, with the peers that only a GPU has."""
    if alone("bench", "--backend=cuda", "--list").returncode != 0:
        tap.skip("no CUDA device to measure on")
        return
    words = ["bench", "--backend=cuda", "--seconds=0.001", "--json"]
    found = report(alone(*words, "--count=1,65537", "--type=all", "--fold=all"))
    if found:
        check_rows(found, [1, 65537], [1], ["f32", "f64", "bf16", "f16", "int32"], "a GPU")
        peers = {(row["peer"], row["timing_point"]) for row in found["results"]}
        sorters = {row["fold"] for row in found["results"] if (row["peer"], row["timing_point"]) == ("cub", "kernel")}
        tap.ok({("cub", "kernel"), ("cub+copy", "host"), ("three-pass", "host"), ("copy", "kernel")} <= peers and set(ORDER) <= sorters, "its peers", (peers, sorters))
    found = report(alone(*words, "--count=60000", "--length=1,100", "--axis=last,middle,first", "--type=all", "--fold=all"))
    if found:
        faults = [(fault, row) for row in found["results"] for fault in [fault_of(row, found["surveys"][0]["machines"][0])]
                  if fault and row["peer"] != "cub"]
        tap.ok(not faults and found["correct"] is True, "along axes on a GPU", faults[:2])
    found = report(cli.ranks(2, *words, "--count=4097")) or {"results": []}
    tap.ok({"cub+copy+mpi", "three-pass"} <= {row["peer"] for row in found["results"]}, "two ranks: CUB and MPI", found)
    found = report(alone(*words, "--count=100000", "--data=host", "--fold=sum")) or {"results": []}
    tap.ok({(row["peer"], row["timing_point"]) for row in found["results"]} == {("link", "kernel"), ("allfold", "host")},
           "data in host memory: the link", found)


def check_files():
    """Data in files of the current folder, which are removed."""
    with cli.Folder() as folder:
        words = [tap.ALLFOLD, "bench", "--backend=cpu", "--threads=2", "--seconds=0.001", "--json", "--data=file", "--count=100000",
                 "--fold=sum,max,sumexp,softmax", "--type=f32,bf16"]
        for state in ([], ["--warm"]):
            process = subprocess.run([*words, *state], capture_output=True, text=True, check=False, cwd=folder.path)
            rows = (report(process) or {"results": []})["results"]
            peers = {(row["fold"], row["peer"]) for row in rows} - {("sum", "direct"), ("max", "direct")}
            expected = {(fold, peer) for fold in ("sum", "max") for peer in ("allfold", "pread", "dd")}
            tap.ok(peers == expected | {("softmax", "allfold"), ("softmax", "pwrite")} and os.listdir(folder.path) == []
                   and all(row["data"] == "file" and row["correct"] is (True if row["peer"] == "allfold" else None) for row in rows),
                   f"--data=file {' '.join(state)}: files read and written, results right, nothing left", shown(process))


def check_peers():
    process = subprocess.run([sys.executable, PEERS, "--count=1000", "--fold=sum,max", "--type=f32,int32", "--seconds=0.001",
                              "--warm"], capture_output=True, text=True, check=False)
    rows = json.loads(process.stdout or '{"results": []}')["results"]
    tap.ok(process.returncode == 0 and {row["peer"] for row in rows} >= {"numpy"} and all(
        set(row) == ROW and 0 < row["seconds_p10"] <= row["seconds"] <= row["seconds_p99"]
        and near(row["bytes_per_second"], 4000 / row["seconds"]) for row in rows), "tools/bench-peers: the same rows", process)
    process = subprocess.run([sys.executable, PEERS, "--count=600", "--length=10", "--axis=last,first", "--fold=sum,argmax", "--seconds=0.001", "--warm"],
                             capture_output=True, text=True, check=False)
    rows = json.loads(process.stdout or '{"results": []}')["results"]
    tap.ok({(row["fold"], tuple(row["shape"]), row["bytes"]) for row in rows if row["peer"] == "numpy"} == {
        ("sum", (60, 10, 1), 2640), ("sum", (1, 10, 60), 2640), ("argmax", (60, 10, 1), 2880), ("argmax", (1, 10, 60), 2880)},
        "tools/bench-peers: rows and columns", process)
    process = subprocess.run([sys.executable, PEERS, "--count=1000", "--fold=max", "--type=f32,int32", "--seconds=0.001", "--warm", "--range=64"],
                             capture_output=True, text=True, check=False)
    rows = json.loads(process.stdout or '{"results": []}')["results"]
    tap.ok({(row["dtype"], row["range"]) for row in rows} == {("f32", 64), ("int32", None)}, "tools/bench-peers: the range", process)
    process = subprocess.run([sys.executable, PEERS, "--range=3"], capture_output=True, text=True, check=False)
    tap.ok(process.returncode == 2 and "--range" in process.stderr and "512" in process.stderr and not process.stdout,
           "it refuses other ranges", process)
    process = subprocess.run([sys.executable, PEERS, "--fold=mean"], capture_output=True, text=True, check=False)
    tap.ok(process.returncode == 1 and "'mean'" in process.stderr and not process.stdout, "it refuses what it does not have",
           process)


def main():
    cli.ignore_leaks()
    check_usage()
    check_json()
    check_ranges()
    check_axes()
    check_baseline()
    check_health()
    check_gpu()
    check_files()
    check_peers()
    tap.done()


if __name__ == "__main__":
    main()
