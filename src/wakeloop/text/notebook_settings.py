"""Settings in a notebook: what differs from a preset."""

from typing import Any, ClassVar

from wakeloop.text.plain_html import escape_html, html_table


class NotebookSettings:
    """A model that a notebook shows as the nearest of `named`, and what differs from it."""

    known_presets: ClassVar[dict[str, Any]] = {}
    """Instances by name, from whoever names them; without any, the model's own values are `wakeloop`."""

    def nearest_preset(self) -> tuple[str, list[tuple[str, Any, Any]]]:
        """Return the name of the nearest preset, and what differs: a key, the value here, the value there."""
        own = _values(self)
        bases = [
            (name, _values(base)) for name, base in (self.known_presets or {"wakeloop": type(self)()}).items()
        ]
        found = [(name, [(k, own[k], base[k]) for k in own if own[k] != base[k]]) for name, base in bases]
        return min(found, key=lambda pair: len(pair[1]))

    def _repr_pretty_(self, printer: Any, *_: Any) -> None:
        name, differs = self.nearest_preset()
        update = {key: own for key, own, _ in differs}
        printer.text(f"preset({name!r})" + (f".model_copy(update={update!r})" if update else ""))

    def _repr_html_(self) -> str:
        name, differs = self.nearest_preset()
        told = f"<p>{type(self).__name__}: preset <code>{escape_html(name)}</code>"
        if not differs:
            return f"{told}</p>"
        rows = [(key, repr(own), repr(theirs)) for key, own, theirs in differs]
        return f"{told}, {len(rows)} changed</p>\n{html_table(('setting', 'here', f'in {name}'), rows)}"


def _values(model: Any) -> dict[str, Any]:
    values: dict[str, Any] = model.model_dump()
    return values
