"""The frame of every report: one HTML file that needs nothing else, no script, no network.

Text becomes part of a page only through `markup`, which escapes everything that is not markup already. So no name or
label, whatever it holds, can be anything but text. The markup is well-formed XML, too.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import NamedTuple

from incrowd._version import __version__

_SHORT = 16  # a label that fits everywhere
_LONGEST = 60  # of a label on the page, in characters
_LONGEST_TITLE = 400  # of the same label when it is pointed at
_EMPTY = frozenset({"meta", "br", "hr", "rect", "col"})
# What XML cannot hold, and control characters, which nobody can read.
_UNFIT = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]")
# What must be escaped, too.
_NOT_PLAIN = re.compile(f"[&<>\"'{_UNFIT.pattern[1:]}")


class Html(str):
    """Markup, ready to be put on a page."""

    __slots__ = ()


Content = str | Html | None


def markup(content: Content | Iterable[Content]) -> Html:
    """Anything as markup: text escaped, markup as it is, nothing as nothing, several things one after the other."""
    if content is None:
        return Html("")
    if isinstance(content, Html):
        return content
    if isinstance(content, str):
        if _NOT_PLAIN.search(content) is None:  # as most are
            return Html(content)
        return Html(html.escape(_UNFIT.sub("\ufffd", content), quote=True))
    return Html("".join([markup(part) for part in content]))


def tag(name: str, /, *content: Content | Iterable[Content], **attributes: Content) -> Html:
    """An element. ``class_`` stands for ``class``, ``aria_label`` for ``aria-label``; None leaves an attribute out."""
    written = "".join(
        [f' {_attribute(key)}="{markup(str(value))}"' for key, value in attributes.items() if value is not None]
    )
    if name in _EMPTY:
        return Html(f"<{name}{written}/>")
    return Html(f"<{name}{written}>{''.join(map(markup, content))}</{name}>")


@cache
def _attribute(key: str) -> str:
    return key.rstrip("_").replace("_", "-")


def label(text: str | None) -> Html:
    """A label of the data: isolated, so that it cannot turn the text around it, and cut if it is long."""
    if text is None:
        return tag("i", "missing", class_="unsaid")
    if not text.strip():
        return tag("i", "empty text" if not text else "blank", class_="unsaid")
    # Where there is little room, less is shown than stands here; pointing at it shows the rest.
    title = shortened(text, _LONGEST_TITLE) if len(text) > _SHORT else None
    return tag("bdi", shortened(text, _LONGEST), title=title)


def shortened(text: str, length: int) -> str:
    """A text, cut if it is longer than that."""
    return text if len(text) <= length else f"{text[: length - 1]}…"


class Fact(NamedTuple):
    """A number worth seeing first."""

    name: str
    value: Html | str
    note: str = ""


@dataclass(frozen=True)
class PageSection:
    """A part of a page, with a heading that can be linked to."""

    anchor: str
    heading: str
    content: tuple[Content, ...]


@dataclass(frozen=True)
class Page:
    """A report.

    Attributes:
        kind: what sort of report this is, above the title.
        title: of the report.
        lead: what it is about, in a sentence or two.
        facts: the numbers to see first.
        sections: its parts.
        closing: the last line.
        notice: something that must not be overlooked.
        marking: what stands on every page, on the screen and in print.
        of_release: it has room for the release's verdict and digest, which are not its mechanism's.
    """

    kind: str
    title: str
    lead: Content
    facts: Sequence[Fact]
    sections: Sequence[PageSection]
    closing: str
    notice: Content = None
    marking: str | None = None
    of_release: bool = False

    def render(self) -> bytes:
        """The file."""
        parts = [*([VERDICT_AT] if self.of_release else []), *((s.anchor, s.heading) for s in self.sections)]
        contents = tag(
            "nav",
            tag("ol", (tag("li", tag("a", name, href=f"#{anchor}")) for anchor, name in parts)),
            aria_label="Contents",
            class_="contents",
        )
        facts = tag(
            "dl",
            (
                tag("div", tag("dt", f.name), tag("dd", f.value, tag("small", f.note) if f.note else None))
                for f in self.facts
            ),
            class_="facts",
        )
        header = tag(
            "header",
            tag("p", self.kind, class_="kind"),
            tag("h1", tag("bdi", shortened(self.title, 200))),
            tag("p", self.lead, class_="lead"),
            tag("div", self.notice, class_="notice", role="alert") if self.notice else None,
            facts,
        )
        body = tag(
            "body",
            tag("aside", self.marking, class_="marking", aria_label="Marking") if self.marking else None,
            header,
            contents,
            tag("main", _VERDICT if self.of_release else None, (_section(s) for s in self.sections)),
            tag(
                "footer",
                tag("p", self.closing),
                tag("p", "Certificate: ", tag("code", _DIGEST), ".") if self.of_release else None,
                tag("p", f"Made by incrowd {__version__}."),
            ),
            class_="report marked" if self.marking else "report",
        )
        name = shortened(self.title, 200)
        head = tag(
            "head",
            tag("meta", charset="utf-8"),
            # No script, no request, whatever stands in the text.
            tag("meta", http_equiv="Content-Security-Policy", content="default-src 'none'; style-src 'unsafe-inline'"),
            tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
            tag("meta", name="color-scheme", content="light dark"),
            tag("meta", name="robots", content="noindex") if self.marking else None,
            tag("title", f"{self.marking}: {name}" if self.marking else f"{name}: {self.kind.lower()}"),
            tag("style", style(), _print_marking(self.marking), _PRINTED_DIGEST if self.of_release else None),
        )
        return f"<!DOCTYPE html>\n{tag('html', head, body, lang='en')}\n".encode()


VERDICT_AT = ("verdict", "What it is good for")
"""The anchor and the heading of a release's verdict."""
# No text of a page can hold these: what begins with < is markup.
_VERDICT, _DIGEST = Html("<!--verdict-->"), Html("<!--digest-->")
_PRINTED_DIGEST = Html(
    f'@page{{@bottom-left{{content:"certificate {_DIGEST}";font:7pt ui-monospace,monospace;color:#667}}}}'
)


def completed(page: bytes, verdict: Html, digest: str) -> bytes:
    """The page of a release with its verdict on top, and the digest that ties it to its certificate on every sheet."""
    return page.replace(_VERDICT.encode(), verdict.encode(), 1).replace(_DIGEST.encode(), digest.encode())


def _section(section: PageSection) -> Html:
    return tag("section", tag("h2", section.heading, id=section.anchor), section.content)


@cache
def style() -> Html:
    """The style sheet that all reports share."""
    return Html(Path(__file__).with_name("style.css").read_text(encoding="utf-8"))


def _print_marking(marking: str | None) -> Html:
    """The marking in the margin of every printed page, for browsers that can; for others the fixed strip remains."""
    if marking is None:
        return Html("")
    quoted = re.sub(r"[^\w .,:—-]", "", marking)
    return Html(f'@page{{@top-center{{content:"{quoted}";font:700 10pt system-ui,sans-serif;color:#b3261e}}}}')


# --- parts of pages -------------------------------------------------------------------------------------------------


def paragraph(*content: Content) -> Html:
    """A paragraph."""
    return tag("p", content)


def heading(text: Content) -> Html:
    """A heading within a section."""
    return tag("h3", text)


def points(items: Iterable[Content | Iterable[Content]]) -> Html:
    """A list of points."""
    return tag("ul", (tag("li", item) for item in items))


def code(text: str) -> Html:
    """A few words of code."""
    return tag("code", text)


def listing(text: str) -> Html:
    """Lines of code."""
    return tag("pre", tag("code", text), tabindex="0")


def formula(*content: Content) -> Html:
    """A formula on a line of its own."""
    return tag("p", content, class_="formula")


def figure(picture: str, caption: Content) -> Html:
    """A picture, given as markup, and what to see in it."""
    frame = tag("div", Html(picture), class_="wide picture", role="group", aria_label="Picture", tabindex="0")
    return tag("figure", frame, tag("figcaption", caption))


def table(
    caption: str, head: Sequence[Content], rows: Iterable[Sequence[Content]], *, numbers: Iterable[int] = ()
) -> Html:
    """A table; it scrolls by itself if it is too wide.

    Args:
        caption: what it shows.
        head: names of its columns.
        rows: its cells; the first of each row is its heading.
        numbers: the columns that hold numbers.
    """
    right = set(numbers)

    def kind(i: int) -> str | None:
        return "number" if i in right else None

    top = tag("tr", (tag("th", cell, scope="col", class_=kind(i)) for i, cell in enumerate(head)))
    body = (
        tag(
            "tr",
            (tag("td" if i else "th", cell, scope=None if i else "row", class_=kind(i)) for i, cell in enumerate(row)),
        )
        for row in rows
    )
    whole = tag("table", tag("caption", caption), tag("thead", top), tag("tbody", body))
    crowded = "wide many" if len(head) > 7 else "wide"
    return tag("div", whole, class_=crowded, role="region", aria_label=caption, tabindex="0")


# --- numbers --------------------------------------------------------------------------------------------------------
