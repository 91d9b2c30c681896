"""The goals, one function each, and whether runs of `allfold bench` meet them: for tools/plot-bench --goals. A goal gives, for
each bound, the worst and the best of its cases. "no": one case misses it. "yes, in part": all cases that were measured meet it, but not
all were measured."""
import itertools

from bench_json import count_text

P = [2 ** n for n in range(32)]


class Verdict:
    """The worst and the best of several figures against a bound. The verdict is whole if it has figures of all folds, dtypes,
    counts and ranks."""

    def __init__(self, bound, at_least, unit="x", folds=("sum", "max"), dtypes=("f32",), counts=(), ranks=(1,)):
        self.bound, self.at_least, self.unit = bound, at_least, unit
        self.wanted = set(itertools.product(folds, dtypes, (2 ** n for n in counts), ranks))
        self.worst, self.best, self.seen = None, None, set()

    def add(self, value, row, where=None):
        """A figure, and the row that it is of."""
        if value is None:
            return
        self.seen.add((row["fold"], row["dtype"], row["count"], row["ranks"]))
        margin = value / self.bound if self.at_least else self.bound / value
        figure = f"{value:.3f}" if self.unit == "" else f"{value:.2f}{self.unit}"
        case = margin, f"{figure} ({where or place(row)})"
        self.worst = min(self.worst or case, case)
        self.best = max(self.best or case, case)

    def met(self):
        return self.worst is not None and self.worst[0] >= 1.0

    def whole(self):
        return self.wanted <= self.seen

    def text(self):
        if self.worst is None:
            return "not measured"
        return self.worst[1] if self.worst == self.best else f"{self.worst[1]} to {self.best[1]}"


def place(row):
    ranks = f", {row['ranks']} ranks" if row["ranks"] > 1 else ""
    return f"{row['fold']} {row['dtype']} {count_text(row['count'])}{ranks}"


def ratio(runs, row, **other):
    """How many times as long as the row another peer takes."""
    peer = runs.beside(row, **other)
    return peer["seconds"] / row["seconds"] if peer else None


def ours(runs, **facts):
    return runs.find(**{"peer": "allfold", "backend": "cuda", "data": "device", "caches": "cleared", **facts})


def large_kernels(runs):
    wanted = {"dtypes": ("f32", "f64", "int32")}
    cub, read = Verdict(1.00, True, counts=(28, 30, 31), **wanted), Verdict(0.985, True, "", counts=(30,), **wanted)
    for row in ours(runs, timing_point="kernel", fold=("sum", "max"), dtype=("f32", "f64", "int32"), count=tuple(P[28:])):
        cub.add(ratio(runs, row, peer="cub"), row)
        if row["count"] == P[30]:
            read.add(row["of_read_ceiling"], row)
    return [("over CUB", cub), ("of the read ceiling", read)]


def half_kernels(runs):
    cub = Verdict(1.12, True, dtypes=("bf16", "f16"), counts=(28,))
    for row in ours(runs, timing_point="kernel", fold=("sum", "max"), dtype=("bf16", "f16"), count=P[28]):
        cub.add(ratio(runs, row, peer="cub"), row)
    return [("over CUB", cub)]


def kernels(least, counts):
    def goal(runs):
        cub = Verdict(least, True, folds=("sum",), counts=counts)
        for row in ours(runs, timing_point="kernel", fold="sum", dtype="f32", count=tuple(P[counts[0]:counts[-1] + 1])):
            cub.add(ratio(runs, row, peer="cub"), row)
        return [("over CUB", cub)]
    return goal


def one_rank(runs):
    part = Verdict(0.6, False, counts=range(10, 23, 2))
    for row in ours(runs, timing_point="host", fold=("sum", "max"), ranks=1, count=tuple(P[10:23])):
        peer = ratio(runs, row, peer="cub+copy")
        part.add(1 / peer if peer else None, row)
    return [("of CUB + copy", part)]


def several_ranks(runs):
    wanted = {"counts": (10, 20), "ranks": (4, 8)}
    mpi, nccl = Verdict(0.5, False, **wanted), Verdict(0.35, False, **wanted)
    for row in ours(runs, timing_point="host", fold=("sum", "max"), ranks=(4, 8), count=tuple(P[10:21])):
        for peer, part in (("cub+copy+mpi", mpi), ("cub+nccl+copy", nccl)):
            found = ratio(runs, row, peer=peer)
            part.add(1 / found if found else None, row)
    return [("of CUB + copy + MPI_Allreduce", mpi), ("of CUB + ncclAllReduce + copy", nccl)]


def weak_scaling(runs):
    part = Verdict(0.98, True, "", counts=(28,), ranks=(8,))
    for row in ours(runs, timing_point="host", fold=("sum", "max", "softmax"), ranks=(2, 4, 8), count=P[28]):
        one = runs.beside(row, peer="allfold", ranks=1)
        part.add(one["seconds"] / row["seconds"] if one else None, row)
    return [("speed of a rank over that of a single rank", part)]


def softmax(runs):
    wanted = {"folds": ("softmax",), "counts": (26, 28, 30), "ranks": (1, 8)}
    floor, three = Verdict(0.95, True, "", **wanted), Verdict(1.4, True, **wanted)
    torch = Verdict(100.0, True, folds=("softmax",), counts=(24, 28))
    for row in ours(runs, timing_point="host", fold="softmax", dtype="f32", count=tuple(P[24:31])):
        if row["count"] >= P[26]:
            floor.add(row["of_floor"], row)
            three.add(ratio(runs, row, peer="three-pass"), row)
        if row["ranks"] == 1:
            torch.add(ratio(runs, row, peer="torch"), row)
    return [("of the two ceilings' time", floor), ("over three passes", three), ("over torch.softmax", torch)]


def resident_softmax(runs):
    time = Verdict(1.0, False, "", folds=("softmax",), counts=(20, 22, 23), ranks=(1, 4))
    for row in ours(runs, timing_point="host", fold="softmax", dtype="f32", ranks=(1, 4), count=tuple(P[20:24])):
        if row["machine"].get("copy"):
            copying = 8.0 * row["count"] / row["machine"]["copy"]
            bound = 1.15 * copying + (12e-6 if row["ranks"] == 1 else 16e-6)
            time.add(row["seconds"] / bound, row, f"{place(row)}, {1e6 * row['seconds']:.1f} us of {1e6 * bound:.1f}")
    return [("of the time allowed", time)]


def streamed(runs):
    part = Verdict(0.92, True, "", folds=("sum",), counts=(28,))
    for row in runs.find(peer="allfold", backend="cuda", data="host", timing_point="host", count=tuple(P[26:])):
        link = runs.beside(row, peer="link", timing_point="kernel")
        part.add(link["seconds"] / row["seconds"] if link else None, row)
    return [("of the link", part)]


def first_pass(runs):
    part = Verdict(0.93, True, "", folds=("sumexp",), dtypes=("bf16",), counts=(28,))
    for row in ours(runs, timing_point="kernel", fold="sumexp", dtype="bf16", count=P[28]):
        part.add(row["of_read_ceiling"], row)
    return [("of the read ceiling", part)]


def cpu(runs, caches="cleared", **facts):
    return runs.find(peer="allfold", backend="cpu", ranks=1, caches=caches, **facts)


def cpu_sum(runs):
    read, numpy = (Verdict(*bound, folds=("sum",), counts=(28,)) for bound in ((0.92, True, ""), (1.8, True)))
    for row in cpu(runs, timing_point="host", fold="sum", dtype="f32", count=tuple(P[26:])):
        found = runs.beside(row, peer="read", timing_point="kernel")
        read.add(found["seconds"] / row["seconds"] if found else None, row)
        numpy.add(ratio(runs, row, peer="numpy"), row)
    return [("of reading the same bytes", read), ("over np.sum", numpy)]


def cpu_softmax(runs):
    scipy = Verdict(8.0, True, folds=("softmax",), counts=(26,))
    for row in cpu(runs, timing_point="host", fold="softmax", dtype="f32", count=P[26]):
        scipy.add(ratio(runs, row, peer="scipy"), row)
    return [("over scipy", scipy)]


def cpu_small(runs):
    time = Verdict(2.0, False, " us", counts=(10,))
    for row in cpu(runs, timing_point="host", caches="warm", fold=("sum", "max"), count=P[10]):
        time.add(1e6 * row["seconds"], row)
    return [("a call", time)]


GOALS = [  # (the work, the goal, how it is judged)
    ("sum, max, f32/f64/int32, kernel only, 2^28 to 2^31", "at least 1.00x CUB, at least 0.985 of the read ceiling at 2^30",
     large_kernels),
    ("bf16, f16 sum and max, kernel only, 2^28", "at least 1.12x CUB", half_kernels),
    ("sum f32, kernel only, 2^10 to 2^12", "at least 1.00x CUB", kernels(1.00, (10, 12))),
    ("sum f32, kernel only, 2^14 to 2^22", "at least 1.25x CUB", kernels(1.25, (14, 16, 18, 20, 22))),
    ("sum f32, kernel only, 2^24", "at least 1.15x CUB", kernels(1.15, (24,))),
    ("sum f32, kernel only, 2^26", "at least 1.05x CUB", kernels(1.05, (26,))),
    ("fold to a value on the host, 1 rank, 2^10 to 2^22", "at most 0.6 of CUB + copy + synchronise", one_rank),
    ("fold over 4 and 8 ranks, value on every host, 2^10 to 2^20 a rank",
     "at most 0.5 of CUB + copy + MPI_Allreduce, at most 0.35 of CUB + ncclAllReduce + copy", several_ranks),
    ("weak scaling, 2^28 a rank, 8 ranks against 1", "at least 0.98", weak_scaling),
    ("softmax f32 1-D, 2^26 to 2^30 a rank, 1 to 8 ranks",
     "at least 0.95 of (4N at the read ceiling + 8N at the copy ceiling), 1.4x the three-pass peer, 100x torch.softmax from 2^24",
     softmax),
    ("softmax of a shard of 2^20 to 2^23 f32, from call to done on the host",
     "at most 1.15 x (8N at the copy ceiling) + 12 us on 1 rank, + 16 us on 4", resident_softmax),
    ("data in pinned host memory, 2^26 and more", "at least 0.92 of the link's measured rate", streamed),
    ("(max, sumexp) pass, bf16 2^28, kernel only", "at least 0.93 of the read ceiling", first_pass),
    ("CPU: sum f32, all cores", "at least 0.92 of the read bandwidth, 1.8x np.sum", cpu_sum),
    ("CPU: softmax f32 2^26", "at least 8x scipy", cpu_softmax),
    ("CPU: fold of 2^10 on one rank, caches warm", "under 2 us", cpu_small),
]


def table(runs):
    """Markdown: the goals, what the runs measured, and whether that meets them."""
    lines = ["| work | goal | measured | met |", "| --- | --- | --- | --- |"]
    for work, goal, judge in GOALS:
        verdicts = judge(runs)
        measured = "; ".join(f"{name} {verdict.text()}" if verdict.worst else f"{name}: not measured"
                             for name, verdict in verdicts)
        known = [verdict for _, verdict in verdicts if verdict.worst]
        met = "not measured" if not known else "no" if not all(verdict.met() for verdict in known) else \
            "yes" if all(verdict.whole() for _, verdict in verdicts) else "yes, in part"
        lines.append(f"| {work} | {goal} | {measured} | {met} |")
    return "\n".join(lines) + "\n"
