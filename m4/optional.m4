dnl SPDX-License-Identifier: Apache-2.0
dnl IOBENCH_OPTIONAL(option, VARIABLE, pkg-config modules, Debian package, what it is for)
dnl --with-OPTION=auto|yes|no. Defines HAVE_VARIABLE for C and for automake, substitutes
dnl VARIABLE_CFLAGS and VARIABLE_LIBS. Asked for and missing is an error.
AC_DEFUN([IOBENCH_OPTIONAL], [
  AC_ARG_WITH([$1], [AS_HELP_STRING([--with-$1=auto|yes|no], [$5])], [], [with_$1=auto])
  have_$1=no
  AS_IF([test "x$with_$1" != xno],
    [PKG_CHECK_MODULES([$2], [$3], [have_$1=yes], [
      AS_IF([test "x$with_$1" = xyes],
        [AC_MSG_ERROR([--with-$1 was asked for but $3 was not found: install $4])])])])
  AS_IF([test "x$have_$1" = xyes],
    [AC_DEFINE([HAVE_$2], [1], [Define when $3 is there: $5.])
     OPTIONAL_REPORT="$OPTIONAL_REPORT
    $1: yes"],
    [AS_IF([test "x$with_$1" = xno],
      [OPTIONAL_REPORT="$OPTIONAL_REPORT
    $1: no (asked for)"],
      [OPTIONAL_REPORT="$OPTIONAL_REPORT
    $1: no, install $4 for $5"])])
  AM_CONDITIONAL([HAVE_$2], [test "x$have_$1" = xyes])
])
