"""The lines that `make reverts` undoes are in the package."""

import pytest
from reverts import REVERTS, ROOT


@pytest.mark.parametrize("case", REVERTS)
def test_each_fix_is_there_to_be_undone(case: str) -> None:
    file, there, _ = REVERTS[case]
    assert there in (ROOT / "src/wakeloop" / file).read_text(encoding="utf-8")
