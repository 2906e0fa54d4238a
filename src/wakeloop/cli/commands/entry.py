"""Entry point; explains a missing extra."""

import sys


def main() -> None:
    """Run the command line, or say what to install for it."""
    try:
        from wakeloop.cli.commands.app import main as run
    except ModuleNotFoundError as error:
        sys.exit(f"wakeloop: The command line needs {error.name}. Run: pip install 'wakeloop[cli]'")
    run()
