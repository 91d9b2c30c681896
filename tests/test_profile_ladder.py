#!/usr/bin/env python3
"""tools/profile-ladder: reading ncu's CSV in both of its forms, joining it with the ladder's JSON, and saying plainly
why there are no counters. No GPU and no ncu are needed: all numbers here are made up, to exercise the parser. They
measure nothing."""
import importlib.machinery
import importlib.util
import json
import os
import stat
import subprocess
import sys
import tempfile

import tap

TOOL = os.path.join(tap.SOURCE, "tools", "profile-ladder")

HEAD = '"ID","Process ID","Process Name","Host Name","Kernel Name","Context","Stream","Block Size","Grid Size","Device","CC"'
SAMPLE = "\n".join((  # made up
    "==PROF== Connected to process 4242 (/somewhere/allfold)",
    '==PROF== Profiling "neighboured_kernel" - 0: 0%....50%....100% - 9 passes',
    HEAD + ',"dram__bytes_read.sum","gpu__time_duration.sum","l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_ld.sum",'
    '"l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_st.sum","l1tex__t_bytes_pipe_lsu_mem_global_op_ld.sum",'
    '"l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum","l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum",'
    '"l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum","smsp__inst_executed.sum","smsp__thread_inst_executed.sum",'
    '"smsp__warps_launched.sum"',
    '"","","","","","","","","","","","byte","nsecond","","","byte","","sector","sector","inst","","warp"',
    '"0","4242","allfold","127.0.0.1","neighboured_kernel","1","7","(256, 1, 1)","(65536, 1, 1)","0","9.0",'
    '"64,000,000","200,000","0","0","128,000,000","1,000,000","4,000,000","2,000,000","52,428,800","838,860,800","524,288"',
    '"1","4242","allfold","127.0.0.1","neighboured_kernel","1","7","(256, 1, 1)","(256, 1, 1)","0","9.0",'
    '"256,000","4,000","0","0","512,000","4,000","16,000","8,000","204,800","3,276,800","2,048"',
    '"2","4242","allfold","127.0.0.1","changes_kernel","1","7","(256, 1, 1)","(1056, 1, 1)","0","9.0",'
    '"1","1","1","1","1","1","1","1","1","1","1"',
    '"3","4242","allfold","127.0.0.1",'
    '"void strided_index_kernel<sum_of<float>, 256>(const float *, unsigned long, float *)","1","7",'
    '"(256, 1, 1)","(65536, 1, 1)","0","9.0","64,000,000","100,000","9,000","n/a","64,000,000","500,000","2,000,000",'
    '"65,536","1,000","16,000","10"',
    "==PROF== Disconnected from process 4242", ""))
LONG = "\n".join((  # the other form; made up
    HEAD + ',"Section Name","Metric Name","Metric Unit","Metric Value"',
    '"0","4242","allfold","h","fold_kernel","1","7","(512, 1, 1)","(396, 1, 1)","0","9.0","Command line profiler metrics",'
    '"smsp__inst_executed.sum","inst","1,200"',
    '"0","4242","allfold","h","fold_kernel","1","7","(512, 1, 1)","(396, 1, 1)","0","9.0","Command line profiler metrics",'
    '"smsp__warps_launched.sum","warp","60"',
    '"1","4242","allfold","h","DeviceReduceSingleTileKernel","1","7","(256, 1, 1)","(1, 1, 1)","0","9.0",'
    '"Command line profiler metrics","smsp__inst_executed.sum","inst","n/a"', ""))
LADDER = {"command": "ladder", "topic": "rungs",
          "devices": [{"device": "no GPU at all", "cuda_driver": 13000, "cuda_runtime": 13000}],
          "tables": [{"rank": 0, "title": "made up", "dtype": "f32", "fold": "sum", "block": 256, "count": 16777216,
                      "rows": [{"rung": "host-recursion", "seconds": 0.03, "bytes_per_second": 2e9, "correct": True},
                               {"rung": "neighboured", "seconds": 0.0002, "bytes_per_second": 6e11, "correct": True}]}]}


def load_tool():
    loader = importlib.machinery.SourceFileLoader("profile_ladder", TOOL)
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("profile_ladder", loader))
    loader.exec_module(module)
    return module


def write(path, text, executable=False):
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
    if executable:
        os.chmod(path, os.stat(path).st_mode | stat.S_IXUSR)


def run(*arguments, path=None):
    environment = {**os.environ, "PATH": path if path is not None else os.environ["PATH"]}
    environment.pop("ALLFOLD", None)
    return subprocess.run([sys.executable, TOOL, *arguments], capture_output=True, text=True, env=environment)


def test_parser(tool):
    launches = tool.parse_ncu(SAMPLE)
    tap.ok([launch["kernel"].split("<")[0] for launch in launches] ==
           ["neighboured_kernel", "neighboured_kernel", "changes_kernel", "void strided_index_kernel"],
           "launches in their order", launches)
    tap.ok(launches[0]["smsp__inst_executed.sum"] == 52428800.0 and
           "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_st.sum" not in launches[3],
           "thousands are read, n/a is not", launches)
    tap.ok(tool.parse_ncu("==PROF== nothing\n") == [] and tool.parse_ncu("") == [], "a log without launches has none")
    names = [tool.rung_of(launch["kernel"]) for launch in tool.parse_ncu(LONG)]
    tap.ok(names == ["engine", "cub"], "a line for each metric; the engine and CUB are known by their kernels", names)
    tap.ok(tool.rung_of("changes_kernel") is None and tool.rung_of("four_blocks_dynamic_kernel<max_of<int>, 64>") ==
           "four-blocks-dynamic", "kernels belong to rungs, helpers to none")


def test_join(tool):
    rows = {row["rung"]: row for row in tool.join(tool.parse_ncu(SAMPLE), LADDER["tables"][0])}
    tap.ok(list(rows) == ["host-recursion", "neighboured", "strided-index"], "a row for each rung timed or profiled",
           list(rows))
    row = rows["neighboured"]
    tap.ok(row["launches"] == 2 and row["seconds"] == 0.0002 and abs(row["instructions_per_warp"] - 100.0) < 1e-9
           and abs(row["lanes"] - 16.0) < 1e-9, "levels are summed, then divided", row)
    tap.ok(abs(row["load_bytes_per_second"] - 128512000 / 204e-6) < 1.0 and row["load_sectors"] == 4016000
           and row["sectors_per_load"] == 4.0 and row["store_sectors"] == 2008000 and row["bank_conflicts"] == 0.0,
           "throughput, sectors, conflicts", row)
    tap.ok(row["divergent_branches"] is None and rows["strided-index"]["bank_conflicts"] is None
           and rows["strided-index"]["seconds"] is None and rows["host-recursion"]["lanes"] is None,
           "what is not known is null", rows)


def test_messages(folder):
    done = run(path=os.path.join(folder, "empty"))
    tap.ok(done.returncode == 1 and "not installed" in done.stderr and "--ncu" in done.stderr and not done.stdout,
           "without ncu: exit 1 and the way out", done)
    allfold, ncu = os.path.join(folder, "allfold"), os.path.join(folder, "ncu")
    write(allfold, f"#!/bin/sh\ncat <<'END'\n{json.dumps(LADDER)}\nEND\n", True)
    write(ncu, "#!/bin/sh\necho '==ERROR== ERR_NVGPUCTRPERM - The user does not have permission' >&2\nexit 1\n", True)
    done = run("--ncu", ncu, "--allfold", allfold)
    tap.ok(done.returncode == 1 and "ERR_NVGPUCTRPERM" in done.stderr
           and "NVreg_RestrictProfilingToAdminUsers=0" in done.stderr,
           "without permission: exit 1 and the way out", done)
    write(ncu, "#!/bin/sh\necho '==ERROR== Failed to initialize the profiler: LibraryNotLoaded'\nexit 1\n", True)
    done = run("--ncu", ncu, "--allfold", allfold)
    tap.ok(done.returncode == 1 and "initialise" in done.stderr, "where counters are hidden: exit 1 and the way out", done)
    write(allfold, "#!/bin/sh\necho 'allfold: there is no GPU' >&2\nexit 1\n", True)
    done = run("--ncu", ncu, "--allfold", allfold)
    tap.ok(done.returncode == 1 and "there is no GPU" in done.stderr, "without a GPU: what allfold says", done)


def test_whole(folder):
    allfold, ncu = os.path.join(folder, "allfold"), os.path.join(folder, "ncu")
    sample, seen = os.path.join(folder, "sample.csv"), os.path.join(folder, "seen")
    write(sample, SAMPLE)
    write(allfold, f"#!/bin/sh\ncat <<'END'\n{json.dumps(LADDER)}\nEND\n", True)
    # the first time one metric is unknown; then the sample goes to the file behind --log-file
    write(ncu, f"""#!/bin/sh
echo "$*" >>'{seen}'
case "$*" in *dram__bytes_write*) echo '==ERROR== Failed to find metric dram__bytes_write.sum' >&2; exit 1;; esac
while test "$1" != --log-file; do shift; done
cp '{sample}' "$2"
""", True)
    done = run("--ncu", ncu, "--allfold", allfold, "--rung", "neighboured", "--json")
    report = json.loads(done.stdout) if done.returncode == 0 else {"rows": []}
    tap.ok(done.returncode == 0 and report["count"] == 16777216 and [row["rung"] for row in report["rows"]] ==
           ["host-recursion", "neighboured", "strided-index"],
           "the whole way, as JSON, without a metric that ncu does not know", done)
    with open(seen, encoding="utf-8") as file:
        calls = file.read()
    tap.ok("--clock-control none" in calls and "--check" in calls and "--rung=neighboured" in calls
           and calls.count("\n") == 2,
           "ncu is asked to leave the clocks alone", calls)
    rows = {**LADDER, "topic": "rows", "tables": [{"rank": 0, "title": "made up", "rows": [
        {"rung": name, "seconds": 0.0002, "bytes_per_second": 6e11, "correct": True} for name in ("warp-a-row", "split-rows")]}]}
    write(allfold, f"#!/bin/sh\ncat <<'END'\n{json.dumps(rows)}\nEND\n", True)
    done = run("--ncu", ncu, "--allfold", allfold, "--topic", "rows", "--shape", "5,7", "--json")
    report = json.loads(done.stdout) if done.returncode == 0 else {"rows": []}
    with open(seen, encoding="utf-8") as file:
        calls = file.read()
    tap.ok([(row["rung"], row["launches"]) for row in report["rows"]] == [("warp-a-row", 3), ("split-rows", 3)]
           and "ladder --check --quiet rows --shape=5,7 --rung=split-rows" in calls,
           "rungs for rows share kernels, so each is run by itself", (done, calls))
    done = run("--topic", "rows", "--csv", sample)
    tap.ok(done.returncode == 2 and "--csv" in done.stderr, "which a log of one run cannot tell apart", done)
    write(os.path.join(folder, "times.json"), json.dumps(LADDER))
    done = run("--csv", sample, "--ladder", os.path.join(folder, "times.json"), path="")
    tap.ok(done.returncode == 0 and "neighboured" in done.stdout and "inst/warp" in done.stdout and "made up" in done.stdout,
           "a table from files, for people", done)


def main():
    tool = load_tool()
    test_parser(tool)
    test_join(tool)
    with tempfile.TemporaryDirectory() as folder:
        test_messages(folder)
    with tempfile.TemporaryDirectory() as folder:
        test_whole(folder)
    tap.done()


if __name__ == "__main__":
    sys.dont_write_bytecode = True
    main()
