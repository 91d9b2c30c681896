# ALLFOLD_JSON: json-c, which the program writes its reports with. Sets JSON_C_CFLAGS and JSON_C_LIBS.
AC_DEFUN([ALLFOLD_JSON], [
  PKG_CHECK_MODULES([JSON_C], [json-c >= 0.14],
    [allfold_json=`$PKG_CONFIG --modversion json-c 2>/dev/null || echo given`],
    [AC_MSG_ERROR([json-c 0.14 or newer is needed, and pkg-config does not know it.
  Debian, Ubuntu: apt-get install libjson-c-dev. Elsewhere: add the folder of its json-c.pc to PKG_CONFIG_PATH.])])
])
