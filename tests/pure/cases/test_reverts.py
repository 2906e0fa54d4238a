"""The lines that `make reverts` takes back are in the package."""

import pytest
from reverts import REVERTS, ROOT


@pytest.mark.parametrize("case", REVERTS)
def test_a_mending_is_there_to_be_taken_back(case: str) -> None:
    file, there, _ = REVERTS[case]
    assert there in (ROOT / "src/wakeloop" / file).read_text(encoding="utf-8")
