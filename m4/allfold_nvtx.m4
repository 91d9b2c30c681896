# ALLFOLD_NVTX: NVTX, whose ranges name a rank's phases to profilers. One header, part of the CUDA toolkit, which a build
# without CUDA may use as well; without it there are no ranges.
#   --with-nvtx[=DIR]    the folder that holds include/nvtx3 (default: where the compiler and the CUDA toolkit look)
#   --without-nvtx       no ranges
# Sets NVTX_CPPFLAGS and NVTX_LIBS, and defines ALLFOLD_HAVE_NVTX.
AC_DEFUN([ALLFOLD_NVTX], [
  AC_ARG_WITH([nvtx],
    [AS_HELP_STRING([--with-nvtx@<:@=DIR@:>@], [name phases to profilers (default: if nvtx3/nvToolsExt.h is there)])],
    [], [with_nvtx=auto])
  NVTX_CPPFLAGS=
  NVTX_LIBS=
  allfold_nvtx=no
  AS_IF([test "x$with_nvtx" != xno], [ALLFOLD_NVTX_TRY])
  AS_CASE([$with_nvtx:$allfold_nvtx],
    [auto:no|no:no], [],
    [*:no], [AC_MSG_ERROR([--with-nvtx: cannot compile and link a call of nvtx3/nvToolsExt.h (config.log says why).
  Give the folder that holds include/nvtx3 (--with-nvtx=/usr/local/cuda), or use --without-nvtx.])],
    [AC_DEFINE([ALLFOLD_HAVE_NVTX], [1], [NVTX names phases to profilers.])])
  AM_CONDITIONAL([HAVE_NVTX], [test $allfold_nvtx = yes])
  AC_SUBST([NVTX_CPPFLAGS])
  AC_SUBST([NVTX_LIBS])
])

AC_DEFUN([ALLFOLD_NVTX_TRY], [
  AC_MSG_CHECKING([for NVTX])
  AS_CASE([$with_nvtx],
    [yes|auto], [allfold_nvtx_dirs=". ${CUDA_HOME:-/usr/local/cuda} /usr/local/cuda"],
    [allfold_nvtx_dirs=$with_nvtx])
  allfold_saved_libs=$LIBS
  allfold_saved_cppflags=$CPPFLAGS
  for allfold_dir in $allfold_nvtx_dirs; do
    AS_IF([test "$allfold_dir" = .], [NVTX_CPPFLAGS=$CUDA_CPPFLAGS], [NVTX_CPPFLAGS="-isystem $allfold_dir/include"])
    CPPFLAGS="$allfold_saved_cppflags $NVTX_CPPFLAGS"
    for NVTX_LIBS in "" -ldl; do
      LIBS="$NVTX_LIBS $allfold_saved_libs"
      AC_LINK_IFELSE([AC_LANG_PROGRAM([[#include <nvtx3/nvToolsExt.h>]], [[return nvtxRangePushA("range");]])],
        [allfold_nvtx=yes; break 2])
    done
  done
  LIBS=$allfold_saved_libs
  CPPFLAGS=$allfold_saved_cppflags
  AC_MSG_RESULT([$allfold_nvtx])
  AS_IF([test $allfold_nvtx = no], [NVTX_CPPFLAGS= NVTX_LIBS=])
])
