dnl SPDX-License-Identifier: Apache-2.0
dnl IOBENCH_CUDA: --with-cuda=auto|yes|no|FOLDER, --with-cuda-archs="80 90". Looks for nvcc, a C++
dnl compiler for it, the static CUDA runtime and cuDNN 9, whose headers and libraries are in the
dnl toolkit or on the compiler's search path. Then NCCL, with --with-nccl=auto|yes|no.
dnl Substitutes NVCC, NVCC_ARCHS, CUDA_CPPFLAGS, CUDA_LIBS, NCCL_LIBS.
dnl The program itself links none of them: they are for the module iobench-cuda.so.
AC_DEFUN([IOBENCH_CUDA], [
  AC_ARG_WITH([cuda], [AS_HELP_STRING([--with-cuda=auto|yes|no|FOLDER],
    [training on NVIDIA GPUs; FOLDER is the toolkit's])], [], [with_cuda=auto])
  AC_ARG_WITH([cuda-archs], [AS_HELP_STRING([--with-cuda-archs=LIST],
    [compute capabilities that kernels are built for (80 90); PTX of the last runs on later ones])],
    [], [with_cuda_archs="80 90"])
  have_cuda=no
  cuda_missing=
  AS_IF([test "x$with_cuda" != xno], [
    AS_CASE([$with_cuda], [/*], [cuda_path=$with_cuda/bin],
      [cuda_path=$PATH$PATH_SEPARATOR${CUDA_HOME:-/usr/local/cuda}/bin$PATH_SEPARATOR/usr/local/cuda/bin])
    AC_PATH_PROG([NVCC], [nvcc], [], [$cuda_path])
    AC_CHECK_PROGS([CUDA_CXX], [g++ clang++ c++])
    AS_IF([test "x$NVCC" = x], [cuda_missing="nvcc"],
      [test "x$CUDA_CXX" = x], [cuda_missing="a C++ compiler"],
      [cuda_root=$(cd "$(dirname "$(readlink -f "$NVCC")")/.." && pwd)
       CUDA_CPPFLAGS="-isystem $cuda_root/include"
       for cuda_folder in $cuda_root/lib64 $cuda_root/lib $cuda_root/targets/x86_64-linux/lib; do
         AS_IF([test -f "$cuda_folder/libcudart_static.a"], [break])
       done
       saved_CPPFLAGS=$CPPFLAGS
       saved_LIBS=$LIBS
       CPPFLAGS="$CPPFLAGS $CUDA_CPPFLAGS"
       AC_MSG_CHECKING([for cuDNN 9])
       AC_PREPROC_IFELSE([AC_LANG_SOURCE([[#include <cudnn.h>
#if CUDNN_MAJOR != 9
#error other version
#endif]])], [cuda_dnn=yes], [cuda_dnn=no])
       AC_MSG_RESULT([$cuda_dnn])
       AS_IF([test $cuda_dnn = no], [cuda_missing="cuDNN 9 (cudnn.h)"], [
         dnl Wheels contain the library without the link that -lcudnn needs.
         CUDA_LIBS="-L$cuda_folder -l:libcudnn.so.9 -l:libcudart_static.a -lstdc++ -lrt -ldl -lpthread"
         LIBS="$CUDA_LIBS $LIBS"
         AC_MSG_CHECKING([whether a module with cuDNN and the CUDA runtime links])
         AC_LINK_IFELSE([AC_LANG_PROGRAM([[#include <cudnn.h>
#include <cuda_runtime_api.h>]], [[int n; return (int)cudnnGetVersion() + (int)cudaGetDeviceCount(&n);]])],
           [have_cuda=yes], [cuda_missing="libcudnn.so.9 or libcudart_static.a"])
         AC_MSG_RESULT([$have_cuda])])
       CPPFLAGS=$saved_CPPFLAGS
       LIBS=$saved_LIBS])
    NVCC_ARCHS=
    for cuda_arch in $with_cuda_archs; do
      NVCC_ARCHS="$NVCC_ARCHS -gencode arch=compute_$cuda_arch,code=sm_$cuda_arch"
      cuda_last=$cuda_arch
    done
    NVCC_ARCHS="$NVCC_ARCHS -gencode arch=compute_$cuda_last,code=compute_$cuda_last"
    AS_IF([test "x$with_cuda" != xauto && test "x$have_cuda" = xno],
      [AC_MSG_ERROR([--with-cuda was asked for but $cuda_missing was not found])])])
  AC_SUBST([NVCC_ARCHS])
  AC_SUBST([CUDA_CPPFLAGS])
  AC_SUBST([CUDA_LIBS])
  IOBENCH_OPTIONAL_FOUND([cuda], [CUDA], [the CUDA toolkit 12.8 or later and cuDNN 9],
    [training on NVIDIA GPUs])

  dnl NCCL is found where cuDNN is; MPI connects its ranks.
  AC_ARG_WITH([nccl], [AS_HELP_STRING([--with-nccl=auto|yes|no],
    [gradients between GPUs by NCCL])], [], [with_nccl=auto])
  have_nccl=no
  AS_IF([test "x$with_nccl" != xno && test "x$have_cuda$have_mpi" = xyesyes], [
    NCCL_LIBS="-L$cuda_folder -l:libnccl.so.2 -l:libcudart_static.a -lstdc++ -lrt -ldl -lpthread"
    CPPFLAGS="$CPPFLAGS $CUDA_CPPFLAGS"
    LIBS="$NCCL_LIBS $LIBS"
    AC_MSG_CHECKING([for NCCL 2.19 or later])
    AC_LINK_IFELSE([AC_LANG_PROGRAM([[#include <nccl.h>
#if NCCL_VERSION_CODE < NCCL_VERSION(2, 19, 0)
#error no ncclCommRegister
#endif]], [[int version; return (int)ncclGetVersion(&version);]])], [have_nccl=yes])
    AC_MSG_RESULT([$have_nccl])
    CPPFLAGS=$saved_CPPFLAGS
    LIBS=$saved_LIBS])
  AS_IF([test "x$with_nccl$have_nccl" = xyesno],
    [AC_MSG_ERROR([--with-nccl was asked for but it, CUDA or MPI was not found])])
  AC_SUBST([NCCL_LIBS])
  IOBENCH_OPTIONAL_FOUND([nccl], [NCCL], [NCCL 2.19 or later beside CUDA and MPI],
    [gradients between GPUs])
])
