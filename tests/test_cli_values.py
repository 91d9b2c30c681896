#!/usr/bin/env python3
"""The numbers that the program prints and writes, for every fold and element type, against Python's exact integers,
math.fsum and NumPy in extended precision; on every backend that the machine has. Commands, options, messages:
test_cli.py."""
import math
import os

import numpy as np

try:
    import h5py
except ImportError:
    h5py = None

import cli
import tap
from cli import FLOATS, TYPES, Folder, alone, each, each_alone, ranks, report, shown

FOLDS = ["sum", "prod", "mean", "min", "max", "argmin", "argmax", "norm1", "norm2", "norminf", "logsumexp", "variance", "std"]
SUMS = ["sum", "mean", "norm1", "norm2", "logsumexp", "stats", "variance", "std"]
PHASES = {"start", "read", "upload", "fold", "exchange", "normalise", "write", "rename"}
STATISTICS = ["count", "nan_count", "sum", "mean", "variance", "min", "max", "norm1", "norm2", "norminf"]
COUNT = 10007
wide = np.longdouble


def elements(dtype, seed=1):
    """Elements of the type, with its smallest and largest twice, so that the first place counts, and with outliers."""
    random = np.random.default_rng(seed)
    if dtype in FLOATS:
        x = random.standard_normal(COUNT) * 3 - 1
        x[random.integers(0, COUNT, 5)] *= 10
    elif dtype in cli.SIGNED:
        x = random.integers(-100, 101, COUNT) * (1 if cli.BYTES[dtype] < 8 else 2**40 + 1)
    elif dtype == "bool":
        x = random.integers(0, 2, COUNT)
    else:
        x = random.integers(0, 201, COUNT) * (1 if cli.BYTES[dtype] < 8 else 2**44 + 1)
    x = cli.exact(dtype, x)
    for place in (x.argmin(), x.argmax()):
        x[(place + COUNT // 2) % COUNT] = x[place]
    return x


def factors(dtype):
    """Elements whose product is neither 0 nor too large."""
    random = np.random.default_rng(2)
    if dtype in FLOATS:
        return cli.exact(dtype, random.uniform(0.9, 1.1, 1009) * random.choice([-1, 1], 1009))
    x = np.ones(1009, np.int64)
    if dtype == "bool":
        return cli.exact(dtype, x)
    x[random.integers(0, 1009, 15)] = 3
    if dtype in cli.SIGNED:
        x[random.integers(0, 1009, 400)] *= -1
    return cli.exact(dtype, x)


def product(x):
    if x.dtype.kind != "f":
        return math.prod(map(int, x))
    ratios = [float(value).as_integer_ratio() for value in x]
    return math.prod(a for a, _ in ratios) / math.prod(b for _, b in ratios)


def reference(x):
    """Every fold of x but prod -> (value, index or None, relative tolerance; 0 means equal)."""
    real = x.dtype.kind == "f"
    numbers = [float(value) for value in x] if real else [int(value) for value in x]
    total = math.fsum(numbers) if real else sum(numbers)
    length = math.fsum(map(abs, numbers)) if real else sum(map(abs, numbers))
    ratios = [value.as_integer_ratio() for value in numbers]
    scale = max(b for _, b in ratios)  # all are powers of two
    scaled, n = [a * (scale // b) for a, b in ratios], len(numbers)
    exact, squares = sum(scaled), sum(a * a for a in scaled)
    y = x.astype(wide)  # of a mask 0 and 1
    largest = y.max()
    ends = {"min": (numbers[int(x.argmin())], int(x.argmin()), 0), "max": (numbers[int(x.argmax())], int(x.argmax()), 0)}
    return {
        "sum": (total, None, 1e-14 * (length / abs(total) if total else 1) if real else 0),
        "mean": (exact / (scale * n), None, 1e-14 * length * scale / abs(exact)),
        "min": ends["min"], "argmin": ends["min"], "max": ends["max"], "argmax": ends["max"],
        "norm1": (length, None, 1e-14 if real else 0),
        "norm2": (float(np.sqrt((y * y).sum())), None, 1e-14),
        "norminf": (max(map(abs, numbers)), None, 0),
        "logsumexp": (float(largest + np.log(np.exp(y - largest).sum())), None, 1e-13),
        "variance": ((n * squares - exact * exact) / (n * scale) ** 2, None, 1e-12),
        "std": (math.sqrt((n * squares - exact * exact) / (n * scale) ** 2), None, 1e-12),
        "count": (len(numbers), None, 0), "nan_count": (0, None, 0),
    }


def close(value, expected, tolerance):
    if tolerance == 0:
        return value == expected
    return abs(float(value) - float(expected)) <= tolerance * abs(float(expected))


def field_fault(field, expected, index_wanted):
    """What is wrong with {value, text, hex, index}; '' where nothing is."""
    value, index, tolerance = expected
    if not close(field["value"], value, tolerance):
        return f"value {field['value']!r}, expected {value!r}"
    if index_wanted and field.get("index") != index:
        return f"index {field.get('index')}, expected {index}"
    if not index_wanted and "index" in field:
        return "an index that does not belong there"
    if field["hex"] is None:
        return "" if field["text"] == str(field["value"]) == str(int(field["value"])) else f"text {field['text']!r}"
    if float.fromhex(field["hex"]) != field["value"] or field["text"] != repr(float(field["value"])):
        return f"text {field['text']!r} and hex {field['hex']!r} for {field['value']!r}"
    return ""


def report_fault(found, command, words, dtype, count, rank_count, backend, level):
    """What is wrong with the report around the value."""
    expected = {"command": command, "input": words[0], "dtype": dtype, "count": count, "ranks": rank_count,
                "backend": backend, "level": "fast" if command == "prod" else level}
    wrong = [f"{key}: {found.get(key)!r}, expected {value!r}" for key, value in expected.items() if found.get(key) != value]
    rate = count * cli.BYTES[dtype] / found["seconds"] if found.get("seconds", 0) > 0 else math.nan
    if not abs(found.get("bytes_per_second", math.nan) - rate) <= 1e-4 * rate:
        wrong.append(f"seconds {found.get('seconds')} and bytes_per_second {found.get('bytes_per_second')}")
    phases = found.get("phases", {})
    if not {"read", "fold"} <= set(phases) <= PHASES or not all(0 < phases[p] < 60 for p in phases):
        wrong.append(f"phases {phases} of {found.get('seconds')} s")
    return "; ".join(wrong)


def fold_name(command, dtype, rank_count, backend):
    return f"{command} of {dtype}, {rank_count} rank{'s' * (rank_count > 1)}, {backend}"


def check_fold(process, command, words, dtype, x, expected, rank_count, backend, level="exact"):
    found = report(process)
    if found is None:
        return
    if command == "stats":
        faults = [f"{name}: {field_fault(found['stats'][name], expected[name], name in ('min', 'max'))}"
                  for name in STATISTICS if field_fault(found["stats"][name], expected[name], name in ("min", "max"))]
        if list(found["stats"]) != STATISTICS:
            faults.append(f"statistics {list(found['stats'])}")
        fault = "; ".join(faults)
    else:
        fault = field_fault(found, expected[command], command.startswith("arg"))
    fault = fault or report_fault(found, command, words, dtype, x.size, rank_count, backend, level)
    tap.ok(not fault, fold_name(command, dtype, rank_count, backend), f"{fault}\n{shown(process)}")


def check_folds(folder, backend):
    """Every fold of every type: on one rank all of them, on 2, 3 and 5 ranks each fold and each type in turn, some in
    small shards and at level fast. A device folds one in five of them: tests/test_reduce has it fold all."""
    cases, more = [], []
    of_device = 1 if backend == "cpu" else 5
    for number, dtype in enumerate(TYPES):
        x, f = elements(dtype), factors(dtype)
        words, factor_words = folder.save(f"x-{dtype}", dtype, x), folder.save(f"f-{dtype}", dtype, f)
        expected = reference(x)
        product_expected = {"prod": (product(f), None, 1e-12 if dtype in FLOATS else 0)}
        for fold_number, command in enumerate(FOLDS + ["stats"]):
            inputs = (factor_words, dtype, f, product_expected) if command == "prod" else (words, dtype, x, expected)
            cases.append((command, *inputs))
            if fold_number % 6 == number % 6 or command == "stats":
                more.append((command, *inputs))
    options = ["--json", f"--backend={backend}"]
    cases, more = cases[::of_device], more[::of_device]
    cases = [case for case in cases if tap.wanted(fold_name(case[0], case[2], 1, backend))]
    done = each_alone([command, *words, *options] for command, words, *_ in cases)
    for process, (command, words, dtype, x, expected) in zip(done, cases):
        check_fold(process, command, words, dtype, x, expected, 1, backend)
    launches = []
    for number, (command, words, dtype, x, expected) in enumerate(more):
        small = ["--staging=4Ki", "--threads=2"] if number % 2 else []
        fast = ["--sum=fast"] if number % 2 and command in SUMS else []
        count, level = (2, 3, 5)[number % 3], "fast" if fast else "exact"
        if tap.wanted(fold_name(command, dtype, count, backend)):
            launches.append((count, [command, *words, *options, *small, *fast], (command, words, dtype, x, expected, count, backend, level)))
    for process, (_, _, due) in zip(each(launch[:2] for launch in launches), launches):
        check_fold(process, *due)


def check_special(folder, backend):
    """NaN, infinities, negative zero, nothing at all, integers that do not fit."""
    quiet = ["-q", f"--backend={backend}"]
    x = cli.exact("f32", np.linspace(-1, 1, 1000))
    x[[400, 700]] = np.nan
    nan = folder.save("nan", "f32", x)
    ends = {"inf": [1, math.inf, 2], "both": [math.inf, -math.inf], "zeros": [-0.0] * 5, "empty": [], "nans": [math.nan] * 3,
            "low": [-math.inf] * 4}
    named = {name: folder.save(name, "f32", values) for name, values in ends.items()}
    named["large"] = folder.save("large", "int64", [2**62, 2**62, 5])
    named["unsigned"] = folder.save("unsigned", "uint64", [2**64 - 1, 0])
    cases = [  # command, input, what is printed (None: refused with status 1)
        ("sum", nan, "nan"), ("logsumexp", nan, "nan"), ("norminf", nan, "nan"), ("prod", nan, "nan"),
        ("min", nan, "nan"), ("argmax", nan, "nan 400"), ("max", nan + ["--nan=omit"], "1.0"),
        ("argmin", nan + ["--nan=omit"], "-1.0 0"), ("argmin", nan + ["--nan=propagate"], "nan 400"),
        ("min", nan + ["--nan=error"], None), ("stats", nan + ["--nan=error"], None),
        ("max", named["nans"] + ["--nan=omit"], None),
        ("sum", named["inf"], "inf"), ("max", named["inf"], "inf"), ("sum", named["both"], "nan"),
        ("min", named["both"], "-inf"), ("norm2", named["both"], "inf"), ("sum", named["zeros"], "-0.0"),
        ("sum", named["empty"], "0.0"), ("prod", named["empty"], "1.0"), ("logsumexp", named["empty"], "-inf"),
        ("norm2", named["empty"], "0.0"), ("min", named["empty"], None), ("argmax", named["empty"], None),
        ("variance", named["inf"], "nan"), ("std", nan, "nan"), ("variance", named["empty"], None), ("std", named["nans"] + ["--nan=omit"], None),
        ("std", nan + ["--nan=error"], None), ("std", named["zeros"] + ["--ddof=4"], "0.0"), ("variance", named["zeros"] + ["--ddof=5"], "nan"),
        ("variance", named["large"] + ["--ddof=1"], repr((2**62 - 5) ** 2 / 3)),
        ("logsumexp", named["low"], "-inf"), ("argmin", named["low"], "-inf 0"), ("sum", named["large"], None),
        ("max", named["large"], str(2**62)), ("sum", named["unsigned"], str(2**64 - 1)), ("norm1", named["both"], "inf"),
    ]
    cases = cases[::1 if backend == "cpu" else 3]
    done = each_alone([command, *words, *quiet] for command, words, _ in cases)
    for process, (command, words, printed) in zip(done, cases):
        name = f"{command} {' '.join(os.path.basename(word) for word in words)}, {backend}: {printed or 'refused'}"
        if printed is None:
            fault = cli.refused(process, 1)
        else:
            fault = "" if (process.returncode, process.stdout) == (0, printed + "\n") else shown(process)
        tap.ok(not fault, name, fault)
    check_nan_ranks(nan, x, backend)


def check_nan_ranks(nan, x, backend):
    """NaN on other ranks than the first: the JSON of stats and argmin."""
    found = report(ranks(3, "stats", *nan, "--json", "--nan=omit", f"--backend={backend}"))
    if found:
        kept, stats = x[~np.isnan(x)].astype(float), found["stats"]
        tap.ok((stats["count"]["value"], stats["nan_count"]["value"]) == (1000, 2)
               and close(stats["mean"]["value"], kept.mean(), 1e-6 / abs(kept.mean())) and stats["max"]["index"] == 999
               and stats["norminf"]["value"] == 1.0, f"stats --nan=omit on 3 ranks, {backend}", stats)
    found = report(ranks(3, "stats", *nan, "--json", f"--backend={backend}"))
    if found:
        field = found["stats"]["min"]
        tap.ok(field == {"value": None, "text": "nan", "hex": "nan", "index": 400, "place": [400]} and found["stats"]["sum"]["value"] is None,
               f"stats of NaN on 3 ranks: null, nan, and the first NaN's index, {backend}", found)


def softmax(x, logarithm):
    """In extended precision, for the values of x."""
    y = x.astype(wide)  # of a mask 0 and 1
    y = y - y.max()
    total = np.exp(y).sum()
    return y - np.log(total) if logarithm else np.exp(y) / total


def worst_ulps(dtype, y, expected):
    """Largest distance of y from expected, in units of the type's last place there."""
    expected = expected.astype(wide)
    if dtype == "bf16":
        exponents = np.frexp(np.maximum(np.abs(expected), 2.0**-126))[1]
        spacing = np.ldexp(wide(1), exponents - 8)
    else:
        nearest = expected.astype(cli.ULP_TYPES[dtype])
        spacing = np.spacing(np.abs(nearest)).astype(wide)
    distance = np.abs(y.astype(wide) - expected) / spacing
    return float(distance.max()) if distance.size else 0.0


def check_softmax(folder, backend):
    if np.finfo(wide).nmant < 63:
        tap.skip("NumPy has no extended precision to judge f64 by", 20)
        return
    cases = [("f16", "f16", 2), ("bf16", "bf16", 3), ("f32", "f32", 5), ("f64", "f64", 3), ("f32", "f64", 1),
             ("f64", "f32", 2), ("int32", "f32", 3), ("uint8", "f16", 1), ("f16", "bf16", 1), ("f32", "f32", 1)]
    for number, (dtype, out_type, count) in list(enumerate(cases))[::1 if backend == "cpu" else 2]:
        random = np.random.default_rng(number)
        x = random.standard_normal(COUNT) * 4
        x[random.integers(0, COUNT, 5)] += 60
        x = cli.exact(dtype, np.abs(x) if dtype.startswith("u") else x)
        words = folder.save(f"s{number}", dtype, x)
        for command in ("softmax", "log-softmax"):
            name = f"{command} of {dtype} in {out_type}, {count} ranks, {backend}: within 2 ulps"
            if not tap.wanted(name):
                continue
            output = f"{command}{number}" + (".raw" if out_type == "bf16" else ".npy")
            options = ["-o", folder.name(output), f"--backend={backend}"]
            options += [f"--output-type={out_type}"] if out_type != dtype else []
            options += ["--staging=8Ki", "--sum=fast"] if number % 2 else []
            process = ranks(count, command, *words, *options)
            fault = shown(process)
            if process.returncode == 0:
                y = folder.load(output, out_type)
                ulps = worst_ulps(out_type, y, softmax(x, command != "softmax"))
                right = y.shape == x.shape and y.dtype == cli.exact(out_type, [0]).dtype and ulps <= 2
                fault = "" if right else f"{y.dtype}{y.shape}, {ulps} ulps"
            tap.ok(not fault, name, fault)
    check_softmax_sums(folder, backend)


def check_softmax_sums(folder, backend):
    """Shapes are kept, NaN spoils all, nothing stays nothing, in place works; the sum is 1 over a large array."""
    backend = f"--backend={backend}"
    x = np.asfortranarray(np.random.default_rng(3).standard_normal((7, 11, 13)).astype(np.float32))
    np.save(folder.name("shape.npy"), x)
    done = ranks(2, "softmax", folder.name("shape.npy"), "-o", folder.name("shape.npy"), backend)
    y = np.load(folder.name("shape.npy"))
    tap.ok(done.returncode == 0 and y.shape == x.shape and y.flags.f_contiguous
           and worst_ulps("f32", y, softmax(x, False)) <= 2, f"softmax in place keeps shape and order, {backend}", shown(done))
    nan = folder.save("one-nan", "f64", [1.0, math.nan, 2.0])
    alone("softmax", *nan, "-o", folder.name("y.npy"), backend)
    tap.ok(np.isnan(np.load(folder.name("y.npy"))).all(), f"softmax with a NaN is NaN everywhere, {backend}")
    alone("softmax", *folder.save("none", "f32", []), "-o", folder.name("y.npy"), backend)
    tap.ok(np.load(folder.name("y.npy")).shape == (0,), f"softmax of nothing is nothing, {backend}")
    done = ranks(3, "softmax", "gen:logits?n=3e6&seed=4", "-o", folder.name("y.npy"), backend)
    total = np.load(folder.name("y.npy")).sum(dtype=np.float64)
    tap.ok(abs(total - 1) <= 1e-6, f"softmax of 3e6 logits adds up to 1, {backend}", f"{total}\n{shown(done)}")


def check_repeatable(folder, backend):
    words = ["sum", "gen:wide?n=2e6&seed=5&emin=-40&emax=40&dtype=f64", "-q", f"--backend={backend}"]
    first, second = ranks(3, *words), ranks(3, *words)
    tap.ok(first.returncode == 0 and first.stdout == second.stdout and first.stdout,
           f"the same bits twice on 3 ranks, {backend}", shown(first) + shown(second))


def check_order(folder, backend):
    """The commands of order statistics, from files in pieces of 16 KiB; the numbers themselves: tests/python/order.py."""
    x = np.random.default_rng(7).standard_normal(30011).astype(np.float32)
    x[5] = x[77] = 3.5
    np.save(folder.name("order.npy"), x)
    file, output = folder.name("order.npy"), folder.name("order.npz")
    ordered, options = np.sort(x.astype(np.float64)), ["--staging=16384", f"--backend={backend}"]
    edges = np.linspace(-2, 2, 9)
    for count in (1, 3):
        name = f"{count} rank{'s' * (count > 1)}, {backend}"
        if not any(tap.wanted(f"{command}, {name}") for command in ("quantile", "median", "topk", "histogram")):
            continue
        found = report(ranks(count, "quantile", "--q=0,0.25,1", "--method=lower", file, "--json", *options)) or {"values": []}
        tap.ok([(one["q"], one["value"]) for one in found["values"]] == [(0, ordered[0]), (0.25, ordered[7502]), (1, ordered[-1])], f"quantile, {name}", found)
        found = report(ranks(count, "median", file, "--json", *options)) or {}
        tap.ok(found.get("value") == ordered[15005] and found.get("count") == x.size, f"median, {name}", found)
        places = np.lexsort((np.arange(x.size), -x.astype(np.float64)))[:9]
        done = ranks(count, "topk", "--k=9", file, "-o", output, *options)
        top = np.load(output) if done.returncode == 0 else {"values": None, "indices": None}
        tap.ok(np.array_equal(top["indices"], places) and np.array_equal(top["values"], x[places]), f"topk, {name}", shown(done))
        np.savez(folder.name("edges.npz"), e=edges)
        for words, why in ((["topk", "--k=9", "-o", folder.name("o.raw")], "a name that ends in .npz"),
                           (["histogram", "--edges=" + folder.name("edges.npz"), "-o", folder.name("edges.npz")], "--output would replace the edges")):
            tap.ok(not cli.refused(ranks(count, words[0], file, *words[1:], *options), 2, why), f"{words[0]}: refused: {why}, {name}")
        for side in ([], ["--smallest"]):  # a sample of sorted numbers may miss the last ones
            done = ranks(count, "topk", "--k=50", "gen:ramp?n=1e6", "--json", "-v", *options, *side)
            found = [one["index"] for one in (report(done) or {"values": []})["values"]]
            tap.ok(found == (list(range(50)) if side else list(range(999999, 999949, -1))) and done.stderr.count("once more") <= 1,
                   f"topk of a ramp{' --smallest' * len(side)} in two reads, as it fits memory, {name}", shown(done))
        found = report(ranks(count, "histogram", "--bins=8", "--range=-2,2", file, "--json", *options)) or {"counts": [], "edges": []}
        due = np.diff(np.append(np.searchsorted(ordered, edges[:-1]), np.searchsorted(ordered, 2.0, "right")))
        tap.ok(found["counts"] == due.tolist() and found["edges"] == edges.tolist() and found["below"] + found["above"] + sum(due) == x.size,
               f"histogram, {name}", found)
        done = ranks(count, "histogram", "--bins=8", "--range=-2,2", file, "-o", output, *options)
        tap.ok(f"below {found['below']}, above {found['above']}, NaN 0" in done.stdout, f"histogram to a file tells what lies outside, {name}", shown(done))
    long = ["quantile", "--q=" + 70 * "0" + ".5", file]
    tap.ok(not cli.refused(alone(*long), 2, "expected up to"), f"quantile: a number of 72 characters is refused, {backend}")
    if h5py is None:
        tap.skip("h5py is not there")
        return
    with h5py.File(folder.name("edges.h5"), "w") as file_of_edges:
        file_of_edges.create_dataset("e", data=np.array([0, 1, -999, 3.0])).attrs["_FillValue"] = -999.0
        half = np.where(np.arange(80000) < 40000, -1, 100 + np.arange(80000) % 100).astype("i2")
        file_of_edges.create_dataset("half", data=half).attrs["_FillValue"] = np.int16(-1)
        file_of_edges.create_dataset("chunks", data=half, chunks=(9000,)).attrs["_FillValue"] = np.int16(-1)
    for name, more in (("half", [f"--checkpoint={folder.name('half')}"]), ("half", []), ("chunks", [])):  # the first reads twice
        done = ranks(2, "histogram", "--bins=9", folder.name("edges.h5") + ":" + name, "--json", "-v", *options, *more)
        found = report(done) or {"counts": [], "edges": []}
        tap.ok(found["edges"] == np.linspace(100, 199, 10).tolist() and sum(found["counts"]) == 40000 and ("once more" in done.stderr) == (more != []),
               f"histogram: pieces without elements have no range, {name}{' with a checkpoint' * len(more)}, {backend}", shown(done))
    tap.ok(not cli.refused(alone("histogram", "--edges=" + folder.name("edges.h5") + ":e", file), 2, "found 1 missing values"),
           f"histogram: edges with a missing value are refused, {backend}")


def main():
    cli.ignore_leaks()
    with Folder() as folder:
        for backend in cli.backends():
            check_folds(folder, backend)
            check_special(folder, backend)
            check_softmax(folder, backend)
            check_repeatable(folder, backend)
            check_order(folder, backend)
    tap.done()


if __name__ == "__main__":
    main()
