dnl SPDX-License-Identifier: Apache-2.0
dnl IOBENCH_OPTIONAL(option, VARIABLE, pkg-config modules, Debian package, what it is for)
dnl --with-OPTION=auto|yes|no. Defines HAVE_VARIABLE for C and for automake, substitutes
dnl VARIABLE_CFLAGS and VARIABLE_LIBS. A library requested but missing is an error.
AC_DEFUN([IOBENCH_OPTIONAL], [
  AC_ARG_WITH([$1], [AS_HELP_STRING([--with-$1=auto|yes|no], [$5])], [], [with_$1=auto])
  have_$1=no
  AS_IF([test "x$with_$1" != xno],
    [PKG_CHECK_MODULES([$2], [$3], [have_$1=yes], [
      AS_IF([test "x$with_$1" = xyes],
        [AC_MSG_ERROR([--with-$1 was asked for but $3 was not found: install $4])])])])
  IOBENCH_OPTIONAL_FOUND([$1], [$2], [$4], [$5])
])

dnl IOBENCH_OPTIONAL_LIBRARY(option, VARIABLE, header, condition on it, library, function, further
dnl libraries, Debian package, what it is for): the same for a library without pkg-config.
AC_DEFUN([IOBENCH_OPTIONAL_LIBRARY], [
  AC_ARG_WITH([$1], [AS_HELP_STRING([--with-$1=auto|yes|no], [$9])], [], [with_$1=auto])
  have_$1=no
  AS_IF([test "x$with_$1" != xno], [
    AC_MSG_CHECKING([for $3 with $4])
    AC_PREPROC_IFELSE([AC_LANG_SOURCE([[#include <$3>
#if !($4)
#error other version
#endif]])], [have_$1=yes], [have_$1=no])
    AC_MSG_RESULT([$have_$1])
    AS_IF([test "x$have_$1" = xyes],
      [AC_CHECK_LIB([$5], [$6], [$2_LIBS="-l$5 $7"], [have_$1=no], [$7])])
    AS_IF([test "x$with_$1$have_$1" = xyesno],
      [AC_MSG_ERROR([--with-$1 was asked for but $3 with $4 was not found: install $8])])])
  AC_SUBST([$2_LIBS])
  IOBENCH_OPTIONAL_FOUND([$1], [$2], [$8], [$9])
])

dnl IOBENCH_OPTIONAL_FOUND(option, VARIABLE, Debian package, what it is for): the common
dnl part of both, once have_OPTION is known. That cmocka came later must not compile the program again.
AC_DEFUN([IOBENCH_OPTIONAL_FOUND], [
  AS_IF([test "x$have_$1" = xyes],
    [m4_if([$1], [cmocka], [], [AC_DEFINE([HAVE_$2], [1], [Define when $1 is there: $4.])])
     OPTIONAL_REPORT="$OPTIONAL_REPORT
    $1: yes"],
    [AS_IF([test "x$with_$1" = xno],
      [OPTIONAL_REPORT="$OPTIONAL_REPORT
    $1: no (asked for)"],
      [OPTIONAL_REPORT="$OPTIONAL_REPORT
    $1: no, install $3 for $4"])])
  AM_CONDITIONAL([HAVE_$2], [test "x$have_$1" = xyes])
])
