"""Bench studies on the terminal: estimate, progress, report."""

import math
import os
import signal
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any

from wakeloop.bench.cell import Estimate, estimate_run
from wakeloop.bench.journal import read_journal
from wakeloop.bench.models import is_weak, split_address
from wakeloop.bench.report import JOURNAL, Result, render_page
from wakeloop.bench.runner import Progress, plan_study, play_study
from wakeloop.bench.study import Cell, Prices, Study, is_own_task, load_study, make_task
from wakeloop.bench.verdict import (
    OFF,
    ON,
    describe_partial_verdict,
    describe_verdict,
    format_cost,
    make_profile,
    write_profile,
)
from wakeloop.cli.execution import STOP_NOTES, handle_signals
from wakeloop.cli.failures import FAILED, SETTLED, TERMINATED, usage_error
from wakeloop.display.terminal_output import find_width, wrap_text
from wakeloop.loop.spending import find_public_price
from wakeloop.text.characters import pluralize

MINUTE, HOUR = 60, 3600
RESUME_HINT = "Run the same command again to continue: finished cells are not repeated."
PRICE_KINDS = ("input", "cached", "output")


def select_study(study: str, prices: str | None, base_url: str | None, **changes: Any) -> Study:
    """Load a study by name or file, and apply the options."""
    found, known = load_study(study), parse_prices(prices)
    if agents := changes.get("agents"):
        changes["reference"], changes["subject"] = agents[0], agents[-1]
        if found.reference in agents:
            changes["reference"] = found.reference
        if found.subject in agents:
            changes["subject"] = found.subject
    known = known or find_known_prices(changes.get("models") or found.models)
    found = found.with_changes(prices=known, **{key: value or None for key, value in changes.items()})
    if base_url:
        if all(map(is_weak, found.models)):
            raise usage_error("--base-url needs a model: name one with --model NAME.")
        named = []
        for model in found.models:
            has_address = is_weak(model) or split_address(model)[1]
            named.append(model if has_address else f"{model}@{base_url}")
        found = found.with_changes(models=named)
    return found


def find_known_prices(models: Sequence[str]) -> dict[str, float] | None:
    """Return the public prices of a single real model, if they are known here."""
    real = [model for model in models if not is_weak(model)]
    if len(real) != 1:
        return None
    price = find_public_price(split_address(real[0])[0].rpartition(":")[2])
    if price is None:
        return None
    cached = price.input if price.cached is None else price.cached
    return {"input": price.input, "cached": cached, "output": price.output}


def parse_prices(text: str | None) -> dict[str, float] | None:
    """Parse `IN,CACHED,OUT`, the prices of a million tokens."""
    if text is None:
        return None
    try:
        return dict(zip(PRICE_KINDS, map(float, text.split(",")), strict=True))
    except ValueError:
        raise usage_error(
            f"--prices takes IN,CACHED,OUT per million tokens, such as 0.25,0.025,2, got {text!r}."
        ) from None


def format_estimate(study: Study, workers: int) -> Iterator[str]:
    """Yield what the study will take, as lines."""
    ahead = plan_study(study, offline=True)
    found: Estimate = estimate_run(study, ahead, workers)
    cells = pluralize(found.cells, "cell")
    yield f"{cells}, with a model that never stops early (a weaker one takes more requests):"
    yield f"  {pluralize(round(found.requests), 'request')}, at most {found.most_requests:,}"
    read = pluralize(round(found.input), "token")
    yield f"  {read} in, {found.cached:,.0f} of them cached, {found.output:,.0f} out"
    prices = study.prices
    uncached = found.cost + found.cached * (prices.input - prices.cached) / 1_000_000
    cost, most = format_cost(found.cost, study), format_cost(uncached, study)
    yield f"  cost {cost}; {most} if the server has no cache"
    if prices == Prices():
        yield "  (tokens of input: a cached one is a tenth, one of output eight; no --prices are known)"
    yield f"  about {format_duration(found.seconds)} with {workers} at once"
    if any(is_own_task(cell.family) and not make_task(cell).steps for cell in ahead):
        yield "  a task of your own without steps counts as one request"


def run_study(study: Study, out: Path, say: Callable[[str], None], **how: Any) -> int:
    """Run a study into a folder, say how it went, and return the exit code. `how` goes to `play_study`."""
    with handle_signals(stop_study):
        try:
            plan_study(study)
            with progress_line(say, study) as shown:
                done = play_study(study, out, told=say, shown=shown, **how)
        except (KeyboardInterrupt, SystemExit):
            say(f"Stopped: {describe_saved_cells(out)}. {RESUME_HINT}")
            raise
    missing = done.whole - len(done.rows)
    saved = format_saved(len(done.rows), done.whole, out)
    say(f"{saved}; {done.why}" if done.why else saved)
    if missing:
        for line in describe_partial_verdict(done.rows, study):
            say(line)
        say(RESUME_HINT)
        return FAILED
    for line in describe_verdict(done.rows, study):
        say(line)
    say(f"Its tables: wakeloop bench report {out}")
    return SETTLED


MANY_CELLS = 20


def confirm_start(study: Study, out: Path) -> bool:
    """Name `--estimate` before many cells are played, and ask at a terminal; not to continue a run."""
    if (out / JOURNAL).exists():
        return True
    count = len(plan_study(study))
    if count <= MANY_CELLS:
        return True
    note = f"{pluralize(count, 'cell')}. With --estimate this command says what they may cost."
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        sys.stderr.write(f"{note}\n")
        return True
    sys.stderr.write(f"{note} Start? [y/N] ")
    sys.stderr.flush()
    return sys.stdin.readline().strip().lower() in ("y", "yes")


def stop_study(number: int, frame: FrameType | None) -> None:  # noqa: ARG001 - the signature of a handler
    """End a study once; further signals are ignored, since it is already ending."""
    for heard in STOP_NOTES:
        signal.signal(heard, signal.SIG_IGN)
    raise KeyboardInterrupt if number == signal.SIGINT else SystemExit(TERMINATED)


def describe_saved_cells(out: Path) -> str:
    """Say how much of a study is on the disk."""
    path = out / JOURNAL
    if not path.exists() or not path.stat().st_size:
        return "no cell was finished"
    head, rows = read_journal(path)
    if not rows:
        return "no cell was finished"
    return format_saved(len(rows), head["cells"], out)


def format_saved(count: int, whole: int, out: Path) -> str:
    """Say how many cells of a study are in its folder."""
    return f"{count:,} of {pluralize(whole, 'cell')} {'is' if count == 1 else 'are'} in {out / JOURNAL}"


def build_report(folders: Sequence[Path], file: Path | None, plots: Path | None) -> str:
    """Build the page of some results, with plots in a folder; links are relative to the page."""
    results = [Result.load(folder) for folder in folders]
    shown = {}
    if plots:
        from wakeloop.bench.report import draw_plots

        for result in results:
            name = result.study.name
            drawn = draw_plots(result.rows, result.study, plots / name.replace(" ", "-"))
            here = file.parent if file else Path()
            shown[name] = "\n\n".join(f"![{one.stem}]({os.path.relpath(one, here)})" for one in drawn)
    return render_page(results, shown=shown)


def write_model_profile(folder: Path, file: Path) -> list[str]:
    """Write a profile of the models in a study's results; return what it says, as lines."""
    result = Result.load(folder)
    profile = make_profile(result.rows, result.study)
    if not profile:
        raise usage_error(
            f"{folder} has no results that compare lists: it needs rows of both `{OFF}` and `{ON}` "
            "with one model."
        )
    write_profile(file, profile)
    lines = []
    for model, lengths in profile.items():
        for length, entry in lengths.items():
            lines.append(f"{model}, {length}: {entry['list']} ({_format_completed(entry)})")
    return [*lines, f"Wrote {file}."]


def _format_completed(entry: Mapping[str, Any]) -> str:
    shares = ", ".join(f"{name} {share:.0%}" for name, share in entry["completed"].items())
    return f"completed: {shares}; {pluralize(entry['runs'], 'run')}"


# -- progress ---------------------------------------------------------------------------------------------


@dataclass
class ProgressLine:
    """A progress line that is redrawn; without a terminal, one line for each tenth."""

    say: Callable[[str], None]
    study: Study
    tenth: int = -1

    def __call__(self, progress: Progress, ahead: Sequence[Cell]) -> None:
        """Show progress, time left and cost."""
        left = progress.seconds_left(ahead)
        spent = format_cost(progress.cost, self.study)
        ahead_cost = format_cost(progress.cost / max(1, progress.finished) * len(ahead), self.study)
        text = (
            f"{progress.finished:,} of {pluralize(progress.whole, 'cell')}, {format_duration(left)} left, "
            f"cost {spent}, {ahead_cost} left"
        )
        if columns := find_width(sys.stderr):
            sys.stderr.write(f"\r\x1b[K{next(wrap_text(text, columns - 1))}")
            sys.stderr.flush()
        elif (tenth := 10 * progress.finished // progress.whole) > self.tenth:
            self.tenth = tenth
            self.say(text)


@contextmanager
def progress_line(say: Callable[[str], None], study: Study) -> Iterator[ProgressLine]:
    """Show progress on one line, and keep that line at the end."""
    try:
        yield ProgressLine(say, study)
    finally:
        if find_width(sys.stderr):
            sys.stderr.write("\n")


def format_duration(seconds: float) -> str:
    """Format a duration for people."""
    if math.isnan(seconds):
        return "an unknown time"
    if seconds >= HOUR:
        return f"{seconds / HOUR:.1f} hours"
    if seconds >= 2 * MINUTE:
        return f"{seconds / MINUTE:.0f} minutes"
    return pluralize(round(seconds), "second")
