"""The pictures of scaling-report, as SVG, by matplotlib."""
import io

import matplotlib

matplotlib.use("svg")
import matplotlib.pyplot as plt  # noqa: E402
import numpy as np  # noqa: E402
from matplotlib.ticker import FuncFormatter, NullFormatter  # noqa: E402

from scaling_study import MANY  # noqa: E402

PARTS = (("kernel", "fold on the device"), ("hand_over", "hand-over to the host"), ("exchange", "exchange"), ("rest", "rest"))
COLOURS = ("#2b6cb0", "#90cdf4", "#dd6b20", "#a0aec0")
LINES = ("#2b6cb0", "#dd6b20", "#2f855a", "#805ad5", "#b83280", "#718096")
plt.rcParams.update({"font.size": 10, "axes.spines.top": False, "axes.spines.right": False, "axes.grid": True,
                     "grid.color": "#e2e8f0", "axes.axisbelow": True, "svg.fonttype": "none", "svg.hashsalt": "allfold",
                     "legend.frameon": False, "axes.titlesize": 11, "axes.titlelocation": "left"})


def seconds(value, _=None):
    """A time with its unit: 3 us, 1.5 ms."""
    for unit, scale in (("s", 1), ("ms", 1e-3), ("us", 1e-6), ("ns", 1e-9)):
        if value >= scale * 0.9995:
            return f"{value / scale:.3g} {unit}"
    return "0" if value == 0 else f"{value / 1e-9:.2g} ns"


def elements(count):
    """2^20 where it is one, else digits."""
    if count and count & (count - 1) == 0 and count >= 1024:
        return f"2^{count.bit_length() - 1}"
    return f"{count:,}"


def figure(title, xlabel, ylabel):
    picture, axes = plt.subplots(figsize=(7.8, 3.9), layout="constrained")
    axes.set(title=title, xlabel=xlabel, ylabel=ylabel)
    return picture, axes


def legend(axes):
    """Beside the plot, where no line runs."""
    axes.legend(loc="center left", bbox_to_anchor=(1.0, 0.5), fontsize=9)


def svg(picture):
    text = io.StringIO()
    picture.savefig(text, format="svg", metadata={"Date": None})
    plt.close(picture)
    return text.getvalue()[text.getvalue().index("<svg"):]


def rank_axis(axes, ranks):
    """Ranks, doubling: the numbers that were measured, or powers of ten where there are many more."""
    axes.set_xscale("log", base=2)
    ticks = ranks if len(ranks) <= 12 else [10 ** power for power in range(5)]
    axes.set_xticks(ticks, [f"{tick:,}" for tick in ticks])
    axes.xaxis.set_minor_formatter(NullFormatter())
    axes.minorticks_off()


def time_axis(axes):
    axes.set_yscale("log")
    axes.yaxis.set_major_formatter(FuncFormatter(seconds))
    low, high = axes.get_ylim()
    if high / low < 100:  # no power of ten in sight otherwise
        axes.yaxis.set_minor_formatter(FuncFormatter(lambda value, _: seconds(value) if f"{value:e}"[0] in "25" else ""))
    else:
        axes.yaxis.set_minor_formatter(NullFormatter())


def time_plot(study, series, title, label, ideal):
    picture, axes = figure(title, "ranks", "time of a fold")
    for (size, times), colour in zip(shown(series), LINES):
        ranks, values = np.array(list(times)), np.array(list(times.values()))
        axes.plot(ranks, values, "o-", color=colour, label=label(size), markersize=5)
        axes.plot(ranks, ideal(ranks, values), ":", color=colour, linewidth=1)
    axes.plot([], [], ":", color="#4a5568", linewidth=1, label="ideal")
    rank_axis(axes, study.ranks)
    time_axis(axes)
    legend(axes)
    return svg(picture)


def shown(series):
    """At most as many series as there are colours: from the smallest to the largest."""
    items = list(series.items())
    if len(items) <= len(LINES):
        return items
    return [items[round(i * (len(items) - 1) / (len(LINES) - 1))] for i in range(len(LINES))]


def weak_plot(study):
    return time_plot(study, study.weak(), f"Weak scaling: {study.fold}, {study.dtype}",
                     lambda count: f"{elements(count)} elements a rank", lambda ranks, times: np.full(len(ranks), times[0]))


def strong_plot(study):
    return time_plot(study, study.strong(), f"Strong scaling: {study.fold}, {study.dtype}",
                     lambda total: f"{elements(total)} elements in all", lambda ranks, times: times[0] * ranks[0] / ranks)


def efficiency_plot(study):
    picture, axes = figure("Efficiency, against the smallest number of ranks", "ranks", "efficiency")
    for style, series, work in (("o-", study.weak(), lambda ranks: 1), ("s--", study.strong(), lambda ranks: ranks)):
        for (size, times), colour in zip(shown(series), LINES):
            base = next(iter(times))
            axes.plot(list(times), [times[base] * work(base) / (time * work(ranks)) for ranks, time in times.items()], style,
                      color=colour, markersize=5,
                      label=f"weak, {elements(size)} a rank" if style == "o-" else f"strong, {elements(size)} in all")
    rank_axis(axes, study.ranks)
    axes.set_ylim(0, max(1.05, axes.get_ylim()[1]))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:.0%}"))
    legend(axes)
    return svg(picture)


def split_plot(study, count):
    """Stacked bars; parts that came out below zero, by the spread of medians, count as zero."""
    picture, axes = figure(f"Where the time goes: {elements(count)} elements a rank", "ranks", "time")
    ranks = [rank for rank in study.ranks if (count, rank) in study.split]
    bottom = np.zeros(len(ranks))
    for (part, name), colour in zip(PARTS, COLOURS):
        height = np.array([max(study.split[count, rank].get(part) or 0, 0) for rank in ranks])
        axes.bar([f"{rank:,}" for rank in ranks], height, bottom=bottom, color=colour, label=name, width=0.6)
        bottom += height
    axes.yaxis.set_major_formatter(FuncFormatter(seconds))
    axes.grid(axis="x", visible=False)
    axes.set_ylim(0, bottom.max() * 1.05)
    legend(axes)
    return svg(picture)


def exchange_plot(study):
    """Measured points, the fit, and its band as far as MANY ranks."""
    picture, axes = figure("Latency of the exchange", "ranks", "time of one exchange")
    if study.fit_exchange is not None:
        ranks = np.geomspace(2, MANY, 200)
        time, band = study.exchange_time(ranks)
        axes.plot(ranks, time, color=LINES[1], label="alpha log2 P + beta")
        if np.isfinite(band).all():
            axes.fill_between(ranks, np.maximum(time - band, time.min() * 0.05), time + band, color=LINES[1], alpha=0.2,
                              linewidth=0, label="95 % band")
    inside = [(ranks, time) for (_, ranks), time in study.exchange.items() if ranks > 1 and study.hosts.get(ranks, 1) < 2]
    outside = [(ranks, time) for (_, ranks), time in study.exchange.items() if ranks > 1 and study.hosts.get(ranks, 1) > 1]
    for points, marker, name in ((inside, "o", "measured, one host"), (outside, "s", "measured, several hosts")):
        if points:
            axes.plot(*zip(*points), marker, color=LINES[0], markersize=5, label=name, alpha=0.8)
    rank_axis(axes, [10 ** power for power in range(5)])
    axes.set_xlim(1.6, MANY * 1.2)
    time_axis(axes)
    legend(axes)
    return svg(picture)


def extrapolation_plot(study, total):
    """A fold of `total` elements cut for more and more ranks, against the exchange."""
    picture, axes = figure(f"Strong scaling of {elements(total)} elements, to {MANY:,} ranks", "ranks", "time")
    ranks = np.geomspace(1, MANY, 300)
    exchange, exchange_band = study.exchange_time(ranks)
    fold, fold_band = study.fit_fold.predict(np.stack([np.ones_like(ranks), total / ranks * study.width], 1))
    for time, band, colour, name in ((fold, fold_band, LINES[0], "fold of a rank's part"),
                                     (exchange, exchange_band, LINES[1], "exchange"),
                                     (fold + exchange, fold_band + exchange_band, LINES[5], "both")):
        axes.plot(ranks[ranks >= 2], time[ranks >= 2], color=colour, label=name, linestyle="--" if name == "both" else "-")
        if np.isfinite(band).all():
            axes.fill_between(ranks[ranks >= 2], np.maximum(time - band, time * 0.02)[ranks >= 2], (time + band)[ranks >= 2],
                              color=colour, alpha=0.15, linewidth=0)
    overtaken = study.overtaken(lambda ranks: total / ranks)[0]
    if overtaken:
        axes.axvline(overtaken, color="#4a5568", linewidth=1, linestyle=":")
        axes.annotate(f"{overtaken:,} ranks", (overtaken, axes.get_ylim()[1]), xytext=(4, -12), textcoords="offset points",
                      color="#4a5568")
    axes.set_xscale("log")
    axes.set_xticks([10 ** power for power in range(5)], [f"{10 ** power:,}" for power in range(5)])
    time_axis(axes)
    legend(axes)
    return svg(picture)
