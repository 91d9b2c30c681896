# ALLFOLD_OBJECT: how the objects of the library become one, whose hidden symbols are then local. Neither the archive nor the shared
# library made of it can clash with names of a program. Sets ONE_OBJECT, which $CC takes, and OBJCOPY.
AC_DEFUN([ALLFOLD_OBJECT], [
  AC_CHECK_TOOL([OBJCOPY], [objcopy])
  AC_CACHE_CHECK([how $CC makes one object of several], [allfold_cv_one_object],
    [allfold_cv_one_object=no
     cat >conftest-library.c <<ALLFOLD_EOF
__attribute__((visibility("hidden"))) int drain(void) { return 42; }
int allfold_number(void) { return drain(); }
ALLFOLD_EOF
     AC_LANG_CONFTEST([AC_LANG_SOURCE([[int allfold_number(void);
int drain(void) { return 1; }
int main(void) { return drain() + allfold_number() != 43; }]])])
     # The builder's flags may name a target or a linker. -d: the locks of OpenMP's critical sections are common symbols, which
     # cannot be local. Sections in groups, of C++, must not go by names that become local. Objects of link-time optimisation must
     # become code.
     for allfold_flags in "" "$CFLAGS $LDFLAGS"; do
       for allfold_group in -Wl,--force-group-allocation ""; do
         for allfold_lto in -flinker-output=nolto-rel ""; do
           allfold_try="$allfold_flags -r -nostdlib -Wl,-d $allfold_group $allfold_lto"
           AS_IF([{ $CC $CPPFLAGS $CFLAGS -fPIC -c conftest-library.c -o conftest-library.o &&
                    $CC $allfold_try conftest-library.o -o conftest-one.o &&
                    $OBJCOPY --localize-hidden --wildcard --keep-global-symbol="allfold_*" conftest-one.o &&
                    $CC $CPPFLAGS $CFLAGS $LDFLAGS conftest.c conftest-one.o -o conftest$ac_exeext &&
                    { test "$cross_compiling" = yes || ./conftest$ac_exeext; }; } >&AS_MESSAGE_LOG_FD 2>&1],
             [allfold_cv_one_object=$allfold_try; break 3])
         done
       done
     done
     rm -f conftest*])
  AS_IF([test "$allfold_cv_one_object" = no],
    [AC_MSG_ERROR([$CC and OBJCOPY (${OBJCOPY:-none}) do not make one object of several, with local names (config.log says why).
  Install GNU binutils (Debian, Ubuntu: apt-get install binutils); with -flto in CFLAGS leave that away.])])
  ONE_OBJECT=$allfold_cv_one_object
  AC_SUBST([ONE_OBJECT])
])
