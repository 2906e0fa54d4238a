"""Read YAML and Markdown front matter, with line numbers."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from wakeloop.errors import SettingsError
from wakeloop.text.characters import quote_path

FENCE = "---"


@dataclass(frozen=True)
class Document:
    """A file's values, the line of each key (from 1), and the text below a front matter."""

    path: Path
    values: Mapping[str, Any] = field(default_factory=dict)
    lines: Mapping[str, int] = field(default_factory=dict)
    body: str = ""

    def error(self, key: str | None, why: str) -> SettingsError:
        """Return an error that names the file, the line and what is wrong there."""
        at = self.lines.get(key or "")
        line = f", line {at}" if at else ""
        return SettingsError(f"{quote_path(self.path)}{line}: {why}")


def read_yaml(path: Path) -> Document:
    """Read a YAML file that contains a mapping. Raises `SettingsError` with file and line."""
    return _parse_document(path, _read_text(path), first=1)


def read_markdown(path: Path) -> Document:
    """Read a Markdown file; the front matter between two lines of dashes contains the values."""
    text = _read_text(path)
    lines = text.splitlines()
    if not lines or lines[0].strip() != FENCE:
        return Document(path, body=text.strip())
    fences = [number for number, line in enumerate(lines) if line.strip() == FENCE]
    if len(fences) == 1:
        raise SettingsError(
            f"{quote_path(path)}, line 1: the front matter is not closed; end it with a line ---."
        )
    end = fences[1]
    front = "\n".join(lines[1:end])
    document = _parse_document(path, front, first=2)
    return Document(path, document.values, document.lines, "\n".join(lines[end + 1 :]).strip())


def _read_text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError:
        raise SettingsError(f"{quote_path(path)} is not UTF-8 text.") from None
    except OSError as error:
        raise SettingsError(f"{quote_path(path)} cannot be read: {error.strerror}.") from None


def _parse_document(path: Path, text: str, first: int) -> Document:
    try:
        node = yaml.compose(text, Loader=yaml.SafeLoader)
        values = yaml.safe_load(text)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        line = f", line {mark.line + first}" if mark is not None else ""
        raise SettingsError(
            f"{quote_path(path)}{line}: not valid YAML: {getattr(error, 'problem', error)}."
        ) from None
    except RecursionError:
        raise SettingsError(f"{quote_path(path)}: its values are nested too deeply.") from None
    if node is None:
        return Document(path)
    if not isinstance(node, yaml.MappingNode):
        raise SettingsError(f"{quote_path(path)}, line {first}: expected a mapping of keys to values.")
    lines: dict[str, int] = {}
    for key, value in node.value:
        name, line = str(key.value), key.start_mark.line + first
        if name in lines:
            raise SettingsError(f"{quote_path(path)}, line {line}: the key {name!r} occurs twice.")
        lines[name] = line
        if isinstance(value, yaml.MappingNode):
            for inner, _ in value.value:
                lines[f"{name}.{inner.value}"] = inner.start_mark.line + first
    return Document(path, {str(key): value for key, value in values.items()}, lines)
