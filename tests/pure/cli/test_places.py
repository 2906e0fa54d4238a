"""Where a database cannot be: anything but a file is refused before it is opened."""

import os
from pathlib import Path

import pytest

from wakeloop.cli.failures import CommandError
from wakeloop.cli.store import DatabaseFile, open_to_read, open_to_write


@pytest.mark.parametrize("opened", [open_to_read, open_to_write])
def test_a_pipe_or_a_device_is_refused_without_waiting_for_it(opened: type, tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    for path in (pipe, Path(os.devnull)):
        with pytest.raises(CommandError, match="is not a file"), opened(DatabaseFile(path, named=True)):
            pass
