"""The audit's measures: exact on small files, a remark and no error on any bytes."""

import json
import time
import warnings

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.tools import ToolException
from levels import examples

from wakeloop.demo.audit import MOST_BYTES, REPORT, audit_files, audit_tools, auditable
from wakeloop.demo.markdown import anchors, headings, links, prose
from wakeloop.demo.measure import count_lines, dead_links, longest, markers, source

PYTHON = b'''\
"""A module."""  # TODO: first

def short():
    return "# HACK no comment to you, but told so"


class Thing:
    async def method(self):
        def inner():
            pass

        return inner  # FIXME(me) then XXX


todo = "TODO"
'''

MARKDOWN = b"""\
---
title: TODO not prose
---
Intro

# One ##

A TODO, not a `TODO`, nor todo.

```python
# FIXME in code
## not a heading
```

Two words
---------

[a](other.md) and [b](missing.md "Title") ![c](<img dir/pic one.png>)
[![d](gone.png)](#one) [e](#nowhere) [f](https://example.org/x.md) [g](mailto:a@b.c)
[h](/absolute.md) [i](../../outside.md) [j](other.md#part-1) [k](other.md#part-9) `[l](code.md)`
<!-- [m](comment.md)
TODO -->
[n]: reference.md
[^1]: footnote.md
<img src="html.png"> [o](docs) [p](other.md?raw=1#part) [q](w%20s.md) [r]()
    """


def notebook(*cells, **more):
    rows = [{"cell_type": kind, "source": text} for kind, text in cells]
    return json.dumps({"cells": rows, "nbformat": 4, **more}).encode()


NOTEBOOK = notebook(
    ("markdown", ["# Title\n", "[x](missing.md) TODO"]),
    ("code", "%time\n!ls\ndef f():\n    %matplotlib inline\n    return 1  # HACK\n"),
    ("raw", "TODO raw"),
    ("code", "def broken(:\n  1\n"),
    ("code", ""),
)


def measure(root, name, path):
    tools = {tool.name: tool for tool in audit_tools(root)}
    return json.loads(tools[f"measure_{name}"].invoke({"path": path}))


@pytest.fixture
def root(tmp_path):
    root = tmp_path / "root"
    (root / "docs").mkdir(parents=True)
    (root / "img dir").mkdir()
    (root / "img dir" / "pic one.png").touch()
    (root / "other.md").write_text("# Part\n\n# Part\n")
    (root / "w s.md").touch()
    (root / "a.py").write_bytes(PYTHON)
    (root / "b.md").write_bytes(MARKDOWN)
    (root / "c.ipynb").write_bytes(NOTEBOOK)
    return root


# -- exact measures


def test_python(root):
    assert measure(root, "lines", "a.py") == {"lines": 15}
    assert measure(root, "longest", "a.py") == {
        "longest": {"kind": "function", "name": "Thing.method", "line": 8, "length": 5}
    }
    assert measure(root, "markers", "a.py") == {
        "count": 4,
        "markers": [
            {"line": 1, "marker": "TODO", "text": "TODO: first"},
            {"line": 4, "marker": "HACK", "text": 'HACK no comment to you, but told so"'},
            {"line": 12, "marker": "FIXME", "text": "FIXME(me) then XXX"},
            {"line": 12, "marker": "XXX", "text": "XXX"},
        ],
    }
    assert measure(root, "links", "a.py") == {"links": 0, "count": 0, "dead": []}


def test_python_without_functions_has_no_longest():
    assert longest(source("a.py", b"x = 1\n")) == {"longest": None}


def test_markdown(root):
    assert measure(root, "lines", "b.md") == {"lines": 26}
    assert measure(root, "longest", "b.md") == {
        "longest": {"kind": "section", "name": "Two words", "line": 15, "length": 11}
    }
    assert measure(root, "markers", "b.md") == {
        "count": 2,
        "markers": [
            {"line": 8, "marker": "TODO", "text": "TODO, not a `TODO`, nor todo."},
            {"line": 22, "marker": "TODO", "text": "TODO -->"},
        ],
    }
    found = measure(root, "links", "b.md")
    gone, anchor = "no such file or folder", "no such heading"
    assert found["dead"] == [
        {"line": 18, "link": "missing.md", "why": gone},
        {"line": 19, "link": "gone.png", "why": gone},
        {"line": 19, "link": "#nowhere", "why": anchor},
        {"line": 20, "link": "other.md#part-9", "why": anchor},
        {"line": 23, "link": "reference.md", "why": gone},
        {"line": 25, "link": "html.png", "why": gone},
    ]
    assert (found["links"], found["count"]) == (17, 6)


def test_notebook(root):
    assert measure(root, "lines", "c.ipynb") == {"lines": 9, "cells": 3}
    assert measure(root, "longest", "c.ipynb") == {
        "longest": {"kind": "cell", "name": "cell 2", "cell": 2, "line": 1, "length": 5},
        "note": "cell 4 cannot be parsed as Python (line 1)",
    }
    assert measure(root, "markers", "c.ipynb")["markers"] == [
        {"cell": 1, "line": 2, "marker": "TODO", "text": "TODO"},
        {"cell": 2, "line": 5, "marker": "HACK", "text": "HACK"},
    ]
    assert measure(root, "links", "c.ipynb")["dead"] == [
        {"cell": 1, "line": 2, "link": "missing.md", "why": "no such file or folder"}
    ]


def test_links_are_followed_from_the_files_own_folder(root):
    (root / "docs" / "x.md").write_text("[a](../other.md) [b](other.md) [c](x.md#here)\n\n## Here\n")
    assert [dead["link"] for dead in measure(root, "links", "docs/x.md")["dead"]] == ["other.md"]


def test_anchors_of_generated_documentation_are_not_judged(root):
    (root / "api.md").write_text("# API\n\n::: package.module\n")
    (root / "y.md").write_text("[a](api.md#package.module)\n")
    assert measure(root, "links", "y.md")["count"] == 0


def test_lists_are_bounded_and_counts_are_not(root):
    (root / "many.py").write_text("# TODO\n" * 50)
    found = measure(root, "markers", "many.py")
    assert (found["count"], len(found["markers"])) == (50, 20)


# -- Markdown


def test_anchors_as_sites_make_them():
    text = '# A b: c!\n# Été & Co\n# A b: c!\n# [Link](x.md) `code`\n<a id="Own"></a>\n# X {#custom}\n'
    names = anchors(text)
    assert {"a-b-c", "a-b-c-1", "a-b-c_1", "été--co", "été-co", "link-code", "own", "custom", "x"} <= names


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("# A #\n##B\n#\n   ### C#", [(1, "A"), (3, ""), (4, "C#")]),
        ("Para\n===\n\n---\n- item\n---\n", [(1, "Para")]),
        ("~~~\n# no\n```\n~~~~\n# yes", [(5, "yes")]),
        ("```\n# unclosed", []),
        ("- x\n\n    ```\n    # no\n    ```\n# yes", [(6, "yes")]),
        ("``` `inline` ```\n# yes", [(2, "yes")]),
    ],
)
def test_headings(text, found):
    assert [(heading.line, heading.text) for heading in headings(text)] == found


@pytest.mark.parametrize(
    ("line", "targets"),
    [
        ("[a](x(1).md) [b](<y z.md>) [c]( d.md 'T' )", ["x(1).md", "y z.md", "d.md"]),
        (r"[a](x\(1.md)", ["x(1.md"]),
        ("array[0](call me) [a] (x.md) [note]: no link here", []),
        ("`` [a](`x.md) `` [b](y.md) ` [c](z.md)", ["y.md", "z.md"]),
        ("<!-- [a](x.md) --> [b](y.md) <!-- [c](z.md)", ["y.md"]),
        ("[a]: x.md 'T'", ["x.md"]),
        ('<a class="b" href="x.md">', ["x.md"]),
    ],
)
def test_links(line, targets):
    assert [target for _, target in links(line)] == targets


# -- what is odd is said


@pytest.mark.parametrize("name", ["x.py", "x.md", "x.ipynb"])
def test_odd_files_are_remarked_on(name):
    assert source(name, b"").odd == "it is empty"
    assert source(name, b" \n\n").odd == "it is empty"
    assert source(name, b"a\0b").odd == "it is binary, not text"
    assert count_lines(source(name, b"")) | {"cells": 0} == {"lines": 0, "cells": 0, "note": "it is empty"}


def test_more_oddities():
    assert longest(source("x.py", b"x = 'caf\xe9'\n"))["note"] == "it holds bytes that are not UTF-8"
    assert longest(source("x.py", b"def f(:\n"))["note"] == "it cannot be parsed as Python (line 1)"
    assert longest(source("x.py", b"x = " + b"-" * 200_000 + b"1"))["note"].startswith("it cannot be parsed")
    assert longest(source("x.py", b"x = a" + b".b" * 200_000))["note"].startswith("it cannot be parsed")
    assert source("x.ipynb", b"{").odd == "it is not valid JSON"
    assert source("x.ipynb", b"[" * 100_000).odd == "it is not valid JSON"
    for value in (b"[]", b"{}", b'{"cells": 1}', b'{"cells": [1]}', b'{"cells": [{"source": 1}]}', b'"x"'):
        assert source("x.ipynb", value).odd == "it has no list of cells as notebooks have"
    assert source("x.ipynb", b'{"cells": []}').odd == "it has no code or Markdown cells"
    assert count_lines(source("x.md", "\ufeffa\r\nb\rc".encode())) == {"lines": 3}


def test_parsing_warns_nobody():
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        assert longest(source("x.py", b"def f():\n    return '\\d' is 1\n"))["longest"]["name"] == "f"
    assert caught == []


def test_big_files_are_said_to_be(root):
    (root / "big.py").write_bytes(b"#" * (MOST_BYTES + 1))
    note = {"note": "it is bigger than 1000000 bytes and was not measured"}
    assert measure(root, "lines", "big.py") == {"lines": 0} | note
    assert measure(root, "longest", "big.py") == {"longest": None} | note


@pytest.mark.parametrize(
    ("path", "sentence"),
    [
        ("x.txt", "'x.txt' is neither a Python (.py), Markdown (.md) nor notebook (.ipynb) file."),
        ("gone.py", "There is no 'gone.py' in the folder; list_files shows what there is."),
        ("../x.py", "'../x.py' leads outside the folder; only paths inside it are allowed."),
    ],
)
def test_refusals(root, path, sentence):
    for name in ("lines", "longest", "markers", "links"):
        with pytest.raises(ToolException) as refusal:
            measure(root, name, path)
        assert str(refusal.value) == sentence


# -- any bytes

NOTEBOOKS = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=20),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.sampled_from(["cells", "source", "cell_type", "x"]), inner, max_size=4)
    ),
    max_leaves=20,
).map(lambda value: json.dumps(value).encode())
MARKUP = st.lists(
    st.sampled_from(
        ["[", "]", "(", ")", "<", ">", "`", "```", "~~~", "#", "\n", " ", "-", "=", "{", "}", "<!--", "-->"]
    )
    | st.sampled_from(
        ["](", "a", "\\", '"', "TODO", "<a id=", "href=", "é", "\r", "\t", "    ", "---", "\x0c", "\u2028"]
    ),
    max_size=40,
).map(lambda pieces: "".join(pieces).encode())
ANY = st.one_of(
    st.binary(max_size=300),
    st.text(max_size=200).map(lambda t: t.encode(errors="replace")),
    MARKUP,
    NOTEBOOKS,
)


@examples(400, deadline=None)
@given(data=ANY, name=st.sampled_from(["x.py", "x.md", "x.ipynb"]))
def test_no_bytes_raise(data, name):
    of = source(name, data)
    for found in (count_lines(of), longest(of), markers(of), dead_links(of, lambda target, part: "dead")):
        json.dumps(found)
    lines = count_lines(of)["lines"]
    best = longest(of)["longest"]
    assert best is None or 1 <= best["length"] <= lines
    for part in of.parts:
        last = part.text.count("\n") + 1
        assert len(prose(part.text)) == last
        assert all(1 <= heading.line <= last for heading in headings(part.text))


@pytest.mark.parametrize(
    "piece",
    [
        "](",
        "[",
        "](a(",
        "<!--",
        "`",
        "``` ",
        "<a id=",
        '<a id="x ',
        "{#a",
        "{",
        "[a]:",
        "](" + " ",
        " ",
        "#",
        "](a\\",
        "<a href=",
    ],
)
def test_nothing_takes_more_than_its_length(piece):
    started = time.process_time()
    text = piece * (200_000 // len(piece))
    for data in (
        text,
        f"[x]: {text}",
        f"# {text}",
        f"](<{text}",
        "".join(f"{'`' * n} " for n in range(1, 400)),
    ):
        list(links(data))
        anchors(data)
    assert time.process_time() - started < 5


# -- which files


def test_files_in_the_order_of_the_listing(root):
    (root / ".venv").mkdir()
    (root / ".venv" / "x.py").touch()
    (root / REPORT).touch()
    (root / "docs" / "z.md").touch()
    (root / "docs" / "a.txt").touch()
    (root / "link.py").symlink_to("a.py")
    names = ["a.py", "b.md", "c.ipynb", "other.md", "w s.md", "docs/z.md"]
    assert audit_files(root) == [root.resolve() / name for name in names]
    assert audit_files(root, limit=2) == [root.resolve() / name for name in names[:2]]


def test_no_files(tmp_path):
    (tmp_path / "x.txt").touch()
    assert audit_files(tmp_path) == []


@pytest.mark.parametrize(
    ("name", "taken"),
    [
        ("a.py", True),
        ("d/b.md", True),
        (f"d/{REPORT}", False),
        ("a.txt", False),
        ("a\nb.py", False),
        ("", False),
    ],
)
def test_auditable(name, taken):
    assert auditable(name) is taken
