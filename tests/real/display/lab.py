"""A separate JupyterLab, on loopback, in Chromium."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from secrets import token_hex
from typing import Any
from urllib.error import URLError
from urllib.request import urlopen

from pictures import Picture

QUIET = {  # it never asks
    "ServerApp": {"open_browser": False, "allow_root": True, "port_retries": 0, "log_level": "WARN"},
    "LabApp": {"expose_app_in_browser": True, "extension_manager": "readonly"},
}
NO_NEWS = {"disabledExtensions": {"@jupyterlab/apputils-extension:announcements": True}}
SIZE = {"width": 1000, "height": 6000}  # the whole notebook is visible
START = (  # without an address grammar that takes seconds to build and is not needed
    "import sys; sys.modules['rfc3987_syntax'] = None; from jupyterlab.labapp import main; main()"
)
READY = "() => window.jupyterapp && jupyterapp.restored.then(() => true)"


@contextmanager
def jupyter_lab(folder: Path, state: Path) -> Iterator[str]:
    """Serve a folder and yield the address. `state` holds its settings, trusted notebooks and log."""
    key = token_hex()
    known = QUIET | {"IdentityProvider": {"token": key}}
    for name, told in (("jupyter_server_config.json", known), ("labconfig/page_config.json", NO_NEWS)):
        (state / name).parent.mkdir(parents=True, exist_ok=True)
        (state / name).write_text(json.dumps(told))
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    env = {key: value for key, value in os.environ.items() if key != "PYTHONWARNINGS"}
    env |= {f"JUPYTER_{kind}_DIR": str(state) for kind in ("CONFIG", "DATA", "RUNTIME")}
    env |= {"JUPYTERLAB_SETTINGS_DIR": str(state / "settings"), "IPYTHONDIR": str(state / "ipython")}
    env |= {"JUPYTERLAB_WORKSPACES_DIR": str(state / "workspaces")}
    command = [sys.executable, "-c", START, f"--ServerApp.port={port}", f"--ServerApp.root_dir={folder}"]
    with (state / "log").open("w") as log:
        process = subprocess.Popen(command, env=env, cwd=folder, stdout=log, stderr=log)
    try:
        yield f"{answering(f'http://127.0.0.1:{port}', process, state / 'log')}/lab?token={key}&reset"
    finally:
        process.terminate()
        process.wait(timeout=30)


def answering(url: str, process: subprocess.Popen[bytes], log: Path, seconds: float = 60) -> str:
    """Return the address once a server answers there."""
    deadline = time.monotonic() + seconds
    while True:
        try:
            urlopen(f"{url}/api", timeout=5).close()
        except URLError:
            assert process.poll() is None, log.read_text()
            assert time.monotonic() < deadline, log.read_text()
            time.sleep(0.1)
        else:
            return url


class Lab:
    """A JupyterLab in a browser, its notebook, and all requests of its page."""

    def __init__(self, browser: Any, url: str) -> None:
        self.url = url
        self.asked: list[str] = []
        self.tab = browser.new_page(viewport=SIZE)
        self.tab.on("request", lambda request: self.asked.append(request.url))
        self.tab.goto(url)
        self.tab.wait_for_function(READY)
        self.tab.evaluate("() => { jupyterapp.shell.collapseLeft(); }")

    def open(self, name: str, *, kernel: bool = True) -> None:
        """Show a notebook, with its own kernel or none."""
        none = {} if kernel else {"kernelPreference": {"shouldStart": False, "canStart": False}}
        self.does("docmanager:open", path=name, **none)
        self.tab.wait_for_function(
            """([name, kernel]) => { const at = jupyterapp.shell.currentWidget;
            return at.context?.path === name && at.context.isReady
              && (!kernel || at.sessionContext.session?.kernel?.status === "idle"); }""",
            arg=[name, kernel],
        )

    def does(self, command: str, **given: Any) -> None:
        """Execute a JupyterLab command and wait for it."""
        ask = "([command, given]) => jupyterapp.commands.execute(command, given).then(() => null)"
        self.tab.evaluate(ask, [command, given])

    def begin(self, cell: int) -> None:
        """Run a cell, without waiting for its end."""
        self.tab.evaluate(
            """(cell) => { jupyterapp.shell.currentWidget.content.activeCellIndex = cell;
            window.ran = jupyterapp.commands.execute("notebook:run-cell").then(() => null); }""",
            cell,
        )

    def ran(self, cell: int) -> list[str]:
        """Run a cell to its end and return its outputs."""
        self.begin(cell)
        self.over()
        return self.outputs(cell)

    def over(self) -> None:
        """Wait for the cell that was started last."""
        self.tab.evaluate("() => window.ran")

    def cell(self, number: int) -> Any:
        return self.tab.locator(".jp-NotebookPanel:not(.lm-mod-hidden) .jp-Cell").nth(number)

    def outputs(self, number: int) -> list[str]:
        """Return the text of a cell's outputs, one by one."""
        texts: list[str] = self.cell(number).locator(".jp-OutputArea-output").all_inner_texts()
        return [text.strip() for text in texts]

    def shows(self, number: int, text: str) -> None:
        """Wait until a cell's outputs contain a string."""
        self.cell(number).locator(".jp-OutputArea-output", has_text=text).first.wait_for()

    def picture(self, name: str, first: int, last: int | None = None) -> Picture:
        """Take a picture of a cell with its outputs, or of several cells up to the last."""
        self.tab.evaluate("() => { jupyterapp.shell.currentWidget.content.activeCellIndex = 0 }")
        cells = range(first, (last or first) + 1)
        top = self.cell(first).locator(".jp-Cell-outputWrapper") if last else self.cell(first)
        top.wait_for()  # while something is redrawn it has no place for a moment
        dots, before = self.shot(top, cells[-1]), b""
        while dots != before:  # a theme, or a cell, that is still being drawn
            before = dots
            self.tab.wait_for_timeout(100)
            dots = self.shot(top, cells[-1])
        words = "\n\n".join(text for number in cells for text in self.outputs(number))
        return Picture(name, dots, words.strip())

    def shot(self, top: Any, last: int) -> bytes:
        """Take a picture of the page from there to the end of a cell."""
        box, end = top.bounding_box(), self.cell(last).bounding_box()
        shot: bytes = self.tab.screenshot(clip={**box, "height": end["y"] + end["height"] - box["y"]})
        return shot

    def themed(self, theme: str) -> None:
        self.does("apputils:change-theme", theme=f"JupyterLab {theme.title()}")
        light = str(theme == "light").lower()
        self.tab.locator(f'body[data-jp-theme-light="{light}"]').wait_for(state="attached")
        self.tab.locator("#jupyterlab-splash").wait_for(state="detached")  # it dims the page meanwhile
