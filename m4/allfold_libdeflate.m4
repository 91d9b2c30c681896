# ALLFOLD_LIBDEFLATE: libdeflate, which decompresses chunks of HDF5 files and members of .npz. Sets LIBDEFLATE_CFLAGS,
# LIBDEFLATE_LIBS and allfold_libdeflate (its version or no).
AC_DEFUN([ALLFOLD_LIBDEFLATE], [
  AC_ARG_WITH([libdeflate], [AS_HELP_STRING([--with-libdeflate@<:@=yes|no|auto@:>@],
    [decompress chunks of HDF5 files and members of .npz (default: auto, if the library is found)])], [], [with_libdeflate=auto])
  allfold_libdeflate=no
  AS_IF([test "$with_libdeflate" != no],
    [PKG_CHECK_MODULES([LIBDEFLATE], [libdeflate],
       [allfold_libdeflate=`$PKG_CONFIG --modversion libdeflate 2>/dev/null || echo given`
        AC_DEFINE([ALLFOLD_HAVE_LIBDEFLATE], [1], [Whether libdeflate is there.])],
       [AS_IF([test "$with_libdeflate" = yes],
          [AC_MSG_ERROR([--with-libdeflate was given, but pkg-config does not know libdeflate.
  Debian, Ubuntu: apt-get install libdeflate-dev. Elsewhere: add the folder of its libdeflate.pc to PKG_CONFIG_PATH.])])])])
])
