# ALLFOLD_X86: whether the CPU loops are also compiled for AVX2 and AVX-512, to be chosen from when the program runs.
# Sets AVX2_CFLAGS, AVX512_CFLAGS and the conditional HAVE_X86_ISA; ALLFOLD_HAVE_X86_ISA is then defined for all sources.
# Sets MMX_CFLAGS: gcc (13.3 was seen to) loads 64 bits by way of an MMX register and leaves out the emms after it. The caller's next
# sums in long double are then NaN. Without MMX it has no such register.
AC_DEFUN([ALLFOLD_X86], [
  AVX2_CFLAGS="-mavx2 -mfma -mf16c"
  AVX512_CFLAGS="-mavx512f -mavx512bw -mavx512dq -mavx512vl -mfma -mf16c"
  AS_CASE([$host_cpu], [x86_64],
    [AC_CACHE_CHECK([whether $CC compiles for AVX2 and AVX-512], [allfold_cv_x86],
       [allfold_cv_x86=no
        allfold_saved_cflags=$CFLAGS
        CFLAGS="$CFLAGS $AVX512_CFLAGS -mavx2"
        AC_COMPILE_IFELSE([AC_LANG_PROGRAM([[#include <immintrin.h>]],
          [[__m512 x = _mm512_setzero_ps();
            __builtin_cpu_init();
            return _mm512_reduce_add_ps(x) > 0.0f && __builtin_cpu_supports("avx512bw");]])], [allfold_cv_x86=yes])
        CFLAGS=$allfold_saved_cflags])],
    [allfold_cv_x86=no])
  AC_CACHE_CHECK([whether $CC takes -mno-mmx], [allfold_cv_mmx],
    [allfold_cv_mmx=no
     allfold_saved_cflags=$CFLAGS
     CFLAGS="$CFLAGS -Werror -mno-mmx"
     AC_COMPILE_IFELSE([AC_LANG_PROGRAM], [allfold_cv_mmx=yes])
     CFLAGS=$allfold_saved_cflags])
  MMX_CFLAGS=
  AS_IF([test $allfold_cv_mmx = yes], [MMX_CFLAGS=-mno-mmx])
  AS_IF([test $allfold_cv_x86 = yes],
    [allfold_x86="baseline, AVX2 and AVX-512"
     # Without it gcc and clang stay with 256-bit vectors on most processors.
     allfold_saved_cflags=$CFLAGS
     CFLAGS="$CFLAGS -Werror $AVX512_CFLAGS -mprefer-vector-width=512"
     AC_COMPILE_IFELSE([AC_LANG_PROGRAM], [AVX512_CFLAGS="$AVX512_CFLAGS -mprefer-vector-width=512"])
     CFLAGS=$allfold_saved_cflags],
    [allfold_x86="baseline of $host_cpu"])
  AM_CONDITIONAL([HAVE_X86_ISA], [test $allfold_cv_x86 = yes])
  AC_SUBST([MMX_CFLAGS])
  AC_SUBST([AVX2_CFLAGS])
  AC_SUBST([AVX512_CFLAGS])
])
