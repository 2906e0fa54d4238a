"""Benchmark commands: run, report, profile."""

import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from wakeloop.cli.commands.console import CommandGroup, print_lines
from wakeloop.cli.commands.options import argument, command, option
from wakeloop.display.terminal_output import write_text

bench = typer.Typer(
    name="bench",
    cls=CommandGroup,
    help="Measure how much agents finish on tasks, and what it costs.",
    invoke_without_command=True,
    add_completion=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _repeatable(name: str, takes: str, text: str) -> Any:
    return option(name, takes=takes, text=f"{text}. Repeatable.")


@bench.callback()
@command()
def run(
    context: typer.Context,
    study: Annotated[
        str, option(takes="NAME|FILE", text="Study to run: quick, effect, or a file of your own.")
    ] = "quick",
    models: Annotated[
        list[str] | None, _repeatable("--model", "MODEL", "Model: openai:NAME, NAME@URL, weak:stop=0.3")
    ] = None,
    agents: Annotated[
        list[str] | None, _repeatable("--agent", "NAME", "Agent to measure instead of the study's")
    ] = None,
    tasks: Annotated[
        list[str] | None, _repeatable("--task", "TASK", "Task: FAMILY:PARTS, *:PARTS, @KIND, or a folder")
    ] = None,
    seeds: Annotated[int | None, option(min=1, text="Runs per combination.")] = None,
    base_url: Annotated[
        str | None, option(takes="URL", text="URL of an OpenAI-compatible server. Default: $OPENAI_BASE_URL.")
    ] = None,
    prices: Annotated[
        str | None,
        option(
            takes="IN,CACHED,OUT",
            text="Prices of a million tokens, in dollars. Default: public ones, if known.",
        ),
    ] = None,
    out: Annotated[
        Path | None,
        option(takes="DIR", text="Folder for results, which a later run continues. Default: bench-STUDY."),
    ] = None,
    workers: Annotated[int, option(min=1, text="Cells to run at the same time.")] = 2,
    max_cost: Annotated[
        float | None, option(min=0, takes="COST", text="Stop when all cells together have cost this much.")
    ] = None,
    timeout: Annotated[
        float,
        option(
            min=1, takes="SECONDS", text="Time limit per request; a cell that exceeds it is retried later."
        ),
    ] = 180,
    yes: Annotated[bool, option("--yes", text="Start without a question at a terminal.")] = False,
    estimate: Annotated[
        bool, option("--estimate", text="Estimate requests, tokens and time without running anything.")
    ] = False,
) -> int | None:
    """Run a study, or continue one: finished cells are not run again."""
    if context.invoked_subcommand is not None:
        return None
    if sys.stderr.isatty():  # imports take a moment, and an estimate runs some cells
        write_text(f"{'Estimating' if estimate else 'Starting'} the study {study} …", sys.stderr)
    from wakeloop.cli.bench_study import confirm_start, format_estimate, run_study, select_study

    found = select_study(study, prices, base_url, models=models, agents=agents, tasks=tasks, seeds=seeds)
    if estimate:
        print_lines(format_estimate(found, workers))
        return None
    where = out or Path(f"bench-{found.name.replace(' ', '-')}")
    if not yes and not confirm_start(found, where):
        return 1
    how = {"workers": workers, "max_cost": max_cost, "timeout": timeout}
    return run_study(found, where, lambda line: write_text(line, sys.stderr), **how)


@bench.command()
@command()
def report(
    runs: Annotated[list[Path], argument("DIR…", "Folders with results, or files with their rows.")],
    page: Annotated[
        Path | None, option(takes="FILE", text="Write the page to a file instead of printing it.")
    ] = None,
    plots: Annotated[Path | None, option(takes="DIR", text="Draw plots into this folder.")] = None,
) -> None:
    """Print the results of runs as Markdown, beginning with where wakeloop loses."""
    from wakeloop.cli.bench_study import build_report
    from wakeloop.cli.streams import write_atomically

    text = build_report(runs, page, plots)
    print_lines(text.splitlines() if page is None else write_atomically(text, page, force=True))


@bench.command()
@command()
def profile(
    run: Annotated[Path, argument("DIR", "Folder with the results of a run (its --out).")],
    file: Annotated[
        Path, option(takes="FILE", text="Profile to write; entries for other models are kept.")
    ] = Path("wakeloop-profile.json"),
) -> None:
    """Write a profile of when a list pays off for a model, for settings="auto"."""
    from wakeloop.cli.bench_study import write_model_profile

    print_lines(write_model_profile(run, file))
