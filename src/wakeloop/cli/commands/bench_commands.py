"""The commands of the bench: a run, report, profile."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from wakeloop.cli.commands.console import print_lines, report_errors
from wakeloop.cli.commands.help import FittedCommand, FittedGroup
from wakeloop.display.terminal_output import write_text

bench = typer.Typer(
    name="bench",
    cls=FittedGroup,
    help="Measure agents, tasks and models: what is finished, and for what.",
    invoke_without_command=True,
    add_completion=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)
Run = Annotated[Path, typer.Argument(metavar="DIR", help="Folder of a run, its --out.")]


def repeatable_option(name: str, metavar: str, told: str) -> typer.models.OptionInfo:
    """An option that may be repeated."""
    option: typer.models.OptionInfo = typer.Option(name, metavar=metavar, help=f"{told}; may be repeated.")
    return option


@bench.callback()
@report_errors()
def run(
    context: typer.Context,
    study: Annotated[
        str, typer.Option(metavar="NAME|FILE", help="quick, effect, or a study of your own.")
    ] = "quick",
    models: Annotated[
        list[str] | None, repeatable_option("--model", "MODEL", "openai:NAME, NAME@URL, weak:stop=0.3")
    ] = None,
    agents: Annotated[
        list[str] | None, repeatable_option("--agent", "NAME", "An agent, in place of the study's")
    ] = None,
    tasks: Annotated[
        list[str] | None, repeatable_option("--task", "TASK", "FAMILY:PARTS, *:PARTS, @KIND, or a folder")
    ] = None,
    seeds: Annotated[int | None, typer.Option(min=1, help="Runs of each.")] = None,
    base_url: Annotated[
        str | None,
        typer.Option(metavar="URL", help="Address of an OpenAI-like server; else $OPENAI_BASE_URL."),
    ] = None,
    prices: Annotated[
        str | None,
        typer.Option(metavar="IN,CACHED,OUT", help="What a million tokens cost; else tokens are counted."),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Where results are kept, to go on with; else bench-STUDY."),
    ] = None,
    workers: Annotated[int, typer.Option(min=1, help="Cells at once.")] = 2,
    max_cost: Annotated[
        float | None, typer.Option(min=0, metavar="COST", help="End when all cells together have cost this.")
    ] = None,
    timeout: Annotated[
        float,
        typer.Option(
            min=1, metavar="SECONDS", help="How long a request may take; then its cell is run again later."
        ),
    ] = 180,
    estimate: Annotated[
        bool, typer.Option("--estimate", help="Say what it would take, and run nothing.")
    ] = False,
) -> None:
    """Run a study, or go on with it: what is finished is not run again, whatever ended it."""
    if context.invoked_subcommand is not None:
        return
    if sys.stderr.isatty():  # what it needs takes a moment to import, and an estimate plays some cells
        write_text(f"{'Estimating' if estimate else 'Starting'} the study {study} …", sys.stderr)
    from wakeloop.cli.bench_study import format_estimate, run_study, select_study

    found = select_study(study, prices, base_url, models=models, agents=agents, tasks=tasks, seeds=seeds)
    if estimate:
        print_lines(format_estimate(found, workers))
        return
    where = out or Path(f"bench-{found.name.replace(' ', '-')}")
    how = {"workers": workers, "max_cost": max_cost, "timeout": timeout}
    raise typer.Exit(run_study(found, where, lambda line: write_text(line, sys.stderr), **how))


@bench.command(cls=FittedCommand)
@report_errors()
def report(
    runs: Annotated[
        list[Path], typer.Argument(metavar="DIR…", help="Folders of runs, or files of their rows.")
    ],
    page: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write the page there; else print it.")
    ] = None,
    plots: Annotated[Path | None, typer.Option(metavar="DIR", help="Draw plots there.")] = None,
    rows: Annotated[Path | None, typer.Option(metavar="DIR", help="Keep the rows there, compressed.")] = None,
    details: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Write what is said model by model there, not on the page."),
    ] = None,
    title: Annotated[str, typer.Option(help="Title of the page.")] = "What was measured",
    intro: Annotated[Path | None, typer.Option(metavar="FILE", help="Text under the title.")] = None,
) -> None:
    """Print the tables of a run as Markdown: where wakeloop loses first."""
    from wakeloop.cli.agent_spec import read_option_file
    from wakeloop.cli.bench_study import build_report

    head = f"# {title}\n\n{read_option_file(intro, '--intro')}".strip() if intro else f"# {title}"
    text = build_report(runs, page, plots, rows, head, details)
    if page is None:
        print_lines(text.splitlines())
        return
    page.write_text(text, encoding="utf-8")
    print_lines([f"{page}"])


@bench.command(cls=FittedCommand)
@report_errors()
def profile(
    run: Run,
    file: Annotated[
        Path, typer.Option(metavar="FILE", help="The profile; what it says of other models stays.")
    ] = Path("wakeloop-profile.json"),
) -> None:
    """Write for which models and lengths the list pays: what settings="auto" reads."""
    from wakeloop.cli.bench_study import write_model_profile

    print_lines(write_model_profile(run, file))
