"""What holds: every value, its level, its place."""

import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from wakeloop.cli.configured import Stack, address, stack_of
from wakeloop.cli.outcome import as_json
from wakeloop.cli.recipe import Recipe, without_user
from wakeloop.cli.store import Place
from wakeloop.config.levels import BESIDE, Held, config_folder, names
from wakeloop.display.clean import one_line
from wakeloop.display.width import columns, room
from wakeloop.display.words import as_text
from wakeloop.loop.overrides import check_overrides
from wakeloop.settings import LoopSettings, canonical
from wakeloop.text.characters import to_copy

UNSAID = {
    **dict.fromkeys(("model", "base_url", "mcp", "system_prompt")),
    "preset": "wakeloop",
    "tools": Recipe.tools,
    "function_calling": True,
}
WIDEST = 48  # characters of a value in the table
COPIED = (
    "base_url",
    "mcp",
)  # values that somebody would copy: whole below the table where they are cut in it
HEAD = ("KEY", "VALUE", "LEVEL", "FROM")


@dataclass(frozen=True)
class Picture:
    """Every value with its level and place; the agent file, and the levels that it leaves without effect."""

    held: Mapping[str, Held]
    agent: str = ""
    ignored: Sequence[str] = ()


def overview(place: Place, thread: str | None, given: Mapping[str, Any], *, json: bool) -> Iterator[str]:
    """What holds for a new thread, or for one that exists."""
    if thread is None:
        picture = picture_of(stack_of(None, given), {}, "")
    else:
        from wakeloop.cli.lookup import must_be
        from wakeloop.cli.store import reading
        from wakeloop.cli.stored import stored

        with reading(place) as store:
            known = must_be(store, thread)
            own = stored(store.saver, known.id).values.get("todo_settings") or {}
        picture = picture_of(stack_of(known.recipe, given), own, known.id)
    files = looked_at(place)
    yield from [as_json(as_object(picture, files))] if json else lines_of(picture, files)


def picture_of(stack: Stack, own: Mapping[str, Any], thread: str) -> Picture:
    """Put a thread's own values above what the levels come to."""
    found = stack.resolved()
    held = {key: found.held.get(key) or unsaid(key) for key in (*BESIDE, *LoopSettings.model_fields)}
    url = without_user(address(found))
    held["base_url"] = held["base_url"]._replace(value=url) if url else unsaid("base_url")
    if stack.whole is not None:
        return Picture(held, stack.whole.source, [*found.ignored, *(["thread"] if own else [])])
    return Picture({**held, **above(found.settings, own, thread)})


def unsaid(key: str) -> Held:
    """What holds where nothing was said."""
    return Held(UNSAID[key], "built-in", "wakeloop", outright=False)


def above(base: LoopSettings, own: Mapping[str, Any], thread: str) -> dict[str, Held]:
    """A thread's own values, over the others."""
    now = base.model_copy(update=check_overrides(base, own))
    place = f".set in {thread}"
    return {key: Held(getattr(now, key), "thread", place, outright=True) for key in canonical(own)}


def looked_at(place: Place) -> list[tuple[str, bool]]:
    """The files that were looked for, and whether they are there."""
    folder = config_folder()
    found = [folder / "config.yaml"]
    found += [folder / "roles" / f"{name}.md" for name in names(folder, "roles")]
    found += [folder / "agents" / f"{name}.yaml" for name in names(folder, "agents")]
    return [(str(path), path.is_file()) for path in (*found, place.path)]


# -- as text and as JSON ---------------------------------------------------------------------------------


def lines_of(picture: Picture, files: Sequence[tuple[str, bool]] = ()) -> Iterator[str]:
    """A table of four columns, and the files."""
    width = room(sys.stdout)
    short = {path: Path(path).name for path, _ in files} if width else {}  # all of it is below
    rows = [HEAD, *(row(key, held, short) for key, held in picture.held.items())]
    table = [*columns(rows, width, texts=(1,))]
    yield from table
    for key in COPIED:
        value = str(picture.held[key].value or "")
        if not any(value in line for line in table):
            yield f"{key}: {to_copy(value)}"
    if picture.ignored:
        others = ", ".join(picture.ignored)
        yield f"The agent file {to_copy(picture.agent)} overrides all settings; not counted: {others}."
    if files:
        yield ""
    for path, there in files:
        yield f"file: {to_copy(path)}{'' if there else ' (not there)'}"


def row(key: str, held: Held, short: Mapping[str, str]) -> tuple[str, str, str, str]:
    """One value as cells; a long text is cut, and a place that has a `short` name is called by it."""
    value = held.value
    told = ", ".join(value) or "none" if key == "tools" and value is not None else as_text(value)
    return key, one_line(told, WIDEST), held.level, one_line(short.get(held.source, held.source))


def as_object(picture: Picture, files: Sequence[tuple[str, bool]]) -> dict[str, Any]:
    """The same as plain JSON: `values` by key, `ignored` levels, `files`."""
    values = {
        key: {"value": held.value, "level": held.level, "from": held.source}
        for key, held in picture.held.items()
    }
    told = [{"path": path, "found": there} for path, there in files]
    return {"values": values, "agent": picture.agent or None, "ignored": [*picture.ignored], "files": told}
