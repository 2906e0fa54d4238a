"""What the audit sees in Markdown: headings, prose, links."""

import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

FENCE = re.compile(r"[ \t>]*+(`{3,}|~{3,})(.*)")
ATX = re.compile(r" {0,3}(#{1,6})(?:[ \t]+(.*))?$")
SETEXT = re.compile(r" {0,3}(?:=+|-+)[ \t]*$")
NO_PARAGRAPH = re.compile(r" {0,3}(?:[>*+|-]|\d+[.)]|#)|\s*$| {4}|\t")
# Possessive quantifiers throughout: a line may be long, and looking at it must not take more than its length.
AFTER = r"(?=[ \t]*+(?:\)|[\"'(]))"
INLINE = re.compile(
    r"\]\([ \t]*+(<[^<>]*+>|(?:[^\s()<]|\\[()])(?:[^\s()\\]|\\.|\((?:[^\s()])*+\))*+)" + AFTER
)
REFERENCE = re.compile(r" {0,3}\[(?!\^)[^\]\[]++\]:[ \t]*+(<[^<>]*+>|\S++)(?=[ \t]*+(?:$|[\"'(]))")
HTML = re.compile(r"""<(?:a|img)\s[^<>]*?\b(?:href|src)\s*+=\s*+["']([^"'<>]*+)["']""", re.IGNORECASE)
ANCHOR = re.compile(r"""<\w++\s[^<>]*?\b(?:id|name)\s*+=\s*+["']([^"'<>]++)["']|\{([^{}]*+)\}""")


@dataclass(frozen=True)
class Heading:
    """A heading's text and the number of its line."""

    line: int
    text: str


def outside_fences(text: str) -> list[str]:
    """The lines, blank where they are in a fenced code block or in the front matter."""
    lines = text.split("\n")
    fence = ""
    for number, line in enumerate(front_matter_blanked(lines)):
        match = FENCE.match(line)
        if fence:
            lines[number] = ""
            closing = match is not None and match[1].startswith(fence) and not match[2].strip()
            fence = "" if closing else fence
        elif match and not (match[1][0] == "`" and "`" in match[2]):
            fence = match[1]
            lines[number] = ""
        else:
            lines[number] = line
    return lines


def front_matter_blanked(lines: list[str]) -> list[str]:
    """The lines without the settings that may stand at the top between two lines of dashes."""
    if lines[0].rstrip() != "---":
        return lines
    end = next((n for n, line in enumerate(lines[1:], 1) if line.rstrip() in ("---", "...")), None)
    return lines if end is None else [""] * (end + 1) + lines[end + 1 :]


def headings(text: str) -> list[Heading]:
    """Headings of both kinds, in order, those in code left out."""
    lines = outside_fences(text)
    found: list[Heading] = []
    for number, line in enumerate(lines, 1):
        if match := ATX.match(line):
            found.append(Heading(number, without_closing(match[2] or "")))
        elif number > 1 and SETEXT.match(line) and not NO_PARAGRAPH.match(lines[number - 2]):
            found.append(Heading(number - 1, lines[number - 2].strip()))
    return found


def without_closing(text: str) -> str:
    """A heading's text without the #s that may close it."""
    bare = text.strip().rstrip("#")
    return bare.strip() if not bare or bare[-1].isspace() else text.strip()


def prose(text: str) -> list[str]:
    """The lines, with fenced code and code spans blanked."""
    return [without_spans(line) if "`" in line else line for line in outside_fences(text)]


def without_spans(line: str) -> str:
    """A line with its code spans blanked: from a run of backticks to the next run of the same length."""
    runs = [match.span() for match in re.finditer("`+", line)]
    starts: dict[int, list[int]] = {}
    for start, end in runs:
        starts.setdefault(end - start, []).append(start)
    kept: list[str] = []
    done = 0
    for start, end in runs:
        length = end - start
        same = starts[length]
        after = bisect_right(same, start)
        if start >= done and after < len(same):
            close = same[after] + length
            kept += [line[done:start], " " * (close - start)]
            done = close
    return "".join(kept) + line[done:]


def without_comments(lines: list[str]) -> list[str]:
    """The lines with HTML comments blanked, also over several lines."""
    inside = False
    result: list[str] = []
    for line in lines:
        kept, rest = "", line
        while rest:
            before, mark, rest = rest.partition("-->" if inside else "<!--")
            kept += "" if inside else before
            inside = not inside if mark else inside
        result.append(kept)
    return result


def links(text: str) -> Iterator[tuple[int, str]]:
    """Line number and target of each link and image: inline, by reference, or as HTML."""
    for number, line in enumerate(without_comments(prose(text)), 1):
        reference = REFERENCE.match(line)
        targets = [match[1] for match in INLINE.finditer(line)] + [match[1] for match in HTML.finditer(line)]
        for target in ([reference[1]] if reference else []) + targets:
            bare = target[1:-1] if target.startswith("<") else target
            yield number, re.sub(r"\\([!-/:-@\[-`{-~])", r"\1", bare)


def anchors(text: str) -> set[str]:
    """Names that a link into this text may end in: of headings, as sites make them, and explicit ones."""
    names: set[str] = set()
    seen: Counter[str] = Counter()
    for heading in headings(text):
        plain = re.sub(r"!?\[([^\[\]]*+)\]\([^()]*+\)|<[^<>]*+>|\{[^{}]*+\}", r"\1", heading.text).lower()
        slug = re.sub(r"[^\w\- ]", "", plain).strip().replace(" ", "-")
        short = re.sub(r"[-\s]+", "-", re.sub(r"[^\w\s-]", "", plain)).strip("-")
        again = f"{seen[slug]}" if seen[slug] else ""
        names |= {f"{slug}-{again}", f"{short}_{again}", f"{short}-{again}"} if again else {slug, short}
        seen[slug] += 1
    for line in outside_fences(text):
        for match in ANCHOR.finditer(line):
            given = [match[1]] if match[1] else re.findall(r"#([\w.-]+)", match[2])
            names |= {name.lower() for name in given}
    return names


def sections(text: str) -> list[tuple[Heading, int]]:
    """Each heading with the number of lines down to the next one; blank lines at the end do not count."""
    lines = text.rstrip("\n").split("\n")
    found = headings(text)
    if not found or any(line.strip() for line in lines[: found[0].line - 1]):
        found.insert(0, Heading(1, "(before the first heading)"))
    bounds = [heading.line for heading in found] + [len(lines) + 1]
    result = []
    for heading, (first, after) in zip(found, pairwise(bounds), strict=True):
        last = next((n for n in range(after - 1, first, -1) if lines[n - 1].strip()), first)
        result.append((heading, last - first + 1))
    return result
