"""Spans of time, as people and servers write them."""

import re

_UNIT_SECONDS = {"ms": 0.001, "s": 1, "m": 60, "h": 3600, "d": 86400}
_SPAN = re.compile(
    r"(\d+(?:\.\d+)?)\s*(ms|milliseconds?|d(?:ays?)?|h(?:(?:ou)?rs?)?|m(?:in(?:ute)?s?)?|s(?:ec(?:ond)?s?)?)(?![a-z])",
    re.IGNORECASE,
)


def read_span(text: str) -> float | None:
    """Return the seconds of a span such as `2m59.56s`, `1 hour and 5 minutes` or `85ms`."""
    parts, total = _SPAN.findall(text), 0.0
    for number, unit in parts:
        name = unit.lower()
        short = "ms" if name.startswith(("ms", "milli")) else name[0]
        total += float(number) * _UNIT_SECONDS[short]
    return total if parts else None
