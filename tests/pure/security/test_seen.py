"""A person sees what runs: invisible characters are spelled out, and cleaning takes linear time."""

import re
import sys
import unicodedata

from langchain_core.messages import AIMessageChunk

from wakeloop.display.formatting import format_interrupt
from wakeloop.display.screen import MAX_STREAMED, Screen
from wakeloop.display.terminal_output import strip_controls
from wakeloop.text.characters import INVISIBLE, escape_invisible, is_visible, to_one_line
from wakeloop.tools.folder import quote_path

JOINERS = "\u200c\u200d"
VISIBLE = "\u0600\u0601\u0602\u0603\u0604\u0605\u06dd\u070f\u0890\u0891\u08e2\U000110bd\U000110cd"
# Default_Ignorable_Code_Point, DerivedCoreProperties.txt of Unicode 16
IGNORABLE = (
    "00AD 034F 061C 115F-1160 17B4-17B5 180B-180F 200B-200F 202A-202E 2060-206F 3164 FE00-FE0F FEFF FFA0 "
    "FFF0-FFF8 1BCA0-1BCA3 1D173-1D17A E0000-E0FFF"
)


def ignorable() -> list[str]:
    spans = [span.partition("-") for span in IGNORABLE.split()]
    return [chr(n) for a, _, b in spans for n in range(int(a, 16), int(b or a, 16) + 1)]


def test_every_invisible_character_is_spelled_out_where_a_person_approves() -> None:
    for sign in [*ignorable(), "\u2800", "\U0001d159", "\u2028", "\x07"]:
        assert not is_visible(sign), ascii(sign)
        assert escape_invisible(f"rm{sign}x") == f"rm{ascii(sign)[1:-1]}x"


def test_every_invisible_character_but_the_joiners_is_removed_elsewhere() -> None:
    for sign in [*ignorable(), "\u2800"]:
        kept = sign if sign in JOINERS else ""
        assert strip_controls(f"a{sign}b") == f"a{kept}b", ascii(sign)
        assert to_one_line(f"a{sign}b") == f"a{kept}b", ascii(sign)


def test_the_table_holds_what_unicodedata_reports() -> None:
    listed = set(ignorable()) | set(VISIBLE) | set("\ufff9\ufffa\ufffb")
    formats = {chr(n) for n in range(sys.maxunicode + 1) if unicodedata.category(chr(n)) == "Cf"}
    hieroglyphs = {chr(n) for n in range(0x13430, 0x13440)}  # they join signs, and are visible
    assert formats - hieroglyphs <= listed
    assert re.compile(f"[{INVISIBLE}]").search("".join(VISIBLE)) is None


def test_letters_of_every_script_are_visible() -> None:
    for text in ("é", "漢字", "한국어", "हिन्दी", "ไทย", "العربية", "👍", "a b", "«»", "π≈3"):
        assert is_visible(text)
        assert escape_invisible(text) == text == strip_controls(text)


def test_a_question_hides_nothing_in_its_keys() -> None:
    told = format_interrupt({"question": "Run?", "command": "ls\u3164 -l", "no\u115fte\n": "x"})
    assert told == [
        "Run?",
        "  command: ls\\u3164 -l",
        "  | (1 invisible character, shown as \\x.. or \\u....)",
        "  no\\u115fte\\n: x",
    ]


def test_a_path_shows_what_it_is() -> None:
    assert quote_path("a\u3164b") == "'a\\u3164b'"
    assert quote_path("é") == "'é'"


# -- costs -------------------------------------------------------------------------------------------------


def test_a_streaming_reply_is_bounded_and_cleaned_where_it_is_drawn() -> None:
    screen = Screen()
    for _ in range(2_000):
        screen.handle_token(AIMessageChunk("0123456789\n"))
    assert len(screen.streamed) == MAX_STREAMED
    screen.handle_token(AIMessageChunk("a\x1b]8;;http://x"))
    screen.handle_token(AIMessageChunk("\x1b\\b"))
    assert strip_controls(screen.streamed).endswith("\nab")


def test_an_incomplete_escape_ends_where_the_next_begins() -> None:
    assert strip_controls("a\x9d\x9d8;;x\x07b") == "ab"
    assert strip_controls("\x9d" * 10 + "tail") == "tail"
    assert strip_controls("a\x1b]8;;x\x1b\\b\x1b[31mc\x9b0md") == "abcd"
