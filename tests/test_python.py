#!/usr/bin/env python3
"""The Python package: its structs and numbers beside allfold.h, the checks of tests/python/ at 1, 2 and 3 ranks and without
mpi4py, the examples of its documents, how a program ends, what it says without a library, and an installation by pip."""
import ctypes.util
import doctest
import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

import tap

LIBRARY = os.path.join(tap.BUILD, ".libs", "liballfold.so")
PACKAGE = os.path.join(tap.SOURCE, "python")
os.environ.update(ALLFOLD_LIBRARY=LIBRARY, PYTHONPATH=f"{PACKAGE}:{os.environ.get('PYTHONPATH', '')}", PYTHONDONTWRITEBYTECODE="1",
                  OMP_WAIT_POLICY="passive")
sys.path.insert(0, PACKAGE)
sys.dont_write_bytecode = True
HAS_MPI4PY = importlib.util.find_spec("mpi4py") is not None
WITHOUT = {"ALLFOLD_TEST_WITHOUT_MPI4PY": "1"}


# ---- allfold.h

STRUCTS = {"allfold_value": "Value", "allfold_result": "Result", "allfold_results": "Results", "allfold_array": "Array",
           "allfold_options": "Options", "allfold_call": "Call", "allfold_view": "View", "allfold_view_nd": "ViewNd", "allfold_output": "Output",
           "allfold_outputs": "Outputs", "allfold_tolerance": "Tolerance", "allfold_largest": "Largest", "allfold_comparison": "Comparison",
           "allfold_log_probs_output": "LogProbsOutput",
           "allfold_quantiles": "Quantiles", "allfold_top": "Top", "allfold_source_options": "SourceOptions", "allfold_source_facts": "SourceFacts", "allfold_bins": "Bins", "allfold_outside": "Outside"}


def check_header():
    """A C program that was compiled with the header knows the offsets of fields and the numbers of names that ctypes was told."""
    import allfold
    from allfold import _errors, _library
    from allfold._types import FOLDS, TYPES

    lacking = [name for name in FOLDS if name not in {*allfold.__all__} & {*allfold.begin.__all__} and not name.startswith("norm")]
    tap.ok(not lacking, "every fold has a function, in begin, too", lacking)
    expected = {}
    for struct, name in STRUCTS.items():
        kind = getattr(_library, name)
        expected[f"sizeof({struct})"] = _library.ctypes.sizeof(kind)
        expected.update((f"offsetof({struct}, {field})", getattr(kind, field).offset) for field, _ in kind._fields_ if field != "number")
    expected["offsetof(allfold_value, f64)"] = expected["offsetof(allfold_value, u64)"] = _library.Value.number.offset
    for prefix, numbers in (("LEVEL", _library.LEVELS), ("BACKEND", _library.BACKENDS), ("EXCHANGE", _library.EXCHANGES), ("CUT", _library.CUTS),
                            ("QUANTILE", _library.QUANTILE_METHODS), ("MISSING", _library.MISSING_POLICIES),
                            ("NAN", {"error" if name == "raise" else name: n for name, n in _library.NAN_POLICIES.items()}),
                            ("VALUE", {"f64": _library.F64, "i64": _library.I64, "u64": _library.U64})):
        expected.update((f"ALLFOLD_{prefix}_{name.upper()}", number) for name, number in numbers.items())
    expected.update((f"ALLFOLD_{name.upper()}", number) for name, number in {**TYPES, **FOLDS}.items())
    expected.update(ALLFOLD_SOURCE=_library.SOURCE, ALLFOLD_TYPE_COUNT=len(TYPES) + 1, ALLFOLD_FOLD_COUNT=len(FOLDS))
    with open(os.path.join(tap.SOURCE, "src", "allfold.h"), encoding="utf-8") as file:
        header = file.read()
    choices = re.search(r"\{([^}]*)\} allfold_backend;", header).group(1).split(",")
    tap.ok(len(choices) == len(_library.BACKENDS), "every backend has a name", choices)
    statuses = re.findall(r"ALLFOLD_[A-Z_]+", re.sub(r"/\*.*?\*/", "", re.search(r"\{([^}]*)\} allfold_status;", header).group(1)))
    tap.ok(len(_errors.BY_STATUS) == len(statuses) - 1, "an exception for each status", statuses)
    expected.update(zip(statuses[1:], sorted(_errors.BY_STATUS)))
    with tempfile.TemporaryDirectory() as folder:
        source, program = os.path.join(folder, "layout.c"), os.path.join(folder, "layout")
        with open(source, "w", encoding="utf-8") as file:
            file.write("#define ALLFOLD_WITHOUT_MPI\n#include <allfold_files.h>\n#include <stdio.h>\nint main(void)\n{\n"
                       + "".join(f'    printf("%lld\\n", (long long)({name}));\n' for name in expected) + "}\n")
        made = subprocess.run(tap.build_words("CC") + ["-I", os.path.join(tap.SOURCE, "src"), source, "-o", program],
                              capture_output=True, text=True)
        found = subprocess.run([program], capture_output=True, text=True).stdout.split() if made.returncode == 0 else []
    wrong = [(name, number, there) for (name, number), there in zip(expected.items(), found) if str(number) != there]
    tap.ok(len(found) == len(expected) > 80 and not wrong, "structs and numbers are those of allfold.h", wrong or made.stderr)


def check_version():
    import allfold

    with open(os.path.join(tap.SOURCE, "configure.ac"), encoding="utf-8") as file:
        version = re.search(r"AC_INIT\(\[allfold\], \[(.*?)\]\)", file.read()).group(1)
    tap.ok(allfold.__version__ == allfold.library_version == version, "the version of the package is that of the library",
           (allfold.__version__, allfold.library_version))
    from allfold import _library

    text = subprocess.run(["readelf", "-d", LIBRARY], capture_output=True, text=True).stdout
    tap.ok(f"[{_library.SONAME}]" in text, "the library has the soname that the package looks for", text)


# ---- what ranks do


def check_ranks(count, env=None):
    what = f"{count} rank{'s' * (count > 1)}{' without mpi4py' if env else ''}"
    words = [sys.executable, os.path.join(tap.SOURCE, "tests", "python", "all.py")]
    if env:
        process = subprocess.run(words, capture_output=True, text=True, env={**os.environ, **env}, timeout=tap.SECONDS)
    else:
        process = tap.run(count, *words)
    found = [json.loads(line) for line in process.stdout.splitlines() if line.startswith("[")]
    for verdict, name, diagnostic in found:
        if not verdict:
            tap.ok(False, f"{what}: {name}", diagnostic)
    tap.ok(process.returncode == 0 and len(found) > 70, f"{what}: {len(found)} checks", process.stdout[-500:] + process.stderr)


# Each is a program and its status, the number of ranks, whether it needs mpi4py, and what it must print or write.
ENDS = {
    "contexts are open when the program ends": (
        "import allfold; allfold.sum([1]); c = allfold.Context(); print('done')", 0, 2, False, "done"),
    "MPI is finalised while contexts are open": (
        "from mpi4py import MPI; import allfold; allfold.sum([1]); c = allfold.Context(MPI.COMM_SELF); MPI.Finalize(); print('done')",
        0, 2, True, "done"),
    "a call after MPI_Finalize": (
        "from mpi4py import MPI; import allfold; allfold.sum([1]); MPI.Finalize(); allfold.sum([1])", 1, 1, True, "has been finalised"),
    "one rank dies of an exception": (
        "import allfold, os; allfold.sum([1]); first = os.environ.get('OMPI_COMM_WORLD_RANK', os.environ.get('PMI_RANK')) == '0'\n"
        "if first: raise ValueError('of the test')\nallfold.sum([1])", 1, 2, False, "of the test"),
    "the same under python -m mpi4py": (
        "from mpi4py import MPI, run; import allfold; allfold.sum([1])\n"
        "try:\n    assert MPI.COMM_WORLD.rank, 'of the test'\nexcept BaseException: run.set_abort_status(1); raise\nallfold.sum([1])",
        1, 2, True, "of the test"),
    "a child made by fork ends": (
        "import allfold, os, sys; allfold.sum([1])\nchild = os.fork()\nif child == 0: sys.exit(0)\n"
        "os.waitpid(child, 0); print('sum', allfold.sum([2]))", 0, 2, False, "sum 4"),
    "mpi4py is imported after the first call": (
        "import allfold; allfold.sum([1]); from mpi4py import MPI; print('sum', allfold.sum([3], comm=MPI.COMM_WORLD))", 0, 2, True,
        "sum 6"),
    "mpi4py leaves MPI_Init to the program": (
        "import mpi4py; mpi4py.rc.initialize = False; from mpi4py import MPI; import allfold; allfold.sum([1])", 1, 1, True, "MPI.Init()"),
}


# One rank of two ends, the other one would wait for it.
ONE_ENDS = "import allfold, os, sys\nallfold.sum([1])\nif os.environ.get('OMPI_COMM_WORLD_RANK', os.environ.get('PMI_RANK')) == '0':\n    "
ENDS.update({
    "one rank calls sys.exit(3)": (ONE_ENDS + "sys.exit(3)\nallfold.sum([1])", 3, 2, False, ""),
    "one rank calls sys.exit with a text": (ONE_ENDS + "sys.exit('of the test')\nallfold.sum([1])", 1, 2, False, "of the test"),
    "a program goes on after an exception and an exit": (
        "import allfold, code, sys; allfold.sum([1]); code.InteractiveInterpreter().runsource('1/0')\n"
        "try: sys.exit(3)\nexcept SystemExit: print('sum', allfold.sum([2]))", 0, 2, False, "sum 4"),
})


def check_end(name):
    program, status, ranks, needs_mpi4py, words = ENDS[name]
    if needs_mpi4py and not HAS_MPI4PY:
        tap.skip(f"{name}: no mpi4py")
        return
    process = tap.run(ranks, sys.executable, "-c", program, env={"ALLFOLD_TEST_SECONDS": "60"})
    tap.ok((process.returncode != 0) == (status != 0) and process.returncode not in (124, 137, 139)
           and words in process.stdout + process.stderr and "Signal" not in process.stderr, name, process)


def check_without_library():
    environment = {**os.environ, "ALLFOLD_LIBRARY": "/nonexistent/liballfold.so"}
    process = subprocess.run([sys.executable, "-c", "import allfold"], capture_output=True, text=True, env=environment)
    tap.ok(process.returncode == 1 and "ImportError: allfold" in process.stderr and "/nonexistent" in process.stderr
           and "LD_LIBRARY_PATH" in process.stderr, "a library that is not there", process.stderr)
    environment["ALLFOLD_LIBRARY"] = "libc.so.6"
    process = subprocess.run([sys.executable, "-c", "import allfold"], capture_output=True, text=True, env=environment)
    tap.ok(process.returncode == 1 and "ImportError: allfold: libc.so.6 has no allfold_" in process.stderr, "another library",
           process.stderr)
    with tempfile.TemporaryDirectory() as folder:
        environment["ALLFOLD_LIBRARY"] = shutil.copy(LIBRARY, os.path.join(folder, "liballfold.so"))
        process = subprocess.run([sys.executable, "-c", "import allfold; print(allfold.sum([1])); allfold.open('x.npy')"], capture_output=True, text=True,
                                 env=environment)
        tap.ok(process.returncode == 1 and process.stdout == "1\n" and "allfold.UnsupportedError: allfold.open needs liballfold-files.so.0" in process.stderr
               and "make install" in process.stderr, "no library for files beside it", process.stderr)


# ---- documents, installation


def check_configure():
    """The macro that looks for Python, in a small configure of its own; with another Python than was asked for nothing is right."""
    if shutil.which("autoconf") is None:
        tap.skip("no autoconf")
        return
    with tempfile.TemporaryDirectory() as folder:
        with open(os.path.join(folder, "configure.ac"), "w", encoding="utf-8") as file:
            file.write("AC_INIT([part], [1])\nm4_define([AM_CONDITIONAL])\n"
                       f"m4_include([{os.path.join(tap.SOURCE, 'm4', 'allfold_python.m4')}])\nALLFOLD_PYTHON\necho \"$PYTHON in $pythondir\"\n")
        made = subprocess.run(["autoconf"], cwd=folder, capture_output=True, text=True)
        tap.ok(made.returncode == 0, "the macro that looks for Python", made.stderr)

        def configure(*words):
            return subprocess.run(["sh", "./configure", *words], cwd=folder, capture_output=True, text=True)

        found = configure(f"PYTHON={sys.executable}", "--with-python-dir=/there")
        tap.ok(found.returncode == 0 and found.stdout.endswith(f"{sys.executable} in /there\n"), "the Python that was asked for", found)
        found = configure("PYTHON=false")
        tap.ok(found.returncode != 0 and "PYTHON=false: expected" in found.stderr, "one without NumPy", found)
        with open(os.path.join(folder, "numpy.py"), "w", encoding="utf-8") as file:
            file.write("raise ImportError\n")
        found = configure("PYTHON=", "--with-python-dir=/there")
        tap.ok(found.returncode != 0 and "--with-python-dir: found no Python" in found.stderr, "a folder without a Python", found)
        found = configure("PYTHON=")
        tap.ok(found.returncode == 0 and found.stdout.endswith("\n in \n"), "no Python at all", found)


def check_documents():
    import allfold
    from allfold import _context, _files, _functions, begin, foreach

    page = os.path.join(tap.SOURCE, "docs", "python.md")
    for name, found in (("docstrings", doctest.testmod(_functions)), ("Context", doctest.testmod(_context)), ("begin", doctest.testmod(begin)), ("files", doctest.testmod(_files)),
                        ("foreach", doctest.testmod(foreach)),
                        ("docs/python.md", doctest.testfile(page, module_relative=False, globs={"allfold": allfold}))):
        tap.ok(found.attempted > 0 and found.failed == 0, f"the examples of {name}", found)


def check_example(name, package, ranks, *arguments):
    """Its numbers in hexadecimal have the same bits on any number of ranks."""
    if not HAS_MPI4PY or importlib.util.find_spec(package) is None:
        tap.skip(f"examples/{name}: no {package}, or no mpi4py")
        return
    runs = [tap.run(count, sys.executable, "-m", "mpi4py", os.path.join(tap.SOURCE, "examples", name), *arguments) for count in ranks]
    numbers = [re.findall(r"0x[01]\.[0-9a-f]+p[-+]\d+", run.stdout) for run in runs]
    tap.ok(all(run.returncode == 0 for run in runs) and len(numbers[0]) > 0 and all(found == numbers[0] for found in numbers), f"examples/{name}", runs)


def check_pip():
    """The package alone; with a library that pkg-config knows, or that is named; with neither a library nor its source."""
    with tempfile.TemporaryDirectory() as folder:
        source, target = os.path.join(folder, "python"), os.path.join(folder, "target")
        shutil.copytree(PACKAGE, source, ignore=shutil.ignore_patterns("_installed.py", "build", "*.egg-info", "__pycache__"))
        with open(os.path.join(folder, "allfold.pc"), "w", encoding="utf-8") as file:
            file.write(f"libdir={os.path.dirname(LIBRARY)}\nName: allfold\nDescription: a test\nVersion: 1\nLibs: -lallfold\n")

        def install(where, **variables):
            return subprocess.run([sys.executable, "-m", "pip", "install", "--no-build-isolation", "--no-deps", "--no-index", "--quiet",
                                   "--disable-pip-version-check", "--target", where, source], capture_output=True, text=True,
                                  env={**os.environ, "PKG_CONFIG_PATH": "", "ALLFOLD_LIBRARY": "", **variables})

        process = install(target, ALLFOLD_LIBRARY="none")
        if "No module named" in process.stderr or "invalid command 'bdist_wheel'" in process.stderr:
            tap.skip("no pip, setuptools or wheel")
            return
        found = sorted(os.listdir(os.path.join(target, "allfold"))) if process.returncode == 0 else []
        there = sorted(name for name in os.listdir(os.path.join(PACKAGE, "allfold")) if name.endswith((".py", ".typed")))
        tap.ok([name for name in found if name != "__pycache__"] == there, "pip install ./python", (found, process.stderr))
        for how, variable in ("by pkg-config", {"PKG_CONFIG_PATH": folder}), ("by ALLFOLD_LIBRARY", {"ALLFOLD_LIBRARY": LIBRARY}):
            process = install(target + how, **variable)
            loaded = subprocess.run([sys.executable, "-c", "import allfold; print(allfold.library_path)"], capture_output=True, text=True,
                                    env={**os.environ, "PYTHONPATH": target + how, "ALLFOLD_LIBRARY": ""})
            tap.ok(loaded.stdout == f"{os.path.dirname(LIBRARY)}/liballfold.so.0\n", f"pip install finds the library {how}", (process, loaded))
        if ctypes.util.find_library("allfold"):
            tap.skip("the system has a library")
            return
        process = install(target + "3")
        tap.ok(process.returncode != 0 and "found neither the library nor source of it" in process.stderr + process.stdout
               and "make install" in process.stderr + process.stdout, "pip install without a library says what to do", process)


def main():
    if not os.path.exists(LIBRARY) or any("-fsanitize" in word for word in tap.build_words("CFLAGS")):
        tap.skip("no shared library, or one with sanitizers, which Python cannot load")
        tap.done()
    check_header()
    check_version()
    check_without_library()
    check_ranks(1, WITHOUT)
    if HAS_MPI4PY:
        for count in map(int, os.environ.get("ALLFOLD_TEST_RANKS", "1 2 3").split()):
            check_ranks(count)
    else:
        tap.skip("no mpi4py", 3)
    for name in ENDS:
        check_end(name)
    check_example("06_cross_entropy.py", "torch", (1, 3), 9, 500)
    check_example("07_clip_gradients.py", "numpy", (1, 2, 3))
    check_example("08_train.py", "numpy", (1, 2, 3))
    check_pip()
    check_configure()
    check_documents()  # last: MPI starts in this process, and leaves variables behind with which no mpirun works
    tap.done()


if __name__ == "__main__":
    main()
