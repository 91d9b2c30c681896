"""The plots of what `allfold ladder --json` measured: time per rung, percent of peak, and what the experiments show. For
tools/draw-ladder. Every function takes the reports and gives (name, page), or nothing if they lack its
measurements."""
import math

from ladder_json import count_text, device, number, tables
from ladder_svg import Page

LEFT, TOP = 190, 96


def subtitle(reports, topic, *more):
    return ", ".join(part for part in (*more, device(reports, topic)) if part)


def head(page, title, text):
    page.write(20, 34, title, "", 18, weight=600)
    page.write(20, 58, text, "soft", 13)


def legend(page, x, y, names, hue=0):
    for i, name in enumerate(names):
        page.rect(x, y - 10, 11, 11, f"h{hue + i}", 2)
        page.write(x + 17, y, name, "soft", 12.5)
        x += 34 + 7.2 * len(name)


def decades(low, high):
    """The powers of ten that enclose [low, high]."""
    return 10.0 ** math.floor(math.log10(low) + 1e-9), 10.0 ** math.ceil(math.log10(high) - 1e-9)


def bars(name, title, text, labels, series, log=False, unit="", limit=None, show=None):
    """Horizontal bars: series is [(name, values)], a value for each label or None. limit: the end of the axis."""
    each = 9 + 13 * len(series)
    width, height = 620, each * len(labels)
    page = Page(LEFT + width + 100, TOP + height + 56, title, text)
    head(page, title, text)
    values = [value for _, row in series for value in row if value]
    low, high = decades(min(values), max(values)) if log else (0.0, limit or max(values) * 1.05)
    if log and low == high:
        high *= 10

    def place(value):
        share = math.log(value / low) / math.log(high / low) if log else (value - low) / (high - low)
        return LEFT + width * min(max(share, 0.0), 1.0)

    tick, ticks = low, []
    while tick <= high * 1.0001 and len(ticks) < 12:
        ticks.append(tick)
        tick = tick * 10 if log else tick + step_of(high)
    for tick in ticks:
        page.line(place(tick), TOP - 6, place(tick), TOP + height, "grid")
        page.write(place(tick), TOP + height + 18, number(tick), "soft", 12, "middle")
    page.write(LEFT + width, TOP + height + 38, unit, "soft", 12.5, "end")
    for i, label in enumerate(labels):
        y = TOP + i * each + 4
        page.write(LEFT - 10, y + 6.5 * len(series) + 4, label, "", 12.5, "end")
        for j, (_, row) in enumerate(series):
            if not row[i]:
                continue
            end = max(place(row[i]), LEFT + 1.5)
            page.rect(LEFT, y + 13 * j, end - LEFT, 11, f"h{j}", 2)
            page.write(end + 5, y + 13 * j + 9.5, (show or number)(row[i]), "soft", 11)
    if len(series) > 1:
        legend(page, LEFT, 82, [series_name for series_name, _ in series])
    return name, page


def step_of(high):
    """A round distance between ticks, about six of them."""
    raw = high / 6
    base = 10.0 ** math.floor(math.log10(raw))
    return next(base * factor for factor in (1, 2, 2.5, 5, 10) if base * factor >= raw * 0.999)


def chart(name, title, text, series, x_label, y_label, x_ticks, y_limit, lines=(), log_x=True, joined=True):
    """Points in series [(name, [(x, y)])], joined from left to right or not; lines: [(name, y)] right across."""
    width, height, left = 640, 320, 76
    page = Page(left + width + (110 if lines else 30), TOP + height + 62, title, text)
    head(page, title, text)
    low, high = min(x_ticks), max(x_ticks)

    def place(x, y):
        share = math.log(x / low) / math.log(high / low) if log_x else (x - low) / (high - low)
        return left + width * share, TOP + height * (1 - min(y / y_limit, 1.0))

    for tick in x_ticks:
        x, _ = place(tick, 0)
        page.line(x, TOP, x, TOP + height, "grid")
        page.write(x, TOP + height + 18,
                   number(tick) if tick < 1024 or not log_x else f"{tick // 1024}Ki", "soft", 12, "middle")
    tick = 0.0
    while tick <= y_limit * 1.0001:
        _, y = place(low, tick)
        page.line(left, y, left + width, y, "grid")
        page.write(left - 8, y + 4, number(tick), "soft", 12, "end")
        tick += step_of(y_limit)
    page.line(left, TOP + height, left + width, TOP + height, "axis")
    page.write(left + width / 2, TOP + height + 42, x_label, "soft", 12.5, "middle")
    page.write(20, 82, y_label, "soft", 12.5)
    below = TOP - 10.0
    for line_name, y in sorted(lines, key=lambda line: -line[1]):
        _, at = place(low, y)
        page.line(left, at, left + width, at, "axis", 1.3, "6 4")
        below = max(at + 4, below + 15) # texts keep apart
        page.write(left + width + 8, below, line_name, "soft", 12)
    for i, (_, points) in enumerate(series):
        places = [place(x, y) for x, y in sorted(points)]
        if joined and len(places) > 1:
            page.path(places, f"s{i}", 2.2)
        for x, y in places:
            page.circle(x, y, 4 if joined else 6.5 - 3 * i, f"h{i}")
    if len(series) > 1:
        legend(page, max(left, 44 + 7 * len(y_label)), 82, [series_name for series_name, _ in series])
    return name, page


def rungs(reports):
    """The first type and fold that the report has, at all its counts."""
    found = tables(reports, "rungs")
    if not found:
        return []
    first = found[0]
    same = {table["count"]: table for table in found
            if all(table.get(key) == first.get(key) for key in ("dtype", "fold", "block"))}
    return [same[count] for count in sorted(same)]


def column(table, labels, key, unit=1.0):
    """The value for each rung, in the unit, or None."""
    rows = {row["rung"]: row for row in table["rows"]}
    return [rows[label][key] / unit if label in rows and rows[label].get(key) else None for label in labels]


def about(reports, found):
    first = found[0]
    return subtitle(reports, "rungs", f"{first['fold']} of {first['dtype']}, blocks of {first['block']} threads")


def ladder_time(reports):
    found = rungs(reports)
    if not found:
        return
    labels = [row["rung"] for row in found[-1]["rows"]]
    series = [(f"{count_text(table['count'])} elements", column(table, labels, "seconds", 1e-6)) for table in found]
    yield bars("ladder-time", "Time per rung", about(reports, found), labels, series, log=True,
               unit="microseconds, log scale")


def ladder_percent(reports):
    found = rungs(reports)
    if not found:
        return
    labels = [row["rung"] for row in found[-1]["rows"]]
    series = [(f"{count_text(table['count'])} elements", column(table, labels, "input_of_read_ceiling", 0.01))
              for table in found]
    yield bars("ladder-percent", "How much of the memory's speed each rung uses", about(reports, found), labels, series,
               unit="input bytes / time, percent of the measured read ceiling", limit=100.0,
               show=lambda value: f"{value:.1f}%")


def softmax(reports):
    by_count = {table["count"]: table for table in tables(reports, "softmax")}
    if not by_count:
        return
    found = [by_count[count] for count in sorted(by_count)]
    labels = [row["rung"] for row in found[-1]["rows"]]
    series = [(f"{count_text(table['count'])} logits", column(table, labels, "seconds", 1e-6)) for table in found]
    yield bars("softmax-time", "Softmax: time per rung", subtitle(reports, "softmax", "f32"), labels, series, log=True,
               unit="microseconds, log scale")


def lines(reports):
    """Sums along rows, and along columns: every shape that was measured."""
    for topic in ("rows", "columns"):
        by_shape = {(table["matrix_rows"], table["matrix_columns"]): table for table in tables(reports, topic)}
        if by_shape:
            labels = [row["rung"] for row in next(iter(by_shape.values()))["rows"]]
            series = [(" x ".join(map(count_text, shape)), column(table, labels, "of_read_ceiling", 0.01))
                      for shape, table in by_shape.items()]
            yield bars(f"ladder-{topic}", f"Sums along {topic}", subtitle(reports, topic, "f32, rows x columns"), labels, series,
                       unit="percent of the measured read ceiling", limit=100.0, show=lambda value: f"{value:.1f}%")


def coalescing(reports):
    by_part = {table["part"]: table for table in tables(reports, "coalescing")}
    if not by_part:
        return
    first = next(iter(by_part.values()))
    labels = [row["way"] for row in first["rows"]]
    series = [(part, [row["of_read_ceiling"] and 100 * row["of_read_ceiling"] for row in table["rows"]])
              for part, table in by_part.items()]
    text = subtitle(reports, "coalescing", f"{first['matrix_rows']:,} x {first['matrix_columns']:,} int32, row after row")
    yield bars("coalescing", "Row and column sums", text, labels, series, unit="percent of the measured read ceiling",
               limit=100.0, show=lambda value: f"{value:.1f}%")


def parallelism(reports):
    for table in tables(reports, "parallelism")[-1:]:
        rows = [row for row in table["rows"] if row["bytes_per_second"]]
        series = [(f"{size} bytes a load", [(row["bytes_in_flight"], row["bytes_per_second"] * 1e-12) for row in rows
                                            if row["load_bytes"] == size]) for size in (4, 16)]
        lines = [("read ceiling", table["read_ceiling"] * 1e-12), ("datasheet", table["datasheet"] * 1e-12)]
        ticks = [2 ** n for n in range(int(math.log2(min(row["bytes_in_flight"] for row in rows))),
                                       int(math.ceil(math.log2(max(row["bytes_in_flight"] for row in rows)))) + 1)]
        yield chart("parallelism", "Bandwidth needs bytes in flight", subtitle(reports, "parallelism"), series,
                    "bytes in flight on a multiprocessor, log scale", "TB/s", ticks,
                    1.05 * max(y for _, y in lines), lines, joined=False)


def granularity(reports):
    found = tables(reports, "granularity")
    if not found:
        return
    series = [(f"{table['block']} threads a block", [(row["elements"], 100 * row["of_read_ceiling"]) for row in table["rows"]
                                                     if row["of_read_ceiling"]]) for table in found[-6:]]
    text = subtitle(reports, "granularity", f"{count_text(found[-1]['count'])} int32")
    yield chart("granularity", "Work per thread", text, series,
                "elements a thread, log scale", "percent of the measured read ceiling", [1, 2, 4, 8, 16, 32], 100.0)


def occupancy(reports):
    for table in tables(reports, "occupancy"):
        rows = [row for row in table["rows"] if row["of_read_ceiling"]]
        key, unit, label = {"registers": ("registers", 1, "registers a thread"),
                            "register caps": ("registers", 1, "registers a thread, capped by __launch_bounds__"),
                            "shared memory": ("dynamic_shared_bytes", 1024, "KiB of shared memory a block")}[table["part"]]
        points = [(row[key] / unit, row) for row in rows]
        high = max(x for x, _ in points)
        step = step_of(high)
        series = [("bandwidth, percent of the read ceiling", [(x, 100 * row["of_read_ceiling"]) for x, row in points]),
                  ("occupancy, percent", [(x, 100 * row["occupancy"]) for x, row in points])]
        ticks = [step * n for n in range(int(math.ceil(high / step)) + 1)]
        yield chart("occupancy-" + table["part"].replace(" ", "-"), f"Occupancy: {table['part']}",
                    subtitle(reports, "occupancy"), series, label, "", ticks, 100.0, log_x=False)


def plots(reports):
    """(name, page) of every plot that the reports have measurements for."""
    for plot in (ladder_time, ladder_percent, softmax, lines, coalescing, parallelism, granularity, occupancy):
        yield from plot(reports)
