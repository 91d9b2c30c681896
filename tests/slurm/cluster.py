"""A private Slurm cluster of several nodes on one machine, for tests of batch jobs: real munged, slurmctld and slurmd.

Everything lives in namespaces of its own. enter() starts the script again as the second process of a new PID namespace
with its own mounts, network and host name: when that ends, however it ends, the kernel ends all that was started in it.
Cluster(...) is then used inside. Each node has its own host name, network interface, /tmp, /dev/shm and /dev, as hosts
have; the nodes share SHARED, as they would a parallel file system. Stand-in character devices /dev/nvidia0.. (they are
/dev/null) let Slurm bind GPUs to tasks where there are none.

Needs root with CAP_SYS_ADMIN, Debian's slurm-wlm and munge, and unshare, nsenter, ip: missing() says what is not there."""
import os
import re
import shutil
import subprocess
import sys
import time

SHARED = "/srv"  # the same on every node; a tmpfs in the private mount namespace
INSIDE = "ALLFOLD_INSIDE_CLUSTER"
PROGRAMS = ("munged", "slurmctld", "slurmd", "sbatch", "srun", "scontrol", "unshare", "nsenter", "ip", "mount")
NAMESPACES = ("--mount", "--net", "--uts", "--ipc")
PATH = "/usr/sbin:/usr/bin:/sbin:/bin"
ENDS = ("COMPLETED", "FAILED", "CANCELLED", "TIMEOUT", "NODE_FAIL", "OUT_OF_MEMORY")  # states of a job
LIMIT = 240  # seconds, for one event: so long only what hangs takes, and less than allfold's own --timeout

# srun, as all find it. Under srun a rank of Open MPI dies now and then in MPI_Init, of a message that came before it was ready
# for one (its issue 12495; here about one start of 200, one of 50 with the address sanitizer; more on a loaded machine, now and then twice). Core dumps show a call of address 0 by
# mca_btl_tcp.so, in opal_progress, in MPI_Init. And a node that is still busy with a job's former run now and then refuses the tasks of the
# next one. Then the start is repeated; what allfold itself does wrong is not.
SRUN = """#!/bin/bash
trap : TERM USR1 USR2
errors=$(mktemp)
for try in first second third fourth; do
    { /usr/bin/srun "$@" 2>&1 >&3 | (trap '' TERM USR1 USR2; exec tee "$errors" >&2); status=${PIPESTATUS[0]}; } 3>&1
    [ $status != 0 ] && grep -q 'failed to TCP connect to a peer\\|Failing at address: (nil)\\|task [0-9]* launch failed: Unspecified error' "$errors" && ! grep -q 'allfold(' "$errors" || break
    echo "# Open MPI died in MPI_Init, or Slurm launched no task, at the $try try" >&2
    sleep 1
done
rm "$errors"
exit $status
"""

CONFIGURATION = """
ClusterName=allfold
SlurmctldHost=head(10.99.0.1)
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
CredType=cred/munge
MpiDefault=none
ProctrackType=proctrack/linuxproc
TaskPlugin=task/affinity
SlurmdParameters=config_overrides
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
AccountingStorageType=accounting_storage/none
JobAcctGatherType=jobacct_gather/none
SwitchType=switch/none
StateSaveLocation=/run/slurm/state
SlurmdSpoolDir=/run/slurm/%n
SlurmctldPidFile=/run/slurm/slurmctld.pid
SlurmdPidFile=/run/slurm/%n.pid
SlurmctldLogFile=/run/slurm/slurmctld.log
SlurmdLogFile=/run/slurm/%n.log
SchedulerParameters=batch_sched_delay=0,sched_min_interval=0,sched_interval=2,bf_interval=2,requeue_setup_env_fail
ReturnToService=2
KillWait=5
MinJobAge=600
GresTypes=gpu
NodeName={nodes} CPUs={cpus} Boards=1 SocketsPerBoard=1 CoresPerSocket={cpus} ThreadsPerCore=1 RealMemory=1024 Gres=gpu:{gpus} State=UNKNOWN
PartitionName=test Nodes={first} Default=YES MaxTime=INFINITE State=UP OverSubscribe=NO
PartitionName=last Nodes={last} MaxTime=INFINITE State=UP OverSubscribe=NO
"""


def missing():
    """Why a cluster cannot be started here, or ''."""
    if os.geteuid() != 0:
        return "a private Slurm needs root"
    absent = [name for name in PROGRAMS if shutil.which(name, path=PATH) is None]
    if absent:
        return f"no {', '.join(absent)}: apt-get install slurm-wlm munge"
    tried = subprocess.run(["unshare", *NAMESPACES, "--pid", "--fork", "--mount-proc", "sh", "-c",
                            "mount -t tmpfs none /srv && ip link add bridge type bridge && mknod /srv/null c 1 3 && : >/srv/null"],
                           capture_output=True, text=True)
    return "" if tried.returncode == 0 else f"no namespaces of our own: {tried.stderr.strip() or tried.returncode}"


def inside():
    return INSIDE in os.environ


def enter(seconds):
    """Runs this script again in namespaces of its own and returns its exit status; at most that many seconds."""
    # bash is the first process there: it collects the orphans that Slurm's daemons leave, which Python would not
    command = ["unshare", *NAMESPACES, "--pid", "--fork", "--kill-child", "--mount-proc",
               "bash", "-c", '"$@"; exit $?', "bash", sys.executable, *sys.argv]
    process = subprocess.Popen(command, env={**os.environ, INSIDE: "1"})
    try:
        return process.wait(timeout=seconds)
    except subprocess.TimeoutExpired:
        print(f"# the private cluster was still at work after {seconds} s", flush=True)
        return 124
    finally:
        process.kill()  # unshare --kill-child passes it on, and the kernel to all in the PID namespace
        process.wait()


def sh(script, **more):
    """A line of shell that must succeed."""
    return subprocess.run(["sh", "-c", script], check=True, capture_output=True, text=True, **more).stdout


class Node:
    """Namespaces for one host, held by a sleeping process."""

    def __init__(self, name, address, gpus):
        self.name, self.gpus = name, gpus
        self.holder = subprocess.Popen(["unshare", *NAMESPACES, "sleep", "infinity"])
        own = f"/proc/{self.holder.pid}/ns/net"
        wait_for(lambda: os.readlink(own) != os.readlink("/proc/self/ns/net"), f"{name}: no namespace")
        sh(f"ip link add {name} type veth peer name eth0 netns {self.holder.pid} && ip link set {name} master bridge up")
        self.sh(f"""set -e
            hostname {name}
            ip link set lo up; ip addr add {address}/24 dev eth0; ip link set eth0 up
            mount -t tmpfs none /tmp; chmod 1777 /tmp
            mkdir /tmp/dev; mount -t tmpfs none /tmp/dev; cd /tmp/dev
            mkdir shm pts; chmod 1777 shm
            mknod -m 666 null c 1 3; mknod -m 666 zero c 1 5; mknod -m 666 full c 1 7
            mknod -m 666 random c 1 8; mknod -m 666 urandom c 1 9; mknod -m 666 tty c 5 0
            ln -s /proc/self/fd fd; ln -s fd/0 stdin; ln -s fd/1 stdout; ln -s fd/2 stderr
            mount -t devpts -o newinstance,ptmxmode=0666 none pts; ln -s pts/ptmx ptmx
            for gpu in $(seq 0 {gpus - 1}); do mknod -m 666 nvidia$gpu c 1 3; done
            cd /; mount --move /tmp/dev /dev; rmdir /tmp/dev
            mount -t tmpfs none /dev/shm; chmod 1777 /dev/shm""")

    def enter(self):
        """The words that run a command on this node."""
        return ["nsenter", f"--target={self.holder.pid}", "--mount", "--net", "--uts", "--ipc"]

    def sh(self, script):
        return sh(script) if self.holder is None else subprocess.run(
            [*self.enter(), "sh", "-c", script], check=True, capture_output=True, text=True).stdout


def wait_for(condition, message):
    """Waits until condition() is true, and returns what it gave; message may be a function."""
    end = time.monotonic() + LIMIT
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > end:
            raise TimeoutError(message() if callable(message) else message)
        time.sleep(0.1)


class Cluster:
    """A running cluster; to be made inside() only. The last node has a partition of its own, "last"; the others are the
    default one. folders: {name: path}, to be seen as SHARED/name by every node."""

    def __init__(self, nodes=3, cpus=4, gpus=2, folders=None):
        self.daemons = []
        self.folders(folders or {})
        self.network()
        names = [f"n{i + 1}" for i in range(nodes)]
        self.configure(names, cpus, gpus)
        self.start("munged", "--foreground", "--force", "--key-file=/run/munge/key", "--socket=/run/munge/munge.socket.2",
                   "--pid-file=/run/munge/pid", "--log-file=/run/munge/log", "--seed-file=/run/munge/seed")
        wait_for(lambda: os.path.exists("/run/munge/munge.socket.2"), self.logs)
        self.nodes = [Node(name, f"10.99.0.{i + 11}", gpus) for i, name in enumerate(names)]
        self.start("slurmctld", "-D")
        for node in self.nodes:
            self.start("slurmd", "-D", "-N", node.name, node=node)
        wait_for(self.idle, self.logs)

    def folders(self, folders):
        """Private mounts: SHARED, /run and what is to be seen in SHARED, before /tmp is covered on the nodes."""
        sh("mount --make-rprivate / && mount -t tmpfs -o size=2g none /srv && chmod 755 /srv")
        for name, path in folders.items():
            sh(f"mkdir '{SHARED}/{name}' && mount --bind '{path}' '{SHARED}/{name}'")
        sh("mount -t tmpfs none /run && mkdir -p /run/munge /run/slurm/state /run/slurm/etc /run/lock && chmod 755 /run/munge")

    def network(self):
        sh("hostname head && ip link set lo up && ip link add bridge type bridge && ip addr add 10.99.0.1/24 dev bridge"
           " && ip link set bridge up")

    def configure(self, names, cpus, gpus):
        hosts = "127.0.0.1 localhost\n10.99.0.1 head\n" + "".join(
            f"10.99.0.{i + 11} {name}\n" for i, name in enumerate(names))
        for name, text in (("slurm.conf", CONFIGURATION.format(nodes=",".join(names), first=",".join(names[:-1]), last=names[-1], cpus=cpus, gpus=gpus)),
                           ("gres.conf", f"NodeName={','.join(names)} Name=gpu File=/dev/nvidia[0-{gpus - 1}]\n"),
                           ("cgroup.conf", "CgroupPlugin=cgroup/v1\n"), ("hosts", hosts)):
            with open(f"/run/slurm/etc/{name}", "w", encoding="utf-8") as file:
                file.write(text)
        sh("mount --bind /run/slurm/etc/hosts /etc/hosts && head -c 1024 /dev/urandom >/run/munge/key && chmod 600 /run/munge/key")
        os.environ["SLURM_CONF"] = "/run/slurm/etc/slurm.conf"
        os.mkdir(f"{SHARED}/bin")
        with open(f"{SHARED}/bin/srun", "w", encoding="utf-8") as file:
            file.write(SRUN)
        os.chmod(file.name, 0o755)
        os.environ["PATH"] = f"{SHARED}/bin:{PATH}:{os.environ.get('PATH', '')}"

    def start(self, *words, node=None):
        with open(f"/run/slurm/{words[0]}-{node.name if node else 'head'}.out", "w", encoding="utf-8") as out:
            self.daemons.append(subprocess.Popen([*(node.enter() if node else []), *words], stdin=subprocess.DEVNULL,
                                                 stdout=out, stderr=out))

    def run(self, *words, **more):
        """A command on the head node, such as sbatch."""
        return subprocess.run(words, capture_output=True, text=True, timeout=LIMIT, check=False, **more)

    def submit(self, *words, **more):
        """sbatch; the job's number."""
        process = self.run("sbatch", "--parsable", *words, **more)
        if process.returncode != 0:
            raise RuntimeError(f"sbatch {' '.join(words)}: {process.stderr}")
        return process.stdout.strip().split(";")[0]

    def idle(self):
        """Whether no node has a job, or the rest of one."""
        return self.run("sinfo", "-N", "-h", "-o", "%t").stdout == "idle\n" * len(self.nodes)

    def job(self, number):
        """What scontrol knows of a job, as a dict."""
        text = self.run("scontrol", "-o", "show", "job", number).stdout
        return dict(re.findall(r"(\S+?)=(\S*)", text.splitlines()[0] if text else ""))

    def wait(self, number, states=ENDS):
        """Waits for a job's end, and gives what is known of it."""
        return wait_for(lambda: (lambda job: job if job.get("JobState") in states else None)(self.job(number)),
                        lambda: f"job {number}: {self.job(number)}\n{self.run('squeue').stdout}\n{self.logs()}")

    def start_now(self, number):
        """A job that was put back into the queue waits for two minutes, so that what is left of it can go; not here. Nodes refuse it
        within the second in which they ended it."""
        wait_for(self.idle, lambda: f"job {number}: {self.job(number)}\n{self.logs()}")
        time.sleep(2)
        self.run("scontrol", "update", f"jobid={number}", "starttime=now")

    def logs(self):
        """The ends of all logs, for a diagnosis."""
        found = ""
        for where in ("/run/slurm", "/run/munge"):
            for name in sorted(os.listdir(where)):
                if name.endswith((".log", ".out", "log")):
                    with open(f"{where}/{name}", encoding="utf-8", errors="replace") as file:
                        found += f"--- {name}\n" + "".join(file.readlines()[-15:])
        return found

    def close(self):
        """Ends the daemons and the nodes by process id. (What is left ends with the PID namespace.)"""
        for process in reversed(self.daemons):
            process.terminate()
        for process in [node.holder for node in self.nodes]:
            process.kill()
        for process in self.daemons:
            try:
                process.wait(timeout=5)
            except subprocess.TimeoutExpired:
                process.kill()

    def __enter__(self):
        return self

    def __exit__(self, *ignored):
        self.close()
