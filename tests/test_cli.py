#!/usr/bin/env python3
"""The program's interface: help and manual, options, what is refused and how, generate, info, files that stay whole.
The numbers are test_cli_values.py's."""
import filecmp
import os
import re
import shutil
import subprocess

import numpy as np

import cli
import tap
from cli import FOLDS, Folder, alone, each_alone, ranks, refused, report, shown, told

COMMANDS = FOLDS + ["merge", "softmax", "log-softmax", "compare", "quantile", "median", "topk", "histogram", "generate", "info", "ladder", "bench"]


def check(fault, name):
    tap.ok(not fault, name, fault)


def manual():
    """docs/allfold.1 as section -> text, its dashes plain."""
    with open(os.path.join(tap.SOURCE, "docs", "allfold.1"), encoding="utf-8") as file:
        text = file.read().replace("\\-", "-")
    parts = re.split(r"^\.SH (.*)$", text, flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2]))


def entries(section):
    """The terms that a section of the manual explains."""
    return re.findall(r"^\.TP\n\.\w+ (.*)$", section, flags=re.MULTILINE)


def option_names(text):
    """--long and -s at the beginning of the lines of help."""
    return {name for line in re.findall(r"^ +(?:-\w, +)?--[a-z-]+|^ +-\w,", text, flags=re.MULTILINE)
            for name in re.findall(r"--[a-z-]+|(?<![\w-])-\w(?=,)", line)}


def check_help():
    helps = dict(zip(COMMANDS, each_alone([command, "--help"] for command in COMMANDS)))
    program, man = alone("--help"), manual()
    listed = re.findall(r"^  ([a-z0-9-]+)  +\w", program.stdout.split("Commands:")[1].split("\n\n")[0], flags=re.MULTILINE)
    tap.ok(listed == COMMANDS, "--help lists the commands", listed)
    explained = entries(man["COMMANDS"])
    tap.ok([name.removeprefix(".B ") for name in explained] == COMMANDS, "so does the manual", explained)
    for command, process in helps.items():
        tap.ok(process.returncode == 0 and process.stdout.startswith(f"Usage: allfold {command} ") and not process.stderr,
               f"{command} --help", shown(process))
    twice = [command for command, process in helps.items()
             if len(found := re.findall(r"^ +(?:-\w, +)?(--[a-z-]+)", process.stdout, flags=re.MULTILINE)) != len(set(found))]
    tap.ok(not twice, "no command has two options of one name", twice)
    helped = set().union(*(option_names(process.stdout) for process in helps.values())) | {"-V", "--version"}
    explained = {name for entry in entries(man["OPTIONS"]) for name in re.findall(r"--[a-z-]+|(?<![\w-])-\w(?=,)", entry)}
    tap.ok(helped == explained and len(helped) > 14, "the manual explains the options of --help, and no others",
           sorted(helped ^ explained))
    generators = re.findall(r"^  ([a-z]+)  +((?:\w+=\S* ?)+)", helps["sum"].stdout.split("\ngen:")[1], flags=re.MULTILINE)
    in_manual = {entry.split(":")[0]: entry for entry in entries(man["GENERATORS"])}
    tap.ok(len(generators) == len(in_manual) > 3
           and all(parameter in in_manual.get(name, "") for name, parameters in generators
                   for parameter in parameters.replace("emin= emax=", "emin emax").split()),
           "the manual explains the generators of --help", f"{generators}\n{in_manual}")
    wide = [line for process in [program, *helps.values()] for line in process.stdout.splitlines() if len(line) > 120]
    tap.ok(not wide, "no line of help is wider than 120 columns", "\n".join(wide))


def check_once():
    """What rank 0 says, the others do not repeat."""
    for words, start in ((["--help"], "Usage:"), (["max", "-h"], "Usage:"), (["help", "max"], "Usage: allfold max "), (["-V"], "allfold ")):
        process = ranks(3, *words)
        lines = [line for line in process.stdout.splitlines() if line.startswith(start)]
        tap.ok(process.returncode == 0 and len(lines) == 1, f"{' '.join(words)} on 3 ranks prints once", shown(process))
    with open(os.path.join(tap.SOURCE, "configure.ac"), encoding="utf-8") as file:
        version = re.search(r"AC_INIT\(\[allfold\], \[(.*?)\]", file.read()).group(1)
    commit = subprocess.run(["git", "-C", tap.SOURCE, "rev-parse", "--short=12", "HEAD"], capture_output=True, text=True).stdout.strip() \
        if os.path.exists(os.path.join(tap.SOURCE, ".git")) and shutil.which("git") else ""
    found, expected = alone("--version").stdout, f"allfold {version} (commit {commit})\n" if commit else f"allfold {version}\n"
    tap.ok(found.replace("-changed", "") == expected, "--version is configure's, with the checkout's commit", (found, expected))


def check_usage():
    """Wrong words: status 2 and one message, which holds what is said here."""
    cases = [
        ([], ["expected a command", "--help"]),
        (["bogus-thing"], ["'bogus-thing' is no command"]),
        (["sums", "x"], ["did you mean sum?"]),
        (["stdev", "x"], ["did you mean std?"]),
        (["mode", "x"], ["'mode' is no command: see"]),
        (["--json", "sum", "x"], ["'--json' is no command", "options follow"]),
        (["sum"], ["expected INPUT..., found nothing", "allfold sum --help"]),
        (["info", "a", "b"], ["expected one [FILE]", "'b'"]),
        (["info", "--backend=cuda", "a"], ["expected --backend=cpu or auto", "works on the CPU"]),
        (["sum", "--jsno", "x"], ["unknown option --jsno", "did you mean --json?"]),
        (["sum", "-z", "x"], ["unknown option -z"]),
        (["sum", "-qz", "x"], ["unknown option -z"]),
        (["sum", "--json=1", "x"], ["--json takes no argument"]),
        (["median", "--q=0.3", "x"], ["median takes no --q; these commands do: quantile"]),
        (["sum", "--backend", "gpu", "x"], ["--backend", "auto, cuda or cpu", "'gpu'"]),
        (["help", "summ"], ["did you mean sum?"]),
        (["help", "sum", "max"], ["one COMMAND", "'max'"]),
        (["sum", "-"], ["'-'", "streams are not supported", "./-"]),
        (["softmax", "x", "-o-"], ["--output", "streams are not supported"]),
        (["sum", "--c=1", "x"], ["--c could be --count, --checkpoint, --checkpoint-every: say which"]),
        (["sum", "--cheek=1", "x"], ["unknown option --cheek", "see allfold sum"]),
        (["min", "--sum=fast", "x"], ["min takes no --sum", "sum, mean, norm1, norm2, logsumexp, stats, variance, std, softmax, log-softmax"]),
        (["prod", "--sum=exact", "x"], ["prod takes no --sum"]),
        (["sum", "--checkpoint-every=1", "x"], ["--checkpoint-every", "expected --checkpoint=FILE", "no effect"]),
        (["bench", "--tolerance=1"], ["--tolerance", "expected --baseline=FILE", "no effect"]),
        (["sum", "--checkpoint-every= 1", "x"], ["--checkpoint-every", "' 1'"]),
        (["sum", "--timeout=0x10", "x"], ["--timeout", "0, or a number from 1", "'0x10'"]),
        (["sum", "--timeout=.5", "x"], ["--timeout", "'.5'"]),
        (["sum", "--threads=0x2", "x"], ["--threads", "a number from 1 to 4096", "'0x2'"]),
        (["max", "gen:constant?n=1&value=0x1p3"], ["value", "0x1p3"]),
        (["max", "gen:constant?n=1&value= 1"], ["value", "' 1'"]),
        (["sum", "--dtype=<f4", "x"], ["--dtype", "'<f4'", "such as float32"]),
        (["sum", "x", "--dtype"], ["--dtype", "found nothing"]),
        (["sum", "--dtype=complex64", "x"], ["--dtype", "f16 bf16 f32", "'complex64'"]),
        (["sum", "--threads=0", "x"], ["--threads", "'0'"]),
        (["sum", "--staging=5Q", "x"], ["--staging", "2Gi", "'5Q'"]),
        (["sum", "--device-memory=-1", "x"], ["--device-memory", "'-1'"]),
        (["sum", "--count=half", "x"], ["--count", "'half'"]),
        (["sum", "--nan=omit", "x"], ["sum takes no --nan", "min, max, argmin, argmax, stats, variance, std"]),
        (["min", "--nan=drop", "x"], ["propagate, omit or error", "'drop'"]),
        (["merge", "-o", "y", "x"], ["merge takes no --output", "softmax, log-softmax, topk, histogram, generate"]),
        (["softmax", "x"], ["-o FILE"]),
        (["softmax", "x", "-o", "y", "--output-type=int8"], ["--output-type", "f16, bf16, f32 or f64", "'int8'"]),
        (["softmax", "gen:ramp?n=9&dtype=int16", "-o", "y"], ["--output-type", "int16"]),
        (["generate", "ramp?n=9", "-o", "y", "--backend=cuda"], ["CPU"]),
        (["generate", "ramp", "-o", "y"], ["n"]),
        (["sum", "gen:cauchy?n=9"], ["uniform, normal", "'cauchy'"]),
        (["sum", __file__], ["--dtype", "found text", "numpy.loadtxt"]),
        (["sum", "--staging=1e19", "x"], ["--staging", "below 2^63", "'1e19'"]),
        (["sum", "--count=1e20", "x"], ["--count", "below 2^64", "'1e20'"]),
        (["sum", "gen:ramp?n=9&dtype=int8", "--shape=4294967296,4294967296,2"], ["--shape", "less than 2^63 bytes"]),
    ]
    for (words, expected), process in zip(cases, each_alone(words for words, _ in cases)):
        name = " ".join(words).replace(os.path.dirname(__file__), "")
        check(refused(process, 2, *expected), f"refused: allfold {name}")
    check(refused(ranks(3, "sum", "--jsno", "x"), 2, "--jsno"), "a wrong option on 3 ranks is one message")
    sizes = ["4000Ti", *(str(2**63 - less) for less in (1, 128, 256))]
    vast = [[*words, f"{option}={size}"] for size in sizes for words, option in
            ((["info", "--backend=cpu"], "--staging"), (["sum", "gen:ramp?n=10"], "--device-memory"),
             (["softmax", "gen:ramp?n=1e6", "-o", "/nowhere/y.npy"], "--staging"), (["generate", "ramp?n=9", "-o", "/nowhere/y.npy"], "--staging"))]
    wrong = [refused(process, 1, "expected at most") for process in each_alone(vast)]
    tap.ok(not any(wrong), f"{len(vast)} sizes beyond the machine's are refused", "\n".join(filter(None, wrong)))
    check(refused(alone("bench", f"--count={2**64 - 1}"), 2, "2^59"), "a count whose bytes cannot be counted is refused")
    several = tap.run(1, tap.ALLFOLD, "sum", "gen:ramp?n=9", ":", "-n", "1", tap.ALLFOLD, "min", "gen:ramp?n=9")
    check(refused(several, 2, "same command"), "ranks with different arguments are refused")


def check_launch():
    """Tasks that are no MPI job."""
    words = ["sum", "gen:ramp?n=9"]
    for variable, count in [(variable, "4") for variable in cli.LAUNCH_VARIABLES] + [("SLURM_NTASKS", "9" * 20)]:
        check(refused(alone(*words, env={variable: count}), 2, f"{variable}={count})", "srun --mpi=pmix"),
              f"{variable}={count} and one rank is refused")
    with Folder() as folder:
        nodes = {name: folder.name(name) for name in ("one", "two")}
        for name, text in (("one", "n1\n"), ("two", "n1\nn2\n")):
            with open(nodes[name], "w", encoding="utf-8") as file:
                file.write(text)
        os.mkfifo(folder.name("fifo"))
        for system, several, one in (
                ("PBS", {"PBS_NODEFILE": nodes["two"]}, {"PBS_NODEFILE": nodes["one"]}),
                ("PBS with a fifo", {"PBS_NODEFILE": nodes["two"]}, {"PBS_NODEFILE": folder.name("fifo")}),
                ("LSF", {"LSB_MCPU_HOSTS": "n1 4 n2 4", "LSB_DJOB_NUMPROC": "8"},
                 {"LSB_MCPU_HOSTS": "n1 8", "LSB_DJOB_NUMPROC": "8"}),
                ("Grid Engine", {"NHOSTS": "2", "NSLOTS": "8"}, {"NHOSTS": "1", "NSLOTS": "8"})):
            check(refused(alone(*words, env=several), 2, "mpirun"), f"{system}: one rank in a job of several hosts is refused")
            process = alone(*words, "-q", env=one)
            tap.ok((process.returncode, process.stdout) == (0, "36.0\n"), f"{system}: and works where there is one",
                   shown(process))
    process = alone(*words, env={"SLURM_NTASKS": "4", "SLURM_PROCID": "3"})
    tap.ok(process.returncode == 2 and not told(process), "of such tasks only the first one says so", shown(process))
    process = tap.run(1, tap.ALLFOLD, *words, "-q", env={"SLURM_NTASKS": "4"})
    tap.ok((process.returncode, process.stdout) == (0, "36.0\n"), "mpirun -n 1 within a job of 4 tasks works", shown(process))
    process = alone("--help", env={"SLURM_NTASKS": "4"})
    tap.ok(process.returncode == 0, "--help needs no job", shown(process))


def check_start():
    """What a start does without, and what it says."""
    words = ["sum", "gen:ramp?n=9", "-q"]
    nowhere = {"PATH": "/nonexistent", "TMPDIR": "/nonexistent"}
    process = alone(*words, env=nowhere)
    tap.ok((process.returncode, process.stdout) == (0, "36.0\n"), "one rank starts no daemon and makes no folder", shown(process))
    if "Open MPI) 4" in subprocess.run([*os.environ.get("MPIEXEC", "mpirun").split()[:1], "--version"], capture_output=True, text=True,
                                       check=False).stdout:
        with Folder() as folder:
            os.mkdir(folder.name(".openmpi"))
            with open(folder.name(".openmpi", "mca-params.conf"), "w", encoding="utf-8") as file:
                file.write("# btl\n coll_x=1\n btl = missing\n")
            for name, env in (("the environment", {"OMPI_MCA_coll": "missing"}), ("their own file", {"HOME": folder.path})):
                process = alone(*words, env=env)
                tap.ok(process.returncode != 0 and "missing" in process.stderr, f"a user's setting in {name} stays", shown(process))
            process = alone(*words, env={"OMPI_MCA_btl": "self,tcp", "OMPI_MCA_coll": "^han", "HWLOC_COMPONENTS": "linux"})
            tap.ok((process.returncode, process.stdout) == (0, "36.0\n"), "and works, if it is right", shown(process))
    else:
        tap.skip("not Open MPI 4", 3)
    for count in (1, 3):
        process = ranks(count, *words, "-v")
        lines = [line for line in told(process) if "start took" in line and "MPI_Init" in line]
        tap.ok(sorted(line.split(":")[1] for line in lines) == [f" rank {rank}" for rank in range(count)],
               f"--verbose says where the time of the start went, on {count} ranks", shown(process))
    cpus = sorted(os.sched_getaffinity(0))
    if len(cpus) < 2:
        tap.skip("one CPU: a rank cannot be bound to fewer", 3)
        return
    bound = ["taskset", "-c", str(cpus[0]), tap.ALLFOLD, *words[:2]]
    process = tap.run(1, *bound)
    tap.ok([line for line in told(process) if "1 of 1 ranks" in line and f"1, its share is {len(cpus)}" in line] == told(process) != []
           and process.returncode == 0, "a rank that the launcher has bound to one CPU of several: one line", shown(process))
    tap.ok(not told(tap.run(1, *bound, "-q")) and not told(tap.run(1, *bound[3:])), "and none with --quiet, or if it is not bound")
    process = subprocess.run(bound, capture_output=True, text=True, check=False)
    tap.ok(process.returncode == 0 and not told(process), "nor without a launcher", shown(process))


def check_streams():
    """Standard streams that are closed, or full: no file takes their places, and a report that nobody gets is a failure."""
    with Folder() as folder:
        x, y = folder.name("x.npy"), folder.name("y.npy")
        np.save(x, np.zeros(4))
        for redirected, words, status, said in (
                ("<&-", ["sum", x], 0, ""), ("<&- >&-", ["sum", x], 1, "cannot write to standard output"),
                (">&-", ["sum", x, f"--partial={y}"], 1, "output (what is written to files is complete)"),
                ("<&- >&- 2>&-", ["sum", x], 1, ""), ("2>&-", ["softmax", x, "-v", "-o", y], 0, ""),
                ("<&- 2>&-", ["softmax", x, "-v", "-o", y], 0, ""), ("<&- >&-", ["softmax", "-q", x, "-o", y], 0, ""),
                (">/dev/full", ["softmax", x, "-o", x], 1, "output (what is written to files is complete): No space")):
            process = subprocess.run(["sh", "-c", f'exec "$@" {redirected}', "-", tap.ALLFOLD, *words], capture_output=True, text=True, check=False)
            right = process.returncode == status and len(told(process)) == (said != "") and said in process.stderr
            right = right and (words[0] == "sum" or np.array_equal(np.load(words[-1]), np.full(4, 0.25)))
            tap.ok(right and ("sum = 0.0" in process.stdout) == (words[0] == "sum" and status == 0), f"{' '.join(words[:1])} {redirected}",
                   shown(process))


def check_inputs():
    """Files: raw ones, and damaged ones of every kind."""
    with Folder() as folder:
        x = np.arange(1000, dtype=np.float32)
        np.save(folder.name("x.npy"), x)
        with open(folder.name("x.npy"), "rb") as file:
            good = file.read()
        damaged = {"short.npy": (good[:-3], "bytes"), "long.npy": (good + b"1", "bytes"), "head.npy": (good[:40], "header"),
                   "magic.npy": (b"X" + good[1:], "magic"), "empty.npy": (b"", "magic"),
                   "descr.npy": (good.replace(b"<f4", b"<c8"), "<c8"), "object.npy": (good.replace(b"'<f4'", b"'|O' "), "|O"),
                   "letter.npy": (good.replace(b"'<f4'", b"'<e' "), "'<e': a letter that NumPy has"),
                   "bool.npy": (good.replace(b"'<f4'", b"'?'  "), "'?': a letter that NumPy has"),
                   "odd.raw": (b"1234567", "raw")}
        for name, (content, _) in damaged.items():
            with open(folder.name(name), "wb") as file:
                file.write(content)
        options = {"odd.raw": ["--dtype=f32"]}
        done = each_alone(["sum", folder.name(name), *options.get(name, [])] for name in damaged)
        for (name, (_, word)), process in zip(damaged.items(), done):
            check(refused(process, 1, name, word, "expected", "found"), f"damaged: {name}")
        check(refused(ranks(3, "sum", folder.name("long.npy")), 1, "long.npy"), "damaged, on 3 ranks: one message")
        check(refused(ranks(3, "sum", folder.name("none.npy")), 1, "none.npy"), "missing, on 3 ranks: one message")
        check(refused(alone("sum", folder.path), 1, "directory"), "a folder is no input")
        check(refused(alone("sum", folder.name("x.npy"), "--dtype=f64"), 2, "expected no --dtype"), "another type than the .npy file's")
        for count in (1, 3):
            y = np.asfortranarray(np.arange(12.0).reshape(3, 4))
            np.save(folder.name("parts.npy"), y)
            row = y.ravel("K")  # as it lies in the file
            for words, part in ((["--dtype=f64"], row), (["--offset=2", "--count=3"], row[2:5]), (["--count=0"], row[:0]),
                                (["--offset=11"], row[11:]), (["--offset=12", "--dtype=float64"], row[12:])):
                process = ranks(count, "sum", folder.name("parts.npy"), "-q", *words)
                tap.ok(process.stdout == f"{part.sum()}\n", f"{words} of an .npy file, {count} ranks", process)
            for words in (["--offset=13"], ["--count=13"], ["--offset=2", "--count=11"], ["--offset=7Ei"]):
                check(refused(ranks(count, "sum", folder.name("parts.npy"), *words), 1, "within its 12 elements"), f"{words}")
            process = ranks(count, "softmax", folder.name("parts.npy"), "--offset=3", "--count=5", "-o", folder.name("row.npy"))
            due = np.exp(row[3:8]) / np.exp(row[3:8]).sum()
            tap.ok(process.returncode == 0 and np.allclose(np.load(folder.name("row.npy")), due, atol=0),
                   f"softmax of part of an .npy file is a row, {count} ranks", process)
            np.array([0, 1, 2, 255, 0, 1], np.uint8).tofile(folder.name("mask.raw"))
            mask = ranks(count, "sum", folder.name("mask.raw"), "--dtype=bool", "-q")
            tap.ok(mask.stdout == "4\n", f"bool: any byte but 0 is true, {count} ranks", mask)
        with open(folder.name("x.raw"), "wb") as file:
            file.write(b"header.." + x.tobytes())
        process = alone("sum", folder.name("x.raw"), "--dtype=f32", "--offset=8", "--count=100", "-q")
        tap.ok(process.stdout == "4950.0\n", "a raw file with --offset and --count", shown(process))
        process = alone("sum", folder.name("x.raw"), "--dtype", "float32", "--offset", "8", "-q")
        tap.ok(process.stdout == "499500.0\n", "a raw file to its end, and NumPy's name of a type", shown(process))


def check_reports():
    """The forms of the same result."""
    words = ["gen:ramp?n=1000&dtype=int32", "--backend=cpu"]
    circumstances = r"\(1000 int32 from gen:ramp\?n=1000&dtype=int32, 2 ranks, cpu, exact, \S+ s, \S+ [kMG]?B/s\)\n"
    for command, value in (("max", "999"), ("argmax", "999 at index 999")):
        process = ranks(2, command, *words)
        tap.ok(re.fullmatch(rf"{command} = {value}  {circumstances}", process.stdout), f"{command} as a line", shown(process))
    process = ranks(2, "stats", *words)
    table = dict(line.split(None, 1) for line in process.stdout.splitlines()[1:])
    tap.ok(re.match("stats  " + circumstances, process.stdout) and table.get("max") == "999 at index 999"
           and table.get("sum") == "499500" and table.get("mean") == "499.5", "stats as a table", shown(process))
    process = alone("argmin", *words, "-q")
    tap.ok(process.stdout == "0 0\n" and not process.stderr, "argmin --quiet: value and index", shown(process))
    process = ranks(3, "sum", *words, "--verbose", "--json")
    lines = [line for line in told(process) if re.match(r"allfold: rank \d on ", line)]
    tap.ok(report(process) and len(lines) == 3 and all(f"rank {i} on " in line for i, line in enumerate(lines))
           and "333 elements from 334" in lines[1], "--verbose tells of each rank, on standard error", shown(process))
    process = alone("stats", *words, "--output-type=f16", "--json")
    found = report(process)
    if found: # 1000 elements are 1000; their sum is beyond f16
        found = found["stats"]
        tap.ok((found["count"]["value"], found["nan_count"]["text"], found["sum"]["text"], found["mean"]["value"]) == (1000, "0", "inf", 499.5)
               and found["count"]["hex"] is None, "--output-type rounds what is measured, not counts", found)
    process = alone("stats", "gen:constant?n=100003", "--output-type=f16", "-q")
    tap.ok(process.stdout.startswith("count      100003\n"), "counts are printed as integers", process.stdout)
    with Folder() as folder:
        alone("sum", *words, "--partial=" + folder.name("p"))
        line, found = alone("merge", folder.name("p")).stdout, report(alone("merge", folder.name("p"), "--json"))
        tap.ok("499500" in line and "/s)" not in line and found and found["bytes_per_second"] is None,
               "merge reports no speed of elements that it does not read", f"{line}{found}")
    process = alone("sum", *words, "--staging=1KiB", "--device-memory=1K", "-q")
    tap.ok(process.stdout == "499500\n", "sizes with units", shown(process))
    check_numbers()
    check_names()


def check_numbers():
    """Doubles as Python prints them. Powers of two are the hard ones: some have a shorter decimal than the nearest."""
    numbers = [5e-324, 2.0**-1017, 2.0**-44, 1e-5, 0.0001, 0.1, 1 / 3, 1e15, 1e16, 9007199254740993.0, 1.5e300, -2.0**-921,
               1.7976931348623157e308, -123456.789]
    done = each_alone(["max", f"gen:constant?n=1&dtype=f64&value={number!r}", "-q"] for number in numbers)
    printed = [process.stdout.strip() for process in done]
    tap.ok(printed == [repr(number) for number in numbers], "numbers are printed as Python prints them",
           f"{printed}\n{numbers}")


def check_names():
    """File names may be any bytes; JSON may not."""
    with Folder() as folder:
        name = os.path.join(os.fsencode(folder.path), b'a "b"\n\xff\xc3\xa9')
        try:
            with open(name, "wb") as file:
                file.write(b"\1\2\3")
        except OSError:
            tap.skip("this file system takes no such names", 2)
            return
        found = report(alone("sum", name, "--dtype=uint8", "--json"))
        tap.ok(found and found["input"].endswith('a "b"\n\ufffd\u00e9') and found["value"] == 6, "any name in JSON", found)
        line = alone("sum", name, "--dtype=uint8", text=False).stdout
        tap.ok(line.count(b"\n") == 1 and b"a \"b\"?" in line, "a line stays one line", line)
        name = "b\n\r\t\x1b[31m\x7f \u009b\u2028\u202e \u00e9\u4e2d".encode() + b"\xff"
        for words in (["sum", name], [name], ["sum", "gen:" + "b\nc"], ["sum", b"--" + name]):
            said = alone(*words, text=False).stderr
            tap.ok(said.startswith(b"allfold: ") and said.count(b"\n") == 1 and said.decode().strip("\n").isprintable()
                   and (b"gen" in said or b"b???" in said and "? ??? \u00e9\u4e2d?".encode() in said),
                   "a message is one printable line, whatever a name holds", said)


def check_generate():
    with Folder() as folder:
        text = "normal?n=100003&seed=7&dtype=f64&mean=1"
        for count in (1, 2, 3, 5):
            process = ranks(count, "generate", text if count % 2 else "gen:" + text, "-o", folder.name(f"{count}.npy"),
                            "--staging=16Ki", "--json")
            found = report(process)
            tap.ok(found and found["input"] == "gen:" + text and found["dtype"] == found["output_dtype"] == "f64"
                   and found["count"] == 100003 and found["output"] == folder.name(f"{count}.npy"),
                   f"generate on {count} ranks", shown(process))
            tap.ok(filecmp.cmp(folder.name(f"{count}.npy"), folder.name("1.npy"), shallow=False),
                   f"{count} ranks write the same file as one")
        x = np.load(folder.name("1.npy"))
        tap.ok(x.shape == (100003,) and x.dtype == np.float64 and abs(x.mean() - 1) < 0.02 and abs(x.std() - 1) < 0.02,
               "NumPy reads what was generated", x)
        alone("generate", text, "-o", folder.name("x.f64"), "-q")
        tap.ok(np.array_equal(np.fromfile(folder.name("x.f64")), x), "other names make raw files")
        alone("generate", "ramp?n=10", "--dtype=bf16", "-o", folder.name("x.bf16"))
        tap.ok(np.array_equal(cli.bf16_values(np.fromfile(folder.name("x.bf16"), np.uint16)), np.arange(10)), "--dtype=bf16")
        from_file, made_up = (ranks(2, "stats", *words, "-q") for words in ([folder.name("1.npy")], ["gen:" + text]))
        tap.ok(from_file.stdout == made_up.stdout and from_file.stdout, "elements from the file and from gen: are the same",
               shown(from_file) + shown(made_up))
        process = alone("generate", "ramp?n=9&dtype=bf16", "-o", folder.name("y.npy"))
        check(refused(process, 1, "bfloat16") or ("--" in process.stderr and process.stderr), "no .npy of bf16")
        tap.ok(folder.files() == ["1.npy", "2.npy", "3.npy", "5.npy", "x.bf16", "x.f64"], "nothing else is there",
               folder.files())


def check_whole():
    """Whatever fails, an old output stays as it was and nothing else is left."""
    with Folder() as folder:
        os.mkdir(folder.name("here"))
        os.mkdir(folder.name("elsewhere"))
        np.save(folder.name("here", "x.npy"), np.ones(300000, np.float32))
        np.save(folder.name("elsewhere", "x.npy"), np.ones(7, np.float32))
        old = folder.name("y.npy")
        with open(old, "w", encoding="utf-8") as file:
            file.write("old")

        def untouched():
            with open(old, encoding="utf-8") as file:
                return file.read() == "old" and folder.files() == ["elsewhere", "here", "y.npy"]

        def check_untouched(process, name, *words):
            check(refused(process, 1, *words) or ("" if untouched() else str(folder.files())), name)

        # The last rank sees another folder: it fails when the output has been created already.
        script = 'test $OMPI_COMM_WORLD_RANK = 2 && cd "$1" || cd "$2"; shift 2; exec "$@"'
        if "OMPI_COMM_WORLD_RANK" in tap.run(2, "env").stdout:
            for where, what in ((".", "cannot find"), ("elsewhere", "bytes")):
                process = tap.run(3, "sh", "-c", script, "-", folder.name(where), folder.name("here"), tap.ALLFOLD, "softmax",
                                  "x.npy", "-o", old)
                check_untouched(process, f"softmax of which rank 2 sees another input: {what}", "rank 2", what)
            process = tap.run(3, "sh", "-c", script, "-", folder.path, folder.name("here"), tap.ALLFOLD, "sum", "x.npy")
            check_untouched(process, "sum of an input that rank 2 does not see", "rank 2", "cannot find")
            process = tap.run(3, "sh", "-c", script, "-", folder.path, folder.name("here"), tap.ALLFOLD, "generate",
                              "ramp?n=1000", "-o", "made.npy")
            check_untouched(process, "generate into a folder that rank 2 does not see", "rank 2", "made.npy")
            tap.ok(os.listdir(folder.name("here")) == ["x.npy"], "nothing was made there", os.listdir(folder.name("here")))
        else:
            tap.skip("the launcher does not set OMPI_COMM_WORLD_RANK", 5)
        limited = ["sh", "-c", 'ulimit -f 100; exec "$@"', "-", tap.ALLFOLD, "softmax", folder.name("here", "x.npy"), "-o", old]
        check_untouched(tap.run(2, *limited), "softmax beyond the limit on file sizes", "y.npy")
        for where, what in (("nowhere/y.npy", "No such file"), ("y.npy/y.npy", "Not a directory"), ("here", "directory")):
            process = alone("softmax", folder.name("here", "x.npy"), "-o", folder.name(where))
            fault = refused(process, 2 if where == "here" else 1, what)
            check(fault or ("" if untouched() else str(folder.files())), f"softmax -o {where}")
        process = ranks(2, "softmax", folder.name("here", "x.npy"), "-o", old)
        tap.ok(process.returncode == 0 and np.load(old).shape == (300000,) and folder.files() == ["elsewhere", "here", "y.npy"],
               "and success replaces it", shown(process))


def cpu_list():
    """What this process, and so a rank that is not bound, may run on, as "0-3,7"."""
    found = []
    for cpu in sorted(os.sched_getaffinity(0)):
        if found and found[-1][1] == cpu - 1:
            found[-1][1] = cpu
        else:
            found.append([cpu, cpu])
    return ",".join(f"{first}-{last}" if first != last else str(first) for first, last in found)


def check_exchange():
    words = ["sum", "gen:normal?n=1000&seed=1", "--backend=cpu", "--json"]
    auto, mpi = report(ranks(3, *words)), report(ranks(3, *words, "--exchange=mpi"))
    tap.ok(auto and mpi and [(found["exchange"], found["hosts"]) for found in (auto, mpi)] == [("auto", 1), ("mpi", 3)]
           and auto["hex"] == mpi["hex"], "--exchange=mpi: every rank a host of its own, and the same bits", (auto, mpi))


def check_info():
    process = ranks(3, "info", "--backend=cpu", "--json")
    found = report(process)
    if found:
        keys = ["command", "version", "build", "mpi", "cuda", "backend", "exchange", "hosts", "ranks", "devices"]
        tap.ok(list(found) == keys and found["ranks"] == len(found["devices"]) == 3 and found["backend"] == "cpu"
               and (found["exchange"], found["hosts"]) == ("auto", 1), "info --json on 3 ranks", found)
        tap.ok(found["mpi"]["library"] and set(found["build"]) >= {"cc", "cflags", "cuda"} and "unknown" not in
               found["build"].values(), "info tells of MPI and of the build", found)
        devices = found["devices"]
        tap.ok(all(d["rank"] == i and d["host"] == devices[0]["host"] and d["local_rank"] == i and d["threads"] > 0
                   and d["memory_total"] > 0 and d["shared"] is False for i, d in enumerate(devices)),
               "info tells of each rank", devices)
        tap.ok(all(d["cpus"] == cpu_list() and d["ranks_on_device"] == 1 and d["links"] == [] for d in devices),
               "info tells the CPUs of each rank", devices)
        process = ranks(3, "info", "--backend=cpu", "--check")
        tap.ok(process.returncode == 1 and len(told(process)) == 1 and "same CPUs" in told(process)[0],
               "info --check: ranks that may run on the same cores", shown(process))
        process = ranks(1, "info", "--backend=cpu", "--check")
        tap.ok(process.returncode == 0, "info --check: one rank is bound well enough", shown(process))
    process = ranks(2, "info")
    tap.ok(process.returncode == 0 and process.stdout.startswith("allfold ")
           and len(re.findall(r"^rank \d on \S+, local rank \d: ", process.stdout, flags=re.MULTILINE)) == 2, "info as text", shown(process))


def check_leaks():
    """A run of each kind, in which a build with sanitizers also searches for leaks: before ignore_leaks."""
    with Folder() as folder:
        x, y, kept = folder.name("x.npy"), folder.name("y.npy"), folder.name("kept")
        for status, words in ((0, ["generate", "ramp?n=1000", "-o", x]), (0, ["stats", x, f"--partial={kept}", f"--checkpoint={x}.c"]),
                              (0, ["merge", kept]), (0, ["softmax", x, "-o", y, "--json"]), (0, ["info", "--backend=cpu"]),
                              (0, ["bench", "--count=10", "--seconds=0.001", "--fold=sum", "--backend=cpu"]), (0, ["help", "sum"]),
                              (2, ["sum", "--jsno", x]), (1, ["sum", folder.name("none.npy")])):
            process = alone(*words)
            tap.ok(process.returncode == status, f"no leak: {words[0]}, status {status}", shown(process))
    cli.ignore_leaks()


def main():
    check_leaks()
    check_whole()
    check_info()
    check_help()
    check_once()
    check_usage()
    check_launch()
    check_start()
    check_streams()
    check_inputs()
    check_reports()
    check_generate()
    check_exchange()
    tap.done()


if __name__ == "__main__":
    main()
