#!/usr/bin/env python3
"""make install: what a distribution expects is where it expects it; the completion offers what --help has; every command
has a manual page; the report tool runs from where it is installed; programs link the installed libraries, the Python package loads
them; make uninstall leaves nothing."""
import fnmatch
import glob
import os
import re
import shutil
import subprocess
import tempfile

import cli
import installed_library
import tap

EXPECTED = ("bin/allfold", "bin/allfold-scaling-report", "include/allfold.h", "include/allfold_files.h", "lib/liballfold-files.a", "lib/liballfold-files.so.0", "lib/pkgconfig/allfold-files.pc", "lib/liballfold.a", "lib/liballfold.so", "lib/liballfold.so.0", "lib/liballfold.la", "lib/pkgconfig/allfold.pc",
            "lib/cmake/allfold/allfold-config.cmake", "lib/cmake/allfold/allfold-config-version.cmake",
            "share/man/man1/allfold.1", "share/bash-completion/completions/allfold", "share/allfold/jobs/reduce.sbatch",
            "share/allfold/jobs/site.env", "share/allfold/jobs/README.md", "share/doc/allfold/README.md",
            "share/doc/allfold/docs/cluster.md")

EMULATION = "lib/allfold/allfold-ladder.so"
if os.path.exists(os.path.join(tap.BUILD, os.path.basename(EMULATION))):
    EXPECTED += (EMULATION,)


def built(name):
    """Whether configure was asked for this library."""
    text = subprocess.run([os.path.join(tap.BUILD, "libtool"), "--config"], capture_output=True, text=True).stdout
    return ("build_old_libs=yes" if name.endswith(".a") else "build_libtool_libs=yes") in text.split()


def prefix():
    """That of configure: the module file, like allfold.pc, has it."""
    with open(os.path.join(tap.BUILD, "Makefile"), encoding="utf-8") as file:
        return re.search("^prefix = (.*)$", file.read(), flags=re.MULTILINE).group(1)


def make(target, folder):
    return subprocess.run(["make", "-C", tap.BUILD, "-s", target, f"DESTDIR={folder}"], capture_output=True, text=True,
                          env={name: value for name, value in os.environ.items() if not name.startswith("MAKE")})


class Help:
    """The program's --help, asked once for each command, and a stand-in for the program that answers as it did."""

    def __init__(self, folder):
        self.folder, self.program = folder, os.path.join(folder, "program")
        with open(self.program, "w", encoding="utf-8") as file:
            file.write('#!/bin/sh\ntest "$2" = --help || set -- "" "$1"\nexec cat "${0%/*}/help-$1"\n')
        os.chmod(self.program, 0o755)
        done = cli.each_alone([["--help"], ["sum", "--help"], ["softmax", "--help"], ["info", "--help"]])
        self.texts = dict(zip(("", "sum", "softmax", "info"), (process.stdout for process in done)))
        for command, text in self.texts.items():
            with open(os.path.join(folder, f"help-{command}"), "w", encoding="utf-8") as file:
                file.write(text)

    def commands(self):
        text = self.texts[""].split("Commands:")[1].split("\n\n")[0]
        return re.findall(r"^  ([a-z][a-z0-9-]*) ", text, flags=re.MULTILINE)

    def options(self, command):
        return re.findall(r"^ {2,6}(?:-[a-z], )?(--[a-z-]+=?)", self.texts[command], flags=re.MULTILINE)

    def complete(self, root, *words, breaks=True):
        """What bash would offer for the last of these words."""
        typed = [piece for word in words for piece in (re.split("(=)", word) if breaks else [word]) if piece or not word]
        if breaks and words[-1].endswith("="):
            typed.append("")
        script = 'compopt() { :; }; source "$1"; shift; COMP_WORDBREAKS="$1"; shift; COMP_WORDS=("$@"); ' \
                 'COMP_CWORD=$(($# - 1)); _allfold; printf "%s\\n" "${COMPREPLY[@]}"'
        process = subprocess.run(["bash", "-c", script, "bash", f"{root}/share/bash-completion/completions/allfold",
                                  " =" if breaks else " ", self.program, *typed], capture_output=True, text=True, cwd=root)
        return process.stdout.split() if not process.stderr else [process.stderr]


def check_completion(root, texts):
    def offers(expected, name, *words, breaks=True):
        found = texts.complete(root, *words, breaks=breaks)
        tap.ok(found == expected, f"completion: {name}", f"{words}: {found}")

    offers(texts.commands() + ["help", "--help", "--version"], "the commands", "")
    offers(["softmax"], "a command to get help on", "help", "soft")
    offers(["softmax"], "one of them", "soft")
    for command in ("sum", "softmax", "info"):
        offers(texts.options(command), f"the options of {command}", command, "--")
    offers(["auto", "cuda", "cpu"], "an option's words", "sum", "--backend=")
    offers(["--backend=auto", "--backend=cuda", "--backend=cpu"], "where = breaks no words", "sum", "--backend=", breaks=False)
    offers(["bf16"], "element types", "sum", "--dtype=bf")
    offers(["bin"], "files", "sum", "bi")


def check_manual(root, texts):
    names = texts.commands()
    pages = os.listdir(f"{root}/share/man/man1")
    missing = [name for name in names if f"allfold-{name}.1" not in pages]
    extra = [page for page in pages if page not in ("allfold.1", "allfold-scaling-report.1") and page[len("allfold-"):-len(".1")] not in names]
    tap.ok(not missing and not extra, "a manual page for each command, and no other", (missing, extra))
    wrong = []
    for name in texts.texts:
        if name:
            with open(f"{root}/share/man/man1/allfold-{name}.1", encoding="utf-8") as file:
                page = file.read().replace("\\-", "-")
            options = re.findall(r"^\.B (?:-[a-z], )?(--[a-z-]+=?)", page.split(".SH OPTIONS")[-1], flags=re.MULTILINE)
            wrong += [] if options == texts.options(name) and f"allfold-{name} - " in page and page.count("\n") < 180 \
                and f"allfold {name} " in page.split(".SH EXAMPLES")[-1] else [page]
    tap.ok(not wrong, "each is short, and has the command's own options and examples", "\n".join(wrong))
    if shutil.which("groff"):
        process = subprocess.run(["groff", "-man", "-ww", "-z", "-Tutf8", *(f"{root}/share/man/man1/{page}" for page in pages)],
                                 capture_output=True, text=True)
        tap.ok(process.returncode == 0 and not process.stderr, "groff formats them without a warning", process)
    else:
        tap.skip("no groff")
    if not shutil.which("man"):
        tap.skip("no man", 2)
        return
    for where, words in (("/", ["-M", f"{root}/share/man", "allfold-softmax"]), (tap.BUILD, ["./docs/allfold-softmax.1"])):
        process = subprocess.run(["man", *words], capture_output=True, text=True, cwd=where,
                                 env={**os.environ, "MANPAGER": "cat", "MANWIDTH": "100", "LC_ALL": "C"})
        if "has been minimized" in process.stdout: # what stands for man in container images
            tap.skip("man is not installed")
        else:
            tap.ok(process.returncode == 0 and "--checkpoint=FILE" in process.stdout and "--block" not in process.stdout,
                   f"man {words[-1]}", process)


def check_tools(root):
    link = f"{root}/bin/allfold-scaling-report"
    tap.ok(os.readlink(link) == f"{prefix()}/share/allfold/tools/scaling-report", "the report tool is on the PATH", os.readlink(link))
    process = subprocess.run([os.environ.get("PYTHON", "python3"), f"{root}/share/allfold/tools/scaling-report", "--help"],
                             capture_output=True, text=True)
    with open(f"{root}/share/man/man1/allfold-scaling-report.1", encoding="utf-8") as file, \
            open(f"{root}/share/allfold/tools/scaling-report", encoding="utf-8") as script:
        page, options = file.read().replace("\\", ""), re.findall(r'"(--[a-z]+)"', script.read())
    missing = [option for option in options if option not in page]
    tap.ok(options and not missing, "the report tool's manual page has its options", missing)
    tap.ok(process.returncode == 0 or "install NumPy and matplotlib" in process.stderr, "and finds its parts", process)
    with open(f"{root}/share/modulefiles/allfold/{cli.alone('--version').stdout.split()[1]}", encoding="utf-8") as file:
        text = file.read()
    tap.ok(text.startswith("#%Module") and f'"{prefix()}/bin"' in text and "@" not in text, "a module file of this version", text)


def check_python(root):
    """The package finds the library, wherever both are, and its folder is in the module file."""
    folder = tap.build_words("pythondir")
    if not folder or folder[0] == "":
        tap.skip("configured without the Python package")
        return
    place = folder[0].replace("${prefix}", root) if folder[0].startswith("${prefix}") else root[:-len(prefix())] + folder[0]
    process = subprocess.run([tap.build_words("PYTHON")[0], "-c", "import allfold; print(allfold.library_path, allfold.sum([1, 2]))"],
                             capture_output=True, text=True, env={**os.environ, "PYTHONPATH": place, "PYTHONDONTWRITEBYTECODE": "1",
                                  "ALLFOLD_LIBRARY": ""})
    tap.ok(process.stdout == f"{root}/lib/liballfold.so.0 3\n", "the Python package finds the library", process)
    with open(f"{root}/share/modulefiles/allfold/{cli.alone('--version').stdout.split()[1]}", encoding="utf-8") as file:
        tap.ok(f'PYTHONPATH      "{folder[0].replace("${prefix}", prefix())}"' in file.read(), "its folder is in the module file")


def check_program(root, folder):
    def run(*words):
        return subprocess.run([f"{root}/bin/allfold", *words, "--backend=cpu"], capture_output=True, text=True, cwd=folder,
                              env={**os.environ, "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"})

    process = run("sum", "--quiet", "gen:ramp?n=1000")
    tap.ok(process.stdout == "499500.0\n", "the installed program runs from another folder", process)
    if EMULATION in EXPECTED:
        process = run("ladder", "--rung=modulo", "--count=100")
        tap.ok(process.returncode == 0 and "correct" in process.stdout, "and finds the ladder's emulation, where it was moved to", process)
    else:
        tap.skip("configured without the emulation, or no C++17 compiler")


def check_debian(root):
    """That packaging/debian takes, or leaves away, every file that is installed, and asks for none that is not."""
    if not (built(".so") and built(".a") and os.path.exists(f"{root}/{EMULATION}") and os.path.isdir(f"{root}/share/allfold/fortran") and glob.glob(f"{root}/lib/python*")):
        tap.skip("a build without libraries, the emulation, Fortran or Python")
        return
    packaging = os.path.join(tap.SOURCE, "packaging", "debian")
    patterns = set()
    for name in os.listdir(packaging):
        if name.endswith(".install") or name == "rules":
            with open(os.path.join(packaging, name), encoding="utf-8") as file:
                text = file.read()
            patterns.update(re.findall(r"debian/tmp/(\S+)", text) if name == "rules" else text.split())
    paths = [os.path.relpath(os.path.join(where, name), root) for where, _, names in os.walk(root) for name in names]
    for there, debian in (("^", "usr/"), (r"^usr/lib/python[\d.]+/[^/]*", "usr/lib/python3/dist-packages"),
                          (r"^usr/lib/(?!python)", "usr/lib/triplet/"), ("^usr/include/(.*mod)$", r"usr/lib/triplet/fortran/\1")):
        paths = [re.sub(there, debian, path) for path in paths]
    used = {path: [pattern for pattern in patterns if fnmatch.fnmatch(path, pattern) or fnmatch.fnmatch(path, pattern + "/*")]
            for path in paths}
    left = [path for path, found in used.items() if not found]
    idle = patterns - {pattern for found in used.values() for pattern in found}
    tap.ok(not left and not idle, "the Debian packages have every file", (left, idle))
    for package, header in (("liballfold0", "allfold.h"), ("liballfold-files0", "allfold_files.h")):
        with open(os.path.join(packaging, f"{package}.symbols"), encoding="utf-8") as file:
            symbols = re.findall(r"^ (\w+)@Base [\d.]+$", file.read(), flags=re.M)
        expected = installed_library.declared(f"{root}/include/{header}")
        tap.ok(symbols == expected, f"and the list of symbols of {package} every function", set(symbols) ^ set(expected))


def main():
    with tempfile.TemporaryDirectory() as folder:
        process = make("install", folder)
        root = folder + prefix()
        expected = [name for name in EXPECTED if not re.search(r"\.a$|\.so", name) or built(name)]
        missing = [name for name in expected if not os.path.lexists(f"{root}/{name}")]
        if tap.ok(process.returncode == 0 and not missing, "make install", (missing, process.stdout, process.stderr)):
            texts = Help(folder)
            check_completion(root, texts)
            check_manual(root, texts)
            check_tools(root)
            check_program(root, folder)
            check_debian(root)
            check_python(root)
            installed_library.check(root, shared=built(".so"), archive=built(".a"))
            process = make("uninstall", folder)
            left = [os.path.join(where, name) for where, _, names in os.walk(root) for name in names]
            tap.ok(process.returncode == 0 and not left, "make uninstall leaves nothing", (left, process.stderr))
    tap.done()


if __name__ == "__main__":
    main()
