"""The SQLite saver of the command line's own database."""

from langgraph.checkpoint.sqlite import SqliteSaver


class Numbered(SqliteSaver):
    """Writes versions of channels in nine characters where LangGraph writes 51.

    Every row names some fifteen of them: a thread takes 0.7 of the bytes. The sign sorts before every digit
    and counts as the number, so that LangGraph's own saver goes on with such a thread, in its own writing; a
    thread that it began goes on in that here. The versions of two forks may be equal: rows hold their values
    themselves, none is looked up by its version.
    """

    def get_next_version(self, current: str | None, channel: None) -> str:
        """Return the version after the newest of a thread; None is the newest of a new one."""
        if current is None or current.startswith("+"):
            return f"+{int(current or 0) + 1:08}"
        return super().get_next_version(current, channel)
