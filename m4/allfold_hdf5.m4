# ALLFOLD_HDF5: the HDF5 C library, serial flavour, for HDF5 and NetCDF-4 files. Sets HDF5_CFLAGS, HDF5_LIBS, allfold_hdf5 (its
# version or no) and the conditional HAVE_HDF5. The flavour for MPI is refused: its headers need another MPI's, perhaps.
AC_DEFUN([ALLFOLD_HDF5], [
  AC_ARG_WITH([hdf5], [AS_HELP_STRING([--with-hdf5@<:@=yes|no|auto@:>@],
    [read HDF5 and NetCDF-4 files (default: auto, if the serial HDF5 library is found)])], [], [with_hdf5=auto])
  allfold_hdf5=no
  AS_IF([test "$with_hdf5" != no],
    [PKG_CHECK_MODULES([HDF5], [hdf5-serial >= 1.10.3], [allfold_hdf5_module=hdf5-serial],
       [PKG_CHECK_MODULES([HDF5], [hdf5 >= 1.10.3], [allfold_hdf5_module=hdf5], [allfold_hdf5_module=])])
     AS_IF([test -n "$allfold_hdf5_module"],
       [allfold_saved_cppflags=$CPPFLAGS allfold_saved_libs=$LIBS
        CPPFLAGS="$CPPFLAGS $HDF5_CFLAGS" LIBS="$HDF5_LIBS $LIBS"
        AC_LINK_IFELSE([AC_LANG_PROGRAM([[#include <hdf5.h>
#ifdef H5_HAVE_PARALLEL
#error "the flavour for MPI"
#endif]], [[hsize_t bytes; return H5Dget_chunk_storage_size(0, &bytes, &bytes) + H5Dread_chunk(0, 0, &bytes, 0, 0);]])],
          [allfold_hdf5=`$PKG_CONFIG --modversion $allfold_hdf5_module 2>/dev/null || echo given`])
        CPPFLAGS=$allfold_saved_cppflags LIBS=$allfold_saved_libs])
     AS_IF([test "$with_hdf5$allfold_hdf5" = yesno],
       [AC_MSG_ERROR([--with-hdf5 was given, but the serial HDF5 library (1.10.3 or newer) does not compile and link.
  Debian, Ubuntu: apt-get install libhdf5-dev. Elsewhere: add the folder of its hdf5.pc to PKG_CONFIG_PATH. config.log says more.])])])
  AS_IF([test "$allfold_hdf5" = no], [HDF5_CFLAGS= HDF5_LIBS=],
    [AC_DEFINE([ALLFOLD_HAVE_HDF5], [1], [Whether HDF5 files can be read.])])
  AM_CONDITIONAL([HAVE_HDF5], [test "$allfold_hdf5" != no])
])
