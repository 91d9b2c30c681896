# ALLFOLD_PYTHON: a Python 3 with NumPy for the tests that check against it. Sets PYTHON, empty where there is none, and
# the conditional HAVE_PYTHON.
AC_DEFUN([ALLFOLD_PYTHON], [
  AC_ARG_VAR([PYTHON], [Python 3 with NumPy, for the tests])
  AC_MSG_CHECKING([for a Python 3 with NumPy])
  allfold_python=
  for allfold_candidate in "$PYTHON" python3 /usr/bin/python3; do
    AS_IF([test -n "$allfold_candidate" && $allfold_candidate -c 'import numpy' >/dev/null 2>&1],
      [allfold_python=`command -v $allfold_candidate`; break])
  done
  PYTHON=$allfold_python
  AC_MSG_RESULT([${PYTHON:-none}])
  AM_CONDITIONAL([HAVE_PYTHON], [test -n "$PYTHON"])
])
