# Job scripts, to be copied and edited: README.md says how. One more is one name below; tests/slurm runs them.
job_files = \
	jobs/README.md \
	jobs/site.env \
	jobs/job.sh \
	jobs/reduce.sbatch \
	jobs/softmax.sbatch \
	jobs/bench.sbatch \
	jobs/scaling.sbatch \
	jobs/check.sbatch \
	jobs/reduce.pbs \
	jobs/reduce.lsf \
	jobs/reduce.flux \
	jobs/reduce.sge
jobsdir = $(pkgdatadir)/jobs
dist_jobs_DATA = $(job_files)
