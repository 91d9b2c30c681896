/* Lists the commands, and the function that each runs. main.c passes the table on; no other file uses it directly. */
#pragma once

#include "cli/cli.h"

extern const struct command_table command_table;

void fold_run(struct session *session);     /* every fold */
void compare_run(struct session *session);
void order_run(struct session *session);    /* quantile, median, topk, histogram */
void softmax_run(struct session *session);  /* and log-softmax */
void generate_run(struct session *session);
void merge_run(struct session *session);
void info_file_run(struct session *session);
void info_run(struct session *session);
void ladder_command_run(struct session *session);
void bench_command_run(struct session *session);

/* Prints the ladder's topics, a line each. */
void ladder_topics_print(FILE *file);
