# The program, at the top of the build folder.
bin_PROGRAMS += allfold
allfold_SOURCES = \
	src/cli/bench_baseline.c \
	src/cli/bench_report.c \
	src/cli/bench_report.h \
	src/cli/cli.h \
	src/cli/cmd_bench.c \
	src/cli/cmd_fold.c \
	src/cli/cmd_generate.c \
	src/cli/cmd_info.c \
	src/cli/cmd_ladder.c \
	src/cli/cmd_merge.c \
	src/cli/cmd_softmax.c \
	src/cli/help.c \
	src/cli/help.h \
	src/cli/ladder_report.c \
	src/cli/ladder_report.h \
	src/cli/launch.c \
	src/cli/launch.h \
	src/cli/main.c \
	src/cli/nvtx.c \
	src/cli/nvtx.h \
	src/cli/number.c \
	src/cli/number.h \
	src/cli/options.c \
	src/cli/options.h \
	src/cli/progress.c \
	src/cli/progress.h \
	src/cli/ranks.c \
	src/cli/ranks.h \
	src/cli/report.c \
	src/cli/report.h \
	src/cli/session.c \
	src/cli/session.h
allfold_LDADD = libbench.a libladder.a $(LDADD) $(NCCL_LIBS) $(NVTX_LIBS)
