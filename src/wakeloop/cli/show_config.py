"""Show every configuration value and where it comes from."""

import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from wakeloop.cli.agent_spec import AgentSpec, strip_credentials
from wakeloop.cli.final_state import to_json_line
from wakeloop.cli.spec_builder import LevelStack, build_stack, select_base_url
from wakeloop.cli.store import DatabaseFile
from wakeloop.config.levels import NON_SETTINGS, ResolvedValue, config_folder, list_names
from wakeloop.display.formatting import to_json
from wakeloop.display.terminal_output import clean_line, find_width, format_columns
from wakeloop.loop.overrides import check_overrides
from wakeloop.settings import LoopSettings, resolve_aliases
from wakeloop.text.characters import quote_path

DEFAULTS: dict[str, Any] = {  # of the keys that are not settings
    **dict.fromkeys(("model", "base_url", "mcp", "system_prompt")),
    "preset": "wakeloop",
    "tools": AgentSpec.tools,
    "model_options": {},
    "function_calling": True,
}
MAX_CELL = 48  # characters of a value in the table
COLUMN_TITLES = ("KEY", "VALUE", "LEVEL", "FROM")


@dataclass(frozen=True)
class ConfigView:
    """Every value with its level and place, the agent file, and the levels that it overrides."""

    values: Mapping[str, ResolvedValue]
    agent: str = ""
    ignored: Sequence[str] = ()


def show_config(
    place: DatabaseFile, thread: str | None, given: Mapping[str, Any], *, json: bool
) -> Iterator[str]:
    """Yield the values in effect, for a new thread or an existing one, as a table or as JSON."""
    if thread is None:
        view = build_view(build_stack(None, given), {}, "")
    else:
        from wakeloop.cli.store import open_to_read
        from wakeloop.cli.stored_state import read_state
        from wakeloop.cli.thread_lookup import require_thread

        with open_to_read(place) as store:
            known = require_thread(store, thread)
            own = read_state(store.saver, known.id).values.get("todo_settings") or {}
        view = build_view(build_stack(known.spec, given), own, known.id)
    files = list_config_files(place)
    if not json:
        yield from format_view(view, files)
        return
    shown: dict[str, Any] = {"values": {}, "agent": view.agent or None, "ignored": list(view.ignored)}
    for key, found in view.values.items():
        shown["values"][key] = {"value": found.value, "level": found.level, "from": found.source}
    yield to_json_line({**shown, "files": [{"path": path, "found": exists} for path, exists in files]})


def build_view(stack: LevelStack, own: Mapping[str, Any], thread: str) -> ConfigView:
    """Put a thread's own values on top of the resolved levels."""
    found = stack.resolve()
    values = {}
    for key in (*NON_SETTINGS, *LoopSettings.model_fields):
        values[key] = found.values.get(key) or default_value(key)
    url = strip_credentials(select_base_url(found))
    values["base_url"] = values["base_url"]._replace(value=url) if url else default_value("base_url")
    if stack.whole is None:
        now = found.settings.model_copy(update=check_overrides(found.settings, own))
        for key in resolve_aliases(own):
            values[key] = ResolvedValue(getattr(now, key), "thread", f".set in {thread}", explicit=True)
        return ConfigView(values)
    ignored = [*found.ignored, "thread"] if own else found.ignored
    return ConfigView(values, stack.whole.source, ignored)


def default_value(key: str) -> ResolvedValue:
    """Return the built-in value of a key."""
    return ResolvedValue(DEFAULTS[key], "built-in", "wakeloop", explicit=False)


def list_config_files(place: DatabaseFile) -> list[tuple[str, bool]]:
    """List the files that were looked for, and whether each exists."""
    folder = config_folder()
    found = [folder / "config.yaml"]
    found += [folder / "roles" / f"{name}.md" for name in list_names(folder, "roles")]
    found += [folder / "agents" / f"{name}.yaml" for name in list_names(folder, "agents")]
    return [(str(path), path.is_file()) for path in (*found, place.path)]


# -- as text and as JSON ---------------------------------------------------------------------------------


def format_view(view: ConfigView, files: Sequence[tuple[str, bool]] = ()) -> Iterator[str]:
    """Yield a table of four columns, then the files."""
    width = find_width(sys.stdout)
    # A terminal shows short file names in the table: the full paths follow below it.
    short = {path: Path(path).name for path, _ in files} if width else {}
    rows = [COLUMN_TITLES, *(format_row(key, value, short) for key, value in view.values.items())]
    yield from format_columns(rows, width, cuttable=(1,))
    if view.ignored:
        ignored = ", ".join(view.ignored)
        yield f"The agent file {quote_path(view.agent)} overrides all settings; ignored levels: {ignored}."
    if files:
        yield ""
    for path, exists in files:
        yield f"file: {quote_path(path)}" + ("" if exists else " (not found)")


def format_row(key: str, found: ResolvedValue, short: Mapping[str, str]) -> tuple[str, str, str, str]:
    """Format one value as cells; `short` has the short names of files."""
    source = short.get(found.source, found.source)
    return key, clean_line(to_json(found.value), MAX_CELL), found.level, clean_line(source)
