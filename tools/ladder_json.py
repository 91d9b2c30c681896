"""Reading what `allfold ladder --json` prints, for the tools that draw and join it; and tables for people. One report has
the tables of one topic ("rungs", "coalescing", ...), one for each rank, count, type and part. Numbers are in base units:
seconds, bytes a second, ratios; null where something is not known."""
import json_reports


def load(paths):
    """The reports in these files."""
    return json_reports.load(paths, parse)


def parse(text, name="input"):
    reports = json_reports.parse(text, name, "ladder", lambda report: "tables" in report, ": it has no tables")
    if any(device.get("emulated") for report in reports for device in report.get("devices", [])):
        raise ValueError(f"{name} was made without a GPU: nothing in it has a time")
    return reports


def tables(reports, topic, **facts):
    """Rank 0's tables of the topic of which these facts hold: tables(reports, "rungs", dtype="f32")."""
    return [table for report in reports if report.get("topic") == topic for table in report["tables"]
            if table.get("rank", 0) == 0 and all(table.get(key) == value for key, value in facts.items())]


def device(reports, topic):
    """What rank 0 ran the topic on, in words."""
    for report in reports:
        if report.get("topic") == topic and report.get("devices"):
            first = report["devices"][0]
            return f"{first['device']}, CUDA driver {version(first['cuda_driver'])}, " \
                   f"runtime {version(first['cuda_runtime'])}"
    return ""


def version(number):
    return f"{number // 1000}.{number % 1000 // 10}"


def count_text(count):
    """2^24 where it is one, else the digits."""
    return f"2^{count.bit_length() - 1}" if count > 1 and count & (count - 1) == 0 else f"{count:,}"


def number(value, unit=1.0, digits=3):
    """The number in the unit, with at least `digits` significant digits, or a dash."""
    if value is None:
        return "–"
    value = value / unit
    return f"{value:,.0f}" if abs(value) >= 10 ** (digits - 1) else f"{value:.{digits}g}"


def microseconds(value):
    return number(value, 1e-6, 4)


def gigabytes(value):
    return number(value, 1e9, 4)


def percent(value):
    return "–" if value is None else f"{100 * value:.1f}"


def times(value):
    return "–" if value is None else f"{value:.2f}x" if value < 100 else f"{value:,.0f}x"


def markdown(headings, rows, left=1):
    """A Markdown table, its first `left` columns aligned to the left."""
    lines = ["| " + " | ".join(headings) + " |",
             "| " + " | ".join("---" if i < left else "---:" for i in range(len(headings))) + " |"]
    return "\n".join(lines + ["| " + " | ".join(str(cell) for cell in row) + " |" for row in rows]) + "\n"


def plain(headings, rows, left=1):
    """The same in columns for a terminal."""
    grid = [[str(cell) for cell in row] for row in [headings, *rows]]
    widths = [max(len(row[i]) for row in grid) for i in range(len(headings))]
    lines = ["  ".join(cell.ljust(width) if i < left else cell.rjust(width)
                       for i, (cell, width) in enumerate(zip(row, widths))).rstrip() for row in grid]
    return "\n".join(lines) + "\n"
