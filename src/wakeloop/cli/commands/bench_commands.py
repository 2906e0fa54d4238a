"""Benchmark commands: run, report, profile."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from wakeloop.cli.commands.console import FittedCommand, FittedGroup, print_lines, report_errors
from wakeloop.display.terminal_output import write_text

bench = typer.Typer(
    name="bench",
    cls=FittedGroup,
    help="Measure how much agents finish on tasks, and what it costs.",
    invoke_without_command=True,
    add_completion=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)
Run = Annotated[Path, typer.Argument(metavar="DIR", help="Folder with the results of a run (its --out).")]


def repeatable_option(name: str, metavar: str, text: str) -> typer.models.OptionInfo:
    """Return an option that can be repeated."""
    option: typer.models.OptionInfo = typer.Option(name, metavar=metavar, help=f"{text}. Repeatable.")
    return option


@bench.callback()
@report_errors()
def run(
    context: typer.Context,
    study: Annotated[
        str, typer.Option(metavar="NAME|FILE", help="Study to run: quick, effect, or a file of your own.")
    ] = "quick",
    models: Annotated[
        list[str] | None, repeatable_option("--model", "MODEL", "Model: openai:NAME, NAME@URL, weak:stop=0.3")
    ] = None,
    agents: Annotated[
        list[str] | None, repeatable_option("--agent", "NAME", "Agent to measure instead of the study's")
    ] = None,
    tasks: Annotated[
        list[str] | None,
        repeatable_option("--task", "TASK", "Task: FAMILY:PARTS, *:PARTS, @KIND, or a folder"),
    ] = None,
    seeds: Annotated[int | None, typer.Option(min=1, help="Runs per combination.")] = None,
    base_url: Annotated[
        str | None,
        typer.Option(metavar="URL", help="URL of an OpenAI-compatible server. Default: $OPENAI_BASE_URL."),
    ] = None,
    prices: Annotated[
        str | None,
        typer.Option(
            metavar="IN,CACHED,OUT",
            help="Prices of a million tokens, in dollars. Default: public ones, if known.",
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR", help="Folder for results, which a later run continues. Default: bench-STUDY."
        ),
    ] = None,
    workers: Annotated[int, typer.Option(min=1, help="Cells to run at the same time.")] = 2,
    max_cost: Annotated[
        float | None,
        typer.Option(min=0, metavar="COST", help="Stop when all cells together have cost this much."),
    ] = None,
    timeout: Annotated[
        float,
        typer.Option(
            min=1, metavar="SECONDS", help="Time limit per request; a cell that exceeds it is retried later."
        ),
    ] = 180,
    yes: Annotated[bool, typer.Option("--yes", help="Start without a question at a terminal.")] = False,
    estimate: Annotated[
        bool, typer.Option("--estimate", help="Estimate requests, tokens and time without running anything.")
    ] = False,
) -> None:
    """Run a study, or continue one: finished cells are not run again."""
    if context.invoked_subcommand is not None:
        return
    if sys.stderr.isatty():  # imports take a moment, and an estimate runs some cells
        write_text(f"{'Estimating' if estimate else 'Starting'} the study {study} …", sys.stderr)
    from wakeloop.cli.bench_study import confirm_start, format_estimate, run_study, select_study

    found = select_study(study, prices, base_url, models=models, agents=agents, tasks=tasks, seeds=seeds)
    if estimate:
        print_lines(format_estimate(found, workers))
        return
    where = out or Path(f"bench-{found.name.replace(' ', '-')}")
    if not yes and not confirm_start(found, where):
        raise typer.Exit(1)
    how = {"workers": workers, "max_cost": max_cost, "timeout": timeout}
    raise typer.Exit(run_study(found, where, lambda line: write_text(line, sys.stderr), **how))


@bench.command(cls=FittedCommand)
@report_errors()
def report(
    runs: Annotated[
        list[Path], typer.Argument(metavar="DIR…", help="Folders with results, or files with their rows.")
    ],
    page: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write the page to a file instead of printing it.")
    ] = None,
    plots: Annotated[Path | None, typer.Option(metavar="DIR", help="Draw plots into this folder.")] = None,
) -> None:
    """Print the results of runs as Markdown, beginning with where wakeloop loses."""
    from wakeloop.cli.bench_study import build_report
    from wakeloop.cli.streams import write_atomically

    text = build_report(runs, page, plots)
    if page is None:
        print_lines(text.splitlines())
        return
    print_lines(write_atomically(text, page, force=True))


@bench.command(cls=FittedCommand)
@report_errors()
def profile(
    run: Run,
    file: Annotated[
        Path, typer.Option(metavar="FILE", help="Profile to write; entries for other models are kept.")
    ] = Path("wakeloop-profile.json"),
) -> None:
    """Write a profile of when a list pays off for a model, for settings="auto"."""
    from wakeloop.cli.bench_study import write_model_profile

    print_lines(write_model_profile(run, file))
