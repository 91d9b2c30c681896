#!/usr/bin/env python3
"""tools/plot-bench: pictures are drawn if matplotlib is there, and the same ones of what tools/compact-results leaves of the
reports. The numbers are made up, to exercise the tools."""
import importlib.util
import json
import os
import subprocess
import sys
import tempfile
import xml.etree.ElementTree

import tap

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(tap.SOURCE, "tools"))
import bench_json  # noqa: E402

TOOLS = os.path.join(tap.SOURCE, "tools")
MACHINE = {"rank": 0, "device": "no GPU at all", "host": "nowhere", "datasheet": 5e12, "read": 4e12, "copy": 3.5e12,
           "link_in": 5e10, "link_out": 5e10, "launch": 8e-6, "message": 1e-6, "slow": []}


def row(fold, dtype, count, peer, timing_point, seconds, ranks=1, **more):  # made up
    size = count * {"f32": 4, "bf16": 2}[dtype]
    return {"fold": fold, "dtype": dtype, "count": count, "ranks": ranks, "data": "device", "caches": "cleared", "peer": peer,
            "timing_point": timing_point, "runs": 20, "seconds": seconds, "seconds_p10": seconds, "seconds_p99": seconds, "slowest_rank": 0,
            "seconds_by_rank": [seconds] * ranks, "bytes": size, "bytes_per_second": size / seconds,
            "of_read_ceiling": size / seconds / 4e12, "of_datasheet": None, "floor_seconds": size / 4e12,
            "of_floor": size / 4e12 / seconds, "correct": True, **more}


def report(rows, ranks=(1,)):
    surveys = [{"ranks": n, "machines": [{**MACHINE, "rank": rank} for rank in range(n)]} for n in ranks]
    return {"command": "bench", "schema": 1, "version": "0", "backend": "cuda", "surveys": surveys, "results": rows,
            "correct": True}


SPLIT = {"kernel": 5e-6, "hand_over": 2e-6, "exchange": 1e-6, "rest": 0.0}
ROWS = [made for n in (10, 12, 20) for made in (
    row("sum", "f32", 2 ** n, "allfold", "kernel", 5e-6), row("sum", "f32", 2 ** n, "cub", "kernel", 7e-6),
    row("sum", "f32", 2 ** n, "read", "kernel", 4e-6), row("sum", "f32", 2 ** n, "allfold", "host", 9e-6, split=SPLIT),
    row("sum", "f32", 2 ** n, "cub+copy", "host", 20e-6 if n < 20 else 14e-6))]
ROWS += [row("sum", "f32", 2 ** 28, "allfold", "host", 3e-4), row("sum", "f32", 2 ** 28, "allfold", "host", 3.03e-4, ranks=8)]
ROWS += [row("sum", "f32", 2 ** 28, peer, "host", 1e-3, shape=[2 ** (28 - n), 2 ** n, 1]) for n in (8, 10, 12) for peer in ("allfold", "torch")]
ROWS += [row("sum-exact", "f32", 2 ** 28, "allfold", "host", 1e-3, shape=[2 ** 18, 2 ** 10, 1])]
ROWS += [row("sum", "f32", 2 ** n, "allfold", "kernel", 6e-6, range=64) for n in (10, 12, 20)]
REPORTS = [report(ROWS, (1, 8))]


def run(tool, *words):
    return subprocess.run([sys.executable, os.path.join(TOOLS, tool), *words], capture_output=True, text=True, check=False)


def write(path, text):
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
    return path


def check_compact(folder, results):
    """Returns the file of compact reports."""
    done = run("compact-results", results)
    compact = write(os.path.join(folder, "compact.json"), done.stdout)
    runs = bench_json.load([compact])
    tap.ok(done.returncode == 0 and len(runs.rows) == len(bench_json.load([results]).rows)
           and len(done.stdout.splitlines()) == 1 + len(ROWS) and "seconds_by_rank" not in done.stdout,
           "a line for each row, without the fields that nothing shows", done)
    some = run("compact-results", "peer=cub,read", "count=1024", results)
    found = runs.find(fold="sum", count=1024, peer="allfold", timing_point="kernel")
    tap.ok([one["range"] for one in found] == [8, 64], "rows of two ranges are apart", found)
    tap.ok(some.stdout.count('"fold"') == 2, "rows of given values only", some)
    ladder = {"command": "ladder", "topic": "rungs", "tables": [
        {"count": count, "rows": [{"rung": "modulo", "seconds": 1.0, "runs": 3}]} for count in (1, 2)]}
    done = run("compact-results", "count=2", write(os.path.join(folder, "ladder.json"), json.dumps(ladder)))
    wanted = {"command": "ladder", "topic": "rungs", "tables": [{"count": 2, "rows": [{"rung": "modulo", "seconds": 1.0}]}]}
    tap.ok(json.loads(done.stdout) == wanted, "reports of the ladder", done)
    return compact


def check_pictures(folder, results, compact):
    if importlib.util.find_spec("matplotlib") is None:
        done = run("plot-bench", results, "--out", folder)
        tap.ok(done.returncode == 1 and "matplotlib" in done.stderr, "without matplotlib: said so", done)
        tap.skip("no matplotlib, which draws the pictures")
        return
    found = []
    for path in (results, compact):
        out = os.path.join(folder, os.path.basename(path) + ".pictures")
        done = run("plot-bench", path, "--out", out)
        found.append({name: open(os.path.join(out, name), encoding="utf-8").read() for name in sorted(os.listdir(out))})
    for text in found[0].values():
        xml.etree.ElementTree.fromstring(text)
    tap.ok(done.returncode == 0 and list(found[0]) == [
        "bench-cuda-bandwidth-sum-f32-1-rank-range-64.svg", "bench-cuda-bandwidth-sum-f32-1-rank.svg", "bench-cuda-rows.svg",
        "bench-cuda-scaling-sum-f32-268435456.svg",
        "bench-cuda-split-sum-f32-1-rank.svg", "bench-cuda-time-sum-f32-1-rank.svg"], "pictures", [list(found[0]), done])
    tap.ok(found[0] == found[1], "the same pictures of compact reports")


def check_refused(folder):
    wrong = write(os.path.join(folder, "wrong.json"), '{"command": "sum"}')
    for tool in ("plot-bench", "compact-results"):
        for path in (wrong, os.path.join(folder, "absent")):
            done = run(tool, path)
            tap.ok(done.returncode == 1 and done.stderr.startswith(f"{tool}: "), "refused, with a message", done)


def main():
    with tempfile.TemporaryDirectory() as folder:
        results = write(os.path.join(folder, "results.json"), "\n".join(json.dumps(one) for one in REPORTS))
        check_pictures(folder, results, check_compact(folder, results))
        check_refused(folder)
    tap.done()


if __name__ == "__main__":
    main()
