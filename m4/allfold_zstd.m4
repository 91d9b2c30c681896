# ALLFOLD_ZSTD: libzstd, which decompresses the chunks of HDF5 files. Sets ZSTD_CFLAGS, ZSTD_LIBS and allfold_zstd (its version or
# no).
AC_DEFUN([ALLFOLD_ZSTD], [
  AC_ARG_WITH([zstd], [AS_HELP_STRING([--with-zstd@<:@=yes|no|auto@:>@],
    [decompress zstd chunks of HDF5 files (default: auto, if the library is found)])], [], [with_zstd=auto])
  allfold_zstd=no
  AS_IF([test "$with_zstd" != no],
    [PKG_CHECK_MODULES([ZSTD], [libzstd],
       [allfold_zstd=`$PKG_CONFIG --modversion libzstd 2>/dev/null || echo given`
        AC_DEFINE([ALLFOLD_HAVE_ZSTD], [1], [Whether libzstd is there.])],
       [AS_IF([test "$with_zstd" = yes],
          [AC_MSG_ERROR([--with-zstd was given, but pkg-config does not know libzstd.
  Debian, Ubuntu: apt-get install libzstd-dev. Elsewhere: add the folder of its libzstd.pc to PKG_CONFIG_PATH.])])])])
])
