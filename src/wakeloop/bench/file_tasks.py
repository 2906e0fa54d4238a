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
    "Fill the template letter.txt for every file people/NAME.txt: write letters/NAME.txt, with PERSON and"
    " CITY replaced by what the file says.",
    "the letter to {}",
    files={"letter.txt": "Dear PERSON,\nwe shall visit CITY soon.\nGreetings\n"},
)
def fill_template(rng: Random, name: str) -> Part:
    """Fill a template once for each person."""
    who, city = rng.choice(PEOPLE), rng.choice(NOUNS).title()
    letter = f"Dear {who},\nwe shall visit {city} soon.\nGreetings\n"
    source = join_lines(f"person: {who}", f"city: {city}")
    return Part({f"people/{name}.txt": source}, {f"letters/{name}.txt": Expected(letter)})


@single_parts(
    "Rename every file in reports/ after the date in its first line: reports/NAME.txt becomes "
    "reports/YYYY-MM-DD-NAME.txt. Its text stays as it is.",
    "rename {}",
)
def rename_by_date(rng: Random, name: str) -> Part:
    """Rename reports after the date in them."""
    date = "{:04}-{:02}-{:02}".format(*random_date(rng))
    old, new, text = (
        f"reports/{name}.txt",
        f"reports/{date}-{name}.txt",
        join_lines(f"Date: {date}", *random_lines(rng)),
    )
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
    old, new, text = (
        f"inbox/{name}.txt",
        f"{kind}/{name}.txt",
        join_lines(*random_lines(rng, 1, 3), f"kind: {kind}"),
    )
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
    "For every texts/NAME.txt write hits/NAME.txt: how often the word `anchor` stands in it, as a number "
    "alone.",
    "count the anchors of {}",
)
def count_word(rng: Random, name: str) -> Part:
    """Count a word in each text."""
    text = join_lines(*random_lines(rng, 4, 8), "anchor")
    return Part(
        {f"texts/{name}.txt": text}, {f"hits/{name}.txt": Expected(str(text.split().count("anchor")))}
    )


@single_parts(
    "Find the longest line of every texts/NAME.txt and write it alone into longest/NAME.txt.", "longest of {}"
)
def longest_line(rng: Random, name: str) -> Part:
    """Find the longest line of each text."""
    found = [*random_lines(rng), random_sentence(rng, 12)]
    rng.shuffle(found)
    return Part(
        {f"texts/{name}.txt": join_lines(*found)}, {f"longest/{name}.txt": Expected(max(found, key=len))}
    )


@single_parts("Sort the lines of every file in lists/ by the alphabet, in place.", "sort the lines of {}")
def sort_lines(rng: Random, name: str) -> Part:
    """Sort the lines of each list."""
    found = [*sorted(rng.sample(NOUNS, 5)), "aardvark"]
    return Part(
        {f"lists/{name}.txt": join_lines(*found)}, {f"lists/{name}.txt": Expected(join_lines(*sorted(found)))}
    )


@single_parts(
    "Every file in lists/ has lines that stand twice. Keep the first of each and the order, in place.",
    "take repeats out of {}",
)
def drop_repeats(rng: Random, name: str) -> Part:
    """Remove repeated lines from each list."""
    found = [*rng.sample(NOUNS, 5)]
    repeated = [*found, *rng.sample(found, 2)]
    return Part(
        {f"lists/{name}.txt": join_lines(*repeated)}, {f"lists/{name}.txt": Expected(join_lines(*found))}
    )


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
    "Delete the lines that begin with # from every file in configs/, in place.", "take comments out of {}"
)
def strip_comments(rng: Random, name: str) -> Part:
    """Remove the comments from each configuration."""
    kept = [f"{noun} = {rng.randint(1, 99)}" for noun in rng.sample(NOUNS, 4)]
    text = join_lines("# " + random_sentence(rng), *kept[:2], "# old", *kept[2:])
    return Part({f"configs/{name}.conf": text}, {f"configs/{name}.conf": Expected(join_lines(*kept))})


@single_parts(
    "Number the lines of every file in steps/, in place: `1. first line`, `2. second line` …", "number {}"
)
def number_lines(rng: Random, name: str) -> Part:
    """Number the lines of each file."""
    found = random_lines(rng)
    numbered = [*map("{}. {}".format, range(1, len(found) + 1), found)]
    return Part(
        {f"steps/{name}.txt": join_lines(*found)}, {f"steps/{name}.txt": Expected(join_lines(*numbered))}
    )


@single_parts(
    "Write the dates in every file in diary/ as YYYY-MM-DD instead of DD/MM/YYYY, in place.", "dates of {}"
)
def iso_dates(rng: Random, name: str) -> Part:
    """Rewrite dates with the year first."""
    old = new = ""
    for _ in range(3):
        year, month, day = random_date(rng)
        old += f"{day:02}/{month:02}/{year:04} seen\n"
        new += f"{year:04}-{month:02}-{day:02} seen\n"
    return Part({f"diary/{name}.txt": old}, {f"diary/{name}.txt": Expected(new)})


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


@single_parts(
    "Collect the addresses (with an @) of every mails/NAME.txt in addresses/NAME.txt, one a line, in any "
    "order.",
    "addresses of {}",
)
def collect_addresses(rng: Random, name: str) -> Part:
    """Collect the addresses in each mail."""
    found = [f"{person.lower()}@{rng.choice(NOUNS)}.example" for person in rng.sample(PEOPLE, 3)]
    lines = [random_sentence(rng)]
    for address in found:
        lines.append(f"{random_sentence(rng, 2)} {address} {random_sentence(rng, 2)}")
    text = join_lines(*lines)
    return Part({f"mails/{name}.txt": text}, {f"addresses/{name}.txt": Expected(join_lines(*found), "lines")})


@single_parts("Raise the last number of every version in packages/NAME/VERSION by one, in place.", "raise {}")
def raise_version(rng: Random, name: str) -> Part:
    """Raise the version of each package."""
    major, minor, patch = rng.randint(0, 20), rng.randint(0, 20), rng.randint(0, 20)
    path = f"packages/{name}/VERSION"
    return Part({path: f"{major}.{minor}.{patch}\n"}, {path: Expected(f"{major}.{minor}.{patch + 1}\n")})


@single_parts('Set "retries" to 5 in every JSON file in services/; change nothing else.', "retries of {}")
def set_key(rng: Random, name: str) -> Part:
    """Set a key in each JSON file."""
    path, old = (
        f"services/{name}.json",
        {"name": name, "port": rng.randint(1000, 9999), "retries": rng.randint(0, 4)},
    )
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
