/* Template of the results of stats. STATS is the monoid. STATS_..._FINISH finish its parts min, max, sum, norm1 and norm2.
   STATS_VARIANCE(stats, part, root) is the variance of the elements that are not NaN, more than part.ddof, or its root. */

/* If NaN propagates: all are NaN, and the extremes have the index of the first. */
FOLD_FINISH void STATS_FN(finish_nan)(const FN(STATS) * stats, const struct finish *finish)
{
    for (int i = STATISTIC_SUM; i < STATISTIC_END; i++) {
        result_f64(finish, NAN);
        if (i == STATISTIC_MIN || i == STATISTIC_MAX)
            result_last(finish)->index = stats->min.nan_index;
        result_is(finish, (enum statistic)i);
    }
}

/* What an empty array has not: these fields are then left out. part: of the elements that are not NaN. */
FOLD_FINISH void STATS_FN(finish_moments)(const FN(STATS) * stats, const struct finish *part, const struct finish *whole)
{
    FN(argmin) min = stats->min;
    FN(argmax) max = stats->max;
    min.value += (V)0; /* as min and max: the order of -0.0 and 0.0 does not show */
    max.value += (V)0;
    STATS_MEAN_FINISH(&stats->sum, part);
    result_is(part, STATISTIC_MEAN);
    result_f64(part, part->count > part->ddof ? STATS_VARIANCE(stats, *part, false) : NAN);
    result_is(part, STATISTIC_VARIANCE);
    FN(argmin_finish)(&min, whole);
    result_is(part, STATISTIC_MIN);
    FN(argmax_finish)(&max, whole);
    result_is(part, STATISTIC_MAX);
}

FOLD_FINISH allfold_status STATS_FN(finish)(const FN(STATS) * stats, const struct finish *finish)
{
    const uint64_t nans = stats->min.nans;
    if (finish->nan == ALLFOLD_NAN_ERROR && nans > 0)
        return finish_nan(finish, "stats", nans, stats->min.nan_index);
    result_u64(finish, finish->count);
    result_is(finish, STATISTIC_COUNT);
    result_u64(finish, nans);
    result_is(finish, STATISTIC_NAN_COUNT);
    if (nans > 0 && finish->nan == ALLFOLD_NAN_PROPAGATE) {
        STATS_FN(finish_nan)(stats, finish);
        return ALLFOLD_OK;
    }
    struct finish part = *finish, whole = *finish;
    part.count -= nans;
    part.nan = whole.nan = ALLFOLD_NAN_OMIT;
    part.rounds = true; /* a sum that 64 bits cannot hold refuses no other statistic: it is rounded to f64 */
    STATS_SUM_FINISH(&stats->sum, &part);
    result_is(&part, STATISTIC_SUM);
    FN(norminf) largest = FN(norminf_identity)();
    if (part.count > 0) {
        const V ends[2] = {stats->min.value, stats->max.value};
        FN(norminf_tile)(&largest, ends, 2, 0);
        STATS_FN(finish_moments)(stats, &part, &whole);
    }
    STATS_NORM1_FINISH(&stats->norm1, &part);
    result_is(&part, STATISTIC_NORM1);
    STATS_NORM2_FINISH(&stats->norm2, &part);
    result_is(&part, STATISTIC_NORM2);
    FN(norminf_finish)(&largest, &part);
    result_is(&part, STATISTIC_NORMINF);
    return finish->error->status;
}

/* The variance alone, or its root. */
FOLD_FINISH allfold_status STATS_FN(finish_variance)(const FN(STATS) * stats, const struct finish *finish, const char *name, bool root)
{
    const uint64_t nans = stats->min.nans;
    struct finish part = *finish;
    if (finish_nan(finish, name, nans, stats->min.nan_index) != ALLFOLD_OK)
        return finish->error->status;
    part.count -= nans;
    const bool exists = (nans == 0 || finish->nan == ALLFOLD_NAN_OMIT) && part.count > part.ddof;
    return result_f64(finish, exists ? STATS_VARIANCE(stats, part, root) : NAN);
}
#undef STATS
#undef STATS_FN
#undef STATS_SUM_FINISH
#undef STATS_MEAN_FINISH
#undef STATS_NORM1_FINISH
#undef STATS_NORM2_FINISH
#undef STATS_VARIANCE
