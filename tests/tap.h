/* Test Anything Protocol for the C tests. Under MPI all ranks call every function here together: a check passes only if
   it passed on all ranks, and rank 0 alone prints.

       int main(int argc, char **argv)
       {
           MPI_Init(&argc, &argv);                       // argv[1] is the backend: "cpu" or "cuda"
           if (no such backend here)
               tap_skip_all("no CUDA device");           // then straight to tap_done()
           else
               tap_ok(sum == expected, "sum of %d elements", n);
           int status = tap_done();                      // prints the plan; 0, or 1 if a check failed
           MPI_Finalize();
           return status;
       }

   A test without MPI defines TAP_WITHOUT_MPI before the include. ALLFOLD_TEST_CASE, if it is set, is a part of the names of the checks
   that are wanted, before which ALLFOLD_TEST_PREFIX stands: others do not count, and what takes long asks tap_wanted() first. */
#pragma once

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct {
    int number, failed;
    bool skipped, hidden; /* hidden: the last check was not wanted */
} tap;

#ifdef TAP_WITHOUT_MPI
static inline int tap_rank(void) { return 0; }
static inline int tap_first_failing(bool condition) { return condition ? -1 : 0; }
#else
#include <mpi.h>
static inline int tap_rank(void)
{
    int rank;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    return rank;
}

/* The lowest rank on which condition is false, or -1. */
static inline int tap_first_failing(bool condition)
{
    int size, mine, first;
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    mine = condition ? size : tap_rank();
    MPI_Allreduce(&mine, &first, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
    return first < size ? first : -1;
}
#endif

/* part: of a name that is not complete it is enough that ALLFOLD_TEST_CASE has it. */
__attribute__((format(printf, 2, 0))) static inline bool tap_named(bool part, const char *format, va_list arguments)
{
    const char *const wanted = getenv("ALLFOLD_TEST_CASE"), *const prefix = getenv("ALLFOLD_TEST_PREFIX");
    char name[1000], whole[1500];
    vsnprintf(name, sizeof name, format, arguments);
    snprintf(whole, sizeof whole, "%.400s%s", prefix != NULL ? prefix : "", name);
    return wanted == NULL || strstr(whole, wanted) != NULL || (part && strstr(wanted, name) != NULL);
}

/* Whether to make the check of this name, which may lack the count at its end. */
__attribute__((format(printf, 1, 2))) static inline bool tap_wanted(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    const bool wanted = tap_named(true, format, arguments);
    va_end(arguments);
    return wanted;
}

static inline void tap_print(const char *head, const char *format, va_list arguments)
{
    if (tap_rank() != 0)
        return;
    fputs(head, stdout);
    vprintf(format, arguments);
    putchar('\n');
    fflush(stdout);
}

/* One check, described printf-like. Returns the verdict of all ranks. */
__attribute__((format(printf, 2, 3))) static inline bool tap_ok(bool condition, const char *format, ...)
{
    const int failing = tap_first_failing(condition);
    char head[64];
    va_list arguments;
    va_start(arguments, format);
    tap.hidden = !tap_named(false, format, arguments);
    va_end(arguments);
    if (tap.hidden)
        return failing < 0;
    snprintf(head, sizeof head, "%sok %d - ", failing < 0 ? "" : "not ", ++tap.number);
    va_start(arguments, format);
    tap_print(head, format, arguments);
    va_end(arguments);
    if (failing >= 0) {
        tap.failed++;
        if (tap_rank() == 0)
            printf("#   failed first on rank %d\n", failing);
    }
    return failing < 0;
}

/* A remark, printed by rank 0. */
__attribute__((format(printf, 1, 2))) static inline void tap_note(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    if (!tap.hidden)
        tap_print("# ", format, arguments);
    va_end(arguments);
}

/* One check that cannot be made here, and why. */
__attribute__((format(printf, 1, 2))) static inline void tap_skip(const char *format, ...)
{
    char head[64];
    va_list arguments;
    va_start(arguments, format);
    tap.hidden = !tap_named(false, format, arguments);
    va_end(arguments);
    if (tap.hidden)
        return;
    snprintf(head, sizeof head, "ok %d # SKIP ", ++tap.number);
    va_start(arguments, format);
    tap_print(head, format, arguments);
    va_end(arguments);
}

/* The whole test cannot be run here; no check may have been made before. */
__attribute__((format(printf, 1, 2))) static inline void tap_skip_all(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    tap_print("1..0 # SKIP ", format, arguments);
    va_end(arguments);
    tap.skipped = true;
}

/* Prints the plan; returns main's status. Before MPI_Finalize. */
static inline int tap_done(void)
{
    if (!tap.skipped && tap_rank() == 0) {
        printf("1..%d%s\n", tap.number, tap.number == 0 ? " # SKIP no check is named so" : "");
        fflush(stdout);
    }
    return tap.failed > 0;
}
