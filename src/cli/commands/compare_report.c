/* Prints what compare found: see compare.h. */
#include "cli/commands/compare.h"

#include "cli/number.h"
#include "cli/progress.h"
#include "cli/report.h"
#include "cli/text.h"

#include <inttypes.h>
#include <string.h>

/* A number of a comparison, in the order of the report. */
struct row {
    const char *name;
    allfold_value value;
    const allfold_largest *largest; /* NULL, or where that was found */
};
enum { ROWS_MAX = 15 };
struct report_rows {
    struct row row[ROWS_MAX];
    int count;
};

static void add_count(struct report_rows *rows, const char *name, uint64_t count)
{
    rows->row[rows->count++] = (struct row){name, {.kind = ALLFOLD_VALUE_U64, .u64 = count}, NULL};
}
static void add_largest(struct report_rows *rows, const char *name, const allfold_largest *largest)
{
    rows->row[rows->count++] = (struct row){name, largest->value, largest};
}
static void add_real(struct report_rows *rows, const char *name, double number)
{
    rows->row[rows->count++] = (struct row){name, {.kind = ALLFOLD_VALUE_F64, .f64 = number}, NULL};
}

static bool has_missing(const struct compare_item *item)
{
    return encoding_has_missing(&item->a->encoding) || encoding_has_missing(&item->b->encoding);
}

static struct report_rows report_rows_of(const struct compare_item *item)
{
    const allfold_comparison *const found = &item->found;
    struct report_rows rows = {.count = 0};
    add_count(&rows, "count", found->count);
    add_count(&rows, "different", found->different);
    add_count(&rows, "nan_a", found->nan_a);
    add_count(&rows, "nan_b", found->nan_b);
    add_count(&rows, "nan_both", found->nan_both);
    if (has_missing(item)) {
        add_count(&rows, "missing_a", found->missing_a);
        add_count(&rows, "missing_b", found->missing_b);
        add_count(&rows, "missing_both", found->missing_both);
    }
    add_largest(&rows, "max_abs", &found->max_abs);
    add_largest(&rows, "max_rel", &found->max_rel);
    if (found->has_ulp)
        add_largest(&rows, "max_ulp", &found->max_ulp);
    add_real(&rows, "mean_difference", found->mean_difference);
    add_real(&rows, "rmse", found->rmse);
    add_count(&rows, "outside", found->outside);
    return rows;
}

/* ---- JSON */

static void add_text(struct json_object *object, const char *name, const char *more, struct json_object *value)
{
    char key[64];
    snprintf(key, sizeof key, "%s%s", name, more);
    json_object_object_add(object, key, value);
}

/* A value at a place: null if it is missing; NaN and infinities are words. */
static struct json_object *place_value(allfold_type type, uint64_t bits, bool missing)
{
    const allfold_value value = compare_value(type, bits);
    struct json_object *const number = missing ? NULL : report_value(value);
    return number != NULL || missing ? number : json_object_new_string(number_value(value).text);
}

static void add_place(const struct compare_item *item, const struct compare_place *place, struct json_object *list)
{
    struct json_object *const object = json_object_new_object();
    json_object_object_add(object, "index", json_object_new_uint64(place->index));
    json_object_object_add(object, "place", report_place(item->a, place->index));
    json_object_object_add(object, "a", place_value(item->a->type, place->a, place->missing_a));
    json_object_object_add(object, "b", place_value(item->b->type, place->b, place->missing_b));
    json_object_array_add(list, object);
}

static void add_found(const struct session *session, const struct compare_item *item, struct json_object *object)
{
    const struct report_rows rows = report_rows_of(item);
    for (int i = 0; i < rows.count; i++) {
        const struct row *const row = &rows.row[i];
        const allfold_largest *const largest = row->largest;
        const bool placed = largest != NULL && largest->index != ALLFOLD_NO_INDEX;
        add_text(object, row->name, "", report_value(row->value));
        if (largest == NULL)
            continue;
        add_text(object, row->name, "_index", placed ? json_object_new_uint64(largest->index) : NULL);
        add_text(object, row->name, "_place", placed ? report_place(item->a, largest->index) : NULL);
        add_text(object, row->name, "_a", placed ? report_value(largest->a) : NULL);
        add_text(object, row->name, "_b", placed ? report_value(largest->b) : NULL);
    }
    json_object_object_add(object, "within", json_object_new_boolean(item->found.within));
    if (session->settings->compare.first == 0)
        return;
    struct json_object *const list = json_object_new_array();
    for (uint64_t i = 0; i < item->place_count; i++)
        add_place(item, &item->places[i], list);
    json_object_object_add(object, "places", list);
}

static void add_array(struct json_object *object, const char *name, const char *type, const struct array_info *info)
{
    char text[ARRAY_NAME_BYTES];
    json_object_object_add(object, name, report_string(array_name(info, text)));
    json_object_object_add(object, type, json_object_new_string(allfold_type_name(info->type)));
}

/* The names of the arrays that only A has, or only B. */
static void add_only(struct json_object *report, const char *name, const struct compare_items *all, bool of_a)
{
    struct json_object *const list = json_object_new_array();
    for (uint64_t i = 0; i < all->count; i++)
        if ((of_a ? all->items[i].b : all->items[i].a) == NULL)
            json_object_array_add(list, report_string((of_a ? all->items[i].a : all->items[i].b)->member));
    json_object_object_add(report, name, list);
}

static void add_pairs(const struct session *session, const struct compare_items *all, struct json_object *report)
{
    struct json_object *const arrays = json_object_new_array();
    for (uint64_t i = 0; i < all->count; i++) {
        const struct compare_item *const item = &all->items[i];
        if (item->a == NULL || item->b == NULL)
            continue;
        struct json_object *const array = json_object_new_object();
        json_object_object_add(array, "name", report_string(item->a->member));
        add_array(array, "input", "dtype", item->a);
        add_array(array, "second", "second_dtype", item->b);
        if (item->refused.status != ALLFOLD_OK)
            json_object_object_add(array, "refused", report_string(item->refused.text));
        else
            add_found(session, item, array);
        json_object_array_add(arrays, array);
    }
    json_object_object_add(report, "arrays", arrays);
    add_only(report, "only_a", all, true);
    add_only(report, "only_b", all, false);
    json_object_object_add(report, "within", json_object_new_boolean(!session->outside));
}

static void print_json(const struct session *session, const struct compare_items *all, double seconds)
{
    struct json_object *const report = report_begin(session, ALLFOLD_LEVEL_EXACT);
    if (all->several) {
        json_object_object_del(report, "input"); /* the last pair's */
        json_object_object_del(report, "dtype");
        json_object_object_del(report, "count");
        add_pairs(session, all, report);
    } else {
        add_array(report, "input", "dtype", all->items[0].a);
        add_array(report, "second", "second_dtype", all->items[0].b);
        add_found(session, &all->items[0], report);
    }
    report_end(session, report, seconds);
}

/* ---- text */

static void print_values(const char *a, const char *b) { printf(": %s and %s", a, b); }

static void print_places(const struct compare_item *item)
{
    for (uint64_t i = 0; i < item->place_count; i++) {
        const struct compare_place *const place = &item->places[i];
        const struct number_text a = number_value(compare_value(item->a->type, place->a)), b = number_value(compare_value(item->b->type, place->b));
        fputs("  outside", stdout);
        report_index(item->a, place->index);
        print_values(place->missing_a ? "missing" : a.text, place->missing_b ? "missing" : b.text);
        putchar('\n');
    }
}

static void print_largest(const struct compare_item *item, const allfold_largest *largest)
{
    report_index(item->a, largest->index);
    if (largest->index != ALLFOLD_NO_INDEX)
        print_values(number_value(largest->a).text, number_value(largest->b).text);
}

static void print_table(const struct session *session, const struct compare_item *item)
{
    const char *const indent = session->settings->quiet ? "" : "  ";
    const struct report_rows rows = report_rows_of(item);
    for (int i = 0; i < rows.count; i++) {
        printf("%s%-15s  %s", indent, rows.row[i].name, number_value(rows.row[i].value).text);
        if (rows.row[i].largest != NULL)
            print_largest(item, rows.row[i].largest);
        putchar('\n');
    }
    printf("%s%-15s  %s\n", indent, "within", item->found.within ? "yes" : "no");
    print_places(item);
}

static void print_line(const struct compare_item *item)
{
    const allfold_comparison *const found = &item->found;
    text_print(stdout, (item->a != NULL ? item->a : item->b)->member);
    if (item->a == NULL || item->b == NULL) {
        printf("  only in %s\n", item->b == NULL ? "the first" : "the second");
        return;
    }
    if (item->refused.status != ALLFOLD_OK) {
        fputs("  not compared: ", stdout);
        text_print(stdout, item->refused.text);
        putchar('\n');
        return;
    }
    printf("  %s: %" PRIu64 " of %" PRIu64 " outside, %" PRIu64 " different, max_abs %s, max_rel %s", found->within ? "within" : "outside",
           found->outside, found->count, found->different, number_value(found->max_abs.value).text, number_value(found->max_rel.value).text);
    if (found->has_ulp)
        printf(", max_ulp %" PRIu64, found->max_ulp.value.u64);
    printf(", rmse %s", number_shortest(found->rmse).text);
    if (found->nan_a + found->nan_b + found->nan_both > 0)
        printf(", NaN: %" PRIu64 " in a, %" PRIu64 " in b, %" PRIu64 " in both", found->nan_a, found->nan_b, found->nan_both);
    if (found->missing_a + found->missing_b + found->missing_both > 0)
        printf(", missing: %" PRIu64 " in a, %" PRIu64 " in b, %" PRIu64 " in both", found->missing_a, found->missing_b, found->missing_both);
    putchar('\n');
    print_places(item);
}

static void print_text(const struct session *session, const struct compare_items *all, double seconds)
{
    if (!all->several) {
        if (!session->settings->quiet) {
            char name[ARRAY_NAME_BYTES];
            fputs("compare with ", stdout);
            text_print(stdout, array_name(all->items[0].b, name));
            report_circumstances(session, ALLFOLD_LEVEL_EXACT, seconds);
        }
        print_table(session, &all->items[0]);
        return;
    }
    for (uint64_t i = 0; i < all->count; i++)
        print_line(&all->items[i]);
}

void compare_report(struct session *session, const struct compare_items *all, double seconds)
{
    progress_end();
    if (!all->several) {
        const allfold_comparison *const found = &all->items[0].found;
        session->missing = found->missing_a + found->missing_both;
    }
    if (session->settings->json)
        print_json(session, all, seconds);
    else
        print_text(session, all, seconds);
}
