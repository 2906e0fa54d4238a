"""What a caller may see raised: full sentences."""


class WakeloopError(Exception):
    """The base of every error that this package raises itself.

    Each message is a full sentence that says what was wrong and what to do about it.
    """


class SettingsError(WakeloopError):
    """A setting has an unknown name, a value that is not allowed, or may not be set where it was."""


class ToolNameError(WakeloopError):
    """Two tools share one name, or a tool is called like one of the dialect's todo tools."""


class ToolError(WakeloopError):
    """A tool cannot be used in this graph, or not in this way (`return_direct`, async only)."""


class ModelError(WakeloopError):
    """The model cannot be made, cannot call tools, or its package is not installed."""


class ReplyError(WakeloopError):
    """The model's client could not read the reply; nothing of it was stored, and the thread can go on."""


class InputError(WakeloopError):
    """The input of a run is refused before the first request; the thread reads as before."""


class EditError(WakeloopError):
    """An edit of the list by hand is refused; nothing was changed."""


class SessionError(WakeloopError):
    """A session cannot be reached, or a host cannot do what it was asked for."""


class DamagedError(WakeloopError):
    """What is stored of a thread is nothing that a run of the graph has left; nothing of it was run."""

    def __init__(self, what: str) -> None:
        super().__init__(
            f"What is stored of this thread is damaged: {what}. Go on from an older checkpoint, or begin anew."
        )


class VerifyError(WakeloopError):
    """An asynchronous `verify` was met in a synchronous run."""

    def __init__(
        self, sentence: str = "This agent's verify is asynchronous: run it with ainvoke or astream."
    ) -> None:
        super().__init__(sentence)
