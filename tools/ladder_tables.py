"""The tables of docs/ladder.md, as Markdown, from what `allfold ladder --json` measured. For tools/draw-ladder --table."""
from ladder_json import device, gigabytes, markdown, microseconds, number, percent, tables, times


def rung_table(table):
    rows = [(f"`{row['rung']}`", row["idea"], microseconds(row["seconds"]), microseconds(row["seconds_p99"]),
             gigabytes(row["bytes_per_second"]), percent(row["of_read_ceiling"]), percent(row["of_datasheet"]),
             percent(row["input_of_read_ceiling"]), times(row["speedup_before"]), times(row["speedup_first"]),
             percent(row["occupancy"]), "yes" if row["correct"] else "**no**") for row in table["rows"]]
    return markdown(("rung", "idea", "time, us", "p99, us", "GB/s", "% of ceiling", "% of datasheet", "% useful",
                     "x before", "x first", "occupancy, %", "correct"), rows, 2)


def ceilings(table):
    return f"Read ceiling, measured in the same run: {gigabytes(table['read_ceiling'])} GB/s; datasheet: " \
           f"{gigabytes(table['datasheet'])} GB/s.\n"


def softmax_tables(reports):
    for table in tables(reports, "softmax"):
        rows = [(f"`{row['rung']}`", row["idea"], row["trips"], microseconds(row["seconds"]),
                 gigabytes(row["bytes_per_second"]), percent(row["of_read_ceiling"]), times(row["speedup_before"]),
                 times(row["speedup_first"]), number(row["error_ulp"])) for row in table["rows"]]
        yield f"### {table['title']}\n\n" + markdown(
            ("rung", "idea", "trips", "time, us", "GB/s", "% of ceiling", "x before", "x first", "error, ulp"),
            rows, 2)


def line_tables(reports):
    """Sums along rows, then along columns, a table for each shape."""
    for topic in ("rows", "columns"):
        for table in tables(reports, topic):
            rows = [(f"`{row['rung']}`", row["idea"], number(row["threads"]), number(row["launches"], digits=1),
                     microseconds(row["seconds"]), gigabytes(row["bytes_per_second"]), percent(row["of_read_ceiling"]),
                     times(row["speedup_before"]), times(row["speedup_first"]), "yes" if row["correct"] else "**no**")
                    for row in table["rows"]]
            yield f"### {table['title']}\n\n{device(reports, topic)}. {ceilings(table)}\n" + markdown(
                ("rung", "idea", "threads", "launches", "time, us", "GB/s", "% of ceiling", "x before", "x first",
                 "correct"), rows, 2)


def coalescing_tables(reports):
    for table in tables(reports, "coalescing"):
        rows = [(row["way"], row["pattern"], row["sectors"], microseconds(row["seconds"]),
                 gigabytes(row["bytes_per_second"]), percent(row["of_read_ceiling"]), percent(row["of_datasheet"]),
                 times(row["speedup_first"])) for row in table["rows"]]
        yield f"### {table['title']}\n\n" + markdown(
            ("way", "pattern", "sectors a load", "time, us", "GB/s", "% of ceiling", "% of datasheet", "over naive"),
            rows, 2)


def parallelism_tables(reports):
    for table in tables(reports, "parallelism"):
        rows = [(row["threads"], row["loads"], row["load_bytes"], row["bytes_in_flight"], gigabytes(row["bytes_per_second"]),
                 percent(row["of_read_ceiling"]), number(row["seconds_in_flight"], 1e-9)) for row in
                sorted(table["rows"], key=lambda row: (row["bytes_in_flight"], row["threads"])) if row["bytes_per_second"]]
        yield f"### {table['title']}\n\n" + markdown(
            ("threads", "loads a thread", "bytes a load", "bytes in flight", "GB/s", "% of ceiling", "time in flight, ns"),
            rows, 0)


def granularity_tables(reports):
    for table in tables(reports, "granularity"):
        rows = [(row["elements"], row["blocks"], row["registers"], percent(row["occupancy"]), microseconds(row["seconds"]),
                 gigabytes(row["bytes_per_second"]), percent(row["of_read_ceiling"])) for row in table["rows"]]
        yield f"### {table['title']}\n\n" + markdown(
            ("elements a thread", "blocks", "registers", "occupancy, %", "time, us", "GB/s", "% of ceiling"), rows, 0)


def occupancy_tables(reports):
    for table in tables(reports, "occupancy"):
        key, heading, unit = {
            "registers": ("sums", "sums a thread", 1),
            "register caps": ("blocks_wanted", "blocks asked for", 1),
            "shared memory": ("dynamic_shared_bytes", "shared KiB", 1024)
        }[table["part"]]
        rows = [(row[key] // unit, row["registers"], row["local_bytes"], row["blocks"], percent(row["occupancy"]),
                 row["bytes_in_flight"], gigabytes(row["bytes_per_second"]), percent(row["of_read_ceiling"]),
                 number(row["seconds_in_flight"], 1e-9)) for row in table["rows"]]
        yield f"### {table['title']}\n\n" + markdown(
            (heading, "registers", "local bytes", "blocks", "occupancy, %", "bytes in flight", "GB/s", "% of ceiling",
             "time in flight, ns"), rows, 0)


def all_tables(reports):
    parts = []
    for table in tables(reports, "rungs"):
        parts.append(f"### {table['title']}\n\n{device(reports, 'rungs')}. {ceilings(table)}\n{rung_table(table)}")
    parts += [
        *softmax_tables(reports), *line_tables(reports), *coalescing_tables(reports), *parallelism_tables(reports),
        *granularity_tables(reports), *occupancy_tables(reports)
    ]
    return "\n".join(part for part in parts if part)
