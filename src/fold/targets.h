/* The targets of rows: what partials are told of them, and what gradients are there. On the host and in kernels. */
#pragma once

#include "fold/axis.h"
#include "fold/log_probs.h"

/* Where result r begins in a box. */
HOST_DEVICE uint64_t box_row_at(const struct box *box, uint64_t r) { return r / box->inner * box->outer_stride + r % box->inner; }

/* What is known (log_probs.h) of the target of result r from the elements of a box, of which the first has the index `first` along the axis. */
HOST_DEVICE uint64_t target_mark(const struct axis_targets *targets, uint64_t r, const void *x, allfold_type type, const struct box *box, uint64_t first)
{
    uint64_t place, mark;
    double logit = 0.0;
    if (!mark_place(targets->of[r], targets->ignore, targets->whole, first, box->length, &place, &mark))
        return mark;
    real_load(x, box_row_at(box, r) + place * box->axis_stride, type, &logit);
    return mark_of(logit);
}

/* The constants of result r, and in log_low what y is to be at its target, before x is overwritten. */
HOST_DEVICE void gradient_begin(const struct gradient_work *work, uint64_t r)
{
    const struct softmax_work *const softmax = &work->softmax;
    const uint64_t mark = work->targets.of != NULL ? target_mark(&work->targets, r, softmax->x, softmax->x_type, &softmax->box, work->first) : MARK_NONE;
    const double scale = work->scale != NULL ? work->scale[r] : 1.0, sum = work->logsumexp[r];
    struct softmax_constants c;
    softmax_constants_scaled(sum, mark == MARK_IGNORED ? 0.0 : scale, softmax->x_type == ALLFOLD_F64, &c);
    c.log_low = logits_slope_at(mark_logit(mark), sum, scale);
    work->constants[r] = c;
    if (mark == MARK_OUT_OF_RANGE)
        *work->refused = 1;
}

/* Mends y of result r: its target, or all if that is ignored, of which this is member `member` of `members`. */
HOST_DEVICE void gradient_end(const struct gradient_work *work, uint64_t r, uint32_t member, uint32_t members)
{
    const struct softmax_work *const softmax = &work->softmax;
    const struct box box = {softmax->box.outer, softmax->box.length, softmax->box.inner, softmax->y_outer_stride, softmax->y_axis_stride};
    const struct axis_targets *const targets = &work->targets;
    uint64_t place, mark;
    const uint64_t row = box_row_at(&box, r);
    if (mark_place(targets->of[r], targets->ignore, targets->whole, work->first, box.length, &place, &mark) && member == 0)
        real_store(softmax->y, row + place * box.axis_stride, softmax->y_type, work->constants[r].log_low);
    if (mark == MARK_IGNORED)
        for (uint64_t l = member; l < box.length; l += members)
            real_store(softmax->y, row + l * box.axis_stride, softmax->y_type, 0.0);
}
