# ALLFOLD_CUDA: decides whether the CUDA backend is built, by compiling a kernel with nvcc and linking it with $CC.
#   --with-cuda[=DIR]    the toolkit to use (default: NVCC, PATH, CUDA_HOME, /usr/local/cuda); an error if it does not work
#   --without-cuda       CPU only
#   --with-cuda-arch="80 90"   (or CUDA_ARCH) machine code for each, PTX for the newest
#   --enable-cuda-lineinfo     source lines in the kernels, for profilers
# Sets NVCC, CUDA_ARCH, CUDA_CPPFLAGS, CUDA_LIBS, AM_NVCCFLAGS and the conditional HAVE_CUDA. Honours NVCCFLAGS.
AC_DEFUN([ALLFOLD_CUDA], [
  AC_ARG_VAR([NVCC], [CUDA compiler])
  AC_ARG_VAR([NVCCFLAGS], [its flags (default: -O3)])
  AC_ARG_VAR([CUDA_ARCH], [GPU architectures, as --with-cuda-arch (default: 80 90)])
  AC_ARG_WITH([cuda],
    [AS_HELP_STRING([--with-cuda@<:@=DIR@:>@], [build the CUDA backend, with the toolkit in DIR (default: if nvcc works)])],
    [], [with_cuda=auto])
  AC_ARG_WITH([cuda-arch],
    [AS_HELP_STRING([--with-cuda-arch=LIST], [GPU architectures to compile for (default: "80 90")])],
    [AS_CASE([$withval], [yes|no|''], [AC_MSG_ERROR([--with-cuda-arch needs a list, such as "80 90"])])
     CUDA_ARCH=$withval])
  AC_ARG_ENABLE([cuda-lineinfo],
    [AS_HELP_STRING([--enable-cuda-lineinfo], [keep source lines in the CUDA kernels, for profilers (a larger program)])],
    [], [enable_cuda_lineinfo=no])
  # Who names a compiler or architectures wants CUDA.
  AS_IF([test "x$with_cuda" = xauto && test -n "$NVCC$CUDA_ARCH"], [with_cuda=yes])
  : ${NVCCFLAGS="-O3"}

  allfold_cuda=no
  allfold_cuda_why=
  AS_IF([test "x$with_cuda" != xno],
    [ALLFOLD_CUDA_NVCC
     AS_IF([test -n "$NVCC"], [ALLFOLD_CUDA_TRY],
       [allfold_cuda_why="no nvcc in $allfold_cuda_path"])])

  AS_CASE([$with_cuda:$allfold_cuda],
    [no:no], [allfold_cuda_summary="no, as asked: CPU only"],
    [auto:no],
      [AC_MSG_WARN([building for the CPU only: $allfold_cuda_why])
       allfold_cuda_summary="no: CPU only ($allfold_cuda_why). To add it: --with-cuda=DIR"],
    [*:no],
      [AC_MSG_ERROR([--with-cuda: $allfold_cuda_why.
  Give the toolkit's folder (--with-cuda=/usr/local/cuda) or NVCC=/path/to/nvcc, architectures it knows
  (--with-cuda-arch="80 90"), a host compiler it takes (NVCCFLAGS="-O3 -ccbin g++-12"); or use --without-cuda.])],
    [allfold_cuda_summary="$allfold_cuda ($NVCC), architectures $CUDA_ARCH"])
  AS_IF([test "$allfold_cuda" = no], [CUDA_ARCH= CUDA_CPPFLAGS= CUDA_LIBS=])

  AM_CONDITIONAL([HAVE_CUDA], [test "$allfold_cuda" != no])
  AC_SUBST([CUDA_CPPFLAGS])
  AC_SUBST([CUDA_LIBS])
  AC_SUBST([AM_NVCCFLAGS])
  AC_SUBST([allfold_with_cuda], [`test "$allfold_cuda" = no && echo --without-cuda || echo --with-cuda`])
])

# Finds nvcc: in the folder the user gave, as $NVCC, on the PATH, at the usual place.
AC_DEFUN([ALLFOLD_CUDA_NVCC], [
  AS_CASE([$with_cuda],
    [yes|auto],
      [allfold_cuda_path="PATH, CUDA_HOME or /usr/local/cuda"
       AS_IF([test -n "$NVCC"],
         [AS_IF([command -v "$NVCC" >/dev/null 2>&1], [],
            [AC_MSG_ERROR([NVCC=$NVCC is not there; name an nvcc that is, or unset it])])],
         [AC_PATH_PROG([NVCC], [nvcc], [], [$PATH$PATH_SEPARATOR${CUDA_HOME:-/usr/local/cuda}/bin$PATH_SEPARATOR/usr/local/cuda/bin])])],
    [allfold_cuda_path=$with_cuda/bin
     NVCC=
     AS_IF([test -x "$with_cuda/bin/nvcc"], [NVCC=$with_cuda/bin/nvcc])])
])

# Compiles and links a kernel; sets allfold_cuda to nvcc's release, or allfold_cuda_why.
AC_DEFUN([ALLFOLD_CUDA_TRY], [
  : ${CUDA_ARCH="80 90"}
  CUDA_ARCH=`echo "$CUDA_ARCH" | tr ',;' '  '`
  allfold_newest=`for a in $CUDA_ARCH; do echo $a; done | sort -n | tail -n 1`
  allfold_gencode=
  for allfold_arch in $CUDA_ARCH; do
    allfold_gencode="$allfold_gencode -gencode=arch=compute_$allfold_arch,code=sm_$allfold_arch"
  done
  allfold_gencode="$allfold_gencode -gencode=arch=compute_$allfold_newest,code=compute_$allfold_newest"
  AM_NVCCFLAGS="-std=c++17 --fmad=false$allfold_gencode --compiler-options=-fPIC,-fvisibility=hidden,-Wall,-ffp-contract=off${MMX_CFLAGS:+,$MMX_CFLAGS}"
  AS_IF([test "x$enable_cuda_lineinfo" != xno], [AM_NVCCFLAGS="$AM_NVCCFLAGS -lineinfo"])
  # Since CUDA 12.8: a seventh of the size, for a sixth of the time. NVCCFLAGS may have another mode.
  AS_CASE([$NVCCFLAGS], [*--compress-mode*], [],
    [AS_IF([$NVCC --help 2>/dev/null | grep -q -e --compress-mode], [AM_NVCCFLAGS="$AM_NVCCFLAGS --compress-mode=size"])])

  # nvcc itself says where its headers and libraries are.
  : >conftest.cu
  $NVCC --dryrun -c conftest.cu >conftest.dry 2>&1
  allfold_nvcc_words () {
    sed -n "s/^.. $[]1=//p" conftest.dry | tr ' "' '\n\n' | grep "^$[]2" | grep -v '/stubs$' | tr '\n' ' '
  }
  CUDA_CPPFLAGS=`allfold_nvcc_words INCLUDES -I | sed 's/-I/-isystem /g'`
  allfold_cuda_ldflags=`allfold_nvcc_words LIBRARIES -L`
  rm -f conftest.cu conftest.dry

  AC_MSG_CHECKING([whether $NVCC compiles for $CUDA_ARCH and $CC links it])
  cat >conftest-kernel.cu <<ALLFOLD_EOF
#include <cuda_runtime.h>
__global__ void twice(float *x) { x[[threadIdx.x]] *= 2; }
extern "C" int launch(float *x) { twice<<<1, 32>>>(x); return cudaGetLastError(); }
ALLFOLD_EOF
  AS_IF([AC_TRY_COMMAND([$NVCC $AM_NVCCFLAGS $NVCCFLAGS -c conftest-kernel.cu -o conftest-kernel.o >conftest.nvcc 2>&1])],
    [AS_IF([test -s conftest-kernel.o], [allfold_cuda_why="$CC cannot link what $NVCC compiled (see config.log)"],
       [allfold_cuda_why="$NVCC wrote no object"])],
    [allfold_cuda_why="$NVCC: `grep -v '^@<:@[[:space:]]@:>@*$' conftest.nvcc | sed 1q`"
     AS_CASE([$allfold_cuda_why], [*": "], [allfold_cuda_why="$NVCC fails (see config.log)"])])
  cat conftest.nvcc >&AS_MESSAGE_LOG_FD 2>/dev/null
  AS_IF([test -s conftest-kernel.o],
    [allfold_saved_libs=$LIBS
     allfold_saved_cppflags=$CPPFLAGS
     for allfold_cudart in "-lcudart_static -ldl -lrt -lpthread" -lcudart; do
       CUDA_LIBS="$allfold_cuda_ldflags$allfold_cudart -lstdc++"
       LIBS="conftest-kernel.o $CUDA_LIBS $allfold_saved_libs"
       CPPFLAGS="$allfold_saved_cppflags $CUDA_CPPFLAGS"
       AC_LINK_IFELSE([AC_LANG_PROGRAM([[#include <cuda_runtime_api.h>
int launch(float *);]], [[int n; return launch(0) + cudaGetDeviceCount(&n);]])],
         [allfold_cuda=`$NVCC --version | sed -n 's/.*release @<:@^,@:>@*, V//p'`; break])
     done
     LIBS=$allfold_saved_libs
     CPPFLAGS=$allfold_saved_cppflags])
  rm -f conftest-kernel.cu conftest-kernel.o conftest.nvcc
  AS_IF([test "$allfold_cuda" = no], [AC_MSG_RESULT([no: $allfold_cuda_why])], [AC_MSG_RESULT([yes, $allfold_cuda])])
])
