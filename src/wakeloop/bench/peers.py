"""Peers that run in environments of their own."""

import fcntl
import json
import subprocess
import sys
import tempfile
import venv
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from hashlib import sha256
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import IO, Any, Self, cast

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import messages_from_dict, messages_to_dict
from langchain_core.runnables import RunnableConfig
from langchain_core.tools import BaseTool
from langchain_core.utils.function_calling import convert_to_openai_tool

from wakeloop.errors import BenchError

PROGRAM = Path(__file__).with_name("peer_program.py")
GRACE_SECONDS = 5.0  # how long a peer may take to end
LONGEST_ERROR = 400  # characters of a dead peer's last output


class PeerError(Exception):
    """A peer's agent raised an error, which counts as its result."""


@dataclass(frozen=True)
class Peer:
    """A package at one version. Its agents run in a process that asks this one for replies and results.

    So every agent has the same model, tools and meter, whatever packages it needs.
    """

    pins: tuple[str, ...]

    @property
    def is_here(self) -> bool:
        """Whether exactly these versions are installed here."""
        return all(_is_installed(*pin.split("==")) for pin in self.pins)

    def python(self, where: Path) -> Path:
        """Return the interpreter to run it with: this one, or that of its environment."""
        if self.is_here:
            return Path(sys.executable)
        name = sha256("\n".join(self.pins).encode()).hexdigest()[:12]
        return where / name / "bin" / "python"

    def prepare(self, where: Path, told: Callable[[str], None]) -> None:
        """Make its environment if it does not exist. Raises `BenchError`."""
        python = self.python(where)
        made = python.parent.parent / "made"
        if self.is_here or made.exists():
            return
        where.mkdir(parents=True, exist_ok=True)
        with made.parent.with_suffix(".lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)  # another run may be making it; the lock ends with its process
            if not made.exists():
                self._make(made, python, told)

    def _make(self, made: Path, python: Path, told: Callable[[str], None]) -> None:
        told(f"installing {', '.join(self.pins)} into {made.parent} …")
        venv.create(made.parent, with_pip=True, clear=True)
        command = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *self.pins]
        done = subprocess.run(command, check=False, capture_output=True, text=True)  # noqa: S603 - our own pins
        if done.returncode:
            last = done.stderr.strip().splitlines()[-1:] or ["pip failed"]
            raise BenchError(f"{self.pins[0]} cannot be installed: {last[0]}")
        made.touch()

    def play(
        self, job: Mapping[str, Any], model: BaseChatModel, tools: list[BaseTool], config: RunnableConfig
    ) -> dict[str, Any]:
        """Let one of its agents do a job. Raises errors of the model, or `PeerError`.

        `job` has the name of the `agent`, the `prompt`, and with which words (`go_on`) and how often at most
        (`outer`) an agent in a loop is started again.
        """
        offered = [convert_to_openai_tool(tool)["function"] for tool in tools]
        process = process_of(self)
        process.send({**job, "tools": offered, "steps": config["recursion_limit"]})
        broken: BaseException | None = None
        while "end" not in (heard := process.receive()):
            try:
                if "ask" in heard:
                    process.send(answer_request(model, heard["ask"], config))
                else:
                    process.send(answer_tool_call(tools, heard["call"]))
            except Exception as error:  # noqa: BLE001 - kept, and raised when the peer has ended
                broken = error
                process.send({"broken": type(error).__name__})
        if broken is not None:
            raise broken
        if "error" in heard["end"]:
            raise PeerError(heard["end"]["error"])
        return dict(heard["end"])


LANGCHAIN = Peer(("langchain==1.5.2",))
DEEPAGENTS = Peer(("deepagents==0.7.32", "langchain==1.5.2"))


def answer_request(model: BaseChatModel, asked: Mapping[str, Any], config: RunnableConfig) -> dict[str, Any]:
    """Return the model's reply to a peer's request."""
    messages = messages_from_dict(asked["messages"])
    if asked["tools"]:
        reply = model.bind_tools(asked["tools"], **asked["options"]).invoke(messages, config)
    else:
        reply = model.invoke(messages, config)
    return {"reply": messages_to_dict([reply])[0]}


def answer_tool_call(tools: list[BaseTool], called: Mapping[str, Any]) -> dict[str, Any]:
    """Run a tool that a peer called; an error is its result."""
    tool = next(tool for tool in tools if tool.name == called["name"])
    try:
        return {"result": str(tool.invoke(called["args"])), "failed": False}
    except Exception as error:  # noqa: BLE001 - a tool may raise anything
        return {"result": str(error), "failed": True}


@dataclass
class PeerProcess:
    """A running peer; closing its input ends it."""

    process: subprocess.Popen[str]
    stdin: IO[str]
    stdout: IO[str]
    errors: IO[str]

    @classmethod
    def start(cls, peer: Peer) -> Self:
        """Start a process, and wait until it has imported its packages."""
        where = ENVIRONMENTS[0] if ENVIRONMENTS else Path()
        command = [str(peer.python(where)), "-I", str(PROGRAM)]
        pipe, errors = subprocess.PIPE, tempfile.TemporaryFile("w+", encoding="utf-8")  # noqa: SIM115 - as long as it
        process = subprocess.Popen(  # noqa: S603 - our own program
            command, text=True, encoding="utf-8", stdin=pipe, stdout=pipe, stderr=errors
        )
        started = cls(process, cast(IO[str], process.stdin), cast(IO[str], process.stdout), errors)
        started.receive()
        return started

    def send(self, line: Mapping[str, Any]) -> None:
        """Send a line to the peer."""
        self.stdin.write(json.dumps(line) + "\n")
        self.stdin.flush()

    def receive(self) -> dict[str, Any]:
        """Wait for a line of the peer. Raises `BenchError` if it has died."""
        if line := self.stdout.readline():
            return dict(json.loads(line))
        self.errors.seek(0)
        last = self.errors.read().strip()[-LONGEST_ERROR:] or "without any output"
        end_processes()
        raise BenchError(f"A peer's process ended: {last}")

    def close(self) -> None:
        """End the process."""
        with suppress(OSError):
            self.stdin.close()
        try:
            self.process.wait(GRACE_SECONDS)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.stdout.close()
        self.errors.close()


ENVIRONMENTS: list[Path] = []  # the folder of the environments; set once per process
RUNNING: dict[Peer, PeerProcess] = {}  # shared by all cells of this process


def process_of(peer: Peer) -> PeerProcess:
    """Return the running process of a peer, which is started if need be."""
    if peer not in RUNNING:
        RUNNING[peer] = PeerProcess.start(peer)
    return RUNNING[peer]


def end_processes() -> None:
    """End all peers of this process."""
    while RUNNING:
        RUNNING.popitem()[1].close()


def _is_installed(name: str, wanted: str) -> bool:
    try:
        return version(name) == wanted
    except PackageNotFoundError:
        return False
