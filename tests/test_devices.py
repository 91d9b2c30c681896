#!/usr/bin/env python3
"""Ranks and devices: which device a rank takes, who shares it and with how much memory, and ranks that have none. Runs
tests/emulation/allfold: the CUDA backend's own sources on devices that stand in for GPUs."""
import filecmp
import os
import subprocess

import numpy as np

try:
    import h5py
except ImportError:
    h5py = None

import tap
from cli import Folder, alone, refused, report, shown, told

PROGRAM = os.path.join(tap.BUILD, "tests", "emulation", "allfold")
MEMORY = 100 << 20
STAGING = 64 << 10
THREADS = 3  # of a rank, each with two queues


def ranks(count, *words, devices=2, env=None, each=":"):
    """PROGRAM on that many ranks; each: shell commands that a rank runs before, with its number in $r."""
    script = f'r=${{OMPI_COMM_WORLD_RANK:-$PMIX_RANK}}; {each}; exec "$0" "$@"'
    return tap.run(count, "sh", "-c", script, PROGRAM, *words, env={
        "ASAN_OPTIONS": "detect_leaks=0", "ALLFOLD_STANDIN_DEVICES": str(devices), "ALLFOLD_STANDIN_MEMORY": str(MEMORY),
        "CUDA_VISIBLE_DEVICES": ",".join(map(str, range(devices))), **(env or {})})


def single(*words):
    """PROGRAM without a launcher."""
    return subprocess.run([PROGRAM, *words], capture_output=True, text=True, timeout=tap.SECONDS, check=False, env={
        **os.environ, "ASAN_OPTIONS": "detect_leaks=0", "ALLFOLD_STANDIN_DEVICES": "1", "ALLFOLD_STANDIN_MEMORY": str(MEMORY)})


def info(count, **more):
    found = report(ranks(count, "info", "--json", f"--staging={STAGING}", f"--threads={THREADS}", **more))
    return found["devices"] if found else []


def taken(device, sharers):
    """What of its part a rank keeps for its queues: two a thread, each with a buffer and scratch memory."""
    return MEMORY // 4 * 3 // sharers - device["memory_budget"]


def check_choice():
    found = info(4)
    tap.ok([d["index"] for d in found] == [0, 1, 0, 1] and len({d["uuid"] for d in found}) == 2,
           "more ranks than devices: local rank modulo devices", found)
    queues = taken(found[0], 2)
    tap.ok(all(d["shared"] and d["ranks_on_device"] == 2 and taken(d, 2) == queues for d in found)
           and 2 * THREADS * STAGING < queues < MEMORY // 8, "a shared device's memory is divided by the ranks that share it", found)
    found = info(3)
    tap.ok([taken(d, sharers) for d, sharers in zip(found, (2, 1, 2))] == [queues] * 3, "and only by those", found)
    found = info(2, each="export CUDA_VISIBLE_DEVICES=$r")
    tap.ok([d["index"] for d in found] == [0, 0] and len({d["uuid"] for d in found}) == 2
           and all(not d["shared"] and taken(d, 1) == queues for d in found),
           "one device a task, each called 0: not shared, and each rank has all of its own", found)
    tap.ok(found and [[link["rank"] for link in d["links"]] for d in found] == [[1], [0]] and found[0]["pci"] != found[1]["pci"],
           "links are to the other devices of the host", found)
    found = info(2, devices=4, each="export CUDA_VISIBLE_DEVICES=$((3 - r)),0")
    tap.ok([d["visible"] for d in found] == [2, 2] and [d["index"] for d in found] == [0, 1]
           and len({d["uuid"] for d in found}) == 2, "lists in another order for each rank", found)
    found = info(2, devices=4, each="export CUDA_VISIBLE_DEVICES=$((1 - r)),$r")
    tap.ok([d["index"] for d in found] == [0, 1] and all(d["ranks_on_device"] == 2 for d in found)
           and len({d["uuid"] for d in found}) == 1, "another index, the same device: shared, by its UUID", found)


def check_notice():
    words = ["sum", "gen:ramp?n=1000"]
    process = ranks(4, *words)
    lines = told(process)
    tap.ok(process.returncode == 0 and len(lines) == 2 and all("shared by 2 ranks" in line for line in lines)
           and len({line.split()[1] for line in lines}) == 2 and "499500.0" in process.stdout,
           "shared devices are named by UUID, once each", shown(process))
    process = ranks(4, *words, "-q")
    tap.ok((process.stdout, told(process)) == ("499500.0\n", []), "and not at all with --quiet", shown(process))
    process = ranks(2, *words)
    tap.ok(process.returncode == 0 and not told(process), "there is nothing to say where none is shared", shown(process))
    process = ranks(2, "info", "--check", "-q", devices=1)
    tap.ok(process.returncode == 1 and "shared by 2 ranks" in told(process)[0], "info --check refuses it", shown(process))


def check_missing():
    words = ["sum", "-q", "gen:ramp?n=1000"]
    hide = "test $r != 1 || export CUDA_VISIBLE_DEVICES="
    process = ranks(3, *words, each=hide)
    fault = refused(process, 1, "rank 1 on ", "2 of the 3 ranks", "--backend=cpu")
    tap.ok(not fault, "a rank without a device while others have one is refused", fault)
    process = ranks(3, *words, "--backend=cpu", each=hide)
    tap.ok(process.stdout == "499500.0\n", "unless --backend says what is meant", shown(process))
    fault = refused(ranks(3, *words, "--backend=cuda", each=hide), 1, "rank 1 on ", "no CUDA device to use")
    tap.ok(not fault, "--backend=cuda refuses it, too", fault)
    process = ranks(2, *words, devices=0)
    tap.ok(process.stdout == "499500.0\n", "no rank has one: the CPU does the work", shown(process))


def check_start():
    """Contexts that are opened beside MPI_Init, by the local rank that the launcher says."""
    words = ["sum", "gen:ramp?n=1000", "-v"]

    def contexts(*more, each=":"):
        process = ranks(2, *words, *more, env={"ALLFOLD_STANDIN_CONTEXTS": "1"}, each=each)
        lines = [line for line in process.stderr.splitlines() if line.startswith("standin: context")]
        return (sorted(line.split(" ", 2)[2] for line in lines), process.stderr.count("beside it the device"),
                "499500.0" in process.stdout), process

    each_one = ["opened on device 0", "opened on device 1"]
    launcher = "OMPI_COMM_WORLD_LOCAL_RANK"
    if launcher not in tap.run(2, "env").stdout:
        tap.skip(f"the launcher does not set {launcher}", 4)
        return
    found, process = contexts()
    tap.ok(found == (each_one, 2, True), "each rank opens its device's context beside MPI_Init", shown(process))
    found, process = contexts(each=f"unset {launcher}")
    tap.ok(found == (each_one, 0, True), "and later, if the launcher does not say which device is its own", shown(process))
    found, process = contexts(each=f"export {launcher}=$((1 - r))")
    tap.ok(found == (sorted(["closed on device 0", "closed on device 1"] + 2 * each_one), 2, True),
           "a launcher that says something else than MPI: no context is left on the wrong device", shown(process))
    found, process = contexts("--backend=cpu")
    tap.ok(found == ([], 0, True), "and none is opened that is not used", shown(process))


def check_work():
    """What the stand-ins compute for several threads at a time is right: shards that stream, resident ones, softmax of both."""
    with Folder() as folder:
        x = np.random.default_rng(1).standard_normal(300001).astype(np.float32)
        np.save(folder.name("x.npy"), x)
        for memory in ("--device-memory=256Ki", "--device-memory=64Mi"):
            words = ["--staging=16Ki", f"--threads={THREADS}", memory, folder.name("x.npy")]
            found = report(ranks(3, "stats", "--json", *words))
            exact = np.asarray(x, np.float64)
            tap.ok(found and found["backend"] == "cuda" and abs(found["stats"]["sum"]["value"] - exact.sum()) < 1e-9
                   and found["stats"]["max"]["index"] == int(x.argmax()), f"stats with {memory}", found)
            process = ranks(3, "softmax", *words, "-o", folder.name("y.npy"))
            y = np.load(folder.name("y.npy")) if process.returncode == 0 else np.zeros(1)
            right = np.exp(exact - exact.max())
            right /= right.sum()
            tap.ok(y.shape == x.shape and np.abs(y / right - 1).max() < 3e-7, f"softmax with {memory}", shown(process))


def check_axes():
    """Along an axis: rows that a piece holds, and rows in segments, that ranks share or each have parts of; at level exact the CPU's bits."""
    with Folder() as folder:
        x = np.random.default_rng(2).standard_normal((3, 4100, 5)).astype(np.float32)
        np.save(folder.name("x.npy"), x)
        for axis, fold, count in ((0, "argmax", 2), (1, "sum", 1), (1, "logsumexp", 3), (1, "softmax", 1), (1, "softmax", 3), (2, "softmax", 2)):
            for staging in ("8Ki", "4Mi"):
                words = [fold, folder.name("x.npy"), f"--axis={axis}", "-o", folder.name("y.npy"), f"--staging={staging}"]
                process = ranks(count, *words, "--json", f"--threads={THREADS}")
                found, made = report(process), open(folder.name("y.npy"), "rb").read() if process.returncode == 0 else b""
                alone(*words, "--backend=cpu")
                tap.ok(found and found["backend"] == "cuda" and made == open(folder.name("y.npy"), "rb").read(),
                       f"{fold} along axis {axis}, {count} ranks, pieces of {staging}", shown(process))
        if h5py is None:
            tap.skip("h5py is not there")
            return
        with h5py.File(folder.name("x.h5"), "w") as file:
            data = file.create_dataset("x", data=np.where(np.random.default_rng(3).random((2, 40, 5)) < 0.3, np.float32(9), x[:2, :40]))
            data.attrs["_FillValue"] = np.float32(9)
        for fold, axis in (("argmin", 1), ("mean", 0)):
            words = [fold, folder.name("x.h5"), f"--axis={axis}", "-o", folder.name("y.npy")]
            process = ranks(2, *words)
            made = open(folder.name("y.npy"), "rb").read() if process.returncode == 0 else b""
            alone(*words, "--backend=cpu")
            tap.ok(made == open(folder.name("y.npy"), "rb").read(), f"{fold} along axis {axis} without missing elements", shown(process))


def check_generated():
    """Elements that the device makes itself are the file's that the CPU writes, for folds and for softmax, kept between its passes or
    not, and after a checkpoint."""
    with Folder() as folder:
        for text, dtype in (("normal?n=70001&seed=5", "f32"), ("logits?n=30001", "bf16"), ("uniform?n=30001", "int8"), ("wide?n=9999", "f64")):
            generated, file = f"gen:{text}&dtype={dtype}", folder.name("x.raw")
            process = single("generate", generated, "-o", file)
            tap.ok(process.returncode == 0, f"a file of {generated}", shown(process))
            words = ["--staging=16Ki", "--device-memory=128Ki"]
            found = [ranks(3, "stats", "-q", *words, generated), single("stats", "-q", *words, file, f"--dtype={dtype}")]
            log = single("sum", "-v", *words, generated).stderr
            tap.ok(found[0].returncode == 0 and found[0].stdout == found[1].stdout and "are made on the device" in log,
                   f"stats of {generated} as of the file", shown(found[0]) + log)
            for memory in ("--device-memory=128Ki", "--device-memory=64Mi"):
                if dtype == "int8":
                    continue
                made = [single("softmax", "--staging=16Ki", memory, *name, "-o", folder.name(output))
                        for name, output in (([generated], "a.raw"), ([file, f"--dtype={dtype}"], "b.raw"))]
                same = all(process.returncode == 0 for process in made) and filecmp.cmp(folder.name("a.raw"), folder.name("b.raw"), False)
                tap.ok(same, f"softmax of {generated} with {memory} as of the file", "".join(map(shown, made)))


def main():
    if "cuda" not in os.environ.get("ALLFOLD_TEST_BACKENDS", "cpu cuda"):
        tap.skip("ALLFOLD_TEST_BACKENDS leaves cuda out")
    elif os.path.isfile(PROGRAM) and "CUDA" in ranks(1, "info").stdout:
        check_choice()
        check_notice()
        check_missing()
        check_start()
        check_work()
        check_axes()
        check_generated()
    else:
        tap.skip("this build has no emulated kernels")
    tap.done()


if __name__ == "__main__":
    main()
