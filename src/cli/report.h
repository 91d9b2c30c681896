/* Prints a command's report on standard output: a line for people, the bare value, or one JSON object. Rank 0 only. */
#pragma once

#include "cli/axes.h"
#include "cli/session.h"

#include <json-c/json.h>

/* The report of a fold. */
void report_fold(const struct session *session, const struct fold_results *result, double seconds);

/* The results of several arrays, each for itself. */
struct report_item {
    const struct array_info *input;
    uint64_t missing; /* elements of it that were left out */
    struct fold_results result;
};
struct report_items {
    struct report_item *items;
    uint64_t count;
    bool one_file; /* the arrays' own names tell them apart */
};
void report_each(const struct session *session, const struct report_items *all, double seconds);

/* The report of a command that wrote an array of elements of that type. */
struct report_output {
    allfold_type type;
    const struct axes *axes; /* along which it worked; NULL: over the whole array */
    const struct axis_array *array;
};
void report_output(const struct session *session, const struct report_output *output, double seconds);

/* What every report in JSON begins with, and ends with: it is printed and freed. */
struct json_object *report_begin(const struct session *session, allfold_level level);
void report_end(const struct session *session, struct json_object *report, double seconds);

/* For people: what was done, and to what, in brackets behind two spaces. It ends the line. */
void report_circumstances(const struct session *session, allfold_level level, double seconds);

/* A value; null if it is not finite. */
struct json_object *report_value(allfold_value value);

/* Adds value, text, hex, and index and place if there is an index. */
void report_add_value(struct json_object *object, const struct array_info *input, const struct fold_field *field);

/* A JSON string. Bytes of text that are not UTF-8 become U+FFFD: file names may hold any bytes. */
struct json_object *report_string(const char *text);
/* Where the element with that index is: a list; NULL if the input has no dimensions. */
struct json_object *report_place(const struct array_info *input, uint64_t index);
/* Prints " at index 5, (time, lat) = (0, 5)"; nothing for ALLFOLD_NO_INDEX. */
void report_index(const struct array_info *input, uint64_t index);
/* Says on standard error that one of several arrays is left out, and why. */
void report_left_out(const struct array_entry *entry);
/* A list of such numbers, as of a shape. */
struct json_object *report_counts(const uint64_t *counts, uint32_t count);
/* Adds, of a slice, the first index and that behind the last of each dimension of the whole array. */
void report_slice(const struct array_info *info, struct json_object *report);
/* Seconds and rates, in six digits: more are noise. null if not finite. */
struct json_object *report_measured(double number);

/* Describes the exchange and the number of hosts, in words and as fields of a report. */
const char *report_exchange_name(const struct session *session);
void report_exchange(const struct session *session, struct json_object *report);

/* Prints the object on a line of its own and frees it. */
void report_print(struct json_object *object);
