"""A table of answers in words, by what they do to the calls that a person is asked about."""

YES = [
    *("yes", "y", "ok", "okay", "sure", "approve", "approved", "accept", "true", "Yes", "YES", "OK"),
    *("yes!", "Yes.", "Ok.", "yes please", "Yes, please!", "ok, thanks", "Sure, thank you.", "y\n"),
    *("please approve", "  yes  ", '"yes"', "**yes**", "thanks, ok", "\uff59\uff45\uff53"),
    *('{"approved": true}', "yes \U0001f44d"),
]
NO = [
    *(("no", ""), ("n", ""), ("No.", ""), ("NO!", ""), ("", ""), ("   ", ""), ("no thanks", "")),
    *(("No, thank you", ""), ("no, not there", "not there"), ("No: use /tmp instead.", "use /tmp instead.")),
    *(("n too risky", "too risky"), ("no\nwrong folder", "wrong folder"), ("reject", ""), ("false", "")),
    *(("rejected: too long", "too long"), ("deny", ""), ("nope, later", "later"), ("please no", "")),
    *(("decline - ask Ada", "ask Ada"), ("don't", "don't"), ("do not run it", "do not run it")),
    *(("Don\u2019t touch it", "Don\u2019t touch it"), ("not now", "not now"), ("never", "never")),
    *(("stop", "stop"), ("please don't", "please don't"), ("no yes", "yes")),
    *(("no \u4e0d\u8981", "\u4e0d\u8981"), ('{"approved": false, "message": "later"}', "later")),
]
ASKED_AGAIN = [
    *("hm", "yes, but not now", "yes no", "ok do it in /tmp", "sure?", "yes?", "maybe", "what does it do?"),
    *("y/n", "yes yes", "approve the first", "okay then wait", "1", "go ahead", "use ls instead", "please"),
    *("\U0001f44d", "...", "yesterday", "notes", "okra", "north", '{"approved": "yes"}', '{"a": 1}'),
    *("[true]", '["y"]', "truely", "o.k."),
]
