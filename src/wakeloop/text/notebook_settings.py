"""Settings in a notebook, as changes to a preset."""

from typing import Any, ClassVar

from wakeloop.text.plain_html import escape_html, html_table


class NotebookSettings:
    """A pydantic model that a notebook shows as its nearest preset, and what differs from it."""

    known_presets: ClassVar[dict[str, Any]] = {}
    """Instances by name; without any, the model's own defaults count as `wakeloop`."""

    def nearest_preset(self: Any) -> tuple[str, list[tuple[str, Any, Any]]]:
        """Return the name of the nearest preset, and each difference: key, value here, value there."""
        own, found = self.model_dump(), []
        for name, preset in (self.known_presets or {"wakeloop": type(self)()}).items():
            theirs = preset.model_dump()
            found.append((name, [(key, own[key], theirs[key]) for key in own if own[key] != theirs[key]]))
        return min(found, key=lambda preset: len(preset[1]))

    def _repr_pretty_(self, printer: Any, *_: Any) -> None:
        name, differences = self.nearest_preset()
        text = f"preset({name!r})"
        if differences:
            update = {key: own for key, own, _ in differences}
            text += f".model_copy(update={update!r})"
        printer.text(text)

    def _repr_html_(self) -> str:
        name, differences = self.nearest_preset()
        line = f"{type(self).__name__}: preset <code>{escape_html(name)}</code>"
        if not differences:
            return f"<p>{line}</p>"
        rows = [(key, repr(own), repr(theirs)) for key, own, theirs in differences]
        return f"<p>{line}, {len(rows)} changed</p>\n{html_table(('setting', 'here', f'in {name}'), rows)}"
