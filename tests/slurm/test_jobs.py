#!/usr/bin/env python3
"""The job scripts of jobs/ on a real Slurm of two nodes (cluster.py): each is submitted, and its results, its state and
its exit status are looked at; so are the signal before the limit, requeueing, launches that are no MPI job, and the
binding of GPUs to tasks. Skips where there is no root or no Slurm; ALLFOLD_TEST_SLURM=yes makes that a failure, =no skips
without a look."""
import json
import math
import os
import re
import shutil
import signal
import sys
import traceback

import numpy as np

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import cluster  # noqa: E402
import tap  # noqa: E402

WANTED = os.environ.get("ALLFOLD_TEST_SLURM", "auto")
CORES = min(os.cpu_count(), 4)
TASKS = min(2, CORES)  # of a node
RANKS = 2 * TASKS
JOBS = cluster.SHARED + "/jobs"  # the folder that jobs are submitted from
SECONDS = int(os.environ.get("ALLFOLD_TEST_SECONDS", "600")) - 20  # before the harness would end it
LONG = "gen:normal?n=1e12"  # more than any test waits for
GENTLE = {"LAUNCH": "srun --mpi=pmix --cpu-bind=cores --kill-on-bad-exit=1 nice -n 19"}  # for long work: Slurm's daemons come first
# Hosts that meet over the veth pairs; ranks of one host in its own /dev/shm. A segmentation fault is Open MPI's to report: cluster.py knows its words.
OPEN_MPI = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1", "OMPI_MCA_btl": "tcp,vader,self",
            "OMPI_MCA_btl_vader_single_copy_mechanism": "none", "OMPI_MCA_mtl": "^ofi", "OMPI_MCA_mpi_yield_when_idle": "1", "ASAN_OPTIONS": "detect_leaks=0:handle_segv=0",
            "OMP_WAIT_POLICY": "passive"}


def path(*parts):
    return os.path.join(JOBS, *parts)


def output_of(job):
    name = job.get("StdOut", "")
    if not os.path.isfile(name):
        return f"{job}\nno output"
    with open(name, encoding="utf-8", errors="replace") as file:
        return f"{job}\n{file.read()}"


def results(pattern):
    return sorted(name for name in os.listdir(path("results")) if pattern in name) if os.path.isdir(path("results")) else []


def load(name):
    with open(path("results", name), encoding="utf-8") as file:
        return json.loads(file.readline())


class Test:
    def __init__(self, slurm):
        self.slurm = slurm
        shutil.copytree(os.path.join(tap.SOURCE, "jobs"), JOBS)
        os.environ.update(OPEN_MPI, ALLFOLD=os.path.join(cluster.SHARED, "build", "allfold"))
        self.x = np.random.default_rng(1).standard_normal(200003).astype(np.float32)
        np.save(path("x.npy"), self.x)

    def submit(self, script, *options, **environment):
        """A job script on two nodes with two tasks each, in the folder with the scripts."""
        tasks = [] if any("--ntasks" in option for option in options) else [f"--ntasks-per-node={TASKS}"]
        nodes = [] if "-N" in options else ["-N", "2"]
        # --exclusive: one job after the other; what jobs that start on a node at the same moment do to Open MPI is not tested
        return self.slurm.submit(*nodes, *tasks, "--exclusive", *options, script, cwd=JOBS, env={**os.environ, **environment})

    def ends(self, number, state, code, name, condition=lambda job: True):
        job = self.slurm.wait(number)
        right = job["JobState"] == state and code in (None, job["ExitCode"])
        return tap.ok(right and condition(job), f"{name}: {state}{', ' + code if code else ''}", output_of(job))

    def srun(self, *words, nodes=2, tasks=4, mpi="--mpi=pmix", **environment):
        return self.slurm.run("srun", "-N", str(nodes), "-n", str(tasks), "--overcommit", *([mpi] if mpi else []), *words,
                              cwd=JOBS, env={**os.environ, **environment})

    def scripts(self):
        """Each script, as it should go and as it should fail."""
        # on a node of its own: Slurm looks for jobs near their limit twice a minute
        self.limited = self.submit("reduce.sbatch", "-J", "limited", "-p", "last", "-N", "1", "--ntasks-per-node=1", "--time=1",
                                   "--signal=USR1@50", INPUT=LONG, **GENTLE)
        exact = math.fsum(self.x.astype(np.float64))
        good = self.submit("reduce.sbatch", INPUT="x.npy")
        bad = self.submit("reduce.sbatch", "-J", "bad-reduce", INPUT="nothing.npy")
        usage = self.submit("reduce.sbatch", "-J", "bad-usage", INPUT="x.npy", OPTIONS="--no-such-option")
        soft = self.submit("softmax.sbatch", INPUT="x.npy", OUTPUT="y.npy")
        badsoft = self.submit("softmax.sbatch", "-J", "bad-softmax", INPUT="x.npy", OUTPUT="nowhere/y.npy")
        check = self.submit("check.sbatch", SLOW="0")
        bench = self.submit("bench.sbatch", COUNT="1000,100000", OPTIONS="--fold=sum --seconds=0.02")
        # two nodes that are one host, shared with other work, say nothing about speed: a rank is always slower
        unbound = self.submit("check.sbatch", "-J", "unbound", "--ntasks-per-node=2", SLOW="99.99",
                              LAUNCH="srun --mpi=pmix --cpu-bind=none")
        orphan = self.submit("reduce.sbatch", "-J", "orphan", INPUT="x.npy", ALLFOLD_SITE="/no/site.env")
        self.ends(good, "COMPLETED", "0:0", "reduce.sbatch", lambda job: results(f"-{job['JobId']}.json")
                  and abs(load(f"allfold-reduce-{job['JobId']}.json")["value"] - exact) < 1e-9
                  and load(f"allfold-reduce-{job['JobId']}.json")["ranks"] == RANKS)
        self.ends(bad, "FAILED", "1:0", "reduce.sbatch without its input",
                  lambda job: "nothing.npy" in output_of(job) and not results(f"-{job['JobId']}"))
        self.ends(usage, "FAILED", "2:0", "reduce.sbatch with a wrong option", lambda job: not results(f"-{job['JobId']}"))
        self.ends(soft, "COMPLETED", "0:0", "softmax.sbatch", lambda job: self.softmax_right("y.npy"))
        self.ends(badsoft, "FAILED", "1:0", "softmax.sbatch with an impossible output")
        self.ends(check, "COMPLETED", "0:0", "check.sbatch", lambda job: "all is well" in output_of(job))
        self.ends(bench, "COMPLETED", "0:0", "bench.sbatch", lambda job: load(f"allfold-bench-{job['JobId']}.json")["correct"]
                  and {row["ranks"] for row in load(f"allfold-bench-{job['JobId']}.json")["results"]} == {RANKS})
        self.ends(unbound, "FAILED", "1:0", "check.sbatch on ranks that are not bound, and one slower than the others",
                  lambda job: "may run on the same CPUs" in output_of(job) and "all is well" not in output_of(job)
                  and re.search(r"allfold: .*rank \d.* on n[12].* of the ranks' median", output_of(job)))
        self.ends(orphan, "FAILED", "1:0", "a job without site.env", lambda job: "/no/site.env" in output_of(job))
        left = [name for name in results("") if name.endswith(".part") and "limited" not in name] + [n for n in os.listdir(JOBS) if "y.npy" in n]
        tap.ok(left == ["y.npy"], "nothing half-done is left", left)

    def softmax_right(self, name):
        y = np.load(path(name))
        right = np.exp(self.x.astype(np.float64) - self.x.max())
        right /= right.sum()
        return y.shape == right.shape and np.abs(y / right - 1).max() < 3e-7

    def scaling(self):
        """scaling.sbatch submits 1 node, 2 nodes and the report, one after the other."""
        wanted = {"STUDY": "study", "WEAK": "1000,50000", "STRONG": "100000", "OPTIONS": "--fold=sum --seconds=0.01",
                  "SCALING_REPORT": f"{sys.executable} {cluster.SHARED}/source/tools/scaling-report"}
        tasks = f"--ntasks-per-node={TASKS}"
        process = self.slurm.run("bash", "scaling.sbatch", "2", tasks, "--no-requeue", cwd=JOBS, env={**os.environ, **wanted})
        numbers = re.findall(r"^job (\d+):", process.stdout, flags=re.MULTILINE)
        if not tap.ok(process.returncode == 0 and len(numbers) == 3, "scaling.sbatch submits three jobs", process):
            return
        self.ends(numbers[0], "COMPLETED", "0:0", "one node")
        self.ends(numbers[1], "COMPLETED", "0:0", "two nodes")
        self.ends(numbers[2], "COMPLETED", "0:0", "the report", lambda job: os.path.isfile(path("results/study/report.html")))
        made = sorted(os.listdir(path("results/study")))
        tap.ok(made == ["nodes-00001-strong.json", "nodes-00001-weak.json", "nodes-00002-strong.json", "nodes-00002-weak.json",
                        "report.html"], "a file for each, and the page", made)
        text = read(path("results/study/report.html"))
        tap.ok(text.count("<svg") >= 5 and "10,000 ranks" in text and f"1, {TASKS}" in text, "which has its plots",
               text[-1500:])
        process = self.slurm.run("bash", "scaling.sbatch", cwd=JOBS)
        tap.ok(process.returncode == 2 and "scaling.sbatch 16" in process.stderr, "without a number it says how", process)
        wanted.update(STUDY="failing", OPTIONS="--fold=nothing")
        process = self.slurm.run("bash", "scaling.sbatch", "2", tasks, "--no-requeue", cwd=JOBS, env={**os.environ, **wanted})
        numbers = re.findall(r"^job (\d+):", process.stdout, flags=re.MULTILINE)
        self.ends(numbers[0], "FAILED", "2:0", "a step that fails")
        self.ends(numbers[2], "CANCELLED", "0:0", "cancels what is behind it")

    def launches(self):
        """What is started wrongly is refused, with the way out."""
        words = [os.environ["ALLFOLD"], "sum", "x.npy", "-q"]
        right = self.srun(*words)
        tap.ok(right.returncode == 0 and right.stdout.count("\n") == 1, "srun --mpi=pmix over two nodes", right)
        for mpi in (None, "--mpi=none"):
            process = self.srun(*words, mpi=mpi)
            mine = [line for line in process.stderr.splitlines() if line.startswith("allfold: ")]
            tap.ok(process.returncode == 2 and not process.stdout and len(mine) == 1 and "srun --mpi=pmix" in mine[0],
                   f"srun {mpi or 'without --mpi'} is refused, once", process)
        process = self.srun(*words, mpi="--mpi=pmi2")  # if Open MPI does not speak it, that says so
        tap.ok(process.returncode != 0 and not process.stdout, "srun --mpi=pmi2 is no job for an Open MPI with PMIx", process)
        batch = self.slurm.submit("-N", "2", "-n", "4", "--overcommit", "-o", path("alone.out"), "--wrap",
                                  " ".join(words), cwd=JOBS)
        self.ends(batch, "FAILED", "2:0", "a batch script without srun",
                  lambda job: "SLURM_NTASKS=4" in output_of(job) and "mpirun -n 1" in output_of(job))

    def devices(self):
        """GPUs are bound to tasks by their device files; what a rank sees, it takes."""
        program = os.path.join(cluster.SHARED, "build", "tests", "emulation", "allfold")
        bound = self.srun("--gpus-per-task=1", "printenv", "CUDA_VISIBLE_DEVICES")
        tap.ok(sorted(bound.stdout.split()) == ["0", "0", "1", "1"], "--gpus-per-task=1: a stand-in device for each task", bound)
        if not os.path.isfile(program) or not self.srun(program, "--version", nodes=1, tasks=1).stdout.startswith("allfold "):
            tap.skip("no program with stand-in devices", 3)
            return
        info = [program, "info", "--json"]
        process = self.srun("--gpus-per-task=1", *info)
        found = json.loads(process.stdout)["devices"] if process.returncode == 0 else []
        tap.ok(len({d["uuid"] for d in found}) == 4 and all(d["visible"] == 1 and not d["shared"] for d in found)
               and len({d["memory_budget"] for d in found}) == 1, "four ranks of two nodes have four devices", process)
        process = self.srun("--gpus-per-node=1", *info)
        found = json.loads(process.stdout)["devices"] if process.returncode == 0 else []
        tap.ok(len({d["uuid"] for d in found}) == 2 and all(d["ranks_on_device"] == 2 for d in found),
               "one device a node: its ranks share it", process)
        process = self.srun("--gpus-per-task=1", "sh", "-c",
                               f'test $SLURM_PROCID != 2 || export CUDA_VISIBLE_DEVICES=; exec {program} sum -q x.npy')
        tap.ok(process.returncode == 1 and re.search("rank 2 on n2.*: no CUDA device", process.stderr) and not process.stdout,
               "a task that lost its device is named", process)

    def faults(self):
        """A rank that dies fails the job at once; a job that is cancelled leaves nothing half-done."""
        killed = self.submit("reduce.sbatch", "-J", "killed", INPUT=LONG, OPTIONS="--checkpoint-every=0", **GENTLE)
        self.checkpointed(killed)
        self.kill_a_rank(killed)
        # srun gives the highest status: 137 of the one, or 143 of those that it ended before they saw that and ended themselves
        self.ends(killed, "FAILED", None, "a rank that is killed", lambda job: (job["ExitCode"] in ("137:0", "143:0")
                  or "the launcher handed on nothing" in output_of(job)) and not [n for n in results(f"-{killed}") if ".checkpoint" not in n])
        cancelled = self.submit("reduce.sbatch", "-J", "cancelled", INPUT=LONG, OPTIONS="--checkpoint-every=0", **GENTLE)
        self.checkpointed(cancelled)
        self.slurm.run("scancel", cancelled)
        self.ends(cancelled, "CANCELLED", None, "a job that is cancelled", lambda job: self.gone(cancelled)
                  and "stopped by SIGTERM" in output_of(job) and self.slurm.job(cancelled)["JobState"] == "CANCELLED")

    def kill_a_rank(self, number):
        """srun loses the status of a rank that is killed now and then, and gives 0: then the script starts the ranks once more."""
        killed = []

        def ended():
            ranks = self.find_ranks(number)
            if len(ranks) == RANKS and ranks[1] not in killed:
                killed.append(ranks[1])
                os.kill(ranks[1], signal.SIGKILL)
            return self.slurm.job(number)["JobState"] != "RUNNING"
        cluster.wait_for(ended, lambda: f"{killed} of {number}: {output_of(self.slurm.job(number))}")

    def checkpointed(self, number):
        """Waits until all ranks of a job are at work."""
        cluster.wait_for(lambda: len([name for name in results(f"-{number}") if re.search(r"\.checkpoint\.\d+$", name)]) == RANKS,
                         lambda: f"{results('')}\n{self.slurm.run('squeue').stdout}\n{output_of(self.slurm.job(number))}\n{self.slurm.logs()}")

    def stops(self):
        """A job that is told to stop goes back into the queue, goes on from its checkpoint, and gives the same bits."""
        words = {"INPUT": "gen:normal?n=5e8&dtype=f64", "OPTIONS": "--checkpoint-every=0", **GENTLE}
        whole = self.submit("reduce.sbatch", "-J", "whole", **words)
        stopped = self.submit("reduce.sbatch", "-J", "stopped", **words)
        self.checkpointed(stopped)
        self.slurm.run("scancel", "--signal=USR1", stopped)
        job = self.slurm.wait(stopped, ("PENDING", "COMPLETED", "FAILED"))
        kept = [name for name in results(f"stopped-{stopped}") if ".checkpoint" in name]
        tap.ok(job["JobState"] == "PENDING" and job["Restarts"] == "1" and len(kept) == RANKS
               and re.search(r"stopped by SIGUSR1", output_of(job)), "a signal: back into the queue, with checkpoints",
               (kept, output_of(job)))
        self.slurm.start_now(stopped)
        self.ends(stopped, "COMPLETED", "0:0", "started again")
        self.ends(whole, "COMPLETED", "0:0", "beside one that was left alone")
        values = [load(f"{name}.json")["hex"] if f"{name}.json" in results("") else "none"
                  for name in (f"whole-{whole}", f"stopped-{stopped}")]
        tap.ok(values[0] == values[1] != "none" and not [n for n in results(f"stopped-{stopped}") if ".checkpoint" in n], "the same bits, no checkpoint left",
               (values, results("")))

    def limit(self):
        """--signal=USR1@50 of a job of one minute: it is stopped before the limit, and put back."""
        job = self.slurm.wait(self.limited, ("PENDING", "COMPLETED", "FAILED", "TIMEOUT"))
        tap.ok(job["JobState"] == "PENDING" and job["Restarts"] != "0" and "stopped by SIGUSR1" in output_of(job)
               and "TIME LIMIT" not in output_of(job), "near its limit: stopped, and back into the queue", output_of(job))
        self.slurm.run("scancel", self.limited)
        self.ends(self.limited, "CANCELLED", None, "and then cancelled for good")

    def find_ranks(self, number):
        """The process ids of a job's ranks. (All nodes' processes are in one PID namespace.)"""
        return [pid for pid in map(int, filter(str.isdigit, os.listdir("/proc")))
                if f"SLURM_JOB_ID={number}" in read(f"/proc/{pid}/environ") and "allfold" in read(f"/proc/{pid}/comm")
                and LONG in read(f"/proc/{pid}/cmdline")]

    def gone(self, number):
        """Slurm says CANCELLED at once; the script has some seconds to clean up."""
        return cluster.wait_for(lambda: not [n for n in results(f"-{number}") if n.endswith(".part")], lambda: str(results("")))


def read(name):
    try:
        with open(name, encoding="utf-8", errors="replace") as file:
            return file.read().replace("\0", "\n")
    except OSError:
        return ""


def main():
    why = cluster.missing() if WANTED != "no" else "ALLFOLD_TEST_SLURM=no"
    if cluster.inside():
        with cluster.Cluster(nodes=3, cpus=CORES, gpus=2, folders={"build": tap.BUILD, "source": tap.SOURCE}) as slurm:
            test = Test(slurm)
            for part in (test.scripts, test.limit, test.scaling, test.launches, test.devices, test.faults, test.stops):
                try:
                    part()
                except Exception:  # the other parts are still of use, and so is the plan
                    tap.ok(False, f"{part.__name__} comes to its end", traceback.format_exc())
                    slurm.run("scancel", "--user=root")  # they must not wait for the nodes of its jobs
        tap.done()
    elif why and WANTED == "yes":
        tap.ok(False, "a private Slurm can be started", why)
        tap.done()
    elif why:
        tap.skip(why)
        tap.done()
    sys.exit(cluster.enter(SECONDS))


if __name__ == "__main__":
    main()
