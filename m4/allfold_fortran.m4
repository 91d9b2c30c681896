# ALLFOLD_FORTRAN: an MPI compiler wrapper for Fortran 2018 that knows mpi_f08 and assumed rank, for the module allfold. Sets FC,
# FCFLAGS, FORTRAN_LIBS (what links a Fortran program with objects of CC) and the conditional HAVE_FORTRAN.
#   --with-fortran       an error without one
#   --without-fortran    no module
AC_DEFUN([ALLFOLD_FORTRAN], [
  AC_ARG_VAR([FC], [MPI compiler wrapper for Fortran (default: mpifort)])
  AC_ARG_VAR([FCFLAGS], [its flags (default: -O2 -g)])
  AC_ARG_WITH([fortran], [AS_HELP_STRING([--with-fortran@<:@=yes|no|auto@:>@],
    [the Fortran module (default: auto, if mpifort works)])], [], [with_fortran=auto])
  AC_ARG_WITH([fortran-moddir], [AS_HELP_STRING([--with-fortran-moddir=DIR],
    [where allfold.mod is installed (default: INCLUDEDIR)])],
    [AS_CASE([$withval], [yes|no|''], [AC_MSG_ERROR([--with-fortran-moddir needs a folder])])], [with_fortran_moddir='${includedir}'])
  AC_SUBST([moddir], [$with_fortran_moddir])
  : ${FCFLAGS="-O2 -g"}
  allfold_fortran=no
  # Sanitizers of the objects come with their own libraries.
  FORTRAN_LIBS=`for flag in $CFLAGS; do case $flag in -fsanitize=*) printf '%s ' "$flag" ;; esac; done`"$OPENMP_LIBS $MPI_LIBS -lm"
  AS_IF([test "x$with_fortran" != xno],
    [AC_MSG_CHECKING([for a Fortran compiler with mpi_f08])
     cat >conftest-c.c <<ALLFOLD_EOF
int count_threads(void);
int count_threads(void) { int n = 0;
#pragma omp parallel reduction(+:n)
n++; return n; }
ALLFOLD_EOF
     cat >conftest.f90 <<ALLFOLD_EOF
module rank
  use, intrinsic :: iso_c_binding
  use mpi_f08, only: MPI_Comm
contains
  integer(c_int64_t) function count(x)
    real(c_float), intent(in), target, contiguous :: x(..)
    count = size(x, kind=c_int64_t)
    if (.not. c_associated(c_loc(x))) count = 0
  end function
end module
program conftest
  use mpi_f08
  use rank
  interface
    integer(c_int) function count_threads() bind(C)
      import :: c_int
    end function
  end interface
  real(c_float) :: x(2, 3)
  call MPI_Init()
  if (count(x) /= 6 .or. count_threads() < 1) error stop
  call MPI_Finalize()
end program
ALLFOLD_EOF
     for allfold_fc in "$FC" mpifort mpif90; do
       AS_IF([test -n "$allfold_fc" && { $CC $CFLAGS $OPENMP_CFLAGS -c conftest-c.c -o conftest-c.o &&
              $allfold_fc $FCFLAGS $LDFLAGS conftest.f90 conftest-c.o $FORTRAN_LIBS $LIBS -o conftest$ac_exeext; } \
              >&AS_MESSAGE_LOG_FD 2>&1], [allfold_fortran=$allfold_fc; break])
     done
     rm -f conftest* rank.mod
     AC_MSG_RESULT([$allfold_fortran])
     AS_IF([test "$with_fortran$allfold_fortran" = yesno],
       [AC_MSG_ERROR([--with-fortran was given, but no Fortran compiler compiles and links mpi_f08 and arrays of any rank
  (config.log says why). Debian, Ubuntu: apt-get install gfortran. Elsewhere: FC=mpifort.])])])
  AS_IF([test "$allfold_fortran" = no], [FC=], [FC=$allfold_fortran])
  AC_SUBST([FORTRAN_LIBS])
  AM_CONDITIONAL([HAVE_FORTRAN], [test "$allfold_fortran" != no])
])
