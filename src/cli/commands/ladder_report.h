/* Gathers the ladder's tables from the ranks; rank 0 prints them, for people or as one JSON object. */
#pragma once

#include "cli/session.h"
#include "kernels/ladder/ladder.h"

struct ladder_report {
    struct session *session;
    struct json_object *object; /* rank 0 and --json, else NULL */
    bool emulated;              /* nothing has a time */
    char wrong[256];            /* the first thing that differed from its oracle on this rank; "" if nothing */
};

/* Collective. Gathers what each rank runs on, and begins the report of `topic`. */
void ladder_report_begin(struct session *session, const char *topic, const struct gpu_device *device,
                         struct ladder_report *report);

/* Collective. Whether all ranks have these integers; if not it is every rank's error: rank N `otherwise`. */
bool ladder_report_alike(struct session *session, const int *mine, int count, const char *otherwise);

/* Collective. Adds a table; each rank has its own. If session->error, not yet agreed upon, holds an error, nothing is added and
   the error becomes every rank's. request names the subject of the table; NULL if there are several. */
void ladder_report_table(struct ladder_report *report, const struct ladder_topic *topic,
                         const struct ladder_request *request, const struct table *table);

/* Collective. Ends the report and frees what it holds; a rung that was wrong anywhere becomes every rank's error. */
void ladder_report_end(struct ladder_report *report);
