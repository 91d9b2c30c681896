# What the job scripts share; they read it after site.env. Nothing in it needs editing.
set -u

# srun no longer takes this over from the job by itself, since Slurm 22.05.
if [ -n "${SLURM_CPUS_PER_TASK:-}" ]; then
    export SRUN_CPUS_PER_TASK=$SLURM_CPUS_PER_TASK
fi
job=${job:-${SLURM_JOB_NAME:-job}-${SLURM_JOB_ID:-$$}}                              # in the names of results
requeue=${requeue:-slurm_requeue}                                                   # puts this job back into the queue
checkpoint=$RESULTS/$job.checkpoint                                                 # what a stopped job goes on from
mkdir -p "$RESULTS" || exit 1
trap : TERM USR1 USR2 # may reach the shell, too: it waits for the program's status, and cleans up

# Starts allfold on all tasks of the job. The status is the program's: the highest of its ranks.
launch()  # ARGUMENT...
{
    $LAUNCH "$ALLFOLD" "$@"
}

# The same, with standard output in a file that appears under its name only if the program succeeds. Launchers lose a program's
# output now and then: then it is started once more.
launch_into()  # FILE ARGUMENT...
{
    local file=$1 status try
    shift
    for try in first second; do
        launch "$@" >"$file.part"
        status=$?
        if [ $status != 0 ] || [ -s "$file.part" ]; then
            break
        fi
        echo "$file: the program succeeded, but the launcher handed on nothing of its output ($try try)" >&2
        status=1
    done
    if [ $status = 0 ]; then
        mv "$file.part" "$file"
    else
        rm -f "$file.part"
    fi
    return $status
}

# A job that is not running any more was cancelled, or has been put back by Slurm itself: then it stays so.
slurm_requeue()
{
    scontrol show job "${SLURM_JOB_ID:-}" | grep -q 'JobState=RUNNING' && scontrol requeue "$SLURM_JOB_ID"
}

# Ends the job with that status, so that the job has failed where the program has. 75 means that the program was stopped
# by a signal, as before the time limit, and will go on if it is started again: back into the queue, where the site lets it.
finish()  # STATUS
{
    if [ "$1" = 75 ]; then
        $requeue || echo "$job: stopped, and not put back into the queue; what it has done is in $checkpoint.*"
    elif [ "$1" != 0 ]; then
        echo "$job: failed with status $1" >&2
    fi
    exit "$1"
}
