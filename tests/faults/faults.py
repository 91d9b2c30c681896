"""What the tests of faults share: launching the program so that its time can be told, seeing what it leaves behind, and
counting outcomes. FULL (ALLFOLD_TEST_FAULTS=full, as `make check-faults` sets it) asks for whole lists, not a part of them;
ALLFOLD_TEST_FAULTS=cuda for the whole of what concerns CUDA, =skip for nothing."""
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import uuid
from collections import Counter, namedtuple
from concurrent.futures import ThreadPoolExecutor

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import tap  # noqa: E402

FULL = os.environ.get("ALLFOLD_TEST_FAULTS") in ("full", "cuda")
CUDA_ONLY = os.environ.get("ALLFOLD_TEST_FAULTS") == "cuda"
if os.environ.get("ALLFOLD_TEST_FAULTS") == "skip":  # where they run elsewhere
    tap.skip("left out: ALLFOLD_TEST_FAULTS=skip")
    tap.done()
HERE = os.path.join(tap.BUILD, "tests", "faults")
Program = namedtuple("Program", "name path environment words")
PLAIN = Program("the CPU", tap.ALLFOLD, {}, ["--backend=cpu"])
FAULTY = Program("the CPU", os.path.join(HERE, "allfold-faulty"), {}, ["--backend=cpu"])
# The CUDA backend. The emulated kernels may be built with the address sanitizer, to which the leaks of MPI are of no use.
STANDIN = Program("devices that stand in for GPUs", os.path.join(HERE, "allfold-standin"),
                  {"ALLFOLD_STANDIN_DEVICES": "2", "ALLFOLD_STANDIN_MEMORY": str(1 << 20),
                   "ASAN_OPTIONS": os.environ.get("ASAN_OPTIONS", "") + ":detect_leaks=0"}, ["--backend=cuda"])
CUDA = Program("GPUs", os.path.join(HERE, "allfold-cuda"), {}, ["--backend=cuda"])
AT_ONCE = min(8, max(3, (os.cpu_count() or 1) // 2))  # launches; of CUDA only some start in a second
STOPPED = 75  # the exit status of a run that a signal has stopped
HUNG = "hung"
MARK = "ALLFOLD_TEST_MARK"


def processes(mark):
    """The processes that were started with that mark and still are there: {pid: command line}."""
    found = {}
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/environ", "rb") as file:
                if f"{MARK}={mark}".encode() not in file.read().split(b"\0"):
                    continue
            with open(f"/proc/{pid}/cmdline", "rb") as file:
                words = file.read().split(b"\0")
            found[int(pid)] = [word.decode(errors="replace") for word in words if word]
        except OSError:
            pass
    return found


def signal_set(pid, which):
    """The signals that a process catches (SigCgt), ignores (SigIgn), ...; none when it is gone."""
    try:
        with open(f"/proc/{pid}/status", encoding="ascii") as file:
            bits = next(int(line.split()[1], 16) for line in file if line.startswith(which))
    except (OSError, StopIteration):
        return set()
    return {number for number in signal.valid_signals() if bits >> (number - 1) & 1}


def suspended(pid):
    """Whether all threads of the process have stopped."""
    states = []
    for thread in os.listdir(f"/proc/{pid}/task"):
        with open(f"/proc/{pid}/task/{thread}/stat", encoding="ascii") as file:
            states.append(file.read().rpartition(")")[2].split()[0])
    return set(states) == {"T"}


def wait_for(condition, seconds=20):
    """Whether it comes true in time."""
    end = time.monotonic() + seconds
    while not condition() and time.monotonic() < end:
        time.sleep(0.05)
    return condition()


def heed_signals():
    """What a shell has it ignore in the background, the program must heed."""
    for number in (signal.SIGINT, signal.SIGHUP, signal.SIGQUIT):
        signal.signal(number, signal.SIG_DFL)


def apart(folder):
    """The environment of a launch beside others: a folder of its own for MPI, and without a launcher none of its daemons. Two
    launches at a time would share them."""
    return {**os.environ, "ALLFOLD_TEST_LOCK": "", "TMPDIR": folder, "OMPI_MCA_ess_singleton_isolated": "1"}


class Launch:
    """One run, under way until ended(); without a launcher for 0 ranks, but through a command that becomes this one, if given.
    These launches do not take turns with those of other tests: most of the time they wait, and others would wait for them."""

    def __init__(self, ranks, command, env=None, through=()):
        self.mark = uuid.uuid4().hex
        self.temporary = tempfile.mkdtemp()
        self.struck = os.path.join(self.temporary, "struck")
        environment = {**apart(self.temporary), MARK: self.mark, "ALLFOLD_FAULT_STRUCK": self.struck, **(env or {})}
        launch = ["sh", os.path.join(tap.SOURCE, "tests", "mpi-launch"), "--run", str(ranks)] if ranks else through
        self.command = [str(word) for word in command]
        self.began = time.monotonic()
        self.process = subprocess.Popen([*launch, *self.command], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                        stderr=subprocess.PIPE, text=True, env=environment, preexec_fn=heed_signals)

    def ranks(self):
        """The program's own processes, in the order of their pids."""
        return sorted(pid for pid, words in processes(self.mark).items() if words and words[0] == self.command[0])

    def launcher(self):
        """The process that started the ranks, whatever its name; None where there are none."""
        for pid in self.ranks():
            with open(f"/proc/{pid}/status", encoding="ascii") as file:
                return next(int(line.split()[1]) for line in file if line.startswith("PPid"))
        return None

    def ready(self, count, *signals):
        """Waits until so many ranks are there that have handlers for these signals."""
        def handled(pid):
            return all(number in signal_set(pid, "SigCgt") for number in signals)
        return wait_for(lambda: sum(map(handled, self.ranks())) == count)

    def ended(self, limit):
        """Waits, at most limit seconds; then self.status (or HUNG), seconds (since the fault, if there is one: MPI and devices
        may have taken long to start), stdout, stderr, left (processes, now killed)."""
        try:
            self.stdout, self.stderr = self.process.communicate(timeout=limit)
            self.status = self.process.returncode
            self.seconds = time.time() - os.stat(self.struck).st_mtime if os.path.exists(self.struck) \
                else time.monotonic() - self.began
            for _ in range(20):
                self.left = processes(self.mark)
                if not self.left:
                    break
                time.sleep(0.1)
        except subprocess.TimeoutExpired:
            self.status, self.seconds = HUNG, limit
            self.left = processes(self.mark)
        for pid in self.left:
            os.kill(pid, signal.SIGKILL)
        if self.status == HUNG:
            self.stdout, self.stderr = self.process.communicate()
        shutil.rmtree(self.temporary, ignore_errors=True)
        return self

    def said(self):
        """The program's own messages, but for the one that ranks share a device."""
        return [line for line in self.stderr.splitlines() if line.startswith("allfold:") and " is shared by " not in line]

    def shown(self):
        return (f"{' '.join(self.command)}\nexit status {self.status} after {self.seconds:.1f} s, left {self.left}\n"
                f"{self.stdout}\n{self.stderr}")


def devices(what):
    """The programs with a CUDA backend that can run here; the others are skipped, with the reason."""
    found = []
    if "cuda" not in os.environ.get("ALLFOLD_TEST_BACKENDS", "cuda"):
        tap.skip(f"{what}: ALLFOLD_TEST_BACKENDS leaves cuda out")
        return found
    for program, builder in ((STANDIN, "a C++17 compiler"), (CUDA, "CUDA")):
        why = f"{os.path.basename(program.path)}, which needs {builder}, was not built"
        if os.path.exists(program.path):
            info = Launch(0, [program.path, "info", "--quiet", *program.words], program.environment).ended(60)
            why = info.stderr.strip() if "no CUDA device" in info.stderr else ""
        if why:
            tap.skip(f"{what} on {program.name}: {why}")
        else:
            found.append(program)
    return found


def together(*tests):
    """Runs tests at the same time."""
    with ThreadPoolExecutor(len(tests)) as pool:
        for test in [pool.submit(test) for test in tests]:
            test.result()


def summary(what, outcomes):
    """One line for docs/reliability.md: how many outcomes of each kind."""
    counted = Counter(outcomes)
    print(f"# {what}: {sum(counted.values())} faults; " +
          ", ".join(f"{number} {kind}" for kind, number in sorted(counted.items())), flush=True)
