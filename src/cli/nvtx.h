/* Marks phases as ranges that profilers show. */
#pragma once

/* From now on each phase of this rank is a range of that name in the NVTX domain "allfold". Does nothing in a build without NVTX,
   and costs almost nothing without a profiler. Call it once, before the work begins. */
void nvtx_name_phases(void);
