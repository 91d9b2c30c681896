# The watchdog and what it stands on: a service of the program's own.
allfold_SOURCES += \
	src/watch/board.c \
	src/watch/board.h \
	src/watch/heartbeats.c \
	src/watch/heartbeats.h \
	src/watch/stop.c \
	src/watch/stop.h \
	src/watch/temporary.c \
	src/watch/temporary.h \
	src/watch/threads.c \
	src/watch/threads.h \
	src/watch/watchdog.c \
	src/watch/watchdog.h
