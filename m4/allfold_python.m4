# ALLFOLD_PYTHON: a Python 3 with NumPy, for the tests that check against it and for the Python package. Sets PYTHON, empty where
# there is none, pythondir, the folder of the installed package, and the conditionals HAVE_PYTHON and HAVE_PYTHON_PACKAGE. After LT_INIT.
AC_DEFUN([ALLFOLD_PYTHON], [
  AC_ARG_VAR([PYTHON], [Python 3 with NumPy, for the tests and the Python package])
  AC_MSG_CHECKING([for a Python 3 with NumPy])
  allfold_python=
  for allfold_candidate in "${PYTHON:-python3}" "${PYTHON:-/usr/bin/python3}"; do
    AS_IF([$allfold_candidate -c 'import numpy' >/dev/null 2>&1],
      [allfold_python=`command -v $allfold_candidate`; break])
  done
  AC_MSG_RESULT([${allfold_python:-none}])
  AS_IF([test -n "$PYTHON" && test -z "$allfold_python"],
    [AC_MSG_ERROR([PYTHON=$PYTHON: expected a Python 3 that can import numpy. Install NumPy for it, name another one, or leave PYTHON unset])])
  PYTHON=$allfold_python
  AM_CONDITIONAL([HAVE_PYTHON], [test -n "$PYTHON"])

  AC_ARG_WITH([python-dir],
    [AS_HELP_STRING([--with-python-dir=DIR],
      [folder for the Python package; default: that in which Python looks, if it is below the prefix, else
       PREFIX/lib/pythonX.Y/site-packages; "no" leaves the package out])],
    [], [with_python_dir=auto])
  AS_IF([test "x$with_python_dir" != xno && test "x$with_python_dir" != xauto && test -z "$PYTHON"],
    [AC_MSG_ERROR([--with-python-dir: found no Python 3 with NumPy. Install it, set PYTHON, or give --without-python-dir])])
  AC_MSG_CHECKING([for the folder of the Python package])
  pythondir=
  AS_IF([test "x$with_python_dir" = xno || test "x$enable_shared" = xno], [],
    [test "x$with_python_dir" != xauto && test "x$with_python_dir" != xyes], [pythondir=$with_python_dir],
    [test -n "$PYTHON"], [
      allfold_prefix=$prefix
      test "x$allfold_prefix" != xNONE || allfold_prefix=$ac_default_prefix
      pythondir=`$PYTHON -c '
import site, sys
prefix, new = sys.argv[[1]], "/lib/python%d.%d/site-packages" % sys.version_info[[:2]]
found = [[path for path in site.getsitepackages() if path.startswith(prefix + "/lib") and path.endswith("-packages")]]
print("${prefix}" + (found[[0]][[len(prefix):]] if found else new))' "$allfold_prefix"`])
  AC_SUBST([pythondir])
  AC_MSG_RESULT([${pythondir:-none: it is not installed}])
  AM_CONDITIONAL([HAVE_PYTHON_PACKAGE], [test -n "$pythondir"])
])
