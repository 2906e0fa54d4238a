"""The command's way in: a sentence where its extra is missing."""

import sys


def main() -> None:
    """Run the command, or say in a sentence what to install for it."""
    try:
        from wakeloop.cli.commands.app import main as run
    except ModuleNotFoundError as error:
        sys.exit(f"wakeloop: The command line needs {error.name}: pip install 'wakeloop[cli]'.")
    run()
