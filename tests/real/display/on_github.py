"""A notebook as GitHub shows it, as far as known: nbconvert's HTML without what GitHub removes.

The allowed HTML is the list of html-pipeline, which GitHub has published (`SanitizationFilter`, in
lib/html_pipeline/sanitization_filter.rb), and images within the page, which notebooks have there. GitHub's
own notebook viewer is not public; it is said to strip styles from inside SVG too, so that anything filled by
a style turns black (github.com/jupyter/nbviewer/issues/1037, github.com/jupyter/nbconvert/issues/1894).
"""

from __future__ import annotations

from pathlib import Path

ELEMENTS = """
h1 h2 h3 h4 h5 h6 br b i strong em a pre code img tt div ins del sup sub p ol ul table thead tbody
tfoot blockquote dl dt dd kbd q samp var hr ruby rt rp li tr td th s strike summary details caption
figure figcaption abbr bdo cite dfn mark small span time wbr
"""
ANYWHERE = """abbr align alt aria-describedby aria-hidden aria-label aria-labelledby border cellpadding
cellspacing color colspan dir headers height hspace id lang name nowrap open role rowspan scope start summary
tabindex title type valign value width"""


def allowed(html: str) -> str:
    """Return the HTML that GitHub lets through."""
    import bleach

    attributes = {"a": ["href"], "img": ["src"], "*": ANYWHERE.split()}
    return bleach.clean(html, ELEMENTS.split(), attributes, protocols=["https", "data"], strip=True)


def page_of(notebook: Path) -> str:
    """Return a notebook's cells and outputs as GitHub lets them through."""
    from nbconvert import HTMLExporter

    body, _ = HTMLExporter(template_name="basic").from_filename(str(notebook))
    return allowed(body)
