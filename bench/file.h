/* Benchmarks data in files (file.c). run.c and peers.c call it. All is collective in the sense of run.h: every rank calls
   it, each for its own file. */
#pragma once

#include "bench/run.h"

/* Writes this rank's elements, which the machine has in host memory, to a file in the current folder. Replaces the one before. */
allfold_status bench_file_fill(struct bench *b, struct error *error);
void bench_file_close(struct bench *b); /* removes the files */
/* Before each run: the output of the run before is removed; and the input is in the system's cache, or, unless warm, is not. */
allfold_status bench_file_ready(struct bench *b, struct error *error);

bool bench_file_fits_fold(const struct bench *b);
bool bench_file_fits_softmax(const struct bench *b);
bool bench_file_fits_read(const struct bench *b);
bool bench_file_fits_direct(const struct bench *b); /* the file system has direct reads */
bool bench_file_fits_device(const struct bench *b); /* a device with memory of its own */

allfold_status bench_file_fold(struct bench *b, struct error *error);    /* the library's result goes to b->result */
allfold_status bench_file_softmax(struct bench *b, struct error *error); /* file to file, made durable */
allfold_status bench_file_softmax_error(struct bench *b, double sumexp, double *found, struct error *error);

/* Plain loops: pread by all threads into buffers of their own; the same with direct reads; by one thread, as dd does; and to the
   device, two pinned buffers a thread. pwrite by all threads of as many bytes, made durable. */
allfold_status bench_file_pread(struct bench *b, struct error *error);
allfold_status bench_file_direct(struct bench *b, struct error *error);
allfold_status bench_file_dd(struct bench *b, struct error *error);
allfold_status bench_file_to_device_prepare(struct bench *b, struct error *error);
allfold_status bench_file_to_device(struct bench *b, struct error *error);
allfold_status bench_file_pwrite(struct bench *b, struct error *error);
