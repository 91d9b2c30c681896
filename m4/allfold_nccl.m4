# ALLFOLD_NCCL: NCCL, a peer that the benchmark measures; the library never uses it. Needs CUDA.
#   --with-nccl[=DIR]    the folder that holds include/nccl.h and lib/libnccl.so* (default: where the compiler and the CUDA
#                        toolkit look); an error if it does not work
#   --without-nccl       the default
# Sets NCCL_CPPFLAGS and NCCL_LIBS, and defines ALLFOLD_HAVE_NCCL.
AC_DEFUN([ALLFOLD_NCCL], [
  AC_ARG_WITH([nccl],
    [AS_HELP_STRING([--with-nccl@<:@=DIR@:>@], [measure NCCL beside the library in `allfold bench` (default: no)])],
    [], [with_nccl=no])
  NCCL_CPPFLAGS=
  NCCL_LIBS=
  allfold_nccl=no
  AS_IF([test "x$with_nccl" != xno],
    [AS_IF([test "$allfold_cuda" = no], [AC_MSG_ERROR([--with-nccl needs the CUDA backend: configure --with-cuda])])
     ALLFOLD_NCCL_TRY])
  AC_SUBST([NCCL_CPPFLAGS])
  AC_SUBST([NCCL_LIBS])
])

# Compiles and links a call; the Python packages of NCCL have libnccl.so.2 only.
AC_DEFUN([ALLFOLD_NCCL_TRY], [
  AC_MSG_CHECKING([for NCCL])
  allfold_nccl_ldflags="$allfold_cuda_ldflags"
  AS_CASE([$with_nccl], [yes], [],
    [NCCL_CPPFLAGS="-isystem $with_nccl/include"
     allfold_nccl_ldflags="-L$with_nccl/lib -Wl,-rpath,$with_nccl/lib"])
  allfold_saved_libs=$LIBS
  allfold_saved_cppflags=$CPPFLAGS
  CPPFLAGS="$CPPFLAGS $NCCL_CPPFLAGS $CUDA_CPPFLAGS"
  for allfold_library in -lnccl -l:libnccl.so.2; do
    NCCL_LIBS="$allfold_nccl_ldflags $allfold_library"
    LIBS="$NCCL_LIBS $CUDA_LIBS $allfold_saved_libs"
    AC_LINK_IFELSE([AC_LANG_PROGRAM([[#include <nccl.h>]], [[ncclUniqueId id; return ncclGetUniqueId(&id);]])],
      [allfold_nccl=yes; break])
  done
  LIBS=$allfold_saved_libs
  CPPFLAGS=$allfold_saved_cppflags
  AC_MSG_RESULT([$allfold_nccl])
  AS_IF([test $allfold_nccl = no],
    [AC_MSG_ERROR([--with-nccl: cannot compile and link a call of NCCL (config.log says why).
  Give the folder that holds include/nccl.h and lib/libnccl.so (--with-nccl=/usr), or use --without-nccl.])])
  AC_DEFINE([ALLFOLD_HAVE_NCCL], [1], [NCCL is there for allfold bench.])
])
