/* Prints a command's report on standard output: a line for people, the bare value, or one JSON object. Rank 0 only. */
#pragma once

#include "cli/session.h"

#include <json-c/json.h>

/* The report of a fold. */
void report_fold(const struct session *session, const struct fold_results *result, double seconds);

/* The report of a command that wrote an array of elements of type `type`. */
void report_output(const struct session *session, allfold_type type, double seconds);

/* A JSON string. Bytes of text that are not UTF-8 become U+FFFD: file names may hold any bytes. */
struct json_object *report_string(const char *text);
/* Seconds and rates, in six digits: more are noise. null if not finite. */
struct json_object *report_measured(double number);

/* Describes the exchange and the number of hosts, in words and as fields of a report. */
const char *report_exchange_name(const struct session *session);
void report_exchange(const struct session *session, struct json_object *report);

/* Prints the object on a line of its own and frees it. */
void report_print(struct json_object *object);
