"""What a value is, in a word, for a sentence."""


def describe_type(given: object) -> str:
    """Name the kind of a value, with its article."""
    if given is None:
        return "None"
    if isinstance(given, type):
        return f"the class {given.__name__}"
    name = type(given).__name__
    return f"an {name}" if name[0].lower() in "aeiou" else f"a {name}"
