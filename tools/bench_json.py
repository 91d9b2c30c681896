"""Reading what `allfold bench --json` and tools/bench-peers print, for the tools that draw it and hold it against goals.
Numbers are in base units: seconds, bytes a second, parts of one; None where something is not known."""
import json_reports

SCHEMA = 1


class Runs:
    """The rows of several reports; of the same work the last report's count. Each row also has the backend it was measured on,
    machine: what is known of its slowest rank, and report: the number of its report."""

    WORK = ("fold", "dtype", "count", "ranks", "data", "caches", "timing_point", "backend")

    def __init__(self, reports):
        self.reports = reports
        self.rows = []
        for number, report in enumerate(reports):
            surveys = {survey["ranks"]: survey["machines"] for survey in report.get("surveys", [])}
            for row in report["results"]:
                if row.get("shape"):
                    continue  # rows and columns: pictures and goals are of whole arrays
                machines = surveys.get(row["ranks"], [])
                slowest = row.get("slowest_rank", 0)
                machine = machines[slowest] if slowest < len(machines) else {}
                self.rows.append({**row, "backend": report["backend"], "machine": machine, "report": number})
        last = {(row["peer"], *(row[key] for key in self.WORK)): row["report"] for row in self.rows}
        self.last = [row for row in self.rows if last[row["peer"], *(row[key] for key in self.WORK)] == row["report"]]

    def find(self, rows=None, **facts):
        """The rows of which these facts hold; a tuple stands for any of its members, a range for what lies in it."""
        def holds(row):
            for key, wanted in facts.items():
                found = row.get(key)
                if found not in wanted if isinstance(wanted, (tuple, range)) else found != wanted:
                    return False
            return True
        return [row for row in (self.last if rows is None else rows) if holds(row)]

    def beside(self, row, **facts):
        """The row of the same work that differs in these facts, or None; of the same report where that has one: times of two
        machines do not compare."""
        wanted = {**{key: row[key] for key in self.WORK}, **facts}
        found = self.find(**wanted, rows=self.rows, report=row["report"]) or self.find(**wanted)
        return found[-1] if found else None

    def values(self, key, **facts):
        """The different values of a key, in order."""
        return sorted({row[key] for row in self.find(**facts)})

    def device(self, **facts):
        """What these rows were measured on, in words."""
        for row in self.find(**facts):
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


def count_text(count):
    """2^24 where it is one, else the digits."""
    return f"2^{count.bit_length() - 1}" if count > 1 and count & (count - 1) == 0 else f"{count:,}"
