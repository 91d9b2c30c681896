# The program, at the top of the build folder.
bin_PROGRAMS += allfold
allfold_SOURCES = \
	src/cli/axes.c \
	src/cli/axes.h \
	src/cli/weights.c \
	src/cli/weights.h \
	src/cli/cli.h \
	src/cli/commands/bench.c \
	src/cli/commands/bench_baseline.c \
	src/cli/commands/bench_report.c \
	src/cli/commands/bench_report.h \
	src/cli/commands/commands.c \
	src/cli/commands/commands.h \
	src/cli/commands/compare.c \
	src/cli/commands/compare_report.c \
	src/cli/commands/fold.c \
	src/cli/commands/compare.h \
	src/cli/commands/fold.h \
	src/cli/commands/fold_axis.c \
	src/cli/commands/fold_axis.h \
	src/cli/commands/fold_axis_print.c \
	src/cli/commands/fold_input.c \
	src/cli/commands/fold_many.c \
	src/cli/commands/generate.c \
	src/cli/commands/list.c \
	src/cli/commands/list.h \
	src/cli/commands/info.c \
	src/cli/commands/info_file.c \
	src/cli/commands/ladder.c \
	src/cli/commands/ladder_machine.c \
	src/cli/commands/ladder_machine.h \
	src/cli/commands/ladder_report.c \
	src/cli/commands/ladder_report.h \
	src/cli/commands/merge.c \
	src/cli/commands/option_rows.c \
	src/cli/commands/order.c \
	src/cli/commands/option_rows.h \
	src/cli/commands/softmax.c \
	src/cli/environment.c \
	src/cli/help.c \
	src/cli/help.h \
	src/cli/launch.c \
	src/cli/launch.h \
	src/cli/links.c \
	src/cli/main.c \
	src/cli/names.c \
	src/cli/names.h \
	src/cli/number.c \
	src/cli/number.h \
	src/cli/nvtx.c \
	src/cli/nvtx.h \
	src/cli/options.c \
	src/cli/options.h \
	src/cli/progress.c \
	src/cli/progress.h \
	src/cli/ranks.c \
	src/cli/ranks.h \
	src/cli/report.c \
	src/cli/report.h \
	src/cli/resume.c \
	src/cli/resume.h \
	src/cli/session.c \
	src/cli/session.h \
	src/cli/start.c \
	src/cli/start.h \
	src/cli/suggest.c \
	src/cli/suggest.h \
	src/cli/tables.c \
	src/cli/tables.h \
	src/cli/text.c \
	src/cli/text.h
# Where the ladder's emulation is, from the program: the whole installation may be moved.
src/cli/commands/ladder_machine.$(OBJEXT): AM_CPPFLAGS += \
	-DALLFOLD_MACHINE_DIR='"'`realpath -m --relative-to='$(bindir)' '$(pkglibdir)'`'"'
# The commit of a checkout, for --version and info; a release has none. Every make asks git, and writes the file if it changes. If git
# refuses, as for root in a user's checkout, what the file has stays.
nodist_allfold_SOURCES = src/cli/commit.c
.PHONY: commit
src/cli/commit.c: commit
	$(AM_V_at)$(MKDIR_P) $(@D) && commit= && if test -e $(top_srcdir)/.git; then \
	    commit=`git --no-optional-locks -C $(top_srcdir) describe --always --abbrev=12 --exclude='*' --dirty=-changed 2>/dev/null` \
	      || ! test -e $@ || exit 0; \
	  fi; \
	  printf '/* Written by make. */\n#include "cli/help.h"\nconst char help_commit[] = "%s";\n' "$$commit" >$@.new && \
	  if cmp -s $@.new $@; then rm $@.new; else mv $@.new $@; fi
CLEANFILES += src/cli/commit.c
allfold_LINK = $(LINK) -Wl,--dynamic-list=$(srcdir)/src/cli/environment.list
EXTRA_DIST += src/cli/environment.list
allfold_LDADD = libbench.a libladder.a libmeasure.a $(LDADD) $(NCCL_LIBS) $(NVTX_LIBS)
