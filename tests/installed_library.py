"""For tests/test_install.py: programs of other people, made outside of the tree with what pkg-config says of an installed library.
They have functions of their own by every name that is internal to the library, which neither library may call or clash with."""
import os
import re
import shutil
import subprocess
import tempfile

import tap


def declared(header):
    """The functions of allfold.h."""
    with open(header, encoding="utf-8") as file:
        text = re.sub(r"/\*.*?\*/", "", file.read(), flags=re.S)
    return sorted(set(re.findall(r"^[a-z][\w \t*]*?\b(allfold_\w+)\(", text, flags=re.M)))


def names(library, *options):
    process = subprocess.run(["nm", "--defined-only", "--format=posix", *options, library], capture_output=True, text=True)
    return sorted(line.split()[0] for line in process.stdout.splitlines() if len(line.split()) > 2)


def flags(root, *words):
    process = subprocess.run(["pkg-config", f"--define-variable=prefix={root}", *words], capture_output=True, text=True,
                             env={**os.environ, "PKG_CONFIG_PATH": f"{root}/lib/pkgconfig"})
    return process.stdout.split()


def make_program(root, folder, static):
    """An example of ours with those functions; linked as its user would, without the shared library if static."""
    program = os.path.join(folder, "static" if static else "shared")
    libraries = flags(root, "--libs", "allfold", *["--static"] * static)
    if static:
        libraries = ["-l:liballfold.a" if word == "-lallfold" else word for word in libraries]
    words = tap.build_words("CC", "CFLAGS", "MPI_CFLAGS") + ["-fno-builtin", "-w"] + flags(root, "--cflags", "allfold")
    process = subprocess.run(words + ["example.c", "clashing.c", "-o", program] + libraries + tap.build_words("MPI_LIBS"),
                             capture_output=True, text=True, cwd=folder)
    return program, process


def check_fortran(root, folder):
    """The example in Fortran; and the module's installed source, compiled by hand."""
    shutil.copy(os.path.join(tap.SOURCE, "examples", "03_fortran.f90"), os.path.join(folder, "example.f90"))
    compiler = tap.build_words("FC", "FCFLAGS")
    libraries = ["-Wl,-rpath," + f"{root}/lib"] + flags(root, "--libs", "allfold-fortran") + tap.build_words("FORTRAN_LIBS")
    for what, command in (("by pkg-config", flags(root, "--cflags", "allfold-fortran") + ["example.f90"] + libraries),
                          ("with the module's source", [f"{root}/share/allfold/fortran/allfold.f90", "example.f90"] + libraries)):
        compiled = subprocess.run(compiler + command + ["-o", "example"], capture_output=True, text=True, cwd=folder)
        result = tap.run(1, os.path.join(folder, "example"))
        tap.ok(result.returncode == 0 and result.stdout.startswith("sum of 1000000 elements on 1 ranks: "),
               f"the example in Fortran, {what}", (compiled, result))


CMAKE = """cmake_minimum_required(VERSION 3.16)
project(example C)
if(EXISTS ${CMAKE_SOURCE_DIR}/example.f90)
  enable_language(Fortran)
endif()
find_package(allfold 9 QUIET)
if(allfold_FOUND)
  message(FATAL_ERROR "expected no version 9, found ${allfold_VERSION}")
endif()
find_package(allfold 0.2 REQUIRED)
add_executable(shared example.c)
target_link_libraries(shared PRIVATE allfold::allfold)
add_executable(static example.c)
target_link_libraries(static PRIVATE allfold::static)
if(EXISTS ${CMAKE_SOURCE_DIR}/example.f90)
  add_executable(fortran example.f90)
  target_link_libraries(fortran PRIVATE allfold::fortran)
endif()
"""
MESON = """project('example', 'c')
mpi = dependency('mpi', language: 'c')
executable('shared', 'example.c', dependencies: [dependency('allfold'), mpi])
executable('static', 'example.c', dependencies: [dependency('allfold', static: true), mpi])
"""


def check_tool(root, folder, file, text, *commands):
    """A project of another build tool, which finds and links the libraries where they are, although configure named another folder."""
    tool = commands[0][0]
    if not shutil.which(tool) or not shutil.which("ninja"):
        tap.skip(f"no {tool} or no ninja")
        return
    with open(os.path.join(folder, file), "w", encoding="utf-8") as project:
        project.write(text)
    with open(f"{root}/lib/pkgconfig/allfold.pc", encoding="utf-8") as found, \
            open(os.path.join(folder, "allfold.pc"), "w", encoding="utf-8") as moved:
        moved.write(re.sub("^prefix=.*", f"prefix={root}", found.read(), flags=re.M))
    env = {**os.environ, "PKG_CONFIG_PATH": folder, **{name: " ".join(tap.build_words(name)) for name in ("CC", "CFLAGS")}}
    made = [subprocess.run(command, capture_output=True, text=True, cwd=folder, env=env) for command in commands]
    kinds = ["shared", "static"] + ["fortran"] * (tool == "cmake" and os.path.exists(os.path.join(folder, "example.f90")))
    programs = [os.path.join(folder, tool, kind) for kind in kinds]
    results = [tap.run(2, program).stdout[:36] if made[-1].returncode == 0 else "" for program in programs]
    needed = [subprocess.run(["readelf", "-d", program], capture_output=True, text=True).stdout for program in programs]
    tap.ok(set(results) == {"sum of 2000000 elements on 2 ranks: "} and ["[liballfold.so.0]" in one for one in needed] == [True, False, True][:len(programs)],
           f"{tool} finds and links {len(programs)} libraries", (made, results))


def check(root, shared, archive):
    """shared, archive: whether this library was built."""
    for library, header in (("liballfold-files", "allfold_files.h"), ("liballfold", "allfold.h")):
        expected = declared(f"{root}/include/{header}")
        if shared:
            found = names(f"{root}/lib/{library}.so", "-D")
            tap.ok(expected and found == expected, f"{library}.so exports what {header} declares, and nothing else", found)
        if archive:
            found = names(f"{root}/lib/{library}.a", "-g")
            tap.ok(expected and found == expected, "likewise the global names of the archive", found)
    if shared:
        needed = subprocess.run(["readelf", "-d", f"{root}/lib/liballfold.so"], capture_output=True, text=True).stdout
        tap.ok("libmpi" in needed and not re.search("json|hdf5|deflate|zstd", needed), "liballfold.so needs no file formats", needed)
    internal = [name for name in names(os.path.join(tap.BUILD, "libcore.a"), "-g") if name.isidentifier() and name not in expected]
    with tempfile.TemporaryDirectory() as folder:
        shutil.copy(os.path.join(tap.SOURCE, "examples", "01_sum.c"), os.path.join(folder, "example.c"))
        with open(os.path.join(folder, "clashing.c"), "w", encoding="utf-8") as file:
            file.write("void abort(void);\n" + "".join(f"void {name}(void) {{ abort(); }}\n" for name in internal))
        if os.path.exists(f"{root}/share/allfold/fortran/allfold.f90"):
            check_fortran(root, folder)
        else:
            tap.skip("no Fortran compiler")
        for static in [False] * shared + [True] * archive:
            program, compiled = make_program(root, folder, static)
            result = tap.run(2, program, env={"LD_LIBRARY_PATH": f"{root}/lib:{os.environ.get('LD_LIBRARY_PATH', '')}"})
            needed = subprocess.run(["readelf", "-d", program], capture_output=True, text=True).stdout
            tap.ok(len(internal) > 50 and result.returncode == 0 and result.stdout.startswith("sum of 2000000 elements on 2 ranks: "),
                   f"a program with {len(internal)} clashing names, {'static' if static else 'shared'}", (compiled, result))
            tap.ok(("[liballfold.so.0]" in needed) != static, "has the library it was linked with", needed)
        if shared and archive:
            check_tool(root, folder, "CMakeLists.txt", CMAKE, ["cmake", "-GNinja", f"-DCMAKE_PREFIX_PATH={root}", "-S.", "-Bcmake"],
                       ["cmake", "--build", "cmake"])
            check_tool(root, folder, "meson.build", MESON, ["meson", "setup", "meson"], ["ninja", "-C", "meson"])
        else:
            tap.skip("a build without both libraries", 2)
