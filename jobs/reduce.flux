#!/bin/bash
# Folds an array under Flux: flux batch reduce.flux; variables: INPUT=/data/x.npy flux batch reduce.flux
#
# Run: this script, by bash, with mpirun in the place of flux run, on one host. Not run: under Flux itself; the directives
# are as its manual has them.
# flux: --job-name=allfold-reduce
# flux: --nodes=2
# flux: --nslots=8
# flux: --gpus-per-slot=1
# flux: --time-limit=30m
# flux: --output=allfold-reduce-{{id}}.out

COMMAND=${COMMAND:-sum}                         # a fold: allfold --help lists them
INPUT=${INPUT:-gen:normal?n=1e9&seed=1}         # a file that all nodes see, or gen:...
OPTIONS=${OPTIONS:-}                            # more options, such as --nan=omit or --device-memory=8Gi
TASKS=${TASKS:-8}                               # as nslots above

LAUNCH=${LAUNCH:-flux run --ntasks=$TASKS --gpus-per-task=1 --time-limit=28m --signal=SIGUSR1@60s}
job=allfold-reduce-${FLUX_ENCLOSING_ID:-$$}
requeue=false # by hand
. "${ALLFOLD_SITE:-./site.env}" && . ./job.sh || exit 1

launch_into "$RESULTS/$job.json" "$COMMAND" --json --checkpoint="$checkpoint" $OPTIONS "$INPUT"
finish $?
