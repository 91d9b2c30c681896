# ALLFOLD_EMULATION: looks for a C++17 compiler for tests/emulation, which runs the kernels' sources on the host: for tests, and for
# `allfold ladder` without a GPU. Nothing else needs one; without, those tests are skipped. Uses the address and undefined-behaviour sanitizers where they work.
# --disable-emulation does without, --enable-emulation=ladder without the tests, which take minutes to compile. Honours CXX and CXXFLAGS.
# Sets EMULATION_SANITIZE and the conditionals HAVE_EMULATION and HAVE_KERNEL_TESTS.
AC_DEFUN([ALLFOLD_EMULATION], [
  AC_REQUIRE([AC_PROG_CXX])
  AC_ARG_ENABLE([emulation],
    [AS_HELP_STRING([--disable-emulation], [do without kernels on the host: their tests, and 'allfold ladder' where there is no GPU;
       --enable-emulation=ladder: without the tests only])])
  AC_LANG_PUSH([C++])
  AC_MSG_CHECKING([how $CXX can run kernels on the host])
  allfold_emulation=no
  EMULATION_SANITIZE=
  allfold_saved_cxxflags=$CXXFLAGS
  # The address sanitizer sees what the three checks that are left out would, and they take a fifth of the time to compile. What the others
  # find ends the program by a trap, whose place the address sanitizer reports: a call with a description takes a sixth of the time.
  test "$enable_emulation" = no || for allfold_sanitize in \
    "-fsanitize=address,undefined -fno-sanitize=null,pointer-overflow,object-size -fsanitize-undefined-trap-on-error" ""; do
    CXXFLAGS="-std=c++17 $allfold_saved_cxxflags $allfold_sanitize"
    AC_RUN_IFELSE([AC_LANG_PROGRAM([[
#include <type_traits>
#include <sys/mman.h>
template <class T> static int *slot(T x)
{
    static thread_local int room[4];
    if constexpr (std::is_same<T, int>::value)
        room[x] = __builtin_LINE();
    return room;
}]], [[return slot(1)[1] == 0;]])],
      [allfold_emulation=yes], [], [allfold_emulation=yes])
    AS_IF([test $allfold_emulation = yes],
      [AS_IF([test -n "$allfold_sanitize"],
         [EMULATION_SANITIZE="$allfold_sanitize -DEMULATION_SANITIZED=1"
          allfold_emulation="yes, with $CXX and its address and undefined-behaviour sanitizers"],
         [allfold_emulation="yes, with $CXX, which has no sanitizers"])
       break])
  done
  CXXFLAGS=$allfold_saved_cxxflags
  AC_MSG_RESULT([$allfold_emulation])
  AC_LANG_POP([C++])
  AS_IF([test "$enable_emulation" = no], [allfold_emulation="no: --disable-emulation"],
    [test "$allfold_emulation" = no], [allfold_emulation="no: $CXX is no C++17 compiler"])
  AM_CONDITIONAL([HAVE_EMULATION], [test "${allfold_emulation#yes}" != "$allfold_emulation"])
  AM_CONDITIONAL([HAVE_KERNEL_TESTS], [test "${allfold_emulation#yes}" != "$allfold_emulation" && test "$enable_emulation" != ladder])
  AS_IF([test "$enable_emulation" = ladder], [allfold_emulation="$allfold_emulation; for the ladder only"])
  AC_SUBST([EMULATION_SANITIZE])
])
