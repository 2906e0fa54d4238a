"""Todo files: lists as plain text, JSON or YAML."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from wakeloop.cli.agent_spec import read_option_file
from wakeloop.cli.failures import usage_error
from wakeloop.todos.items import OperationRefused, read_list

STRUCTURED_SUFFIXES = (".json", ".yaml", ".yml")


def read_todo_file(path: Path) -> list[Mapping[str, Any]]:
    """Read the items of a file: one per line, or a JSON or YAML list of strings and items.

    Raises `CommandError` for a file without items or with invalid ones.
    """
    text = read_option_file(path, "--todos")
    which = f"The file {str(path)!r} for --todos"
    items: list[Mapping[str, Any]]
    if path.suffix.lower() in STRUCTURED_SUFFIXES:
        listed = _parse_structured(path.suffix.lower(), text, which)
        if not isinstance(listed, list):
            raise usage_error(f"{which} must contain a list of strings or items.")
        items = [{"content": item} if isinstance(item, str) else item for item in listed]
    else:
        items = [{"content": line.strip()} for line in text.splitlines() if line.strip()]
    if not items:
        raise usage_error(f"{which} contains no items.")
    try:
        read_list(items)
    except OperationRefused as refusal:
        raise usage_error(f"{which} is not a valid list: {refusal}.") from None
    return items


def _parse_structured(suffix: str, text: str, which: str) -> Any:
    try:
        if suffix == ".json":
            return json.loads(text)
        import yaml

        return yaml.safe_load(text)
    except Exception as error:  # noqa: BLE001 - a parser's errors are of many kinds
        why = str(error).partition("\n")[0]
        raise usage_error(f"{which} cannot be parsed: {why}.") from None
