/* What the parts of tests/test_failures share: the context under test, the failure that is planted in one rank's backend, and what
   must hold after one. Each part only notes what it finds. test_failures.c reports it: tap.h counts checks for each file by itself. */
#pragma once

#include "tests/support.h"

#define OPERATIONS(X) \
    X(open) X(locate) X(allocate) X(queues_open) X(enter) X(follow) X(copy) X(fold) X(fold_many) \
    X(softmax_begin) X(softmax_finish) X(softmax_axis) X(fold_axis) X(copy_strided) X(wait)
#define ENUM(name) IN_##name,
enum operation { NOWHERE, OPERATIONS(ENUM) OPERATION_COUNT };
#undef ENUM
extern const char *const operation_names[];
bool operation_exists(enum operation operation); /* in the backend under test */

/* The failure that is planted on this rank: in an operation's call number `at`, from 1. */
extern struct planted {
    const struct backend *real;
    struct backend faulty;
    enum operation operation;
    int calls, at;
} planted;

/* A GPU keeps one shard between the passes of softmax. */
enum { SHARD = 4096 / sizeof(float), COUNT = 3 * SHARD + 17 }; /* elements of each rank: four shards */

extern struct test {
    allfold_context *ctx;
    allfold_backend backend;
    int rank, size, failing;
    float x[COUNT], y[COUNT];
    void *device_x, *device_y; /* the same in device memory */
    char fault[400]; /* the first since the last report */
    int failures;    /* seen since then */
} test;

/* Notes a fault, printf-like. */
__attribute__((format(printf, 1, 2))) void found(const char *format, ...);

/* The context is as good as new: all ranks' elements, 0, 1, 2, ..., are summed. */
void must_work(const char *after);

/* status and message are the same on all ranks, and those due. */
struct due {
    allfold_status status;
    const char *text; /* a part of the message */
    bool one_rank;    /* the message names test.failing */
};
void must_fail(const char *what, allfold_status status, const char *message, const struct due *due);

/* Each runs its cases with the failure on rank test.failing. */
void test_arguments(void);
void test_disagreement(void);
void test_streams(void);
void test_backend(enum operation operation);
void test_two(void);
void test_open(void);
