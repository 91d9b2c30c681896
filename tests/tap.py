"""Test Anything Protocol for the Python tests: ok() a check, skip() one, done() at the end, which prints the plan and exits.
run() launches a command under MPI (in turn, with a time limit), relay() one that prints TAP; ALLFOLD, SOURCE and BUILD are the program's and the
trees' paths; build_words() what configure found. By hand: ALLFOLD=build/allfold python3 tests/NAME.py"""
import os
import re
import shlex
import subprocess
import sys
import threading

SOURCE = os.environ.get("ALLFOLD_SOURCE", os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.environ.get("ALLFOLD_BUILD", os.path.join(SOURCE, "build"))
ALLFOLD = os.environ.get("ALLFOLD", os.path.join(BUILD, "allfold"))

CASE = os.environ.get("ALLFOLD_TEST_CASE", "")  # only checks are wanted of which this is a part of the name, behind what a launcher put before it
PREFIX = os.environ.get("ALLFOLD_TEST_PREFIX", "")
SECONDS = int(os.environ.get("ALLFOLD_TEST_SECONDS", "300"))  # for one run of a program
number = failed = 0
turn = threading.Lock()  # tests may run in threads


def ok(condition, name, diagnostic=""):
    """One check; diagnostic (any object) is shown if it fails. Returns the verdict."""
    global number, failed
    if CASE not in PREFIX + name:
        return bool(condition)
    with turn:
        number += 1
        failed += not condition
        print(f"{'' if condition else 'not '}ok {number} - {name}", flush=True)
        if not condition and str(diagnostic):
            print("".join(f"#   {line}\n" for line in str(diagnostic).splitlines()), end="", flush=True)
    return bool(condition)


def skip(why, count=1):
    """count checks that cannot be made here."""
    global number
    if CASE not in PREFIX + why:
        return
    with turn:
        for _ in range(count):
            number += 1
            print(f"ok {number} # SKIP {why}", flush=True)


def wanted(name):
    """Whether to make the check of this name, which may lack what is only known later."""
    return CASE in PREFIX + name or name in CASE


def done():
    print(f"1..{number}{'' if number else ' # SKIP no check is named so'}", flush=True)
    sys.exit(failed > 0)


def build_words(*names):
    """The words of variables of the build's makefile."""
    with open(os.path.join(BUILD, "Makefile"), encoding="utf-8") as file:
        variables = dict(re.findall(r"^(\w+) = ?(.*)$", file.read(), re.M))
    return [word for name in names for word in shlex.split(variables.get(name, ""))]


def run(ranks, *command, env=None, text=True):
    """Runs command on that many ranks, on 0 without the launcher; gives subprocess's CompletedProcess with stdout and stderr."""
    launch = ["sh", os.path.join(SOURCE, "tests", "mpi-launch"), "--run", str(ranks)] if ranks else []
    return subprocess.run(launch + [str(word) for word in command], capture_output=True, text=text,
                          env=None if env is None else {**os.environ, **env})


def relay(title, ranks, *command, env=None, least=1):
    """Runs a program that prints TAP. Each of its checks is one here, and so is that it made all of its plan, and `least` or more."""
    title += ": "
    if re.match(r"\d+ ranks?\b", CASE) and not (CASE in title or CASE.startswith(title)):
        return
    process = run(ranks, *command, env={**(env or {}), "ALLFOLD_TEST_PREFIX": PREFIX + title})
    checks = re.findall(r"^(not )?ok \d+ (?:- )?(.*)\n((?:#.*\n)*)", process.stdout, re.MULTILINE)
    for wrong, name, remarks in checks:
        if name.startswith("# SKIP "):
            skip(title + name[7:])
        else:
            ok(not wrong, title + name, remarks)
    ok(process.returncode == any(wrong for wrong, *_ in checks) and re.search(rf"^1\.\.{len(checks)}\b", process.stdout, re.MULTILINE)
       and len(checks) >= (0 if CASE else least), title + "to its end", process.stdout + process.stderr)
