#!/usr/bin/env python3
"""tools/plot-bench: goals that are met, missed and not measured are told apart; a page is brought up to date; pictures are
drawn where matplotlib is. The numbers it is given are made up, to exercise the tool."""
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
import bench_goals  # noqa: E402
import bench_json  # noqa: E402

TOOL = os.path.join(tap.SOURCE, "tools", "plot-bench")
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
ROWS += [row("sum", "f32", 2 ** 28, "allfold", "kernel", 1.0, shape=[2 ** 18, 2 ** 10, 1])]  # left out: not of a whole array
REPORTS = [report(ROWS, (1, 8))]


def check_goals():
    runs = bench_json.Runs(REPORTS)
    lines = {line.split(" | ")[0].lstrip("| "): line for line in bench_goals.table(runs).splitlines()}
    small, host = lines["sum f32, kernel only, 2^10 to 2^12"], lines["fold to a value on the host, 1 rank, 2^10 to 2^22"]
    tap.ok(small.endswith("| yes |") and "| over CUB 1.40x (sum f32 2^10) to 1.40x (sum f32 2^12) |" in small, "a goal that is met", small)
    tap.ok(host.endswith("| no |") and "0.64x (sum f32 2^20) to 0.45x (sum f32 2^" in host, "a goal that is missed, and where", host)
    tap.ok(lines["(max, sumexp) pass, bf16 2^28, kernel only"].endswith("| not measured |"), "a goal without figures")
    weak = lines["weak scaling, 2^28 a rank, 8 ranks against 1"]
    tap.ok(weak.endswith("| yes, in part |") and "0.990 (sum f32 2^28, 8 ranks)" in weak, "a goal that joins two numbers of ranks", weak)
    tap.ok(len(lines) == len(bench_goals.GOALS) + 2, "a line each", lines)


def run(*words):
    return subprocess.run([sys.executable, TOOL, *words], capture_output=True, text=True, check=False)


def check_program():
    with tempfile.TemporaryDirectory() as folder:
        results, page, wrong = (os.path.join(folder, name) for name in ("results.json", "page.md", "wrong.json"))
        for path, text in ((results, "\n".join(json.dumps(one) for one in REPORTS)), (wrong, '{"command": "ladder"}'),
                           (page, "before\n<!-- goals: begin. -->\noutdated\n<!-- goals: end -->\nafter\n")):
            with open(path, "w", encoding="utf-8") as file:
                file.write(text)
        os.mkdir(os.path.join(folder, "img"))
        with open(os.path.join(folder, "img", "bench-x.svg"), "w", encoding="utf-8"):
            pass
        done = run("--goals", results)
        tap.ok(done.returncode == 0 and done.stdout == bench_goals.table(bench_json.load([results])), "--goals", done)
        twice = [run("--update", page, results) for _ in range(2)]
        with open(page, encoding="utf-8") as file:
            text = file.read()
        tap.ok(all(one.returncode == 0 for one in twice) and text.startswith("before\n<!-- goals: begin. -->\n\n| work")
               and text.endswith("<!-- goals: end -->\nafter\n") and "(img/bench-x.svg)" in text and "outdated" not in text and text.count("| work") == 1,
               "a page is brought up to date, and again", text)
        for words in ((wrong,), (os.path.join(folder, "absent"),), ("--update", wrong, results)):
            done = run(*words)
            tap.ok(done.returncode == 1 and done.stderr.startswith("plot-bench: "), "refused, with a message", done)
        if importlib.util.find_spec("matplotlib") is None:
            done = run(results, "--out", folder)
            tap.ok(done.returncode == 1 and "matplotlib" in done.stderr, "without matplotlib: said so", done)
            tap.skip("no matplotlib, which draws the pictures")
            return
        done = run(results, "--out", folder)
        names = sorted(name for name in os.listdir(folder) if name.endswith(".svg"))
        for name in names:
            xml.etree.ElementTree.parse(os.path.join(folder, name))
        tap.ok(done.returncode == 0 and names == [
            "bench-cuda-bandwidth-sum-f32-1-rank.svg", "bench-cuda-scaling-sum-f32-268435456.svg",
            "bench-cuda-split-sum-f32-1-rank.svg", "bench-cuda-time-sum-f32-1-rank.svg"], "pictures", [names, done])


def main():
    check_goals()
    check_program()
    tap.done()


if __name__ == "__main__":
    main()
