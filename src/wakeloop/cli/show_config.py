"""What holds: every value, its level, its place."""

import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from wakeloop.cli.agent_spec import AgentSpec, strip_credentials
from wakeloop.cli.final_state import to_json_line
from wakeloop.cli.recipe_builder import LevelStack, build_stack, select_base_url
from wakeloop.cli.store import DatabaseFile
from wakeloop.config.levels import NON_SETTINGS, ResolvedValue, config_folder, list_names
from wakeloop.display.clean import one_line
from wakeloop.display.width import columns, room
from wakeloop.display.words import as_text
from wakeloop.loop.overrides import check_overrides
from wakeloop.settings import LoopSettings, canonical
from wakeloop.text.characters import quote_path

DEFAULTS = {
    **dict.fromkeys(("model", "base_url", "mcp", "system_prompt")),
    "preset": "wakeloop",
    "tools": AgentSpec.tools,
    "function_calling": True,
}
MAX_CELL = 48  # characters of a value in the table
UNCUT_KEYS = (
    "base_url",
    "mcp",
)  # values that somebody would copy: whole below the table where they are cut in it
COLUMN_TITLES = ("KEY", "VALUE", "LEVEL", "FROM")


@dataclass(frozen=True)
class ConfigView:
    """Every value with its level and place; the agent file, and the levels that it leaves without effect."""

    values: Mapping[str, ResolvedValue]
    agent: str = ""
    ignored: Sequence[str] = ()


def show_config(
    place: DatabaseFile, thread: str | None, given: Mapping[str, Any], *, json: bool
) -> Iterator[str]:
    """What holds for a new thread, or for one that exists."""
    if thread is None:
        picture = build_view(build_stack(None, given), {}, "")
    else:
        from wakeloop.cli.store import open_to_read
        from wakeloop.cli.stored_state import read_state
        from wakeloop.cli.thread_lookup import require_thread

        with open_to_read(place) as store:
            known = require_thread(store, thread)
            own = read_state(store.saver, known.id).values.get("todo_settings") or {}
        picture = build_view(build_stack(known.recipe, given), own, known.id)
    files = list_config_files(place)
    yield from [to_json_line(view_to_json(picture, files))] if json else format_view(picture, files)


def build_view(stack: LevelStack, own: Mapping[str, Any], thread: str) -> ConfigView:
    """Put a thread's own values above what the levels come to."""
    found = stack.resolve()
    keys = (*NON_SETTINGS, *LoopSettings.model_fields)
    held = {key: found.values.get(key) or default_value(key) for key in keys}
    url = strip_credentials(select_base_url(found))
    held["base_url"] = held["base_url"]._replace(value=url) if url else default_value("base_url")
    if stack.whole is not None:
        return ConfigView(held, stack.whole.source, [*found.ignored, *(["thread"] if own else [])])
    return ConfigView({**held, **thread_values(found.settings, own, thread)})


def default_value(key: str) -> ResolvedValue:
    """What holds where nothing was said."""
    return ResolvedValue(DEFAULTS[key], "built-in", "wakeloop", explicit=False)


def thread_values(base: LoopSettings, own: Mapping[str, Any], thread: str) -> dict[str, ResolvedValue]:
    """A thread's own values, over the others."""
    now = base.model_copy(update=check_overrides(base, own))
    place = f".set in {thread}"
    return {key: ResolvedValue(getattr(now, key), "thread", place, explicit=True) for key in canonical(own)}


def list_config_files(place: DatabaseFile) -> list[tuple[str, bool]]:
    """The files that were looked for, and whether they are there."""
    folder = config_folder()
    found = [folder / "config.yaml"]
    found += [folder / "roles" / f"{name}.md" for name in list_names(folder, "roles")]
    found += [folder / "agents" / f"{name}.yaml" for name in list_names(folder, "agents")]
    return [(str(path), path.is_file()) for path in (*found, place.path)]


# -- as text and as JSON ---------------------------------------------------------------------------------


def format_view(picture: ConfigView, files: Sequence[tuple[str, bool]] = ()) -> Iterator[str]:
    """A table of four columns, and the files."""
    width = room(sys.stdout)
    short = {path: Path(path).name for path, _ in files} if width else {}  # all of it is below
    rows = [COLUMN_TITLES, *(format_row(key, held, short) for key, held in picture.values.items())]
    table = [*columns(rows, width, texts=(1,))]
    yield from table
    for key in UNCUT_KEYS:
        value = str(picture.values[key].value or "")
        if not any(value in line for line in table):
            yield f"{key}: {quote_path(value)}"
    if picture.ignored:
        others = ", ".join(picture.ignored)
        yield f"The agent file {quote_path(picture.agent)} overrides all settings; not counted: {others}."
    if files:
        yield ""
    for path, there in files:
        yield f"file: {quote_path(path)}{'' if there else ' (not there)'}"


def format_row(key: str, held: ResolvedValue, short: Mapping[str, str]) -> tuple[str, str, str, str]:
    """One value as cells; a long text is cut, and a place that has a `short` name is called by it."""
    value = held.value
    told = ", ".join(value) or "none" if key == "tools" and value is not None else as_text(value)
    return key, one_line(told, MAX_CELL), held.level, one_line(short.get(held.source, held.source))


def view_to_json(picture: ConfigView, files: Sequence[tuple[str, bool]]) -> dict[str, Any]:
    """The same as plain JSON: `values` by key, `ignored` levels, `files`."""
    values = {
        key: {"value": held.value, "level": held.level, "from": held.source}
        for key, held in picture.values.items()
    }
    told = [{"path": path, "found": there} for path, there in files]
    return {"values": values, "agent": picture.agent or None, "ignored": [*picture.ignored], "files": told}
