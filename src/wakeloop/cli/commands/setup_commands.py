"""Setup commands: init, doctor."""

import typer

from wakeloop.cli.commands.console import print_lines, report_errors
from wakeloop.cli.commands.options import BaseUrl, Db, Model


@report_errors()
def init() -> None:
    """Find API keys and local model servers, ask which model to use, and write config.yaml."""
    from wakeloop.cli.init import run_init

    raise typer.Exit(run_init())


@report_errors()
def doctor(model: Model = None, base_url: BaseUrl = None, db: Db = None) -> None:
    """Check keys, servers and models, and report what works. Sends one small request."""
    from wakeloop.cli.agent_spec import parse_options
    from wakeloop.cli.doctor import run_doctor
    from wakeloop.cli.store import DatabaseFile

    given = parse_options(model=model, base_url=base_url)
    raise typer.Exit(run_doctor(DatabaseFile.of(db), given, lambda line: print_lines([line])))
