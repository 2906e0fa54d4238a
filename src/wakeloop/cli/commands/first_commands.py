"""The commands of the first minute: init, doctor."""

import typer

from wakeloop.cli.commands.options import BaseUrl, Db, Model
from wakeloop.cli.commands.sentences import sentences, write


@sentences()
def init() -> None:
    """Find keys, servers on this machine and their models; ask, and write config.yaml."""
    from wakeloop.cli.init import run_init

    raise typer.Exit(run_init())


@sentences()
def doctor(model: Model = None, base_url: BaseUrl = None, db: Db = None) -> None:
    """Say what is found, what answers, and whether the model calls tools (one small request)."""
    from wakeloop.cli.doctor import run_doctor
    from wakeloop.cli.recipe import options
    from wakeloop.cli.store import Place

    given = options(model=model, base_url=base_url)
    raise typer.Exit(run_doctor(Place.of(db), given, lambda line: write([line])))
