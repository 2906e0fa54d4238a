"""What a caller may see raised: full sentences."""

RESUME_HINT = "run the thread again with the input None"  # what a caller does; the command line has resume


class WakeloopError(Exception):
    """The base of every error that this package raises itself.

    Each message is a full sentence that says what was wrong and what to do about it.

    Example:
        >>> from wakeloop import preset
        >>> try:
        ...     preset("lokki")
        ... except WakeloopError as error:
        ...     print(type(error).__name__)
        SettingsError
    """


class ArgumentError(WakeloopError, TypeError):
    """A public function was given an argument that it does not take; the sentence names the right one."""


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


class BenchError(WakeloopError):
    """A study, a task or a journal of the bench cannot be used."""


class ConcurrentRunError(WakeloopError):
    """Another run, or an edit by hand, wrote to the thread while a run was at work.

    Raised where the run would have ended: its work is in the history up to the checkpoint `own`, its end is
    not stored. `other` is a checkpoint that is not the run's own, `thread_id` the thread.
    """

    def __init__(self, thread_id: str, own: str, other: str) -> None:
        super().__init__(thread_id, own, other)
        self.thread_id, self.own, self.other = thread_id, own, other

    def __str__(self) -> str:
        return (
            f"Two writers were on the thread {self.thread_id!r} at once: this run, which stands at checkpoint"
            f" {self.own}, and another run or an edit by hand, which wrote checkpoint {self.other}; neither"
            " has what the other wrote. Let one run at a time have a thread, with a lock around each run; to"
            " go on with either side, invoke the graph with None and the checkpoint_id of its newest"
            " checkpoint."
        )


class DamagedError(WakeloopError):
    """What is stored of a thread is nothing that a run of the graph has left; nothing of it was run."""

    def __init__(self, what: str) -> None:
        super().__init__(
            f"What is stored of this thread is damaged: {what}. Go on from an older checkpoint or begin anew."
        )


class VerifyError(WakeloopError):
    """An asynchronous `verify` was met in a synchronous run, or one answered neither None nor a text."""

    def __init__(
        self, sentence: str = "This agent's verify is asynchronous: run it with ainvoke or astream."
    ) -> None:
        super().__init__(sentence)
