"""What the reports of all mechanisms have in common: their frames, and parts about the published table."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from incrowd.core.numbers import count, number, percent
from incrowd.histogram import Histogram
from incrowd.policy import Policy
from incrowd.reports.bars import MOST, crowd_sizes, distribution, largest
from incrowd.reports.page import (
    Content,
    Fact,
    Html,
    Page,
    PageSection,
    heading,
    label,
    listing,
    markup,
    paragraph,
    points,
    table,
    tag,
)

MARKING = "INTERNAL — never publish"

_CROWDS = 10


def public_page(
    policy: Policy,
    title: str,
    lead: Content,
    facts: Sequence[Fact],
    sections: Sequence[PageSection],
    *,
    void: str | None,
) -> bytes:
    """The report that is published beside a release.

    Args:
        policy: what was asked for.
        title: if the policy has none.
        lead: what the page is about.
        facts: the numbers to see first.
        sections: its parts.
        void: why nothing is promised, if so.
    """
    return Page(
        kind="Release report",
        title=policy.title or title,
        lead=lead,
        facts=facts,
        sections=sections,
        closing="This page was made of the policy, the settings and the published table, and of nothing else.",
        notice=_void(void) if void else None,
    ).render()


def internal_page(
    policy: Policy,
    title: str,
    lead: Content,
    facts: Sequence[Fact],
    sections: Sequence[PageSection],
    *,
    void: str | None,
) -> bytes:
    """The report that only the publisher may see; marked so on every page."""
    return Page(
        kind="Internal report",
        title=policy.title or title,
        lead=lead,
        facts=facts,
        sections=sections,
        closing=f"{MARKING}. This page belongs to the publisher and stays in the internal folder.",
        notice=_void_internal(void) if void else None,
        marking=MARKING,
    ).render()


def _void(reason: str) -> Html:
    would = "Everything below would hold for a release that is not void; none of it holds for this one."
    return markup([tag("strong", "This release promises nothing."), tag("p", reason), tag("p", would)])


def _void_internal(reason: str) -> Html:
    return markup([tag("strong", "The release promises nothing."), tag("p", reason)])


def looks(published: Histogram, shown: Callable[[str], str], note: str) -> list[Content]:
    """What a table with at least one record looks like.

    Args:
        published: the table.
        shown: how a column is shown, in a few words.
        note: what to keep in mind about values that do not occur.
    """
    sizes = crowd_sizes(
        "Sizes of crowds",
        f"Half of the crowds have {number(int(np.median(published.counts)))} records or fewer; the largest has "
        f"{number(int(published.counts.max()))}.",
        published.counts,
    )
    return [
        paragraph(
            f"{count(published.total, 'record', 'records')} in {count(len(published), 'crowd', 'crowds')}. {note}"
        ),
        *column_parts(published, shown),
        heading("The crowds"),
        sizes,
        _largest(published),
    ]


def column_parts(published: Histogram, shown: Callable[[str], str]) -> list[Content]:
    """Each column: how it is shown, and how often each of its values occurs."""
    occurring = published.tallies
    overview = table(
        "The columns",
        ["column", "shown", "values that could occur", "values that do"],
        [
            [
                label(c.name),
                shown(c.name),
                number(len(c.labels)),
                number(int(np.count_nonzero(occurring[c.name]))),
            ]
            for c in published.columns
        ],
        numbers=(2, 3),
    )
    cards = [
        distribution(label(c.name), _kinds(len(c.labels)), c.labels, occurring[c.name])
        for c in published.columns
        if len(c.labels) > 1
    ]
    return [overview, *([heading("Each column"), tag("div", cards, class_="cards")] if cards else [])]


def _kinds(labels: int) -> str:
    return "" if labels <= MOST else f"the most frequent of {labels:,} values"


def _largest(published: Histogram) -> Html:
    rows = [
        [
            number(int(published.counts[i])),
            percent(int(published.counts[i]) / published.total),
            *(label(c.labels[int(c.codes[i])]) for c in published.columns),
        ]
        for i in largest(published.counts, _CROWDS)
    ]
    caption = f"The {len(rows)} largest crowds" if len(published) > len(rows) else "All crowds, largest first"
    return table(caption, ["records", "share", *map(label, published.names)], rows, numbers=(0, 1))


def how_to_verify(what: str) -> Html:
    """The command, and what it does."""
    return markup([listing("incrowd verify FOLDER"), paragraph(f"needs nothing but this folder. {what}")])


def premises(
    assumptions: Sequence[str], what: str = "The promise is a theorem about how the release was made."
) -> list[Content]:
    """The section on what the promise rests on; `what` says what kind of promise it is."""
    return [
        paragraph(f"{what} These are its premises:"),
        points(assumptions),
        paragraph(
            "The certificate beside this page holds all of it in a form that programs can read: the promise, the "
            "policy, the digests of the files, and the versions of the software."
        ),
    ]
