#!/usr/bin/env python3
"""The binary interface of the library, as allfold.h declares it, beside that of the last release: functions, fields behind the last
one of a struct with a size, and constants may be added; all else must stay, or the soname changes. Compared by abidiff (Debian:
abigail-tools). By hand: --record writes tests/allfold.abi, for a release."""
import os
import re
import shutil
import subprocess
import sys
import tempfile

import tap

RECORD = os.path.join(tap.SOURCE, "tests", "allfold.abi")
RULES = os.path.join(tap.SOURCE, "tests", "allfold.abignore")
MPI = "typedef struct communicator *MPI_Comm;\ntypedef int MPI_Fint;\n"  # that of any MPI library

# Changes of allfold.h, as (name, whether it may be made, text, another text).
CHANGES = [
    ("a function is added", True, "const char *allfold_version(void);", "const char *allfold_version(void);\nint allfold_added(int);"),
    ("a field is added at the end of allfold_call", True, "} allfold_call;", "double added; } allfold_call;"),
    ("a field is added at the end of allfold_options", True, "} allfold_options;", "double added; } allfold_options;"),
    ("a callback is added at the end of allfold_options", True, "} allfold_options;", "void (*added)(int, int); int too; } allfold_options;"),
    ("a status is added", True, "    ALLFOLD_STOPPED", "    ALLFOLD_STOPPED, ALLFOLD_ADDED"),
    ("a fold is added at the end", True, "    ALLFOLD_FOLD_COUNT", "    ALLFOLD_ADDED, ALLFOLD_FOLD_COUNT"),
    ("a type is added at the end", True, "    ALLFOLD_TYPE_COUNT", "    ALLFOLD_ADDED, ALLFOLD_TYPE_COUNT"),
    ("a function is removed", False, "const char *allfold_version(void);", ""),
    ("a parameter has another type", False, "allfold_type_bytes(allfold_type type)", "allfold_type_bytes(const char *type)"),
    ("a parameter is added", False, "allfold_number(allfold_value value)", "allfold_number(allfold_value value, int added)"),
    ("a result has another type", False, "double allfold_number", "float allfold_number"),
    ("a field is added between others", False, "    allfold_nan nan;  ", "    int added; allfold_nan nan;  "),
    ("a field has another type", False, "    int logarithm;", "    double logarithm;"),
    ("a field is added in the padding at the end of the last allfold_call", False, "    uint64_t ddof;", "    int added; uint64_t ddof;"),
    ("a field is removed", False, "    int threads; ", ""),
    ("a field is added to a struct without size", False, "} allfold_result;", "int added; } allfold_result;"),
    ("a fold is added between others", False, "X(PROD, prod,", "X(ADDED, added, sum, 1, \"\") X(PROD, prod,"),
    ("a status has another number", False, "ALLFOLD_NO_VALUE, ", "ALLFOLD_NO_VALUE = 20, "),
]


def without_added(header):
    """The header without what was added to structs with a size, and what must hold of that: it lies behind all that the size of the
    last release counts, also behind padding at its end."""
    with open(RECORD, encoding="utf-8") as file:
        record = file.read()
    rules = ["_Static_assert(1, \"\");"]
    for name in ("allfold_call", "allfold_options"):
        struct = re.search(rf"<class-decl name='{name}' size-in-bits='(\d+)'.*?</class-decl>", record, flags=re.S)
        last = re.findall(r"<var-decl name='(\w+)'", struct.group(0))[-1]
        fields = re.search(rf"typedef struct \{{([^}}]*\b{last}\b[^;}}]*;)([^}}]*)\}} {name};", header)
        if fields and fields.group(2).strip():
            first = re.search(r"(\w+)\s*(\)\([^;]*)?;", fields.group(2)).group(1)
            rules.append(f"_Static_assert(offsetof({name}, {first}) >= {int(struct.group(1)) // 8}, \"{first} of {name} is in padding\");")
            header = header[:fields.start(2)] + header[fields.end(2):]
    return header, "\n".join(rules)


def interface_of(header, folder):
    """A library of functions without bodies that the text of an allfold.h declares; and what abidw says of it."""
    functions = re.findall(r"^([a-z][\w \t*]*?\ballfold_\w+\([^;]*?\));", header, flags=re.M)
    library, described = os.path.join(folder, "liballfold.so"), os.path.join(folder, "described.abi")
    write(folder, header, "".join(f"{one} {{ __builtin_trap(); }}\n" for one in functions))
    return described, run(folder,
        tap.build_words("CC") + ["-g", "-w", "-fPIC", "-shared", "-I.", "library.c", "-o", library, "-Wl,-soname,liballfold.so.0"],
        ["abidw", "--exported-interfaces-only", "--no-corpus-path", "--no-comp-dir-path", "--no-show-locs", "--no-elf-needed",
         "--out-file", described, library])


def write(folder, header, code):
    for name, text in (("allfold.h", header), ("mpi.h", MPI), ("library.c", "#include <allfold.h>\n" + code)):
        with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
            file.write(text)


def run(folder, *commands):
    """The first command that fails, or the last."""
    for command in commands:
        process = subprocess.run(command, capture_output=True, text=True, cwd=folder)
        if process.returncode != 0:
            break
    return process


def compare(header, folder):
    """Whether programs that were linked with the recorded interface run with this one, and what was found."""
    cut, rules = without_added(header)
    write(folder, header, rules)
    process = run(folder, tap.build_words("CC") + ["-fsyntax-only", "-I.", "library.c"])
    if process.returncode == 0:
        described, process = interface_of(cut, folder)
    if process.returncode == 0:
        process = run(folder, ["abidiff", "--no-added-syms", "--suppressions", RULES, RECORD, described])
    return process.returncode == 0, process


def main():
    with open(os.path.join(tap.SOURCE, "src", "allfold.h"), encoding="utf-8") as file:
        header = re.sub(r"/\*.*?\*/", "", file.read(), flags=re.S)
    with tempfile.TemporaryDirectory() as folder:
        if sys.argv[1:] == ["--record"]:
            shutil.copy(interface_of(header, folder)[0], RECORD)
            return
        if os.uname().machine != "x86_64" or not shutil.which("abidiff"):
            tap.skip("needs abidiff, and x86_64, whose interface is recorded")
        else:
            same, process = compare(header, folder)
            tap.ok(same, "programs that were linked with the last release run", process)
            for name, allowed, text, other in CHANGES:
                same, process = compare(header.replace(text, other), folder)
                tap.ok(header.count(text) == 1 and same == allowed, f"{name}: {'allowed' if allowed else 'found'}", process)
    tap.done()


if __name__ == "__main__":
    main()
