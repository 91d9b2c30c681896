"""What the tests of the program share: running it, reading its JSON reports, arrays of every element type."""
import json
import os
import re
import subprocess
import tempfile
from concurrent.futures import ThreadPoolExecutor

import numpy as np

import tap

ULP_TYPES = {"f16": np.float16, "f32": np.float32, "f64": np.float64}
with open(os.path.join(tap.SOURCE, "src", "allfold.h"), encoding="utf-8") as header:
    HEADER = header.read()
FOLDS = re.findall(r'X\([A-Z0-9]+, (\w+), \w+, \d+, "', HEADER)  # ALLFOLD_FOLDS
KINDS = {name: (int(size), kind) for name, size, kind in re.findall(r"X\([A-Z0-9]+, (\w+), \"\w+\", (\d+), '(\w)'", HEADER)}  # ALLFOLD_TYPES
TYPES = list(KINDS)
BYTES = {name: size for name, (size, _) in KINDS.items()}
FLOATS, SIGNED, UNSIGNED = ([name for name in TYPES if KINDS[name][1] == kind] for kind in "fiu")

# What a launcher around the tests says of itself must not reach the program.
LAUNCH_VARIABLES = ("OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_STEP_NUM_TASKS", "SLURM_NTASKS", "FLUX_JOB_SIZE",
                    "JSM_NAMESPACE_SIZE")
SLOT_VARIABLES = ("PBS_NODEFILE", "LSB_MCPU_HOSTS", "LSB_DJOB_NUMPROC", "NHOSTS", "NSLOTS")
for variable in LAUNCH_VARIABLES + SLOT_VARIABLES:
    os.environ.pop(variable, None)


def ignore_leaks():
    """For tests of many runs: in a build with sanitizers a search for leaks takes nine tenths of a short run, and the full unwinder, which
    only that needs, two thirds of the rest. check_leaks in test_cli.py, the examples and the tests in C have leaks searched for."""
    os.environ["ASAN_OPTIONS"] = os.environ.get("ASAN_OPTIONS", "") + ":detect_leaks=0:fast_unwind_on_malloc=1"


def backends():
    """Those that the tests are to use and this machine has. Each other one is a check that is skipped."""
    for backend in os.environ.get("ALLFOLD_TEST_BACKENDS", "cpu cuda").split():
        probe = alone("info", f"--backend={backend}")
        if probe.returncode == 0:
            yield backend
        else:
            tap.skip(f"{backend}: {' '.join(told(probe))}")


def rank_counts(backend):
    """At how many ranks a test runs that has no counts of its own: as tests/mpi-launch."""
    return list(map(int, os.environ.get("ALLFOLD_TEST_RANKS", "1 2 3" if backend == "cuda" else "1 2 5").split()))


OPERAND_PROGRAMS = {"cpu": "tests/programs/dot_folds", "cuda": "tests/programs/dot_folds", "standin": "tests/emulation/dot_folds"}


def operand_runs(runs):
    """The backends, (ranks, staging) of runs as (backend, ranks, staging): those that the tests are to use, and devices that stand in for GPUs."""
    backends = os.environ.get("ALLFOLD_TEST_BACKENDS", "cpu cuda").split()
    only = set(map(int, os.environ.get("ALLFOLD_TEST_RANKS", "").split()))
    for backend in backends + (["standin"] if "cuda" in backends else []):
        if backend == "standin" and not os.path.exists(os.path.join(tap.BUILD, OPERAND_PROGRAMS[backend])):
            tap.skip("configured without the emulation, or no C++17 compiler")
        else:
            yield from ((backend, ranks, staging) for ranks, staging in runs if not only or ranks in only)


def check_operands(what, run, path, count, wrong_of):
    """One run over the cases of two arrays in a file. wrong_of: of the lines that it prints what is not as it should be."""
    backend, ranks, staging = run
    env = {"ALLFOLD_STANDIN_DEVICES": "2"} if backend == "standin" else None
    name = f"{count} {what}, {ranks} ranks, staging {staging}, {backend}"
    if not tap.wanted(name):
        return
    done = tap.run(ranks, os.path.join(tap.BUILD, OPERAND_PROGRAMS[backend]), "cuda" if backend == "standin" else backend, staging, path, env=env)
    lines = done.stdout.splitlines()
    if any("# SKIP" in line for line in lines[:2]):
        tap.skip(f"{backend}: {lines[0]}")
        return
    wrong = wrong_of(lines)
    tap.ok(len(lines) == count and not wrong, name, "\n".join(wrong[:10]) + f"\n{len(wrong)} wrong of {len(lines)}\n{done.stderr[-2000:]}")


def surroundings(words, env):
    """The environment of a run. Without a word for the backend devices are hidden: a driver starts processes one after the other, 0.2 s
    each, which is most of such a run. --backend=auto takes a device where there is one."""
    hidden = {} if any(str(word).startswith("--backend") for word in words) else {"CUDA_VISIBLE_DEVICES": ""}
    return {**os.environ, **hidden, **(env or {})}


def alone(*words, env=None, stdout=subprocess.PIPE, text=True):
    """The program without a launcher: one rank."""
    return subprocess.run([tap.ALLFOLD, *words], stdin=subprocess.DEVNULL, stdout=stdout, stderr=subprocess.PIPE,
                          env=surroundings(words, env), text=text, timeout=tap.SECONDS, check=False)


def ranks(count, *words, env=None):
    """The program on that many ranks, through the launcher for more than one."""
    return alone(*words, env=env) if count == 1 else tap.run(count, tap.ALLFOLD, *words, env=surroundings(words, env))


def each(launches):
    """ranks() for each (count, words), a few at a time (starting MPI and CUDA is waiting, not work); results in order."""
    with ThreadPoolExecutor(min(8, max(4, (os.cpu_count() or 1) // 2))) as pool:
        return list(pool.map(lambda launch: ranks(launch[0], *launch[1]), launches))


def each_alone(commands):
    """The same on one rank each."""
    return each((1, words) for words in commands)


def told(process):
    """The program's messages, without what the launcher adds."""
    return [line for line in process.stderr.splitlines() if line.startswith("allfold:")]


def complaints(process):
    """The program's messages but for the note that ranks share a GPU."""
    return [message for message in told(process) if " is shared by " not in message]


def shown(process):
    return f"{' '.join(map(str, process.args))}\nexit status {process.returncode}\n{process.stdout}\n{process.stderr}"


def report(process):
    """The JSON object that is all of standard output, or None after a failed check."""
    try:
        assert process.returncode == 0 and process.stdout.endswith("\n") and process.stdout.count("\n") == 1
        return json.loads(process.stdout)
    except (AssertionError, ValueError):
        tap.ok(False, "one JSON object, and nothing else on standard output", shown(process))
        return None


def refused(process, status, *words):
    """Why this is not one message that holds these words, with that exit status and nothing on standard output; or ''."""
    messages = complaints(process)
    wrong = [word for word in words if not messages or word not in messages[0]]
    if process.returncode == status and len(messages) == 1 and not process.stdout and not wrong:
        return ""
    return f"expected status {status}, one message with {words}, nothing on standard output; found\n{shown(process)}"


def bf16_bits(values):
    """float32 values, cut to bfloat16, as its bits."""
    return (np.asarray(values, np.float32).view(np.uint32) >> 16).astype(np.uint16)


def bf16_values(bits):
    return (bits.astype(np.uint32) << 16).view(np.float32)


def exact(dtype, values):
    """values as the element type holds them; bf16 as float32."""
    if dtype == "bf16":
        return bf16_values(bf16_bits(values))
    return np.array(values, ULP_TYPES.get(dtype, dtype))


class Folder:
    """A temporary folder with arrays in it; with Folder() as folder."""

    def __enter__(self):
        self.temporary = tempfile.TemporaryDirectory()
        self.path = self.temporary.name
        return self

    def __exit__(self, *ignored):
        self.temporary.cleanup()

    def name(self, *parts):
        return os.path.join(self.path, *parts)

    def save(self, name, dtype, values):
        """Writes exact(dtype, values), .npy where NumPy has the type, else raw; gives the words that name it as INPUT."""
        if dtype == "bf16":
            bf16_bits(values).tofile(self.name(name + ".raw"))
            return [self.name(name + ".raw"), "--dtype=bf16"]
        np.save(self.name(name + ".npy"), exact(dtype, values))
        return [self.name(name + ".npy")]

    def load(self, name, dtype):
        """What the program wrote."""
        if dtype == "bf16":
            return bf16_values(np.fromfile(self.name(name), np.uint16))
        return np.load(self.name(name))

    def files(self):
        return sorted(os.listdir(self.path))
