# ALLFOLD_MPI: makes $CC build MPI programs and finds their launcher. Sets MPI_CFLAGS, MPI_LIBS and MPIEXEC, each of
# which the user may set. CC may be an MPI compiler wrapper itself; if it is not, MPICC (default: mpicc) tells the
# flags, so that any C compiler can be used.
AC_DEFUN([ALLFOLD_MPI_TRY], [
  allfold_saved_cflags=$CFLAGS
  allfold_saved_libs=$LIBS
  CFLAGS="$CFLAGS $MPI_CFLAGS"
  LIBS="$MPI_LIBS $LIBS"
  AC_LINK_IFELSE([AC_LANG_PROGRAM([[#include <mpi.h>
#if MPI_VERSION < 3
#error "MPI 3.0 or newer is needed"
#endif]], [[MPI_Init(0, 0); MPI_Finalize();]])], [allfold_mpi=$1], [allfold_mpi=no])
  CFLAGS=$allfold_saved_cflags
  LIBS=$allfold_saved_libs
])

AC_DEFUN([ALLFOLD_MPI], [
  AC_ARG_VAR([MPICC], [MPI compiler wrapper to ask for flags when CC is not one itself (default: mpicc)])
  AC_ARG_VAR([MPI_CFLAGS], [flags that compile an MPI program with CC])
  AC_ARG_VAR([MPI_LIBS], [flags that link an MPI program with CC])
  AC_ARG_VAR([MPIEXEC], [launcher for the tests (default: mpirun or mpiexec)])
  AS_IF([test -n "$MPICC"],
    [AS_IF([command -v ${MPICC%% *} >/dev/null 2>&1], [],
       [AC_MSG_ERROR([MPICC=$MPICC is not there; name an MPI compiler wrapper that is, or unset it])])],
    [AC_PATH_PROGS([MPICC], [mpicc])])
  AC_MSG_CHECKING([how $CC builds MPI programs])
  allfold_mpi=no
  AS_IF([test -n "$MPI_CFLAGS$MPI_LIBS"],
    [ALLFOLD_MPI_TRY(["MPI_CFLAGS and MPI_LIBS"])],
    [ALLFOLD_MPI_TRY(["$CC itself"])
     # Open MPI's wrapper, then MPICH's and its children's, then Open MPI's pkg-config file.
     AS_IF([test "$allfold_mpi" = no && test -n "$MPICC"],
       [MPI_CFLAGS=`$MPICC --showme:compile 2>/dev/null`
        MPI_LIBS=`$MPICC --showme:link 2>/dev/null`
        ALLFOLD_MPI_TRY(["flags of $MPICC"])])
     AS_IF([test "$allfold_mpi" = no && test -n "$MPICC"],
       [MPI_CFLAGS=`$MPICC -compile_info 2>/dev/null | tr ' ' '\n' | grep '^-[[ID]]' | tr '\n' ' '`
        MPI_LIBS=`$MPICC -link_info 2>/dev/null | tr ' ' '\n' | grep -E '^-([[Ll]]|Wl)' | tr '\n' ' '`
        ALLFOLD_MPI_TRY(["flags of $MPICC"])])
     AS_IF([test "$allfold_mpi" = no && test -n "$PKG_CONFIG"],
       [MPI_CFLAGS=`$PKG_CONFIG --cflags ompi-c 2>/dev/null`
        MPI_LIBS=`$PKG_CONFIG --libs ompi-c 2>/dev/null`
        ALLFOLD_MPI_TRY(["flags of pkg-config ompi-c"])])])
  AC_MSG_RESULT([$allfold_mpi])
  AS_IF([test "$allfold_mpi" = no],
    [AC_MSG_ERROR([$CC cannot build an MPI 3 program (config.log says why).
  Debian, Ubuntu: apt-get install libopenmpi-dev openmpi-bin. Elsewhere load the MPI module, and set MPICC to its
  compiler wrapper, or MPI_CFLAGS and MPI_LIBS to the flags.])])

  AS_IF([test -n "$MPIEXEC"],
    [AS_IF([command -v ${MPIEXEC%% *} >/dev/null 2>&1], [],
       [AC_MSG_ERROR([MPIEXEC=$MPIEXEC is not there; name the launcher of the MPI library, or unset it])])],
    [AC_PATH_PROGS([MPIEXEC], [mpirun mpiexec])])
])
