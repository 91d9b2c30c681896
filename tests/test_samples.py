#!/usr/bin/env python3
"""The job scripts are good shell; and the samples for PBS Pro, LSF, Flux and Grid Engine, run by bash as those systems would
run them, with their variables and mpirun, give the right result and the program's status. (tests/slurm runs Slurm's.)"""
import json
import os
import re
import shutil
import subprocess
import tempfile

import tap

JOBS = os.path.join(tap.SOURCE, "jobs")
RANKS = 2
# What each system sets, as far as the scripts look; HERE is the folder of the job.
SYSTEMS = {
    "reduce.pbs": {"PBS_O_WORKDIR": "HERE", "PBS_NODEFILE": "HERE/nodes", "PBS_JOBNAME": "allfold-reduce",
                   "PBS_JOBID": "17.server", "PBS_ENVIRONMENT": "PBS_BATCH"},
    "reduce.lsf": {"LSB_DJOB_NUMPROC": "2", "LSB_MCPU_HOSTS": "n1 1 n2 1", "LSB_JOBNAME": "allfold-reduce", "LSB_JOBID": "17"},
    "reduce.flux": {"TASKS": "2", "FLUX_ENCLOSING_ID": "17"},
    "reduce.sge": {"NSLOTS": "2", "NHOSTS": "2", "JOB_NAME": "allfold-reduce", "JOB_ID": "17", "QUEUE": "all.q"},
}
# Stands in for `flux run`: its ranks come from mpirun.
FLUX = '#!/bin/sh\ntest "$1 $2" = "run --ntasks=2" || exit 64\nwhile test "${1#-}" != "$1" -o "$1" = run; do shift; done\n' \
       'exec mpirun -n 2 "$@"\n'
# As tests/mpi-launch has it.
OPEN_MPI = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1", "OMPI_MCA_rmaps_base_oversubscribe": "1",
            "OMPI_MCA_hwloc_base_binding_policy": "none", "OMPI_MCA_pml": "ob1", "OMPI_MCA_mpi_yield_when_idle": "1", "OMP_WAIT_POLICY": "passive",
            # mpirun itself must not look for the batch systems whose variables are set
            "OMPI_MCA_ras": "^tm,lsf,gridengine,slurm", "OMPI_MCA_plm": "isolated,rsh", "OMPI_MCA_plm_rsh_agent": "/bin/false"}


def scripts():
    return sorted(name for name in os.listdir(JOBS) if name.endswith((".sbatch", ".sh", ".env")) or name in SYSTEMS)


def check_shell():
    for name in scripts():
        path = os.path.join(JOBS, name)
        process = subprocess.run(["bash", "-n", path], capture_output=True, text=True)
        with open(path, encoding="utf-8") as file:
            text = file.read()
        # options are split into words on purpose
        if not process.returncode and shutil.which("shellcheck"):
            process = subprocess.run(["shellcheck", "-s", "bash", "-e", "SC1090,SC1091,SC2086,SC2153,SC2154,SC2034", path],
                                     capture_output=True, text=True)
        tap.ok(process.returncode == 0 and not re.search(r"[ \t]$", text, flags=re.MULTILINE), f"{name} is good shell",
               process.stdout + process.stderr)


def run(script, folder, **more):
    here = {name: value.replace("HERE", folder) for name, value in SYSTEMS[script].items()}
    environment = {**os.environ, **OPEN_MPI, **here, "ALLFOLD": tap.ALLFOLD, "PATH": f"{folder}/bin:{os.environ['PATH']}",
                   "TMPDIR": folder, **more}
    return subprocess.run(["bash", os.path.join(folder, script)], cwd=folder, env=environment, capture_output=True, text=True,
                          stdin=subprocess.DEVNULL, timeout=tap.SECONDS, check=False)


def check_sample(script):
    with tempfile.TemporaryDirectory() as folder:
        for name in os.listdir(JOBS):
            shutil.copy(os.path.join(JOBS, name), folder)
        os.mkdir(os.path.join(folder, "bin"))
        with open(os.path.join(folder, "bin", "flux"), "w", encoding="utf-8") as file:
            file.write(FLUX)
        os.chmod(file.name, 0o755)
        with open(os.path.join(folder, "nodes"), "w", encoding="utf-8") as file:
            file.write("n1\nn2\n")
        process = run(script, folder, INPUT="gen:ramp?n=1000")
        try:
            with open(os.path.join(folder, "results", "allfold-reduce-17.json"), encoding="utf-8") as file:
                found = json.load(file)
        except (OSError, ValueError) as error:
            found = {"error": error}
        tap.ok(process.returncode == 0 and found.get("value") == 499500.0 and found.get("ranks") == RANKS,
               f"{script}: the right value", (process, found))
        shutil.rmtree(os.path.join(folder, "results"), ignore_errors=True)
        process = run(script, folder, INPUT="nothing.npy")
        tap.ok(process.returncode == 1 and "nothing.npy" in process.stderr and "failed with status 1" in process.stderr
               and os.listdir(os.path.join(folder, "results")) == [], f"{script}: fails where the program fails", process)


def check_lost_output():
    """A launcher that loses the output of the first start, and one that loses all."""
    for lost, status, tries in ((1, 0, 1), (9, 1, 2)):
        with tempfile.TemporaryDirectory() as folder:
            launcher = os.path.join(folder, "launcher")
            with open(launcher, "w", encoding="utf-8") as file:
                file.write(f'#!/bin/sh\necho >>starts\ntest "$(wc -l <starts)" -le {lost} || "$@"\n')
            os.chmod(launcher, 0o755)
            script = f". {JOBS}/job.sh; launch_into out echo 42; status=$?; cat out; exit $status"
            process = subprocess.run(["bash", "-c", script], cwd=folder, capture_output=True, text=True, check=False, timeout=60,
                                     env={**os.environ, "LAUNCH": launcher, "ALLFOLD": "env", "RESULTS": folder})
            tap.ok(process.returncode == status and process.stdout == ("" if status else "42\n")
                   and process.stderr.count("handed on nothing") == tries and "out.part" not in os.listdir(folder),
                   f"a launcher that loses {lost} outputs: status {status}", process)


def main():
    check_shell()
    check_lost_output()
    if shutil.which("mpirun"):
        for script in SYSTEMS:
            check_sample(script)
    else:
        tap.skip("no mpirun on the PATH")
    tap.done()


if __name__ == "__main__":
    main()
