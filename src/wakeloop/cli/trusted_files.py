"""The files that start code, and whether they changed."""

import ast
import hashlib
import shlex
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from difflib import SequenceMatcher
from pathlib import Path

from wakeloop.cli.agent_spec import AgentSpec
from wakeloop.cli.failures import CommandError, redact, usage_error
from wakeloop.cli.mcp_config import read_json_file
from wakeloop.cli.streams import read_line
from wakeloop.config.levels import config_folder
from wakeloop.display.terminal_output import strip_controls, write_text
from wakeloop.text.characters import pluralize, quote_path, shorten

SHELLS = frozenset(("sh", "bash", "dash", "zsh", "ksh", "fish"))
INTERPRETERS = SHELLS.union(
    ("python", "pypy", "node", "bun", "deno", "tsx", "ruby", "perl", "php", "lua", "source")
)
WRAPPERS = frozenset(  # what runs the program after it: words of a shell, programs, starters of environments
    (
        *("!", "if", "then", "else", "elif", "while", "until", "do", "{", "exec", "command", "time"),
        *("env", "timeout", "nice", "nohup", "setsid", "stdbuf", "sudo", "xargs"),
        *("uv", "run", "poetry", "pipenv", "npx"),
    )
)
VALUE_OPTIONS = frozenset(("-W", "-X", "-o", "-O", "-r", "-I", "--require", "--import", "--loader"))
SUFFIXES = frozenset((".py", ".sh", ".js", ".mjs", ".cjs", ".ts", ".rb", ".pl", ".php", ".lua"))
SEPARATORS = frozenset(";&|()")
SHOWN_LINES = 40  # of a difference
LONGEST_LINE = 1000  # characters
HASH_LENGTH = 8  # characters for a line: enough to find it again, too few to guess a key from it
Fingerprints = Mapping[str, Sequence[str]]
"""For each path the hash of the file, then one of each line; nothing for a file that does not exist."""


def list_code_files(spec: AgentSpec) -> list[Path]:
    """Return the files that a thread's next start runs: tools, MCP file, checks, and what they import.

    A module of the folder that does not exist yet, but would be imported, is one of them.
    """
    if spec.demo:
        return []
    root = Path(spec.root)
    found: dict[Path, None] = {}
    for name in spec.tools:
        if ":" in name:
            _add_module(name.partition(":")[0], Path(spec.imports), found)
    scripts = [*find_scripts(spec.verify, root), *find_scripts(spec.done_when, root)]
    if spec.mcp:
        found[Path(spec.mcp)] = None
        scripts += _mcp_scripts(Path(spec.mcp), root)
    for script in scripts:
        found[script] = None
        _add_imports(script, script.parent, found)
    return [*dict.fromkeys(path.resolve() for path in found)]


def list_configuration(spec: AgentSpec) -> list[Path]:
    """Return the configuration files that a thread was built from."""
    sources = [Path(level.source) for level in spec.levels]
    return [path for path in sources if path.is_absolute() and path.is_file()]


def list_protected_files(spec: AgentSpec) -> list[Path]:
    """Return the files and folders that the files tool refuses to write."""
    return [*list_code_files(spec), *list_configuration(spec), config_folder().resolve()]


def find_scripts(command: str, folder: Path) -> list[Path]:
    """Return the scripts that a command line runs: `./check.sh`, `python check.py`, `python -m check`.

    >>> find_scripts("cd x && python -u check.py --fast", Path("/job"))
    [PosixPath('/job/check.py')]
    """
    lexer = shlex.shlex(command, posix=True, punctuation_chars=True)
    lexer.whitespace_split = True
    words: list[list[str]] = [[]]
    with suppress(ValueError):  # an open quote: the shell will say so
        for word in lexer:
            if set(word) <= SEPARATORS:
                words.append([])
            elif words[-1] or "=" not in word:  # not the variables before a program
                words[-1].append(word)
    return [folder / script for part in words for script in _name_scripts(part)]


def _name_scripts(words: Sequence[str]) -> Iterator[str]:
    """Yield the scripts that one command runs, as they are named in it."""
    words = _skip_wrappers(words)
    if not words:
        return
    program = Path(words[0]).name.rstrip(".0123456789")
    if words[0] != "." and program not in INTERPRETERS:
        if "/" in words[0] or Path(words[0]).suffix in SUFFIXES:
            yield words[0]
        return
    rest = iter(words[1:])
    for word in rest:
        if word == "-m":
            module = next(rest, "").replace(".", "/")
            yield from (f"{module}.py", f"{module}/__main__.py") if module else ()
            return
        if word == "-c":
            if program in SHELLS:
                yield from (str(script) for script in find_scripts(next(rest, ""), Path()))
            return
        if word in VALUE_OPTIONS:
            next(rest, None)
        elif not word.startswith("-") and word not in ("<", "run"):
            yield word
            return


def _skip_wrappers(words: Sequence[str]) -> Sequence[str]:
    """Return a command without the programs that run it, and without their options, variables and numbers."""
    is_wrapped = False
    for place, word in enumerate(words):
        is_option = word.startswith("-") or "=" in word or word[:1].isdigit()
        if not (word in WRAPPERS or (is_wrapped and is_option)):
            return words[place:]
        is_wrapped = True
    return ()


def _mcp_scripts(path: Path, root: Path) -> Iterator[Path]:
    servers: object = None
    with suppress(CommandError):  # starting the servers will say it
        servers = read_json_file(path).get("mcpServers")
    for server in servers.values() if isinstance(servers, dict) else ():
        if isinstance(server, dict) and not server.get("disabled"):
            words = [str(server.get("command", "")), *map(str, server.get("args") or ())]
            folder = root / str(server.get("cwd") or ".")
            yield from (folder / script for script in _name_scripts(words))


def _add_module(name: str, folder: Path, found: dict[Path, None]) -> None:
    """Add the files that a module's name may mean in a folder, and what they import from it."""
    parts = name.split(".")
    for end in range(1, len(parts) + 1):
        place = folder.joinpath(*parts[:end])
        for path in (place.with_suffix(".py"), place / "__init__.py"):
            if path not in found:
                found[path] = None
                _add_imports(path, folder, found)


def _add_imports(path: Path, folder: Path, found: dict[Path, None]) -> None:
    if not path.is_file():
        return
    try:
        tree = ast.parse(path.read_bytes())
    except (OSError, ValueError, SyntaxError, RecursionError, MemoryError):
        return  # not Python
    for node in ast.walk(tree):
        for name in _imported_names(node, path, folder):
            _add_module(name, folder, found)  # the folder comes first: its json.py would be taken for json


def _imported_names(node: ast.AST, path: Path, folder: Path) -> list[str]:
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    if not isinstance(node, ast.ImportFrom):
        return []
    base = node.module or ""
    if node.level and path.is_relative_to(folder):
        package = path.relative_to(folder).parts[: -node.level]
        base = ".".join([*package, *filter(None, [base])])
    return [base, *(f"{base}.{alias.name}" for alias in node.names)] if base else []


# -- changes ---------------------------------------------------------------------------------------------


def take_fingerprints(paths: Iterable[Path]) -> dict[str, list[str]]:
    """Return the hashes of files and of their lines. Their content is stored nowhere: it may hold keys."""
    found: dict[str, list[str]] = {}
    for path in paths:
        found[str(path)] = []
        with suppress(OSError):
            if path.is_file():  # to read a pipe or a device could take for ever
                data = path.read_bytes()
                lines = [_hash(line)[:HASH_LENGTH] for line in data.splitlines()]
                found[str(path)] = [_hash(data), *lines]
    return found


def _hash(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def describe_change(path: str, before: Sequence[str]) -> list[str]:
    """Return the difference between a file now and its former fingerprint, without its keys."""
    file = Path(path)
    lines = file.read_bytes().decode(errors="replace").splitlines() if file.is_file() else []
    if not lines:
        return [f"{path} is empty or gone."]
    now = take_fingerprints([file])[path]
    shown = [f"{path} is new:" if not before else f"{path} has changed:"]
    for kind, start, end, first, last in SequenceMatcher(None, before[1:], now[1:]).get_opcodes():
        if kind == "equal":
            continue
        if end > start:
            shown.append(f"  - {pluralize(end - start, 'line')} removed")
        shown += [f"  {number + 1} + {redact(lines[number])}" for number in range(first, last)]
    more = len(shown) - SHOWN_LINES
    return [*shown[:SHOWN_LINES], f"  … {pluralize(more, 'line')} more"] if more > 0 else shown


def confirm_files(
    spec: AgentSpec, before: Fingerprints | None, *, trust: bool, configured: bool = False
) -> AgentSpec:
    """Return a spec with the fingerprints of its files, after asking about those that changed.

    `before` are the fingerprints of the thread's last start; None for a new thread, whose files were just
    named. With `configured`, the configuration files are read again. Raises `CommandError` unless somebody at
    the terminal accepts the changes, or `trust` does.
    """
    known = before or {}
    now = take_fingerprints(list_code_files(spec))
    for path, marks in take_fingerprints(list_configuration(spec)).items():
        now[path] = marks if configured else [*known.get(path, marks)]
    changed = [path for path in now if path in known and [*known[path]] != now[path]]
    if changed and not trust and not _ask_about(changed, known):
        names = ", ".join(map(quote_path, changed))
        raise usage_error(
            f"Files that start code have changed since their last use: {names}. Check them, then pass "
            "--trust."
        )
    return replace(spec, trusted=now)


def _ask_about(changed: Sequence[str], known: Fingerprints) -> bool:
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        return False
    for path in changed:
        for line in describe_change(path, known[path]):
            write_text(strip_controls(shorten(line, LONGEST_LINE)), sys.stderr)
    from wakeloop.cli.questions import discard_typed_input

    discard_typed_input(sys.stdin)
    write_text("These files start code. Use them as they are now? [y/N]", sys.stderr)
    return read_line(sys.stdin).strip().lower() in ("y", "yes")
