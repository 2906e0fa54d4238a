"""The offline model's rules: from messages to the next reply."""

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass

from langchain_core.messages import BaseMessage

from wakeloop.demo.audit import PATTERN, REPORT, auditable
from wakeloop.demo.history import Event, events
from wakeloop.demo.report import AUTHOR, MEASURES, measured, report, results, summary, why_left_out
from wakeloop.demo.vocabulary import happened, vocabulary_of
from wakeloop.platform.computed_once import computed_once
from wakeloop.testing.todo_tools import Item, PlannedCall, TodoTools
from wakeloop.text.characters import pluralize

NEEDED = frozenset({"list_files", "read_file", "write_file", *MEASURES})
FILE_TOOLS = (
    "read_file",
    *MEASURES,
)  # in this order, one a reply, for the first file: five rounds, then the nag
REPORT_ITEM = f"Write {REPORT}"
TOTAL = re.compile(r"^Files \d+ to \d+ of (\d+)")
ASKS = re.compile(
    r"^\W*(?:please\s+|now\s+)*(?:re-?)?audit\b|\baudit\s+(?:again|all|everything|it|my|that|the|this)\b",
    re.IGNORECASE,
)
INTRODUCTION = f"I am {AUTHOR}."


@dataclass(frozen=True)
class Reply:
    """One reply: its text, and its tool calls."""

    text: str
    calls: tuple[PlannedCall, ...] = ()


@dataclass(frozen=True)
class Job:
    """One audit, from the message that asks for it: all that the rules look at."""

    told: Sequence[Event]
    vocabulary: TodoTools
    limit: int

    @computed_once
    def items(self) -> list[Item]:
        """The list, as far as the messages tell."""
        return self.vocabulary.read(happened(self.told))

    @computed_once
    def listed(self) -> str:
        """The last listing of the folder, "" before it."""
        return next(
            (
                event.text
                for event in reversed(self.told)
                if event.name == "list_files" and event.state == "ok"
            ),
            "",
        )

    @computed_once
    def paths(self) -> list[str]:
        """The files to audit."""
        return [line for line in self.listed.split("\n") if auditable(line)][: self.limit]

    @computed_once
    def left_out(self) -> int:
        """How many files there are beyond the limit."""
        total = TOTAL.match(self.listed)
        reports = sum(line.rsplit("/", 1)[-1] == REPORT for line in self.listed.split("\n"))
        return int(total[1]) - len(self.paths) - reports - self.unseen if total else 0

    @computed_once
    def unseen(self) -> int:
        """How many files have a name that is spelled out, because something in it cannot be seen."""
        return sum(line.startswith(("'", '"')) for line in self.listed.split("\n"))

    @computed_once
    def by_text(self) -> dict[str, str]:
        """The path that an item's text stands for."""
        return {f"Audit {path}": path for path in self.paths}

    @computed_once
    def report_call(self) -> int | None:
        """Where in the events the report was written, or could not be."""
        return next(
            (i for i, event in enumerate(self.told) if event.name == "write_file" and event.answered), None
        )

    @computed_once
    def known(self) -> Mapping[tuple[str, str], Event]:
        """What the tools have brought, by tool and path."""
        return results(self.told)

    def looks(self, path: str) -> tuple[PlannedCall, ...]:
        """The calls that a file still needs."""
        return tuple(
            PlannedCall(name, {"path": path}) for name in FILE_TOOLS if (name, path) not in self.known
        )

    @property
    def open(self) -> list[Item]:
        """The open items."""
        return [item for item in self.items if item.is_open]

    def failure(self, name: str) -> str:
        """Why the last call of a tool failed, "" if it did not."""
        last = next((event for event in reversed(self.told) if event.name == name and event.answered), None)
        return last.text if last and last.state == "error" else ""

    def close(self, item: Item, reason: str = "") -> PlannedCall:
        """The call that closes an item."""
        return self.vocabulary.close(self.items, item, reason[:300])


def next_reply(messages: Sequence[BaseMessage], tools: Collection[str], limit: int) -> Reply:
    """The reply to a request; the same for the same messages and tools."""
    told = events(messages)
    vocabulary = vocabulary_of(tools)
    start = job_start(told, vocabulary)
    if start is None:
        return Reply(f"{INTRODUCTION} All I can do is audit the files of a folder: say 'audit the folder'.")
    if vocabulary is None or (missing := NEEDED - set(tools)):
        names = "the todo tools" if vocabulary is None else ", ".join(sorted(missing))
        return Reply(f"{INTRODUCTION} I cannot go on: this request came without {names}.")
    job = Job(told[start:], vocabulary, limit)
    return next(reply for rule in RULES if (reply := rule(job)) is not None)


def job_start(told: Sequence[Event], vocabulary: TodoTools | None) -> int | None:
    """Where the present audit was asked for; while one has open items, asking again only goes on with it."""
    start: int | None = None
    for place, event in enumerate(told):
        if event.kind == "person" and ASKS.search(event.text):
            before = vocabulary.read(happened(told[start:place])) if vocabulary and start is not None else ()
            going_on = any(item.is_open for item in before)
            start = start if going_on else place
    return start


def list_folder(job: Job) -> Reply | None:
    """Look at the folder first."""
    if job.listed:
        return None
    if failure := job.failure("list_files"):
        return Reply(f"The folder could not be listed, so there is no audit: {failure}")
    call = PlannedCall("list_files", {"path": ".", "pattern": PATTERN})
    return Reply(f"{INTRODUCTION} I list the folder, then plan one item for each file.", (call,))


def plan(job: Job) -> Reply | None:
    """Write the list: one item a file, and the report last."""
    if not job.paths:
        return Reply("There is nothing to audit here: no Python, Markdown or notebook file.")
    if any(item.text in job.by_text for item in job.items):
        return None
    calls = tuple(job.vocabulary.plan([*job.by_text, REPORT_ITEM], "Audit the folder"))
    if failure := job.failure(calls[-1][0]):
        return Reply(f"The list could not be written, so there is no audit: {failure}")
    rest = why_left_out(job.left_out, job.limit, job.unseen)
    return Reply(f"Files to audit: {len(job.paths)}. {rest}".rstrip(), calls)


def stop_once(job: Job) -> Reply | None:
    """Stop with open items once, after the first file, as weak models do; any next message goes on."""
    planned = next(i for i, event in enumerate(job.told) if event.name in job.vocabulary.needs)
    first = next(item for item in job.items if item.text in job.by_text)
    if first.is_open or not job.open or any(event.kind == "text" for event in job.told[planned:]):
        return None
    left = f"{len(job.open)} of the items {'is' if len(job.open) == 1 else 'are'} open"
    return Reply(
        f"{job.by_text[first.text]} is done, and here I stop, though {left}: "
        "a habit of weak models, shown on purpose."
    )


def audit_next(job: Job) -> Reply | None:
    """Read and measure the next file; close it in the reply that begins what comes after it.

    The first file takes one call a reply, and is closed on its own.
    """
    files = [item for item in job.open if item.text in job.by_text]
    if not files:
        return None
    path = job.by_text[files[0].text]
    first = path == job.paths[0]
    if calls := job.looks(path):
        return Reply(f"{path}: {', '.join(name for name, _ in calls)}.", calls[:1] if first else calls)
    read = job.known["read_file", path]
    reason = f"It could not be read: {read.text}" if read.state == "error" else ""
    onward: tuple[PlannedCall, ...] = ()
    if not first:
        onward = job.looks(job.by_text[files[1].text]) if len(files) > 1 else (report_of(job),)
    closing = job.close(files[0], reason)
    return Reply(f"{path}: {summary(measured(job.known, path))}.", (closing, *onward))


def hand_back(job: Job) -> Reply | None:
    """Block items that somebody else put on the list."""
    others = [item for item in job.open if item.text not in job.by_text and item.text != REPORT_ITEM]
    if not others:
        return None
    call = job.close(others[0], "The offline, rule-based auditor can only audit files.")
    return Reply("One item on the list is not an audit, which is all I can do.", (call,))


def write_report(job: Job) -> Reply | None:
    """Write the report once every file is closed."""
    if not job.open or job.report_call is not None:
        return None
    return Reply(f"Every file is looked at; I write {REPORT}.", (report_of(job),))


def report_of(job: Job) -> PlannedCall:
    """The call that writes the report."""
    content = report(job.paths, job.known, job.left_out, job.limit, job.unseen)
    return PlannedCall("write_file", {"path": REPORT, "content": content})


def claim_the_end(job: Job) -> Reply | None:
    """Call the work done with the last item open, as weak models do, until the guard or a person objects."""
    if not job.open:
        return None
    place, last = max((i, event) for i, event in enumerate(job.told) if event.kind in ("person", "graph"))
    asked = last.mark == "guard" or (last.kind == "person" and place > (job.report_call or 0))
    failure = job.failure("write_file")
    if asked:
        return Reply("The last item was still open; I close it.", (job.close(job.open[0], failure),))
    outcome = f"{REPORT} could not be written: {failure}" if failure else f"The report is in {REPORT}."
    return Reply(
        f"The work is done. {outcome} (One item is still open: a habit of weak models, shown on purpose.)"
    )


def close(job: Job) -> Reply:
    """Say that the audit has ended; or, asked for something else, that this is all there is."""
    failure = job.failure("write_file")
    outcome = f"no report could be written: {failure}" if failure else f"the report is in {REPORT}."
    if job.told[-1].kind == "person":
        return Reply(
            f"{INTRODUCTION} The audit has ended; {outcome} All else I can do is audit the folder again."
        )
    return Reply(f"The audit by {AUTHOR} has ended: {pluralize(len(job.paths), 'file')}; {outcome}")


RULES: tuple[Callable[[Job], Reply | None], ...] = (
    list_folder,
    plan,
    stop_once,
    audit_next,
    hand_back,
    write_report,
    claim_the_end,
    close,
)
