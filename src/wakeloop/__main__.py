"""python -m wakeloop is the command wakeloop."""

from wakeloop.cli.commands.entry import main

if __name__ == "__main__":
    main()
