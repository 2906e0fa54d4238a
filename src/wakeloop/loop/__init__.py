"""The rules of the loop: pure functions of plain values."""
