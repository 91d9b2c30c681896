"""Reading what `allfold COMMAND --json` prints, for the tools that draw it."""
import json


def parse(text, name, command, holds, wanted):
    """The reports in a text: one or several JSON objects in a row, for all of which holds(report); else a ValueError that says
    what was wanted."""
    reports, decoder = [], json.JSONDecoder()
    text = text.strip()
    while text:
        try:
            report, end = decoder.raw_decode(text)
        except ValueError as error:
            raise ValueError(f"{name} is not what `allfold {command} --json` prints: {error}") from None
        if not isinstance(report, dict) or not holds(report):
            raise ValueError(f"{name} is not what `allfold {command} --json` prints{wanted}")
        reports.append(report)
        text = text[end:].lstrip()
    return reports


def load(paths, parse_one):
    """The reports in these files."""
    reports = []
    for path in paths:
        with open(path, encoding="utf-8") as file:
            reports += parse_one(file.read(), path)
    return reports
