"""What `pip install ./python` does beyond the package itself: it sees to the C library. One that the system, ALLFOLD_LIBRARY or pkg-config
knows is used where it is. Otherwise it is built from the source around this folder, for the CPU, and becomes a part of the package.
ALLFOLD_LIBRARY=none installs the package alone."""
import ctypes
import functools
import os
import shutil
import subprocess
import sys
import tempfile

import setuptools
from setuptools.command.build_py import build_py

try:
    from setuptools.command.bdist_wheel import bdist_wheel
except ImportError:
    from wheel.bdist_wheel import bdist_wheel

HERE = os.path.dirname(os.path.abspath(__file__))
TOP = os.path.dirname(HERE)
SONAME, FILES = "liballfold.so.0", "liballfold-files.so.0"
ADVICE = """Either install the C library first (./configure && make install; then ldconfig, or PKG_CONFIG_PATH=PREFIX/lib/pkgconfig, or
ALLFOLD_LIBRARY=FILE), or install what builds it (Debian, Ubuntu: apt-get install gcc make pkg-config libopenmpi-dev, and for a checkout
autoconf automake libtool), then run this again. ALLFOLD_LIBRARY=none installs the package alone."""


def loads(path):
    try:
        return bool(ctypes.CDLL(path))
    except OSError:
        return False


@functools.lru_cache(None)
def installed():
    """The folder of a library that is there: None if none is; "" if the package finds it without help."""
    named = os.environ.get("ALLFOLD_LIBRARY")
    if named and named != "none":
        folder = os.path.dirname(os.path.abspath(named))
        if not loads(os.path.join(folder, SONAME)):
            sys.exit(f"allfold: ALLFOLD_LIBRARY: expected a file beside {SONAME}, or none, found {named}")
        return folder
    if named or loads(SONAME):
        return ""
    if shutil.which("pkg-config"):
        found = subprocess.run(["pkg-config", "--variable=libdir", "allfold"], capture_output=True, text=True).stdout.strip()
        if found and loads(os.path.join(found, SONAME)):
            return found
    return None


def missing():
    """What there is not, of what builds the library."""
    tools = ["make", "pkg-config", os.environ.get("CC", "cc"), os.environ.get("MPICC", "mpicc")]
    if not os.path.exists(os.path.join(TOP, "configure")):
        tools += ["autoreconf", "automake", "libtoolize"]
    found = [tool for tool in tools if not shutil.which(tool.split()[0])]
    return found if os.path.exists(os.path.join(TOP, "src", "allfold.h")) else ["source of it around this folder"] + found


def build(to):
    """Builds the library for the CPU, and that for files if json-c is there, and copies them to the folder."""
    lack = missing()
    if lack:
        sys.exit(f"allfold: expected the C library ({SONAME}), or what builds it; "
                 f"found neither the library nor {', '.join(lack)}.\n{ADVICE}")
    has_json = subprocess.run(["pkg-config", "--exists", "json-c >= 0.14"], check=False).returncode == 0
    if not os.path.exists(os.path.join(TOP, "configure")):
        subprocess.run(["./bootstrap"], cwd=TOP, check=True)
    with tempfile.TemporaryDirectory() as folder:
        if os.path.exists(os.path.join(TOP, "config.status")):
            folder = TOP  # which is configured, so no other folder can be
        else:  # json-c is for files
            subprocess.run([os.path.join(TOP, "configure"), "--without-cuda", "--without-fortran", "--without-python-dir", "--disable-emulation",
                            "--disable-static", *([] if has_json else ["JSON_C_CFLAGS= ", "JSON_C_LIBS= "])], cwd=folder, check=True)
        for soname in [SONAME] + [FILES] * has_json:
            subprocess.run(["make", f"-j{os.cpu_count() or 1}", soname.replace(".so.0", ".la")], cwd=folder, check=True)
            shutil.copy(os.path.join(folder, ".libs", soname), to)


class Build(build_py):
    """Also the library, or where it is."""

    def run(self):
        super().run()
        package, folder = os.path.join(self.build_lib, "allfold"), installed()
        for stale in (SONAME, FILES, "_installed.py"):
            if os.path.exists(os.path.join(package, stale)):
                os.remove(os.path.join(package, stale))
        if folder:
            with open(os.path.join(package, "_installed.py"), "w", encoding="utf-8") as file:
                file.write(f"# Where the library is. Written by pip install.\nLIBDIR = {folder!r}\n")
        elif folder is None:
            build(package)


class Wheel(bdist_wheel):
    """For any Python 3, and if the library is in it for this kind of machine."""

    def finalize_options(self):
        super().finalize_options()
        self.root_is_pure = installed() is not None

    def get_tag(self):
        return super().get_tag() if self.root_is_pure else ("py3", "none", super().get_tag()[2])


setuptools.setup(cmdclass={"build_py": Build, "bdist_wheel": Wheel})
