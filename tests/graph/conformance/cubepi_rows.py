"""cubepi: its two presets, its lists by short names, its results as JSON."""

import json
from typing import Any

from stage import Stage

NAME, STRICT = "cubepi", "cubepi-strict"
WORDS = {"p": "pending", "i": "in_progress", "c": "completed"}
GUARD = "open_todos"


def rows(short: str) -> list[dict[str, str]]:
    """Return items by their short names: `a:i b:p`."""
    return [{"content": content, "status": WORDS[mark]} for content, mark in map(split, short.split())]


def split(part: str) -> list[str]:
    return part.split(":")


def result_json(s: Stage, place: int) -> Any:
    """Return a result's JSON."""
    return json.loads(str(s.results[place].content))
