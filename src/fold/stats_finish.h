/* Template of the results of stats. STATS is the monoid. STATS_..._FINISH finish its parts min, max, sum, norm1 and norm2.
   STATS_VARIANCE(stats, part) is the variance of the elements that are not NaN. Host only. */
static allfold_status STATS_FN(finish)(const FN(STATS) * stats, const struct finish *finish, struct fold_results *result,
                                       struct error *error)
{
    const uint64_t nans = stats->min.nans;
    if (finish->nan == ALLFOLD_NAN_ERROR && nans > 0)
        return finish_nan(finish, "stats", nans, stats->min.nan_index, error);
    const struct finish part = {finish->count - nans, ALLFOLD_NAN_OMIT, finish->format, finish->rounds};
    const struct finish whole = {finish->count, ALLFOLD_NAN_OMIT, finish->format, finish->rounds};
    const bool nan = nans > 0 && finish->nan == ALLFOLD_NAN_PROPAGATE, empty = part.count == 0;

    struct fold_results fields = *result;
    result_count(&fields, "count", finish->count);
    result_count(&fields, "nan_count", nans);
    if (nan) {
        static const char *const names[] = {"sum", "mean", "variance", "min", "max", "norm1", "norm2", "norminf"};
        for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
            result_f64(&fields, NAN);
            result_name(&fields, names[i]);
            if (i == 3 || i == 4)
                fields.fields[fields.field_count - 1].index = stats->min.nan_index;
        }
        *result = fields;
        return ALLFOLD_OK;
    }
    STATS_SUM_FINISH(&stats->sum, &part, &fields, error);
    result_name(&fields, "sum");
    if (!empty) { /* an empty array has no mean, variance or extremes: the fields are left out */
        STATS_MEAN_FINISH(&stats->sum, &part, &fields, error);
        result_name(&fields, "mean");
        result_f64(&fields, STATS_VARIANCE(stats, part));
        result_name(&fields, "variance");
        FN(argmin) min = stats->min;
        FN(argmax) max = stats->max;
        min.value += (V)0; /* as min and max: the order of -0.0 and 0.0 does not show */
        max.value += (V)0;
        FN(argmin_finish)(&min, &whole, &fields, error);
        result_name(&fields, "min");
        FN(argmax_finish)(&max, &whole, &fields, error);
        result_name(&fields, "max");
    }
    STATS_NORM1_FINISH(&stats->norm1, &part, &fields, error);
    result_name(&fields, "norm1");
    STATS_NORM2_FINISH(&stats->norm2, &part, &fields, error);
    result_name(&fields, "norm2");
    FN(norminf) largest = FN(norminf_identity)();
    if (!empty) {
        const V ends[2] = {stats->min.value, stats->max.value};
        FN(norminf_tile)(&largest, ends, 2, 0);
    }
    FN(norminf_finish)(&largest, &part, &fields, error);
    result_name(&fields, "norminf");
    if (error->status == ALLFOLD_OK)
        *result = fields;
    return error->status;
}
#undef STATS
#undef STATS_FN
#undef STATS_SUM_FINISH
#undef STATS_MEAN_FINISH
#undef STATS_NORM1_FINISH
#undef STATS_NORM2_FINISH
#undef STATS_VARIANCE
