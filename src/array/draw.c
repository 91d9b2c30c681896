/* Makes generators ready to draw from, and picks the loops for this processor. */
#include "array/draw.h"

#include "base/elements.h"
#include "base/host.h"

#include <string.h>

static enum draw_kind kind_of(enum distribution distribution, bool floating)
{
    switch (distribution) {
    case DISTRIBUTION_UNIFORM: return floating ? DRAW_UNIFORM : DRAW_UNIFORM_WHOLE;
    case DISTRIBUTION_RAMP: return floating ? DRAW_RAMP : DRAW_RAMP_WHOLE;
    case DISTRIBUTION_WIDE: return DRAW_WIDE;
    case DISTRIBUTION_NORMAL:
    case DISTRIBUTION_LOGITS: return DRAW_NORMAL;
    case DISTRIBUTION_CONSTANT:
    case DISTRIBUTION_COUNT: break;
    }
    return DRAW_CONSTANT;
}

/* What a real number becomes if the type does not hold it. */
static void set_limits(struct draw *d)
{
    const int width = (int)type_number_bits(d->type);
    if (d->floating) {
        d->greatest = float_format_of(d->type).largest;
        d->least = -d->greatest;
        return;
    }
    d->greatest = (d->is_signed ? 0.5 : 1.0) * (double)(UINT64_C(1) << (width - 1)) * 2.0; /* the first that is beyond */
    d->least = d->is_signed ? -d->greatest : 0.0;
    d->whole_greatest = type_whole_limit(d->type, true);
    d->whole_least = type_whole_limit(d->type, false);
}

/* What only some distributions need. */
static void set_parameters(const struct generator *g, struct draw *d)
{
    const struct float_format format = float_format_of(d->type);
    switch ((enum distribution)g->distribution) {
    case DISTRIBUTION_UNIFORM:
        d->span = g->whole_b - g->whole_a + 1;
        d->shift = 64 - format.precision;
        d->unit = d->floating ? 1.0 / (double)(UINT64_C(1) << format.precision) : 0;
        break;
    case DISTRIBUTION_WIDE:
        d->span = (uint64_t)((int)g->b - (int)g->a + 1);
        d->fraction_bits = format.precision - 1;
        d->exponent_min = format.exponent_min;
        d->whole = UINT64_C(1) << (8 * allfold_type_bytes(d->type) - 1); /* the sign */
        break;
    case DISTRIBUTION_LOGITS: /* scale and share */
        d->a = 0.0;
        d->b = g->a;
        d->outliers = g->b;
        break;
    case DISTRIBUTION_CONSTANT:
        if (d->floating)
            d->whole = type_real_bits(d->type, g->a);
        break;
    case DISTRIBUTION_NORMAL:
    case DISTRIBUTION_RAMP:
    case DISTRIBUTION_COUNT: break;
    }
}

void draw_prepare(const struct generator *g, allfold_type type, struct draw *draw)
{
    const bool floating = type_kind(type) == 'f';
    *draw = (struct draw){.type = type, .kind = kind_of((enum distribution)g->distribution, floating), .floating = floating,
                          .is_signed = type_kind(type) == 'i', .state = draw_mix(g->seed + DRAW_WEYL), .a = g->a, .b = g->b,
                          .whole = g->whole_a, .span = g->whole_b};
    set_parameters(g, draw);
    set_limits(draw);
}

void draw_elements(const struct draw *draw, struct range range, void *elements)
{
    static draw_loop *const loops[] = {
        [ISA_BASE] = draw_base,
#ifdef ALLFOLD_HAVE_X86_ISA
        [ISA_AVX2] = draw_avx2,
        [ISA_AVX512] = draw_avx512,
#endif
    };
    loops[host_isa()](draw, range, elements);
}
