"""Comparison of presets on one task: a table, a plot."""

import io
from base64 import b64encode
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from langchain_core.language_models import BaseChatModel

from wakeloop.agent import create_todo_agent
from wakeloop.checks.argument_values import resolve_settings
from wakeloop.display.screen import is_wakeloop_event
from wakeloop.display.terminal_output import clean_line, format_columns
from wakeloop.errors import BenchError, WakeloopError
from wakeloop.settings import LoopSettings
from wakeloop.text.plain_html import html_table
from wakeloop.text.secrets import redact_text
from wakeloop.thread.thread_status import session_of
from wakeloop.todos.items import count_closed, count_items

Model = str | BaseChatModel | Callable[[LoopSettings], BaseChatModel]
WHITE = "#ffffff"
Row = dict[str, Any]


@dataclass(frozen=True)
class Comparison:
    """The runs of a task under several presets, as a table in notebooks and in `print`, and as `rows`.

    A row has the counts of a run, what it spent and how it ended; `error` is the exception that it raised.
    """

    task: str
    rows: list[Row] = field(default_factory=list)

    def plot(self) -> "Plot":
        """Plot closed items, requests and tokens. Raises `BenchError` without matplotlib."""
        return Plot(self.rows)

    def _table(self) -> tuple[list[str], list[list[object]]]:
        """Return the table's head and rows, without a column for cost if no run has one."""
        priced = any(row["cost"] is not None for row in self.rows)
        counts = ("blocked", "requests", "wakes", "reminders", "corrections", "tokens")
        rows: list[list[object]] = []
        for row in self.rows:
            cells = [row["preset"], f"{row['closed']}/{row['items']}", *(row[key] for key in counts)]
            if priced:
                cells.append("" if row["cost"] is None else round(row["cost"], 4))
            rows.append([*cells, f"{row['seconds']:.1f} s", row["error"] or row["reason"]])
        head = ["preset", "closed", *counts]
        if priced:
            head.append("cost")
        return [*head, "time", "end"], rows

    def __str__(self) -> str:
        head, rows = self._table()
        lines = [head]
        for row in rows:
            lines.append([clean_line(str(cell), 80) for cell in row])
        return "\n".join(format_columns(lines))

    def _repr_pretty_(self, printer: Any, *_: Any) -> None:
        printer.text(str(self))

    def _repr_html_(self) -> str:
        head, rows = self._table()
        for row in rows:
            for place, cell in enumerate(row):
                if isinstance(cell, str):
                    row[place] = clean_line(cell)
        return html_table(head, rows)


class Plot:
    """A bar chart of presets, as PNG: where styles are removed, an SVG would be black."""

    def __init__(self, rows: list[Row]) -> None:
        try:
            import matplotlib as mpl  # type: ignore[import-not-found,unused-ignore] # noqa: PLC0415 - an extra
            from matplotlib.figure import (  # type: ignore[import-not-found,unused-ignore] # noqa: PLC0415
                Figure,
            )
        except ImportError:
            raise BenchError("Plots need matplotlib: pip install 'wakeloop[bench]'.") from None
        names = [row["preset"].replace("$", r"\$") for row in rows]
        with mpl.rc_context({"font.size": 9}):
            self.figure = Figure(figsize=(8, 0.9 + 0.35 * len(rows)), facecolor=WHITE, layout="constrained")
            charts = self.figure.subplots(1, 3, sharey=True, squeeze=False)[0]
            shares = [100 * row["closed"] / max(row["items"], 1) for row in rows]
            for axes, title, values in (
                (charts[0], "closed, %", shares),
                (charts[1], "requests", [row["requests"] for row in rows]),
                (charts[2], "tokens", [row["tokens"] for row in rows]),
            ):
                bars = axes.barh(range(len(rows)), values, color="#8b82d8")
                axes.bar_label(bars, [f"{value:,.0f}" for value in values], padding=2)
                axes.set(title=title, xlim=(0, 1.25 * max([*values, 1])))
                axes.set_yticks(range(len(rows)), labels=names)
                axes.set_xticks([])
                axes.spines[["top", "right", "bottom"]].set_visible(False)
            charts[0].invert_yaxis()
            image = io.BytesIO()
            self.figure.savefig(image, format="png")
        self.png = image.getvalue()

    def _repr_mimebundle_(self, **_: Any) -> dict[str, str]:
        return {"text/plain": "A plot: closed, requests, tokens.", "image/png": b64encode(self.png).decode()}


def compare(
    presets: str | LoopSettings | Iterable[str | LoopSettings] | Mapping[str, str | LoopSettings],
    task: str | Mapping[str, Any],
    *,
    model: Model,
    tools: Iterable[Any] = (),
    config: Any = None,
    **more: Any,
) -> Comparison:
    """Run one task under several presets, one after the other, and compare the runs.

    Args:
        presets: Names of presets, or settings, one or several; a mapping gives them names of your own.
        task: A user's message, or the whole input of a run.
        model: A model or its name, as for `create_todo_agent`; or a function of the settings that makes one
            for each preset, since a scripted model can only be used once.
        tools: The agent's tools.
        config: The config of each run.
        more: Further arguments of `create_todo_agent`.

    Returns:
        A table, with `rows` (a list of dicts) and `plot()`. A run that raises has a row with its error.

    Raises:
        SettingsError: A preset is unknown; nothing is run then.

    Example:
        >>> from wakeloop.testing import ScriptedModel, says
        >>> runs = compare(["wakeloop", "loki"], "Hi", model=lambda settings: ScriptedModel(says("Hello!")))
        >>> [(row["preset"], row["requests"]) for row in runs.rows]
        [('wakeloop', 1), ('loki', 1)]
    """
    if isinstance(presets, str | LoopSettings):
        presets = [presets]
    chosen = presets if isinstance(presets, Mapping) else {_name_preset(one): one for one in presets}
    # all of them before the first run, so that a typo costs nothing
    named = {name: resolve_settings(one) for name, one in chosen.items()}
    given = {"messages": [("user", task)]} if isinstance(task, str) else dict(task)
    tools, rows = [*tools], []
    for name, settings in named.items():
        made = model if isinstance(model, str | BaseChatModel) else model(settings)
        agent = create_todo_agent(made, tools, settings=settings, **more)
        rows.append(_run_preset(name, agent, given, config))
    return Comparison(task if isinstance(task, str) else "", rows)


def _run_preset(name: str, agent: Any, given: Any, config: Any) -> Row:
    """Run an agent and count. An exception goes into the row, so that the other presets still run."""
    counts: dict[str, int] = {"wake": 0, "nag": 0, "guard": 0}
    result: dict[str, Any] = {}
    spent: Any = None
    error = ""
    try:
        options = {"stream_mode": ["custom", "values"], "output_keys": agent.output_channels}
        for mode, data in agent.stream(given, config, **options):
            if mode == "values":
                result = data
            elif not is_wakeloop_event(data):
                continue  # streamed by a tool
            elif data["type"] == "spent":
                spent = data["spent"]
            elif data["type"] in counts:
                counts[data["type"]] += 1
    except Exception as raised:  # noqa: BLE001 - the other presets still run
        error = str(raised)
        if not isinstance(raised, WakeloopError):
            error = f"{type(raised).__name__}: {error}"
        error = redact_text(error)
    todos = result.get("todos") or []
    session = session_of(result) if result else {}
    spent = session.get("spent") or spent or {}
    return {
        "preset": name,
        "items": len(todos),
        "closed": count_closed(todos),
        "blocked": count_items(todos)["blocked"],
        "requests": spent.get("requests", 0),
        "wakes": counts["wake"],
        "reminders": counts["nag"],
        "corrections": counts["guard"],
        "failed_calls": spent.get("failed_calls", 0),
        "tokens": spent.get("input", 0) + spent.get("output", 0),
        "cost": spent.get("cost"),
        "seconds": spent.get("seconds", 0.0),
        "state": session.get("state", "running"),
        "reason": session.get("reason") or "",
        "error": error,
    }


def _name_preset(one: str | LoopSettings) -> str:
    """Name a preset; settings are named after the nearest preset and what differs from it."""
    if isinstance(one, str):
        return one
    name, differs = resolve_settings(one).nearest_preset()
    return ", ".join([name, *(f"{key}={own!r}" for key, own, _ in differs)])
