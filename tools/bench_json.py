"""Reading what `allfold bench --json` and tools/bench-peers print, for tools/plot-bench.
Numbers are in base units: seconds, bytes a second, parts of one; None where something is not known."""
import json_reports

SCHEMA = 1
RANGE = 8  # of rows that have none: integers, and earlier versions


class Runs:
    """The rows of several reports; of the same work the last report's count. Each row also has the backend it was measured on,
    machine: what is known of its slowest rank, and report: the number of its report. Those along an axis are apart."""

    WORK = ("fold", "dtype", "range", "count", "shape", "ranks", "data", "caches", "timing_point", "backend")

    def __init__(self, reports):
        self.reports = reports
        rows = []
        for number, report in enumerate(reports):
            surveys = {survey["ranks"]: survey["machines"] for survey in report.get("surveys", [])}
            for row in report["results"]:
                machines = surveys.get(row["ranks"], [])
                slowest = row.get("slowest_rank", 0)
                machine = machines[slowest] if slowest < len(machines) else {}
                rows.append({**row, "range": row.get("range") or RANGE, "shape": tuple(row.get("shape") or ()), "backend": report["backend"],
                             "machine": machine, "report": number})
        last = {(row["peer"], *(row[key] for key in self.WORK)): row["report"] for row in rows}
        kept = [row for row in rows if last[row["peer"], *(row[key] for key in self.WORK)] == row["report"]]
        self.rows = [row for row in rows if not row["shape"]]
        self.last = [row for row in kept if not row["shape"]]
        self.along = [row for row in kept if row["shape"]]

    def find(self, rows=None, **facts):
        """The rows of which these facts hold."""
        return [row for row in (self.last if rows is None else rows) if all(row.get(key) == facts[key] for key in facts)]

    def device(self, **facts):
        """What these rows were measured on, in words."""
        for row in self.find(self.last + self.along, **facts):
            if row["machine"]:
                return row["machine"]["device"]
        return ""


def parse(text, name="input"):
    return json_reports.parse(text, name, "bench",
                              lambda report: report.get("command") == "bench" and report.get("schema") == SCHEMA,
                              f" (schema {SCHEMA})")


def load(paths):
    """The reports in these files."""
    return Runs(json_reports.load(paths, parse))
