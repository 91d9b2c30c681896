"""The pictures of tools/plot-bench, by matplotlib: bandwidth against size with the ceilings, time from call to value,
where that time goes, and scaling over ranks. One line a peer, of one colour in all pictures."""
import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402
from bench_json import RANGE  # noqa: E402
from matplotlib.ticker import FuncFormatter, NullLocator  # noqa: E402

INK, SOFT, GRID = "#1f2328", "#59636e", "#e3e8ed"
# Hues that can be told apart, also by most who are colour-blind (after Okabe and Ito); the library is the strong one.
PEERS = {  # peer -> (colour, width, dashes, what it is called)
    "allfold": ("#2f81c9", 2.6, "-", "allfold"),
    "cub": ("#d9822b", 1.7, "-", "CUB"),
    "cub-gpu-to-gpu": ("#1f2328", 1.4, "-", "CUB, the same bits on any GPU"),
    "cub+copy": ("#d9822b", 1.7, "-", "CUB + copy"),
    "cub+copy+mpi": ("#d9822b", 1.7, "-", "CUB + copy + MPI_Allreduce"),
    "cub+nccl+copy": ("#1f9e77", 1.7, "-", "CUB + ncclAllReduce + copy"),
    "three-pass": ("#c2504b", 1.7, "-", "three passes of CUB"),
    "torch": ("#b65fa0", 1.7, "-", "PyTorch"),
    "quack": ("#1f9e77", 1.7, "-", "QuACK"),
    "liger": ("#c2504b", 1.7, "-", "Liger"),
    "numpy": ("#b65fa0", 1.7, "-", "NumPy"),
    "scipy": ("#7a79d4", 1.7, "-", "SciPy"),
    "read": ("#8c96a0", 1.4, (0, (4, 2)), "plain read"),
    "copy": ("#8c96a0", 1.4, (0, (1, 1.5)), "plain copy"),
    "link": ("#8c96a0", 1.4, (0, (4, 2)), "copy over the link"),
}
PARTS = {"kernel": ("#2f81c9", "kernel"), "hand_over": ("#d9822b", "hand-over to the host"),
         "exchange": ("#1f9e77", "exchange between ranks"), "rest": ("#b6bfc8", "rest")}
FOLDS = {"sum": "Sum", "sum-exact": "Exact sum", "max": "Maximum", "argmax": "Index of the maximum", "sumexp": "First pass of softmax", "softmax": "Softmax",
         "softmax-exact": "Exact softmax", "logsumexp": "Log-sum-exp", "logsumexp-exact": "Exact log-sum-exp"}
STYLE = {
    "font.family": "sans-serif", "font.sans-serif": ["DejaVu Sans"], "font.size": 10.5, "text.color": INK,
    "axes.labelcolor": INK, "axes.edgecolor": SOFT, "axes.linewidth": 0.8, "xtick.color": SOFT, "ytick.color": SOFT,
    "axes.grid": True, "grid.color": GRID, "grid.linewidth": 0.8, "axes.axisbelow": True, "axes.spines.top": False,
    "axes.spines.right": False, "legend.frameon": False, "legend.fontsize": 9.5, "svg.fonttype": "path",
    "svg.hashsalt": "allfold", "figure.facecolor": "white", "savefig.facecolor": "white",
}


def save(figure, path):
    figure.savefig(path, dpi=160, metadata={"Date": None} if path.endswith(".svg") else None)
    plt.close(figure)


def power(count, _=None):
    """A tick of an axis of counts."""
    exponent = round(count).bit_length() - 1 if count >= 1 else 0
    return f"$2^{{{exponent}}}$" if 2 ** exponent == round(count) else f"{count:g}"


def chart(title, text, x_label, y_label):
    figure, axes = plt.subplots(figsize=(8.4, 4.9))
    figure.subplots_adjust(left=0.095, right=0.975, top=0.845, bottom=0.125)
    figure.text(0.022, 0.945, title, fontsize=13.5, fontweight="bold", color=INK, va="center")
    figure.text(0.022, 0.893, text, fontsize=9.5, color=SOFT, va="center")
    axes.set_xlabel(x_label)
    axes.set_ylabel(y_label)
    axes.tick_params(length=0)
    return figure, axes


def count_axis(axes, counts):
    axes.set_xscale("log", base=2)
    shown = counts if len(counts) <= 13 else counts[::2]
    axes.set_xticks(shown)
    axes.xaxis.set_major_formatter(FuncFormatter(power))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.set_xlim(counts[0] / 1.35, counts[-1] * 1.35)


def microseconds(value, _=None):
    """A tick of a logarithmic axis of seconds."""
    return f"{value * 1e6:g} µs" if value < 1e-3 else f"{value * 1e3:g} ms" if value < 1 else f"{value:g} s"


def spread(facts):
    return f", elements in [-{facts['range']}, {facts['range']})" if facts["range"] != RANGE else ""


def circumstances(runs, row, **facts):
    """What holds for a picture: the device, the ranks, the caches."""
    ranks = row["ranks"]
    return ", ".join(filter(None, [
        runs.device(**facts), "1 rank" if ranks == 1 else f"{ranks} ranks, the slowest one's median",
        "medians" if ranks == 1 else "", ("caches warm" if row["caches"] == "warm" else "caches cleared before each run") + spread(row),
        "data in host memory" if row["data"] == "host" else ""]))


def lines(axes, rows, value):
    """A line for each peer: value(row) against the count."""
    order = list(PEERS)
    peers = sorted({row["peer"] for row in rows}, key=lambda peer: order.index(peer) if peer in order else 99)
    for peer in peers:
        colour, width, dashes, name = PEERS.get(peer, (INK, 1.5, "-", peer))
        points = sorted((row["count"], value(row)) for row in rows if row["peer"] == peer)
        axes.plot(*zip(*points), color=colour, linewidth=width, linestyle=dashes, label=name,
                  marker="o" if dashes == "-" else None, markersize=4.2 if peer == "allfold" else 3.2,
                  zorder=4 if peer == "allfold" else 3)


def ceilings(axes, levels):
    """Lines across, each named above it, one beside the other: two may lie close."""
    for place, (level, text) in enumerate(sorted(levels, reverse=True)):
        axes.axhline(level, color=SOFT, linewidth=0.9, zorder=2)
        axes.annotate(f"{text} {level:,.0f}", (0.006 + 0.21 * place, level), xycoords=("axes fraction", "data"), xytext=(0, 2.5),
                      textcoords="offset points", fontsize=8.8, color=SOFT, va="bottom", ha="left")


def bandwidth(runs, facts, rows):
    """Kernels only: bytes a second against the count, and the ceilings."""
    fold, machine = facts["fold"], next((row["machine"] for row in rows if row["machine"]), {})
    figure, axes = chart(f"{FOLDS.get(fold, fold)} of {facts['dtype']}, kernels only",
                         circumstances(runs, rows[0], **facts), "elements a rank", "GB/s")
    lines(axes, rows, lambda row: row["bytes_per_second"] / 1e9)
    top = max(row["bytes_per_second"] for row in rows if row["bytes_per_second"]) / 1e9
    kinds = ["read", "datasheet", "copy"] if fold.startswith("softmax") else ["read", "datasheet"]
    levels = [(machine[kind] / 1e9, "datasheet" if kind == "datasheet" else f"{kind} ceiling") for kind in kinds if machine.get(kind)]
    ceilings(axes, levels)
    lowest = min([level for level, _ in levels], default=top)
    top = max([top] + [level for level, _ in levels])
    axes.set_ylim(0, top * 1.1)
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}"))
    count_axis(axes, sorted({row["count"] for row in rows}))
    axes.legend(loc="upper left", bbox_to_anchor=(0.0, min(lowest / (1.1 * top), 0.95)))
    return figure


def latency(runs, facts, rows):
    """From the call to the value on every host, against the count."""
    fold = facts["fold"]
    figure, axes = chart(f"{FOLDS.get(fold, fold)} of {facts['dtype']}, from the call until "
                         + ("it is done" if fold.startswith("softmax") else "every host has the value"),
                         circumstances(runs, rows[0], **facts), "elements a rank", "")
    lines(axes, rows, lambda row: row["seconds"])
    floors = sorted((row["count"], row["floor_seconds"]) for row in rows if row["peer"] == "allfold" and row["floor_seconds"])
    if floors:
        axes.plot(*zip(*floors), color=SOFT, linewidth=1.1, linestyle=(0, (4, 2)), label="its bytes at the ceilings")
    axes.set_yscale("log")
    low = min(row["seconds"] for row in rows)
    axes.set_ylim(low / 1.8, max(row["seconds"] for row in rows) * 1.6)
    axes.yaxis.set_major_formatter(FuncFormatter(microseconds))
    axes.yaxis.set_minor_locator(NullLocator())
    count_axis(axes, sorted({row["count"] for row in rows}))
    axes.legend(loc="upper left")
    return figure


def with_split(rows):
    return [row for row in rows if row.get("split")]


def split(runs, facts, rows):
    """Where allfold's time goes, as parts of it."""
    fold = facts["fold"]
    figure, axes = chart(f"{FOLDS.get(fold, fold)} of {facts['dtype']}: where the time goes",
                         circumstances(runs, rows[0], **facts), "elements a rank", "µs")
    rows = with_split(rows)
    rows = sorted((row for row in rows if row["seconds"] < 4 * min(r["seconds"] for r in rows)), key=lambda row: row["count"])
    bottom = [0.0] * len(rows)
    for part, (colour, name) in PARTS.items():
        heights = [max(0.0, row["split"][part] or 0.0) * 1e6 for row in rows]
        axes.bar(range(len(rows)), heights, 0.62, bottom=bottom, color=colour, label=name)
        bottom = [low + height for low, height in zip(bottom, heights)]
    axes.set_xticks(range(len(rows)))
    axes.set_xticklabels([power(row["count"]) for row in rows])
    axes.grid(axis="x", visible=False)
    axes.set_ylim(0, max(bottom) * 1.32)
    axes.legend(loc="upper left", ncols=2)
    return figure


def scaling(runs, facts, rows):
    """Weak scaling: bytes a second of all ranks together."""
    fold = facts["fold"]
    figure, axes = chart(f"{FOLDS.get(fold, fold)} of {facts['dtype']}, {bench_count(facts['count'])} a rank",
                         f"{runs.device(**facts)}{spread(facts)}, weak scaling, the slowest rank's median", "ranks", "GB/s, all ranks together")
    peers = sorted({row["peer"] for row in rows}, key=lambda peer: list(PEERS).index(peer) if peer in PEERS else 99)
    for peer in peers:
        colour, width, dashes, name = PEERS.get(peer, (INK, 1.5, "-", peer))
        points = sorted((row["ranks"], row["ranks"] * row["bytes_per_second"] / 1e9) for row in rows if row["peer"] == peer)
        axes.plot(*zip(*points), color=colour, linewidth=width, linestyle=dashes, marker="o", label=name,
                  markersize=5 if peer == "allfold" else 3.5)
    first = min((row for row in rows if row["peer"] == "allfold"), key=lambda row: row["ranks"])
    ranks = sorted({row["ranks"] for row in rows})
    ideal = first["bytes_per_second"] / 1e9
    axes.plot(ranks, [ideal * n for n in ranks], color=SOFT, linewidth=1.0, linestyle=(0, (4, 2)),
              label=f"{first['ranks']} rank's speed times the ranks")
    for row in rows:
        if row["peer"] == "allfold" and row["ranks"] > first["ranks"]:
            total = row["ranks"] * row["bytes_per_second"] / 1e9
            axes.annotate(f"{100 * row['bytes_per_second'] / first['bytes_per_second']:.1f}%", (row["ranks"], total),
                          xytext=(6, -13), textcoords="offset points", fontsize=9, color=INK)
    axes.set_xticks(ranks)
    axes.set_ylim(0, None)
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}"))
    axes.legend(loc="upper left")
    return figure


def small_scaling(runs, facts, rows):
    """The time of small folds against the number of ranks."""
    fold = facts["fold"]
    figure, axes = chart(f"{FOLDS.get(fold, fold)} of {bench_count(facts['count'])} {facts['dtype']} a rank",
                         f"{runs.device(**facts)}{spread(facts)}, the slowest rank's median", "ranks", "µs from call to value on every host")
    order = list(PEERS)
    for peer in sorted({row["peer"] for row in rows}, key=lambda peer: order.index(peer) if peer in order else 99):
        colour, width, dashes, name = PEERS.get(peer, (INK, 1.5, "-", peer))
        points = sorted((row["ranks"], row["seconds"] * 1e6) for row in rows if row["peer"] == peer)
        axes.plot(*zip(*points), color=colour, linewidth=width, linestyle=dashes, marker="o", label=name,
                  markersize=5 if peer == "allfold" else 3.5)
    axes.set_xticks(sorted({row["ranks"] for row in rows}))
    axes.set_ylim(0, max(row["seconds"] for row in rows) * 1.35e6)
    axes.legend(loc="upper left", ncols=2)
    return figure


def bench_count(count):
    return power(count) if count & (count - 1) == 0 else f"{count:,}"


def along(runs, facts, rows):
    """Folds of rows, a panel for each fold and type: bytes a second against the length of a row, allfold at both levels."""
    order = [*FOLDS, "f64", "f32", "bf16", "f16"]
    types, folds = (sorted(found, key=lambda name: (order.index(name) if name in order else 99, name))
                    for found in ({row["dtype"] for row in rows}, {row["fold"].removesuffix("-exact") for row in rows}))
    figure, panels = plt.subplots(len(folds), len(types), sharex=True, sharey=True, squeeze=False, figsize=(4.6 * len(types), 0.9 + 2.6 * len(folds)))
    figure.subplots_adjust(left=0.085, right=0.985, top=0.885, bottom=0.075, hspace=0.24, wspace=0.08)
    figure.text(0.022, 0.975, f"{bench_count(max(row['count'] for row in rows))} elements in rows, from the call to its end", fontsize=13.5, fontweight="bold",
                color=INK, va="center")
    figure.text(0.022, 0.95, circumstances(runs, rows[0], **facts), fontsize=9.5, color=SOFT, va="center")
    shown = {}
    for fold, across in zip(folds, panels):
        for dtype, axes in zip(types, across):
            for peer, (colour, width, dashes, name) in PEERS.items():
                for found in (fold, fold + "-exact") if peer == "allfold" else (fold,):
                    points = sorted((row["shape"][1], row["bytes_per_second"] / 1e9) for row in rows if (row["peer"], row["fold"], row["dtype"]) == (peer, found, dtype))
                    if not points or peer == ("read" if fold == "softmax" else "copy"):
                        continue
                    exact = found.endswith("-exact")
                    label = f"allfold, {'exact' if exact else 'fast'}" if peer == "allfold" else name
                    shown[label], = axes.plot(*zip(*points), color=colour, linewidth=width, linestyle=(0, (3, 1.2)) if exact else dashes,
                                              marker="o" if dashes == "-" else None, markersize=3.2, zorder=4 if peer == "allfold" else 3)
            axes.set_title(f"{FOLDS.get(fold, fold)}, {dtype}", fontsize=10.5, loc="left")
            axes.tick_params(length=0)
            axes.set_ylim(0, None)
            count_axis(axes, sorted({row["shape"][1] for row in rows}))
    figure.legend(shown.values(), shown, loc="upper left", bbox_to_anchor=(0.014, 0.945), ncols=len(shown), fontsize=9, columnspacing=1.0, handlelength=2.5)
    for axes in panels[-1]:
        axes.set_xlabel("elements of a row")
    for axes in panels[:, 0]:
        axes.set_ylabel("GB/s")
        axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}"))
    return figure


def groups(runs, keys, **facts):
    """(facts, rows) for each combination of the keys' values that has rows of allfold."""
    combinations = sorted({tuple(row[key] for key in keys) for row in runs.find(peer="allfold", **facts)})
    for combination in combinations:
        same = {**facts, **dict(zip(keys, combination))}
        yield same, runs.find(**same)


def name_of(kind, facts, *keys):
    words = {"ranks": "{}-ranks" if facts.get("ranks") != 1 else "{}-rank"}
    parts = [words.get(key, "{}").format(facts[key]) for key in keys]
    extra = [text for text, there in (("warm", facts["caches"] == "warm"), ("from-host", facts["data"] == "host"),
                               (f"range-{facts['range']}", facts["range"] != RANGE)) if there]
    return "-".join(["bench", facts["backend"], kind, *parts, *extra])


def counts_in(rows):
    return len({row["count"] for row in rows if row["peer"] == "allfold"})


def plots(runs):
    """(name, figure) of every picture that the runs have data for."""
    keys = ("backend", "data", "caches", "range", "fold", "dtype", "ranks")
    with plt.rc_context(STYLE):
        for facts, rows in groups(runs, keys, timing_point="kernel"):
            if counts_in(rows) > 2:
                yield name_of("bandwidth", facts, "fold", "dtype", "ranks"), bandwidth(runs, facts, rows)
        for facts, rows in groups(runs, keys, timing_point="host"):
            if counts_in(rows) > 2:
                yield name_of("time", facts, "fold", "dtype", "ranks"), latency(runs, facts, rows)
                if len(with_split(rows)) > 1:
                    yield name_of("split", facts, "fold", "dtype", "ranks"), split(runs, facts, rows)
        calls = [row for row in runs.along if row["shape"][2] == 1 and row["ranks"] == 1 and (row["timing_point"] == "host" or row["peer"] in ("read", "copy"))]
        keys = ("backend", "data", "caches", "range")
        for same in sorted({tuple(row[key] for key in keys) for row in calls}):
            rows = [row for row in calls if tuple(row[key] for key in keys) == same]
            most = max(row["count"] for row in rows)
            rows = [row for row in rows if row["count"] > 0.9 * most]  # whole rows only: a little less for some lengths
            if len({row["shape"][1] for row in rows if row["peer"] == "allfold"}) > 2:
                facts = dict(zip(keys, same))
                yield name_of("rows", facts), along(runs, facts, rows)
        keys = ("backend", "data", "caches", "range", "fold", "dtype", "count")
        # numbers of ranks compare within one report: the last of those with the most
        joint = max(((row["ranks"], row["report"]) for row in runs.rows if row["ranks"] > 1), default=(1, None))[1]
        together = [row for row in runs.rows if row["report"] == joint]
        scaled = [(facts, runs.find(rows=together, **facts)) for facts, _ in groups(runs, keys, timing_point="host")]
        scaled = [(facts, rows) for facts, rows in scaled
                  if len({row["ranks"] for row in rows if row["peer"] == "allfold"}) > 1]
        for facts, rows in scaled:
            whole = facts["count"] >= 2 ** 24
            draw = scaling if whole else small_scaling
            yield name_of("scaling", facts, "fold", "dtype", "count"), draw(runs, facts, rows)
