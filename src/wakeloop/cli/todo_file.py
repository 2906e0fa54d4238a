"""A list that a file gives: a text a line, JSON or YAML."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from wakeloop.cli.agent_spec import read_option_file
from wakeloop.cli.failures import usage_error
from wakeloop.todos.items import Refused, read_list

STRUCTURED_SUFFIXES = (".json", ".yaml", ".yml")


def read_todo_file(path: Path) -> list[Mapping[str, Any]]:
    """Read the items of a file; texts are open items. Raises `CommandError` for a file that holds none."""
    text = read_option_file(path, "--todos")
    read = _parse_structured(path, text) if path.suffix.lower() in STRUCTURED_SUFFIXES else text.splitlines()
    if not isinstance(read, list):
        raise usage_error(f"The file {str(path)!r} for --todos must hold a list of texts or items.")
    lines = path.suffix.lower() not in STRUCTURED_SUFFIXES
    items = [{"content": one.strip() if lines else one} if isinstance(one, str) else one for one in read]
    kept = [one for one in items if not lines or one["content"]]
    if not kept:
        raise usage_error(f"The file {str(path)!r} for --todos holds no item.")
    try:
        read_list(kept)
    except Refused as refusal:
        raise usage_error(f"The file {str(path)!r} for --todos is refused: {refusal}.") from None
    return kept


def _parse_structured(path: Path, text: str) -> Any:
    try:
        if path.suffix.lower() == ".json":
            return json.loads(text)
        import yaml

        return yaml.safe_load(text)
    except Exception as error:  # noqa: BLE001 - a parser's errors are of many kinds
        why = str(error).partition("\n")[0]
        raise usage_error(f"The file {str(path)!r} for --todos cannot be read: {why}.") from None
