"""A scaling study: what `allfold bench --json` measured on several numbers of ranks, and a cost model fitted to it. Used by
scaling-report.

The model of a fold of n elements of b bytes a rank, on P ranks:

    T(n, P) = launch + n b / bandwidth + (alpha log2 P + beta)        the last two terms for P > 1 only

launch and bandwidth are fitted to the time up to a rank's partial result on the host (timing point "partial"), alpha and beta
to the exchange alone (timing point "exchange"), each by least squares of relative errors with coefficients that are not
negative. The band around a prediction is Student's 95 % for the mean, of the residuals' own spread."""
import json
import math

import numpy as np

MANY = 10000  # ranks to extrapolate to
STUDENT = (12.71, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228)  # 95 %, two-sided, by degrees of freedom
BYTES = {"f16": 2, "bf16": 2, "f32": 4, "f64": 8, **{f"{sign}int{bits}": bits // 8 for sign in ("", "u") for bits in (8, 16, 32, 64)}}


class StudyError(Exception):
    """What is wrong with the input, for the user."""


class Fit:
    """Least squares of relative errors: time = sum of coefficients[i] * features[i], coefficients not negative."""

    def __init__(self, features, times):
        features, times = np.asarray(features, float), np.asarray(times, float)
        scaled = features / times[:, None]
        self.coefficients = np.zeros(features.shape[1])
        free = list(range(features.shape[1]))
        while free:
            solution = np.linalg.lstsq(scaled[:, free], np.ones(len(times)), rcond=None)[0]
            if (solution >= 0).all():
                self.coefficients[free] = solution
                break
            free.remove(free[int(solution.argmin())])
        self.free = free
        residuals = scaled @ self.coefficients - 1
        self.freedom = len(times) - len(free)
        self.error = math.sqrt(float(residuals @ residuals) / len(times))  # root mean square, relative
        variance = float(residuals @ residuals) / self.freedom if self.freedom > 0 else math.nan
        self.covariance = variance * np.linalg.pinv(scaled[:, free].T @ scaled[:, free])

    def predict(self, features):
        """(time, half the width of its band, NaN where the points do not suffice for one), for each row of features."""
        features = np.atleast_2d(np.asarray(features, float))
        if self.freedom < 1:
            return features @ self.coefficients, np.full(len(features), math.nan)
        student = STUDENT[self.freedom - 1] if self.freedom <= len(STUDENT) else 1.96 + 2.4 / self.freedom
        mine = features[:, self.free]
        return features @ self.coefficients, student * np.sqrt(np.maximum(np.einsum("ij,jk,ik->i", mine, self.covariance, mine), 0))


class Study:
    """All rows of some files; `choose` narrows them to one fold and element type, and fits the model."""

    def __init__(self, paths):
        self.rows, self.hosts, self.machines, self.versions = [], {}, {}, set()
        for path in paths:
            for report in reports_of(path):
                self.add(report, path)
        if not self.rows:
            raise StudyError("expected results of allfold bench, found none")

    def add(self, report, path):
        command = report.get("command") if isinstance(report, dict) else None
        if command != "bench" or not isinstance(report.get("results"), list):
            raise StudyError(f"{path}: expected a report of `allfold bench --json`, found one of {command!r}")
        self.versions.add(report.get("version"))
        for survey in report.get("surveys", []):
            hosts = {machine["host"] for machine in survey["machines"]}
            self.hosts[survey["ranks"]] = max(len(hosts), self.hosts.get(survey["ranks"], 0))
            for machine in survey["machines"]:
                self.machines.setdefault(machine["device"], set()).add((machine["host"], machine.get("uuid") or machine["rank"]))
        for row in report["results"]:
            if row["peer"] == "allfold" and row["seconds"] is not None:
                self.rows.append(row)

    def kinds(self):
        """(fold, element type) pairs, those with most rows first, then as they come."""
        pairs = [(row["fold"], row["dtype"]) for row in self.rows]
        return sorted(dict.fromkeys(pairs), key=lambda pair: -pairs.count(pair))

    def choose(self, fold, dtype):
        self.fold, self.dtype, self.width = fold, dtype, BYTES[dtype]
        mine = [row for row in self.rows if (row["fold"], row["dtype"]) == (fold, dtype)]
        if not mine:
            raise StudyError(f"no rows of {fold}, {dtype}; there are {', '.join(map(' '.join, self.kinds()))}")
        if len({row.get("range") or 8 for row in mine}) > 1:
            raise StudyError(f"expected rows of one range of elements, found several of {fold}, {dtype}: leave out files")
        self.whole = medians(mine, "host")
        self.partial = medians(mine, "partial") or medians(mine, "kernel")
        self.exchange = medians(mine, "exchange")
        self.split = {(row["count"], row["ranks"]): row["split"] for row in mine if row["timing_point"] == "host" and row.get("split")}
        self.ranks = sorted({ranks for _, ranks in self.whole})
        self.fit_fold = Fit([[1, count * self.width] for count, _ in self.partial], list(self.partial.values()))
        far = {key: time for key, time in self.exchange.items() if key[1] > 1}
        between = {key: time for key, time in far.items() if self.hosts.get(key[1], 1) > 1}
        # between hosts where there is enough of it: inside one host the exchange is another one
        self.one_host = len({ranks for _, ranks in between}) < 2
        used = far if self.one_host else between
        self.exchange_ranks = sorted({ranks for _, ranks in used})
        self.fit_exchange = Fit([[math.log2(ranks), 1] for _, ranks in used], list(used.values())) \
            if len(self.exchange_ranks) > 1 else None

    def weak(self):
        """{count a rank: {ranks: seconds}}, where there are several numbers of ranks, at least half of the study's."""
        series = {}
        for (count, ranks), time in self.whole.items():
            series.setdefault(count, {})[ranks] = time
        return {count: dict(sorted(times.items())) for count, times in sorted(series.items())
                if len(times) >= max(2, len(self.ranks) / 2)}

    def strong(self):
        """{elements in all: {ranks: seconds}}, where there are several numbers of ranks, at least half of the study's. Parts
        differ by rounding."""
        series = []
        for (count, ranks), time in sorted(self.whole.items(), key=lambda item: item[0][1]):
            total = count * ranks
            same = next((s for s in series if abs(s[0] - total) <= ranks and ranks not in s[1]), None)
            if same is None:
                series.append((total, {ranks: time}))
            else:
                same[1][ranks] = time
        return {total: dict(sorted(times.items())) for total, times in sorted(series, key=lambda s: s[0])
                if len(times) >= max(2, len(self.ranks) / 2)}

    def fold_time(self, count):
        return self.fit_fold.predict([[1, count * self.width]])

    def exchange_time(self, ranks):
        ranks = np.atleast_1d(np.asarray(ranks, float))
        time, band = self.fit_exchange.predict(np.stack([np.log2(ranks), np.ones_like(ranks)], 1))
        return np.where(ranks > 1, time, 0), np.where(ranks > 1, band, 0)

    def overtaken(self, count_of):
        """The least number of ranks at which the exchange takes longer than the fold of count_of(ranks) elements a rank, as
        (best guess, lowest and highest within the bands, where the points suffice); None: at none up to MANY."""
        ranks = np.unique(np.round(np.geomspace(2, MANY, 4000)))
        exchange, exchange_band = self.exchange_time(ranks)
        fold, fold_band = self.fit_fold.predict(np.stack([np.ones_like(ranks), count_of(ranks) * self.width], 1))

        def first(more):
            where = np.flatnonzero(more > 0)
            return int(ranks[where[0]]) if len(where) else None
        band = exchange_band + fold_band
        return first(exchange - fold), first(exchange + band - fold), first(exchange - band - fold)


def reports_of(path):
    """The JSON objects in a file: one, or one a line."""
    try:
        with open(path, encoding="utf-8") as file:
            text = file.read()
        try:
            return [json.loads(text)]
        except ValueError:
            return [json.loads(line) for line in text.splitlines() if line.strip()]
    except (OSError, ValueError) as error:
        raise StudyError(f"{path}: {error}") from error


def medians(rows, timing_point):
    """{(count, ranks): seconds}; the median of what was measured several times."""
    times = {}
    for row in rows:
        if row["timing_point"] == timing_point:
            times.setdefault((row["count"], row["ranks"]), []).append(row["seconds"])
    return {key: float(np.median(values)) for key, values in sorted(times.items())}
