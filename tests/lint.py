#!/usr/bin/env python3
"""Checks what compilers do not: who may include whom (docs/architecture.md), that no files include or call each other in a
circle, that no two files define the same tag, that every file begins by saying what it is for and is in a makefile's list, that links
between documents lead somewhere, that the version is the same everywhere, that no test passes whatever happens, and how long files are. By hand: python3 tests/lint.py
[ROOT]. It also checks itself, on a small tree with every fault planted in it."""
import os
import re
import sys
import tempfile

import tap

# Folder of a file -> folders whose headers it may include ("" is src/ itself: allfold.h). Arrows point down only.
BELOW = {
    "src/base": ["src/base", ""],
    "src/fold": ["src/fold", "src/base"],
    "src/array/formats": ["src/array/formats", "src/array", "src/fold", "src/base"],
    "src/array": ["src/array", "src/array/formats", "src/fold", "src/base"],
    "src/device": ["src/device", "src/fold", "src/base"],
    "src/device/cpu": ["src/device/cpu", "src/device", "src/fold", "src/base"],
    "src/device/cuda": ["src/device/cuda", "src/device", "src/fold", "src/base"],  # and kernels/kernels.h
    "src/comm": ["src/comm", "src/fold", "src/base", ""],
    "src/core": ["src/core", "src/comm", "src/device", "src/array", "src/fold", "src/base"],
    "src/store": ["src/store", "src/core", "src/array", "src/fold", "src/base"],
    "src": ["src", "src/core", "src/comm", "src/device", "src/array", "src/fold", "src/base", ""],
    "src/files": ["src/files", "src", "src/core", "src/comm", "src/array", "src/fold", "src/base", ""],
    "src/watch": ["src/watch", "src/comm", "src/base"],
    "src/cli/commands": ["src/cli/commands", "src/cli", "src/files", "src/store", "src/core", "src/comm", "src/device", "src/array",
                         "src/fold", "src/base", ""],
    "src/cli": ["src/cli", "src/watch", "src/files", "src/store", "src/core", "src/comm", "src/device", "src/array", "src/fold", "src/base", ""],
    "kernels": ["kernels", "src/fold", "src/base", ""],
    "measure": ["measure", "kernels", "src/base"],
    "kernels/ladder": ["kernels/ladder", "measure", "kernels", "src/fold", "src/base", ""],
    "bench": ["bench", "measure", "kernels", "src/core", "src/comm", "src/device", "src/array", "src/fold", "src/base", ""],
    "examples": [""],
}
CALLERS = ("src/", "kernels/", "measure/", "bench/")  # whose files must not call each other in a circle
FUNCTION = re.compile(r"^(?!static\b|return\b|else\b)[A-Za-z_][\w \t*\"]*[ *](\w+)\s*\([^;{}]*\)\s*\{", flags=re.MULTILINE)
LOCAL = re.compile(r"^static\b[^;={(]*[ *](\w+)\s*[\[(=;]", flags=re.MULTILINE)
TABLE = re.compile(r"^const\b[^;={(]*[ *](\w+)(?:\[[^\]]*\])*\s*=", flags=re.MULTILINE)
FREE = ("tests",)  # may include anything
PROGRAMS = ("src/cli/", "src/watch/", "examples/", "bench/", "tests/")
CUDA_HEADER = re.compile(r"(cuda|cub/|cooperative_groups|nvtx|nvToolsExt|nvml|nccl|thrust/|curand|device_launch|mma\.h)")
SOURCES = (".c", ".h", ".cu", ".cuh")
LIBTOOLS = ("libtool.m4", "ltoptions.m4", "ltsugar.m4", "ltversion.m4", "lt~obsolete.m4")  # ./bootstrap puts these in m4/
COMMENTED = SOURCES + (".m4", ".mk", ".ac", ".am", ".py", ".sh", ".bash", ".supp")
LISTED = ("src", "fortran", "kernels", "measure", "tests", "bench", "examples", "tools", "docs", "jobs", "packaging", "python")
BUILT = re.compile(r"\.(o|lo|mod|a|d|log|trs|lock(\.\d+)?|dirstamp|pyc)$")
LONG = 500


def may_use_mpi(path):
    return path.startswith(PROGRAMS + ("src/comm/", "src/files/")) or path in ("src/allfold.h", "src/allfold_files.h") or re.match(r"src/api[^/]*\.[ch]$", path) is not None


def may_use_cuda(path):
    return path.startswith("kernels/") or re.match(r"src/comm/nccl[^/]*\.c$", path) is not None \
        or path.startswith(("src/device/cuda/", "measure/", "bench/", "tests/", "examples/"))


def may_use_nvtx(path):
    return path == "src/cli/nvtx.c" or path.startswith("tests/")


def may_use_ladder(path, header):
    return header == "kernels/ladder/ladder.h" and re.match(r"src/cli/commands/ladder[^/]*\.[ch]$", path) is not None


def may_use_tables(path, header):
    return header == "measure/table.h" and path == "src/cli/tables.h"


def may_use_bench(path, header):
    return header == "bench/bench.h" and re.match(r"src/cli/commands/bench[^/]*\.[ch]$", path) is not None


def includes_of(root, path):
    """(header, line number, whether ALLFOLD_WITHOUT_MPI is defined there) for each #include."""
    found, without_mpi = [], False
    with open(os.path.join(root, path), encoding="utf-8") as file:
        for number, line in enumerate(file, 1):
            if re.match(r"\s*#\s*(define|undef)\s+ALLFOLD_WITHOUT_MPI\b", line):
                without_mpi = "define" in line
            match = re.match(r'\s*#\s*include\s*[<"]([^>"]+)[>"]', line)
            if match:
                found.append((match.group(1), number, without_mpi))
    return found


def locate(root, path, header):
    """The project's file that an #include in path means, or None for a system header."""
    for base in (os.path.dirname(path), "src", ""):
        candidate = os.path.normpath(os.path.join(base, header))
        if os.path.isfile(os.path.join(root, candidate)):
            return candidate
    return None


def files_of(root):
    top = [name for name in os.listdir(root) if os.path.isfile(os.path.join(root, name))]
    found = [name for name in top if name in ("configure.ac", "Makefile.am", "bootstrap", "quickstart")]
    for folder in ("src", "fortran", "kernels", "measure", "tests", "bench", "examples", "tools", "jobs", "packaging", "python", "m4", ".ci"):
        for where, folders, names in os.walk(os.path.join(root, folder)):
            folders[:] = [name for name in folders if name not in (".deps", "__pycache__")]
            found += [os.path.relpath(os.path.join(where, name), root) for name in names if name not in LIBTOOLS]
    return sorted(found)


def reaches_mpi(root, path, includes, seen):
    """How path comes to mpi.h, as a list of files, or None."""
    for header, _, without_mpi in includes.get(path, []):
        if header == "mpi.h":
            return [path, "mpi.h"]
        target = locate(root, path, header)
        if target is None or target in seen or (target == "src/allfold.h" and without_mpi):
            continue
        seen.add(target)
        rest = reaches_mpi(root, target, includes, seen)
        if rest:
            return [path] + rest
    return None


def layer_faults(root, path, includes):
    folder = os.path.dirname(path)
    if folder.startswith(FREE):
        return
    for header, number, _ in includes[path]:
        target = locate(root, path, header)
        if target is None:
            continue
        below = os.path.dirname(target)
        if target == "src/allfold.h":
            below = ""
        if folder == "src/device/cuda" and target == "kernels/kernels.h":
            continue
        if may_use_ladder(path, header) or may_use_bench(path, header) or may_use_tables(path, header) or header == "config.h":
            continue
        if path == "src/cli/main.c" and target == "src/cli/commands/commands.h":
            continue  # which passes the table of commands on
        if folder not in BELOW:
            yield "layers", f"{path}: {folder}/ is not in the table of layers"
        elif below not in BELOW[folder]:
            yield "layers", f"{path}:{number}: {folder}/ may not include {header}"


def include_faults(root, files):
    includes = {path: includes_of(root, path) for path in files if path.endswith(SOURCES)}
    for path in includes:
        yield from layer_faults(root, path, includes)
        for header, number, _ in includes[path]:
            if locate(root, path, header) is None and CUDA_HEADER.match(header) and not may_use_cuda(path) \
                    and not (header.startswith("nvtx") and may_use_nvtx(path)):
                yield "cuda", f"{path}:{number}: {header} belongs in src/device/cuda/ and kernels/"
            if "ladder/" in header and not path.startswith(("kernels/ladder/",) + FREE) and not may_use_ladder(path, header):
                yield "ladder", f"{path}:{number}: only the program's ladder command and tests/ may use the ladder"
        if not may_use_mpi(path):
            way = reaches_mpi(root, path, includes, {path})
            if way:
                yield "mpi", f"{' includes '.join(way)}: MPI belongs in src/comm/, allfold.h and the programs"


def circle_from(graph, start):
    """The shortest way from start back to it, as a list of files, or None."""
    before, queue = {start: None}, [start]
    for path in queue:
        for target in graph.get(path, ()):
            if target == start:
                way = [start]
                while path is not None:
                    way.append(path)
                    path = before[path]
                return way[::-1]
            if target not in before:
                before[target] = path
                queue.append(target)
    return None


def code_of(root, path):
    """A file without comments and texts."""
    with open(os.path.join(root, path), encoding="utf-8") as file:
        text = re.sub(r"/\*.*?\*/|//[^\n]*", " ", file.read(), flags=re.DOTALL)
    return re.sub(r'"(\\.|[^"\\\n])*"', '""', text)


def call_graph(root, files):
    """file -> files that define what it calls, or a table that it reads. What macros define is not seen."""
    codes = {path: code_of(root, path) for path in files if path.endswith((".c", ".cu")) and path.startswith(CALLERS)}
    homes = {}
    for path, code in codes.items():
        for name in FUNCTION.findall(code) + TABLE.findall(code):
            homes.setdefault(name, set()).add(path)
    uses = {path: set(re.findall(r"\w+", code)) - set(LOCAL.findall(code)) for path, code in codes.items()}
    return {path: sorted({home for name in names if path not in homes.get(name, (path,)) for home in homes[name]})
            for path, names in uses.items()}


def circle_faults(root, files):
    includes = {path: sorted(filter(None, (locate(root, path, header) for header, _, _ in includes_of(root, path))))
                for path in files if path.endswith(SOURCES)}
    calls = call_graph(root, files)
    for graph, verb in ((includes, "includes"), (calls, "calls")):
        told = set()
        for path in sorted(graph):
            way = None if path in told else circle_from(graph, path)
            if way:
                told.update(way)
                yield "circles", f" {verb} ".join(way)


def head_faults(root, files):
    for path in files:
        with open(os.path.join(root, path), "rb") as file:
            lines = file.read().decode("utf-8", "replace").splitlines()
        script = bool(lines) and lines[0].startswith("#!")
        if not script and not path.endswith(COMMENTED):
            continue
        head = next((line for line in lines[script:] if line.strip()), "")
        if not re.match(r'\s*(/\*|//|# ?\w|dnl |""")', head) or re.match(r"#\s*(include|define|if|pragma)\b", head):
            yield "head", f"{path}: does not begin with a comment that says what it is for"


def version_of(root):
    """The package's version, as configure.ac has it; empty without one."""
    configure = os.path.join(root, "configure.ac")
    if not os.path.isfile(configure):
        return ""
    with open(configure, encoding="utf-8") as file:
        found = re.search(r"AC_INIT\(\[\w+\], *\[([\d.]+)\]", file.read())
    return found.group(1) if found else ""


# Files that name the version beside configure.ac, and how.
VERSIONED = {
    "CHANGELOG.md": r"^## ([\d.]+)",
    "CITATION.cff": r"^version: ([\d.]+)",
    "packaging/Dockerfile": r"^ARG tarball=allfold-([\d.]+)\.tar",
    "packaging/allfold.def": r"tarball=allfold-([\d.]+)\.tar",
    "python/allfold/__init__.py": r"^__version__ = .([\d.]+)",
}


def version_faults(root):
    """Files that name another version first."""
    for path, pattern in VERSIONED.items():
        if os.path.isfile(os.path.join(root, path)):
            with open(os.path.join(root, path), encoding="utf-8") as file:
                found = re.search(pattern, file.read(), flags=re.MULTILINE)
            if not found or found.group(1) != version_of(root):
                yield "versions", f"{path}: expected version {version_of(root)}, found {found and found.group(1)}"


def unlisted_files(root):
    """Files that no makefile names, which a release tarball would lack. A folder's name stands for all in it."""
    makefiles = ["Makefile.am"] + [path for path in files_of(root) if path.endswith("local.mk")] + \
        [f"{folder}/local.mk" for folder in ("docs", "packaging")]
    version = version_of(root)
    words = set()
    for path in makefiles:
        if os.path.isfile(os.path.join(root, path)):
            with open(os.path.join(root, path), encoding="utf-8") as file:
                words.update(word.replace("$(PACKAGE_VERSION)", version) for line in file if not line.startswith("#") for word in line.split())
            words.add(path)
    for folder in LISTED:
        for where, folders, names in os.walk(os.path.join(root, folder)):
            folders[:] = [name for name in folders if name not in (".deps", "__pycache__")]
            for name in names:
                path = os.path.relpath(os.path.join(where, name), root)
                parents = {path.rsplit("/", n)[0] for n in range(1, path.count("/") + 1)}
                if not words & ({path, os.path.splitext(path)[0]} | parents) and not BUILT.search(name):
                    yield "listed", f"{path}: in no _SOURCES, _HEADERS or EXTRA_DIST list of a local.mk"


def anchors_of(text):
    """The anchors that Markdown viewers give to a page's headings."""
    found = set()
    for heading in re.findall(r"^#+ +(.*)$", re.sub(r"^```.*?^```", "", text, flags=re.MULTILINE | re.DOTALL), re.MULTILINE):
        anchor = re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")
        repeated = sum(re.fullmatch(re.escape(anchor) + r"(-\d+)?", other) is not None for other in found)
        found.add(f"{anchor}-{repeated}" if repeated else anchor)
    return found


def link_faults(root):
    """Links from one document to another, or within one, that lead nowhere."""
    pages = [name for name in os.listdir(root) if name.endswith(".md")]
    for folder in LISTED:
        for where, _, names in os.walk(os.path.join(root, folder)):
            pages += [os.path.relpath(os.path.join(where, name), root) for name in names if name.endswith(".md")]
    texts = {}
    for page in pages:
        with open(os.path.join(root, page), encoding="utf-8") as file:
            texts[page] = file.read()
    for page in sorted(pages):
        for link in re.findall(r"\]\(([^)\s]+)\)", texts[page]):
            target, _, anchor = link.partition("#")
            path = os.path.normpath(os.path.join(os.path.dirname(page), target)) if target else page
            if re.match(r"\w+:", link):
                continue
            if not os.path.exists(os.path.join(root, path)):
                yield "links", f"{page}: {link}: there is no such file"
            elif anchor and anchor not in anchors_of(texts.get(path, "")):
                yield "links", f"{page}: {link}: {path} has no such heading"


TAG = re.compile(r"\b(?:struct|union|enum) (\w+) *\{")


def tag_faults(root, files):
    """Tags that two files define: a reader who looks for one finds the other."""
    homes = {}
    for path in files:
        if path.endswith(SOURCES) and path.startswith(CALLERS):
            code = code_of(root, path)
            if path.endswith((".cu", ".cuh")):  # a class's own types may be called alike
                code = re.sub(r"^[ \t]+.*$", "", code, flags=re.MULTILINE)
            for tag in set(TAG.findall(code)):
                homes.setdefault(tag, []).append(path)
    for tag, paths in sorted(homes.items()):
        if len(paths) > 1:
            yield "tags", f"{paths[-1]}: {tag} is also a tag of {', '.join(paths[:-1])}"


SURE = re.compile(r"^\s*(?:tap_ok\((?:true|1)|(?:tap\.)?ok\((?:True|1)|call ok\(\.true\.)\s*,", flags=re.MULTILINE)


def sure_checks(root, files):
    """Checks of a constant, which cannot fail."""
    for path in files:
        if path.endswith((".c", ".h", ".cpp", ".py", ".f90")):
            with open(os.path.join(root, path), encoding="utf-8") as file:
                text = file.read()
            for check in SURE.finditer(text):
                yield "sure", f"{path}:{text.count(chr(10), 0, check.end()) + 1}: this check cannot fail"


def long_files(root, files):
    for path in files:
        if path.endswith(COMMENTED):
            with open(os.path.join(root, path), "rb") as file:
                length = len(file.read().splitlines())
            if length > LONG:
                yield f"{path} has {length} lines: is it more than one idea?"


def faults_of(root):
    files = files_of(root)
    return [*include_faults(root, files), *circle_faults(root, files), *head_faults(root, files), *unlisted_files(root),
            *link_faults(root), *version_faults(root), *tag_faults(root, files), *sure_checks(root, files)]


PLANTED = {  # file -> (its text, the rule that must find it, or None for a file that is right)
    "src/allfold.h": ("/* public */\n#ifndef ALLFOLD_WITHOUT_MPI\n#include <mpi.h>\n#endif\n", None),
    "src/base/base.h": ('/* base */\n#define ALLFOLD_WITHOUT_MPI\n#include "allfold.h"\n#undef ALLFOLD_WITHOUT_MPI\n', None),
    "src/base/up.c": ('/* up */\n#include "fold/sum.h"\n', "layers"),
    "src/fold/sum.h": ('/* sum */\n#include "base/base.h"\n', None),
    "src/fold/cuda.c": ("/* cuda */\n#include <cuda_runtime.h>\n", "cuda"),
    "src/device/cuda/device.c": ('/* right */\n#include <cuda_runtime.h>\n#include "kernels/kernels.h"\n', None),
    "src/device/cpu/cpu.c": ('/* kernels */\n#include "kernels/kernels.h"\n', "layers"),
    "src/comm/comm.c": ('/* right */\n#include "comm.h"\n', None),
    "src/comm/comm.h": ('/* right, in comm/ */\n#include <mpi.h>\n', None),
    "src/core/through.c": ('/* mpi by a detour */\n#include "comm/comm.h"\n', "mpi"),
    "src/core/public.c": ('/* mpi by the public header */\n# include "../allfold.h"\n', "mpi"),
    "src/core/rung.c": ('/* ladder */\n#include "kernels/ladder/ladder.h"\n', "ladder"),
    "src/array/bare.c": ('#include "base/base.h"\n', "head"),
    "src/extra/new.c": ('/* no such layer */\n#include "base/base.h"\n', "layers"),
    "kernels/kernels.h": ("/* the C ABI */\n", None),
    "kernels/core.cu": ('/* upwards */\n#include "core/core.h"\n', "layers"),
    "src/core/core.h": ("/* core */\n", None),
    "kernels/ladder/ladder.h": ("/* ladder */\n", None),
    "src/cli/commands/ladder.c": ('/* right */\n#include "kernels/ladder/ladder.h"\n', None),
    "src/cli/commands/fold.c": ('/* ladder */\n#include "kernels/ladder/ladder.h"\n', "ladder"),
    "bench/right.c": ('/* right */\n#include "measure/times.h"\n#include <mpi.h>\n', None),
    "bench/ladder.c": ('/* ladder */\n#include "kernels/ladder/ladder.h"\n', "ladder"),
    "measure/times.h": ("/* times */\n", None),
    "src/array/a.h": ('/* a */\n#include "array/b.h"\n', "circles"),
    "src/array/b.h": ('/* b, named with a */\n#include "array/c.h"\n', None),
    "src/array/c.h": ('/* c */\n#include "array/a.h"\n', None),
    "src/watch/first.c": ("/* first */\nint first(int n)\n{\n    return table[n];\n}\n", "circles"),
    "src/watch/second.c": ("/* named with first */\nconst int table[] = {\n    third,\n};\n", None),
    "src/watch/third.c": ("/* too */\nvoid third(void) { first(1); }\n", None),
    "src/watch/up.c": ("/* right: second() calls first(), as down() says */\nvoid up(void) { down(); }\n", None),
    "src/watch/down.c": ("/* right */\nstatic void up(void) {}\nvoid down(void)\n{\n    puts(\"up\");\n}\n", None),
    "examples/inside.c": ('/* private header */\n#include "base/base.h"\n', "layers"),
    "tools/bare.sh": ("#!/bin/sh\nset -e\n", "head"),
    "m4/right.m4": ("# right\n", None),
    "src/core/tag.c": ("/* right */\nstruct part {\n    enum kind {\n        ONE\n    } kind;\n};\n", None),
    "src/store/tag.c": ("/* the same tag */\nstatic const struct part {\n    int n;\n} parts[1];\n", "tags"),
    "src/watch/kind.h": ("/* the same, within */\nenum kind { TWO };\n", "tags"),
    "kernels/tag.cuh": ("/* right: a class's own */\ntemplate <class T> struct Fold {\n    struct part {\n    };\n};\n", None),
    "kernels/other.cu": ("/* right */\nstruct other {\n};\nstruct part part_of() { return part{1}; }\n", None),
    "tests/left_out.c": ("/* in no list */\n", "listed"),
    "tests/sure.c": ('/* always */\n    tap_ok(true, "done");\n', "sure"),
    "tests/one.h": ('/* always */\n    tap_ok(1, "done");\n', "sure"),
    "tests/sure.py": ('# always\n    tap.ok(True, "done")\n', "sure"),
    "tests/sure.f90": ('! always\n    call ok(.true., "done")\n', "sure"),
    "tests/unsure.cpp": ('/* right */\n    tap_ok(true && right, "done");\n    tap_ok(false, "done");\n', None),
    "tests/unsure.py": ('# right\nok(Trueness, "done")\ntap.ok(1 < x, "done")\n', None),
    "docs/right.md": ("# A page\n\n## One `name`: here\n[up](../README.md#top) [here](#one-name-here) [web](https://x.org/)\n", None),
    "docs/nowhere.md": ("[gone](gone.md)\n", "links"),
    "docs/heading.md": ("[no such heading](right.md#two)\n", "links"),
    "configure.ac": ("# right\nAC_INIT([allfold], [1.2.0])\n", None),
    "CITATION.cff": ("version: 1.2.0\n", None),
    "packaging/allfold.def": ("tarball=allfold-1.1.0.tar.gz\n", "versions"),
    "README.md": ("# Top\n[a folder](jobs/) [a page](docs/right.md#a-page)\n", None),
    "jobs/listed/job.sh": ("#!/bin/sh\n# right\n", None),
}
# The planted tree's makefile lists every file but one.
PLANTED["src/local.mk"] = ("# right\nEXTRA_DIST += jobs " + " ".join(
    path for path, (_, rule) in PLANTED.items() if rule != "listed" and not path.startswith("jobs")) + "\n", None)


def check_itself():
    with tempfile.TemporaryDirectory() as root:
        for path, (text, _) in PLANTED.items():
            os.makedirs(os.path.dirname(os.path.join(root, path)), exist_ok=True)
            with open(os.path.join(root, path), "w", encoding="utf-8") as file:
                file.write(text)
        found = faults_of(root)
    for path, (_, rule) in PLANTED.items():
        rules = {name for name, text in found if text.startswith(path)}
        tap.ok(rule in rules if rule else not rules, f"planted tree: {path} {'breaks ' + rule if rule else 'is right'}",
               found)


def main():
    root = sys.argv[1] if len(sys.argv) > 1 else tap.SOURCE
    found = faults_of(root)
    for rule, name in (("layers", "includes point down the layers only"),
                       ("mpi", "mpi.h is seen by src/comm/, allfold.h and the programs only"),
                       ("cuda", "CUDA headers are in src/device/cuda/ and kernels/ only"),
                       ("circles", "no files include or call each other in a circle"),
                       ("ladder", "the engine knows nothing of the ladder"),
                       ("head", "every file begins by saying what it is for"),
                       ("listed", "every file is in a makefile's list"),
                       ("versions", "the version is that of configure.ac everywhere"),
                       ("tags", "no two files define the same tag"),
                       ("sure", "no check is of a constant that is true"),
                       ("links", "links between documents lead to files and headings that exist")):
        mine = [text for found_rule, text in found if found_rule == rule]
        tap.ok(not mine, name, "\n".join(mine))
    for text in long_files(root, files_of(root)):
        print(f"# warning: {text}")
    check_itself()
    tap.done()


if __name__ == "__main__":
    main()
