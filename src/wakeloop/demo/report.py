"""The audit's report, from the results of the tools."""

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from wakeloop.demo.history import Event
from wakeloop.text.characters import pluralize

AUTHOR = "an offline, rule-based stand-in for a model (fixed rules; no language model was asked)"
MEASURES = ("measure_lines", "measure_longest", "measure_markers", "measure_links")
Results = Mapping[tuple[str, str], Event]
Measured = dict[str, Any]


def results(told: Sequence[Event]) -> dict[tuple[str, str], Event]:
    """The last answered call of each tool for each path."""
    return {
        (event.name, str(event.args["path"])): event
        for event in told
        if event.answered and "path" in event.args
    }


def measured(known: Results, path: str) -> Measured:
    """What the four measures found in a file, their notes and errors as a list."""
    found: Measured = {"notes": []}
    for name in ("read_file", *MEASURES):
        event = known.get((name, path))
        if event is None:
            continue
        if event.state == "error":
            found["notes"].append(event.text)
        elif name in MEASURES:
            try:
                values = json.loads(event.text)
            except ValueError:
                values = {"note": f"the result of {name} could not be read"}
            found["notes"].append(values.pop("note", ""))
            counted = {f"{name}.count": values.pop("count")} if "count" in values else {}
            found |= values | counted
    found["notes"] = list(dict.fromkeys(note for note in found["notes"] if note))
    return found


def summary(found: Measured) -> str:
    """A file's measures in one line."""
    if "lines" not in found:
        return "; ".join(found["notes"]) or "nothing measured"
    count, links = found.get("measure_markers.count", 0), found.get("measure_links.count", 0)
    return f"{pluralize(found['lines'], 'line')}, open markers: {count}, dead links: {links}"


def report(paths: Sequence[str], known: Results, left_out: int, limit: int, unseen: int = 0) -> str:
    """The whole report as Markdown."""
    files = {path: measured(known, path) for path in paths}
    findings = [line for path, found in files.items() for line in findings_of(path, found)]
    counts = {
        what: sum(found.get(key, 0) for found in files.values())
        for what, key in (
            ("lines", "lines"),
            ("open markers", "measure_markers.count"),
            ("dead links", "measure_links.count"),
        )
    }
    totals = ", ".join(f"{what}: {number}" for what, number in counts.items())
    rest = why_left_out(left_out, limit, unseen) or "No file was left out."
    return "\n".join(
        [
            "# Audit of this folder",
            "",
            f"Written by {AUTHOR}.",
            "",
            "| file | lines | longest part | open markers | dead links |",
            "|---|--:|---|--:|--:|",
            *(row(path, found) for path, found in files.items()),
            "",
            "## Findings",
            "",
            *(findings or ["None."]),
            "",
            "## Totals",
            "",
            f"Files: {len(files)}, {totals}.",
            rest,
            "",
        ]
    )


def why_left_out(left_out: int, limit: int, unseen: int) -> str:
    """How many files are not audited, and why; "" where all are."""
    why = [
        *([f"{pluralize(left_out, 'more file')}; an audit takes {limit} at most"] if left_out else []),
        *([f"{pluralize(unseen, 'file')} with signs in the name that cannot be seen"] if unseen else []),
    ]
    return f"Left out: {', and '.join(why)}." if why else ""


def row(path: str, found: Measured) -> str:
    """A file's row of the table."""
    longest = found.get("longest")
    part = (
        f"{longest['kind']} {code(longest['name'])}, {pluralize(longest['length'], 'line')}"
        if longest
        else "–"
    )
    numbers = [str(found.get(key, "–")) for key in ("lines", "measure_markers.count", "measure_links.count")]
    cells = [code(path), numbers[0], part, numbers[1], numbers[2]]
    return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"


def findings_of(path: str, found: Measured) -> list[str]:
    """A file's findings, each with its place."""
    lines = [f"- {code(path)}: {plain(note)}" for note in found["notes"]]
    lines += [
        f"- {code(place(path, one))} open marker: {code(one['text'])}" for one in found.get("markers", ())
    ]
    lines += [
        f"- {code(place(path, one))} dead link: {code(one['link'])}, {one['why']}"
        for one in found.get("dead", ())
    ]
    for key, listed in (("measure_markers.count", "markers"), ("measure_links.count", "dead")):
        if (hidden := found.get(key, 0) - len(found.get(listed, ()))) > 0:
            what = "more open marker" if listed == "markers" else "more dead link"
            lines.append(f"- {code(path)}: {pluralize(hidden, what)}")
    return lines


def place(path: str, finding: Mapping[str, Any]) -> str:
    """Where a finding is: file:line, in notebooks file:cell:line."""
    cell = f"cell {finding['cell']}:" if "cell" in finding else ""
    return f"{path}:{cell}{finding['line']}"


def code(text: str) -> str:
    """A text as a code span of one line, whatever is in it."""
    flat = plain(text)
    longest = max((len(run) for run in re.findall("`+", flat)), default=0)
    fence = "`" * (longest + 1)
    gap = " " if flat.startswith("`") or flat.endswith("`") else ""
    return f"{fence}{gap}{flat}{gap}{fence}" if flat else "(blank)"


def plain(text: str) -> str:
    """A text on one line."""
    return " ".join(text.split())
