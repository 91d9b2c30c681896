# ALLFOLD_OPENMP: sets OPENMP_CFLAGS (for compiling and linking) and OPENMP_LIBS (what a program linked by any C compiler
# needs beside the library). --disable-openmp leaves the CPU backend with one thread a rank.
AC_DEFUN([ALLFOLD_OPENMP], [
  AC_OPENMP
  allfold_openmp=no
  OPENMP_LIBS=
  AS_IF([test "x$enable_openmp" != xno],
    [AS_CASE(["$ac_cv_prog_c_openmp"],
       [unsupported],
         [AS_IF([test "x$enable_openmp" = xyes],
            [AC_MSG_ERROR([$CC cannot build an OpenMP program, which --enable-openmp asks for.
  With clang install its runtime (Debian, Ubuntu: libomp-dev); or configure with --disable-openmp.])])],
       [allfold_openmp=yes])])
  AS_IF([test $allfold_openmp = yes],
    [AC_CACHE_CHECK([for the OpenMP runtime's library], [allfold_cv_openmp_libs],
       [allfold_cv_openmp_libs=$OPENMP_CFLAGS
        # The object calls the runtime of the compiler's choice; only the link goes without the flag.
        AC_LANG_CONFTEST([AC_LANG_PROGRAM([[int total;]],
          [[#pragma omp parallel for reduction(+:total)
            for (int i = 0; i < 8; i++) total += i;]])])
        AS_IF([$CC $CFLAGS $OPENMP_CFLAGS -c conftest.c -o conftest-openmp.o >&AS_MESSAGE_LOG_FD 2>&1],
          [for allfold_lib in -lgomp -lomp -liomp5; do
             AS_IF([$CC conftest-openmp.o -o conftest$ac_exeext $allfold_lib -lpthread >&AS_MESSAGE_LOG_FD 2>&1],
               [allfold_cv_openmp_libs=$allfold_lib; break])
           done])
        rm -f conftest*])
     OPENMP_LIBS=$allfold_cv_openmp_libs],
    [OPENMP_CFLAGS=-Wno-unknown-pragmas])
  AC_SUBST([OPENMP_LIBS])
])
