"""Families of tasks on whole files and what is in them."""

import json
from random import Random

from wakeloop.bench.family_builder import (
    Expected,
    Part,
    append_call,
    move_call,
    read_call,
    single_parts,
    write_call,
)
from wakeloop.bench.task import Call
from wakeloop.bench.world import lamp_tools

NOUNS = [
    *("anchor", "basket", "candle", "drum", "engine", "fence", "garden"),
    *("hammer", "island", "jacket", "kettle", "ladder", "mirror", "needle"),
]
KINDS = ("invoice", "letter", "offer", "receipt")
PEOPLE = ["Ada", "Boris", "Chen", "Dora", "Emil", "Fatima", "Greta", "Hugo", "Ines", "Jonas", "Kira", "Liam"]


def random_sentence(rng: Random, size: int = 6) -> str:
    """Return a line of random words."""
    return " ".join(rng.choices(NOUNS, k=size))


def random_lines(rng: Random, least: int = 3, most: int = 9) -> list[str]:
    """Return some lines of random words."""
    return [random_sentence(rng) for _ in range(rng.randint(least, most))]


def join_lines(*texts: str) -> str:
    """Return the text of a file with these lines."""
    return "".join(map("{}\n".format, texts))


def random_date(rng: Random) -> tuple[int, int, int]:
    """Return a random year, month and day."""
    return rng.randint(2019, 2030), rng.randint(1, 12), rng.randint(1, 28)


@single_parts(
    "Make a file notes/NAME.txt for each of these names: {list}. Each holds one line: Note NAME.", "write {}"
)
def make_files(_rng: Random, name: str) -> Part:
    """Make a file for each name in the request."""
    return Part(wants={f"notes/{name}.txt": Expected(f"Note {name}.")})


@single_parts("Switch on these lamps, and no others: {list}.", "switch on {}", tools=lamp_tools)
def switch_lamps(_rng: Random, name: str) -> Part:
    """Switch lamps on, with two tools of one argument."""
    path = f"lamps/{name}.txt"
    calls = (Call("switch_on", {"lamp": name}),)
    return Part({path: "off\n"}, {path: Expected("on")}, calls, spoil=Call("switch_off", {"lamp": name}))


@single_parts(
    "Rename every file in reports/ after the date in its first line: reports/NAME.txt becomes "
    "reports/YYYY-MM-DD-NAME.txt. Its text stays as it is.",
    "rename {}",
)
def rename_by_date(rng: Random, name: str) -> Part:
    """Rename reports after the date in them."""
    date = "{:04}-{:02}-{:02}".format(*random_date(rng))
    old, new = f"reports/{name}.txt", f"reports/{date}-{name}.txt"
    text = join_lines(f"Date: {date}", *random_lines(rng))
    return Part({old: text}, {old: None, new: Expected(text)}, (move_call(old, new),))


@single_parts(
    "Change the ending of every .jpeg file in pictures/ to .jpg; rename, change nothing else.",
    "rename {}.jpeg",
)
def change_ending(rng: Random, name: str) -> Part:
    """Change the extension of files."""
    old, new, text = f"pictures/{name}.jpeg", f"pictures/{name}.jpg", random_sentence(rng)
    return Part({old: text}, {old: None, new: Expected(text)}, (move_call(old, new),))


@single_parts(
    "Sort inbox/: move each file into the folder named by its line `kind:`, inbox/NAME.txt to KIND/NAME.txt.",
    "sort {}",
)
def sort_inbox(rng: Random, name: str) -> Part:
    """Move files into folders by the kind that each one states."""
    kind = rng.choice(KINDS)
    old, new = f"inbox/{name}.txt", f"{kind}/{name}.txt"
    text = join_lines(*random_lines(rng, 1, 3), f"kind: {kind}")
    return Part({old: text}, {old: None, new: Expected(text)}, (move_call(old, new),))


@single_parts(
    "Delete the files in archive/ that hold the line `obsolete: yes`. All others stay.", "look at {}"
)
def delete_obsolete(rng: Random, name: str) -> Part:
    """Delete what is obsolete, keep what is not."""
    old, kept = f"archive/{name}.txt", f"archive/{name}-b.txt"
    files = {
        old: join_lines(*random_lines(rng), "obsolete: yes"),
        kept: join_lines(*random_lines(rng), "obsolete: no"),
    }
    return Part(files, {old: None})


@single_parts(
    "Join left/NAME.txt and right/NAME.txt, in this order, to joined/NAME.txt; keep both.", "join {}"
)
def join_halves(rng: Random, name: str) -> Part:
    """Join two files into one."""
    left, right = join_lines(*random_lines(rng)), join_lines(*random_lines(rng))
    files = {f"left/{name}.txt": left, f"right/{name}.txt": right}
    return Part(files, {f"joined/{name}.txt": Expected(left + right)})


@single_parts(
    "Split every file in both/ at its line `---`: what stands before goes to first/NAME.txt, the rest to "
    "second/NAME.txt. Then both/NAME.txt is deleted.",
    "split {}",
)
def split_files(rng: Random, name: str) -> Part:
    """Split a file into two and delete it."""
    one, two = join_lines(*random_lines(rng)), join_lines(*random_lines(rng))
    wants = {
        f"first/{name}.txt": Expected(one),
        f"second/{name}.txt": Expected(two),
        f"both/{name}.txt": None,
    }
    return Part({f"both/{name}.txt": f"{one}---\n{two}"}, wants)


@single_parts(
    "For every logs/NAME.log write counts/NAME.txt: the number of its lines and nothing else.", "count {}"
)
def count_lines(rng: Random, name: str) -> Part:
    """Count the lines of each log."""
    found = random_lines(rng, 3, 30)
    return Part({f"logs/{name}.log": join_lines(*found)}, {f"counts/{name}.txt": Expected(str(len(found)))})


@single_parts(
    "The product is now called Beacon. Replace the word Lantern in every file in pages/.", "rename it in {}"
)
def replace_word(rng: Random, name: str) -> Part:
    """Replace a name in each page."""
    text = join_lines(
        random_sentence(rng),
        f"Lantern is for {rng.choice(PEOPLE)}.",
        random_sentence(rng),
        "Buy Lantern now.",
    )
    return Part({f"pages/{name}.md": text}, {f"pages/{name}.md": Expected(text.replace("Lantern", "Beacon"))})


@single_parts(
    "Add the line `See also: index.md` at the end of every file in docs/.",
    "link {}",
    files={"index.md": "# Index\n"},
)
def link_index(rng: Random, name: str) -> Part:
    """Append a line to each page, once."""
    path, text = f"docs/{name}.md", join_lines(f"# {name}", *random_lines(rng))
    line = join_lines("See also: index.md")
    return Part({path: text}, {path: Expected(text + line)}, (append_call(path, line),))


@single_parts("Raise the last number of every version in packages/NAME/VERSION by one, in place.", "raise {}")
def raise_version(rng: Random, name: str) -> Part:
    """Raise the version of each package."""
    major, minor, patch = rng.randint(0, 20), rng.randint(0, 20), rng.randint(0, 20)
    path = f"packages/{name}/VERSION"
    return Part({path: f"{major}.{minor}.{patch}\n"}, {path: Expected(f"{major}.{minor}.{patch + 1}\n")})


@single_parts('Set "retries" to 5 in every JSON file in services/; change nothing else.', "retries of {}")
def set_key(rng: Random, name: str) -> Part:
    """Set a key in each JSON file."""
    path = f"services/{name}.json"
    old = {"name": name, "port": rng.randint(1000, 9999), "retries": rng.randint(0, 4)}
    return Part({path: json.dumps(old)}, {path: Expected(json.dumps({**old, "retries": 5}), "json")})


@single_parts(
    "Read every interviews/NAME.txt and write answers/NAME.txt: the name of the person who speaks last, "
    "alone.",
    "the last speaker of {}",
)
def last_speaker(rng: Random, name: str) -> Part:
    """Find who speaks last; each part is one search and one new file."""
    spoken = [f"{rng.choice(PEOPLE)}: {random_sentence(rng)}" for _ in range(rng.randint(3, 8))]
    source, target = f"interviews/{name}.txt", f"answers/{name}.txt"
    last = spoken[-1].partition(":")[0]
    return Part(
        {source: join_lines(*spoken)}, {target: Expected(last)}, (read_call(source), write_call(target, last))
    )
