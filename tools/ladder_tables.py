"""The tables of docs/ladder.md, as Markdown, from what `allfold ladder --json` measured. For tools/draw-ladder --table."""
from ladder_json import count_text, device, gigabytes, markdown, microseconds, number, percent, tables, times

# What the tutorials S1, S3 and S4 measured: (source, step, theirs, our rung, our rung to divide by or None for a time).
S1 = "S1, blocks of 2^8 elements"
S3 = "S3, GTX 1050 Ti, 2^24 int32"
S4 = "S4"
TUTORIALS = (
    (S1, "baseline", "56.5 us", "modulo", None),
    (S1, "strided index", "43.2 us", "strided-index", None),
    (S1, "sequential addressing", "38.8 us", "sequential", None),
    (S1, "first add on load", "39.2 us", "first-add", None),
    (S1, "last warp unrolled", "28.1 us", "last-warp", None),
    (S1, "all five steps", "2.0x", "last-warp", "modulo"),
    (S3, "recursion on the CPU", "39.1 ms", "host-recursion", None),
    (S3, "neighboured", "10.5 ms", "neighboured", None),
    (S3, "neighboured, packed", "5.97 ms", "neighboured-packed", None),
    (S3, "interleaved", "4.95 ms", "interleaved", None),
    (S3, "neighboured to interleaved", "2.12x", "interleaved", "neighboured"),
    (S4, "shared over global memory", "1.28x", "unrolled", "unrolled-global"),
    (S4, "four blocks a block", "2.5x", "four-blocks", "unrolled"),
)


def rung_table(table):
    rows = [(f"`{row['rung']}`", row["idea"], microseconds(row["seconds"]), microseconds(row["seconds_p99"]),
             gigabytes(row["bytes_per_second"]), percent(row["of_read_ceiling"]), percent(row["of_datasheet"]),
             percent(row["input_of_read_ceiling"]), times(row["speedup_before"]), times(row["speedup_first"]),
             percent(row["occupancy"]), "yes" if row["correct"] else "**no**") for row in table["rows"]]
    return markdown(("rung", "idea", "time, us", "p99, us", "GB/s", "% of ceiling", "% of datasheet", "% useful",
                     "over the last", "over the first", "occupancy, %", "correct"), rows, 2)


def ceilings(table):
    return f"Read ceiling, measured in the same run: {gigabytes(table['read_ceiling'])} GB/s; datasheet: " \
           f"{gigabytes(table['datasheet'])} GB/s.\n"


def beside_tutorials(reports):
    """At 2^24 int32 where it was measured, as S3 has it; else at the smallest count there is."""
    found = tables(reports, "rungs", dtype="int32", count=1 << 24) or tables(reports, "rungs", count=1 << 24) or \
        sorted(tables(reports, "rungs"), key=lambda table: table["count"])[:1]
    if not found:
        return ""
    table = found[0]
    seconds = {row["rung"]: row["seconds"] for row in table["rows"]}
    rows = []
    for source, step, theirs, rung, base in TUTORIALS:
        if rung in seconds and (base is None or base in seconds):
            ours = microseconds(seconds[rung]) + " us" if base is None else times(seconds[base] / seconds[rung])
            rows.append((source, step, theirs, f"`{rung}`" + (f" over `{base}`" if base else ""), ours))
    title = f"Beside the tutorials: {count_text(table['count'])} {table['dtype']} here\n"
    return f"### {title}\n" + markdown(("source", "step", "there", "rung", "here"), rows, 4)


def softmax_tables(reports):
    for table in tables(reports, "softmax"):
        rows = [(f"`{row['rung']}`", row["idea"], row["trips"], microseconds(row["seconds"]),
                 gigabytes(row["bytes_per_second"]), percent(row["of_read_ceiling"]), times(row["speedup_before"]),
                 times(row["speedup_first"]), number(row["error_ulp"])) for row in table["rows"]]
        yield f"### {table['title']}\n\n" + markdown(
            ("rung", "idea", "trips", "time, us", "GB/s", "% of ceiling", "over the last", "over the first", "error, ulp"),
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
                ("rung", "idea", "threads", "launches", "time, us", "GB/s", "% of ceiling", "over the last", "over the first",
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
        beside_tutorials(reports), *softmax_tables(reports), *line_tables(reports), *coalescing_tables(reports), *parallelism_tables(reports),
        *granularity_tables(reports), *occupancy_tables(reports)
    ]
    return "\n".join(part for part in parts if part)
