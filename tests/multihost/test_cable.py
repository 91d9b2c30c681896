#!/usr/bin/env python3
"""Two hosts, which are network namespaces joined by a virtual cable, and mpirun between them: the right answer, a signal that
one rank of one host gets, and the cable pulled in the middle of the work: all ranks must be gone within --timeout + 5 s."""
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "faults"))
import faults  # noqa: E402
import tap  # noqa: E402

TIMEOUT = 3
MPIEXEC = os.environ.get("MPIEXEC") or "mpirun"
LONG = ["--backend=cpu", "--threads=1", "--staging=1M", "gen:normal?n=4e9&seed=1"]


def shell(*words):
    return subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)


class Hosts:
    """Two namespaces and the cable; with Hosts() as hosts. why says why there are none."""

    def __init__(self):
        self.names = [f"af{os.getpid()}a", f"af{os.getpid()}b"]
        self.why = ""

    def __enter__(self):
        a, b = self.names
        for tool in ("ip", "nsenter", "unshare"):
            if shutil.which(tool) is None:
                self.why = f"there is no {tool}"
        if os.geteuid() != 0:
            self.why = "only root makes network namespaces"
        steps = [["ip", "netns", "add", a], ["ip", "netns", "add", b],
                 ["ip", "link", "add", "cable", "netns", a, "type", "veth", "peer", "name", "cable", "netns", b],
                 ["nsenter", f"--net=/run/netns/{a}", "unshare", "--uts", "true"]]
        for place, name in enumerate(self.names):
            steps += [["ip", "-n", name, "address", "add", f"10.99.0.{place + 1}/24", "dev", "cable"],
                      ["ip", "-n", name, "link", "set", "cable", "up"], ["ip", "-n", name, "link", "set", "lo", "up"]]
        for step in steps:
            done = None if self.why else shell(*step)
            if done is not None and done.returncode != 0:
                self.why = f"{' '.join(step)}: {done.stdout.strip()}"
        if not self.why and "Open MPI" not in shell(MPIEXEC.split()[0], "--version").stdout:
            self.why = f"{MPIEXEC} is not Open MPI's"
        return self

    def __exit__(self, *ignored):
        for name in self.names:
            if os.path.exists(f"/run/netns/{name}"):
                shell("ip", "netns", "del", name)

    def pull(self):
        shell("ip", "-n", self.names[1], "link", "set", "cable", "down")

    def join(self):
        shell("ip", "-n", self.names[1], "link", "set", "cable", "up")

    def of(self, pid):
        """The host that a process runs on."""
        for place, name in enumerate(self.names):
            if os.stat(f"/proc/{pid}/ns/net").st_ino == os.stat(f"/run/netns/{name}").st_ino:
                return place
        return -1


# mpirun waits for ever for a daemon that it cannot reach once it has something to tell it, unless it notices before.
KEEPALIVE = {False: [], True: ["--mca", "oob_tcp_keepalive_time", "1", "--mca", "oob_tcp_keepalive_intvl", "1", "--mca",
                               "oob_tcp_keepalive_probes", "2"]}


class Run(faults.Launch):
    """mpirun on the first host, two ranks on each."""

    def __init__(self, hosts, temporary, *words, attentive=False):
        a, b = hosts.names
        agent = os.path.join(tap.SOURCE, "tests", "multihost", "agent")
        mpirun = [*MPIEXEC.split(), "--host", f"{a}:2,{b}:2", "--mca", "plm_rsh_agent", agent,
                  "--mca", "btl", "tcp,vader,self", "--mca", "btl_tcp_if_include", "cable",
                  "--mca", "oob_tcp_if_include", "cable", "--mca", "btl_vader_single_copy_mechanism", "none", *KEEPALIVE[attentive],
                  "-x", faults.MARK, "-n", "4"]
        environment = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
                       "OMPI_MCA_rmaps_base_oversubscribe": "1", "OMPI_MCA_hwloc_base_binding_policy": "none",
                       "OMPI_MCA_mpi_yield_when_idle": "1", "TMPDIR": temporary}
        self.program = [tap.ALLFOLD, *words]
        super().__init__(0, ["timeout", "-k", "5", "60", agent, a, " ".join(
            f"'{word}'" for word in [*mpirun, *self.program])], environment)

    def ranks(self):
        return sorted(pid for pid, words in faults.processes(self.mark).items() if words and words[0] == tap.ALLFOLD)


def test_answer(hosts, temporary):
    run = Run(hosts, temporary, "sum", "--quiet", "--backend=cpu", "--threads=1", "gen:normal?n=1e6&seed=1").ended(60)
    alone = subprocess.run([tap.ALLFOLD, "norm1", "--quiet", "gen:ramp?n=1000&dtype=int32"], capture_output=True, text=True,
                           check=False)
    exact = Run(hosts, temporary, "norm1", "--quiet", "--backend=cpu", "gen:ramp?n=1000&dtype=int32").ended(60)
    return tap.ok(run.status == 0 and exact.status == 0 and exact.stdout == alone.stdout, "four ranks on two hosts",
                  run.shown() + exact.shown())


def long_run(hosts, temporary, folder, timeout=TIMEOUT, attentive=False):
    run = Run(hosts, temporary, "softmax", *LONG, "--output-type=f16", f"--timeout={timeout}", "-o",
              os.path.join(folder, "y.raw"), attentive=attentive)
    began = run.ready(4, signal.SIGTERM) and faults.wait_for(lambda: os.listdir(folder))
    time.sleep(1)  # so that the hosts have heard each other
    return run, began


def test_signal(hosts, temporary, folder):
    """A rank of the other host than mpirun's and rank 0's."""
    run, began = long_run(hosts, temporary, folder)
    far = [pid for pid in run.ranks() if hosts.of(pid) == 1]
    os.kill(far[-1], signal.SIGUSR1)
    run.ended(30)
    tap.ok(began and len(far) == 2 and run.status == faults.STOPPED and not run.left and len(run.said()) == 1
           and "stopped by SIGUSR1" in run.said()[0] and not os.listdir(folder),
           "a signal to one rank of the other host stops all", f"{far}\n{run.shown()}")


def test_cable(hosts, temporary, folder):
    run, began = long_run(hosts, temporary, folder)
    hosts.pull()
    pulled = time.monotonic()
    gone = faults.wait_for(lambda: not run.ranks(), TIMEOUT + 15)
    seconds = time.monotonic() - pulled
    run.ended(1)
    hosts.join()
    tap.ok(began and gone and seconds < TIMEOUT + 5, f"the cable pulled: all ranks gone within {TIMEOUT} + 5 s", run.shown())
    tap.ok(run.status != 0 and not os.listdir(folder), "status not 0, no output", run.shown())
    tap.ok(any(f"ranks 2-3 on {hosts.names[1]} not heard from for {TIMEOUT} s" in line and "in phase " in line
               for line in run.said()), "the message names ranks, host and phase", run.shown())
    print(f"# the last rank was gone {seconds:.1f} s after the cable (--timeout={TIMEOUT}); a launcher that does not look "
          f"after its connections: {run.status}")
    if not faults.FULL:
        return
    run, began = long_run(hosts, temporary, folder, 30, attentive=True)
    hosts.pull()
    pulled = time.monotonic()
    run.ended(20)
    seconds = time.monotonic() - pulled
    hosts.join()
    tap.ok(began and run.status not in (0, faults.HUNG) and not run.left and not os.listdir(folder),
           "the cable pulled: a launcher that looks after its connections ends too", run.shown())
    print(f"# with status {run.status}, {seconds:.1f} s after the cable")


def main():
    with Hosts() as hosts, tempfile.TemporaryDirectory() as temporary, tempfile.TemporaryDirectory() as folder:
        if hosts.why:
            tap.skip(f"two hosts: {hosts.why}")
        elif test_answer(hosts, temporary):
            test_signal(hosts, temporary, folder)
            test_cable(hosts, temporary, folder)
    tap.done()


if __name__ == "__main__":
    main()
