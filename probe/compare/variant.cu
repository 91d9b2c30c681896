#include "kernels/exact.cuh"
#define GLUE2(a,b) a##b
#define GLUE(a,b) GLUE2(a,b)
extern "C" int GLUE(VARIANT,_launch)(const struct work *work, const struct fold_space *space, void *stream)
{
    switch (work->type) {
    case ALLFOLD_F32: return exact_start<exact_of<MONOID_compare, float>, element<ALLFOLD_F32>>(work, space, stream);
    case ALLFOLD_BF16: return exact_start<exact_of<MONOID_compare, float>, element<ALLFOLD_BF16>>(work, space, stream);
    case ALLFOLD_F16: return exact_start<exact_of<MONOID_compare, float>, element<ALLFOLD_F16>>(work, space, stream);
    default: return 1;
    }
}
