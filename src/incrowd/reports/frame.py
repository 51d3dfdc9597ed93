"""What the reports of all mechanisms have in common: one skeleton for the public ones, one for the publisher's own.

A public report shows the data first, then what is promised and how to use it, and last why that holds, with its curves.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

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
ERRORS_GIVE_AWAY = "errors together with the release give true counts away."
THEOREM = "The promise is a theorem about how the release was made."

_CROWDS = 10
_INTERNAL_LEAD = (
    "What the release has lost of the table. The numbers on this page are read off the raw data, and no promise covers "
    "them."
)
_NEVER_PUBLISH = "Nothing on this page may be published, quoted or shown to people who may not see the table"
_PAID_FOR = (
    "It helps to judge whether the release is worth publishing. The ledger counts one that is not published, too."
)
_NO_THEOREM = (
    "A policy that is changed because of what stands here has been made by looking at the table, and no theorem covers "
    "that. Learn from last year’s table, or let the mechanism choose privately."
)
_NOTHING_TO_USE = "There is nothing to be used. That it is what it claims to be can be checked:"


@dataclass(frozen=True)
class Use:
    """How a release is used.

    Attributes:
        points: what to know before counting; none if nothing was published.
        by: the columns of the example, or the options that name them.
        verifying: what `incrowd verify` does, and what it cannot see.
        python: lines of Python that count one thing.
        more: anything else.
    """

    points: Sequence[Content | Iterable[Content]]
    by: Sequence[str] | str
    verifying: str
    python: str = ""
    more: Sequence[Content] = ()

    def told(self) -> list[Content]:
        """The section on it."""
        check = markup(
            [listing("incrowd verify FOLDER"), paragraph(f"needs nothing but this folder. {self.verifying}")]
        )
        if not self.points:
            return [paragraph(_NOTHING_TO_USE), check]
        by = self.by
        if not isinstance(by, str):  # the command takes names apart at commas
            by = f"--by {shlex.quote(','.join(sorted(by, key=lambda name: ',' in name)[:2]))}"
        return [
            points(self.points),
            heading("Estimates with their errors"),
            listing(f"incrowd estimate FOLDER {by}"),
            *([heading("In Python"), listing(self.python)] if self.python else []),
            *self.more,
            heading("Check it"),
            check,
        ]


def public_page(
    policy: Policy,
    title: str,
    lead: Content,
    facts: Sequence[Fact],
    *,
    data: Sequence[PageSection],
    promise: Sequence[Content],
    use: Use,
    why: Sequence[Content] = (),
    grounds: str,
    assumptions: Sequence[str],
    kind: str = THEOREM,
    void: str | None,
) -> bytes:
    """The report that is published beside a release.

    Args:
        policy: what was asked for.
        title: if the policy has none.
        lead: what the page is about.
        facts: the numbers to see first.
        data: what was published.
        promise: to the people in it.
        use: how to work with it.
        why: why the promise holds, and its curves.
        grounds: the theorems that it rests on, as the certificate has them.
        assumptions: their premises.
        kind: what sort of promise it is.
        void: why nothing is promised, if so.
    """
    return Page(
        kind="Release report",
        title=policy.title or title,
        lead=lead,
        facts=facts,
        sections=[
            *data,
            PageSection("promise", "What is promised", tuple(promise)),
            PageSection("use", "How to use it", tuple(use.told())),
            *([PageSection("why", "Why it holds", tuple(why))] if why else []),
            PageSection("assumptions", "What it rests on", tuple(_premises(kind, grounds, assumptions))),
        ],
        closing="This page was made of the policy, the settings and the published table, and of nothing else.",
        notice=_void(
            void, "Everything below would hold for a release that is not void; none of it holds for this one."
        ),
        of_release=True,
    ).render()


def internal_page(
    policy: Policy,
    title: str,
    facts: Sequence[Fact],
    sections: Sequence[PageSection],
    *,
    gives_away: str,
    more: Sequence[Content | Iterable[Content]] = (),
    void: str | None,
) -> bytes:
    """The report that only the publisher may see; marked so on every page.

    Args:
        policy: what was asked for.
        title: if the policy has none.
        facts: the numbers to see first.
        sections: its parts.
        gives_away: what of this page, published, would give people away.
        more: what else to keep in mind.
        void: why nothing is promised, if so.
    """
    rules = points([f"{_NEVER_PUBLISH}: {gives_away}", _PAID_FOR, _NO_THEOREM, *more])
    return Page(
        kind="Internal report",
        title=policy.title or title,
        lead=_INTERNAL_LEAD,
        facts=facts,
        sections=[*sections, PageSection("rules", "How to treat this page", (rules,))],
        closing=f"{MARKING}. This page belongs to the publisher and stays in the internal folder.",
        notice=_void(void),
        marking=MARKING,
        of_release=True,
    ).render()


def _void(reason: str | None, more: str | None = None) -> Content:
    if not reason:
        return None
    more_of_it = tag("p", more) if more else None
    return markup([tag("strong", "This release promises nothing."), tag("p", reason), more_of_it])


def records_table(caption: str, steps: Sequence[tuple[str, int, int | None]], called: str) -> Html:
    """What became of the records, step by step, the first step being all of them.

    Args:
        caption: what it shows.
        steps: each with its records, and in how many groups they are, if that says something.
        called: what those groups are called.
    """
    whole = steps[0][1] or 1
    rows = [
        [name, number(records), percent(records / whole), "–" if groups is None else number(groups)]
        for name, records, groups in steps
    ]
    return table(caption, ["step", "records", "of the table", called], rows, numbers=(1, 2, 3))


def level_in_words(level: int, labels: int) -> str:
    """How a column is shown at a level with so many values."""
    return "as it is" if level == 0 else "all values alike" if labels == 1 else f"grouped into {labels:,} values"


def levels_in_words(shown: Sequence[str]) -> str:
    """How several columns are shown, each as `level_in_words` says."""
    return "as they are" if len(shown) > 1 and set(shown) == {"as it is"} else ", ".join(shown)


def looks(
    published: Histogram, shown: Callable[[str], str], note: str, called: tuple[str, str] = ("crowd", "crowds")
) -> list[Content]:
    """What a table with at least one record looks like.

    Args:
        published: the table.
        shown: how a column is shown, in a few words.
        note: what to keep in mind about values that do not occur.
        called: what records that share all values are, one and several.
    """
    many = called[1]
    sizes = crowd_sizes(
        f"Sizes of {many}",
        f"Half of the {many} have {number(int(np.median(published.counts)))} records or fewer; the largest has "
        f"{number(int(published.counts.max()))}.",
        published.counts,
        called=many,
    )
    return [
        paragraph(f"{count(published.total, 'record', 'records')} in {count(len(published), *called)}. {note}"),
        column_cards(published, shown),
        heading(f"The {many}"),
        sizes,
        _largest(published, many),
    ]


def column_cards(published: Histogram, shown: Callable[[str], str]) -> Html:
    """Each column: how it is shown, and how often each of its values occurs."""
    occurring = published.tallies
    return cards(
        distribution(
            label(c.name),
            shown(c.name) + (f"; the most frequent of {len(c.labels):,} values" if len(c.labels) > MOST else ""),
            c.labels,
            occurring[c.name],
        )
        for c in published.columns
    )


def cards(charts: Iterable[Content]) -> Html:
    """Charts side by side, where there is room."""
    return tag("div", charts, class_="cards")


def _largest(published: Histogram, called: str) -> Html:
    rows = [
        [
            number(int(published.counts[i])),
            percent(int(published.counts[i]) / published.total),
            *(label(c.labels[int(c.codes[i])]) for c in published.columns),
        ]
        for i in largest(published.counts, _CROWDS)
    ]
    caption = f"The {len(rows)} largest {called}" if len(published) > len(rows) else f"All {called}, largest first"
    return table(caption, ["records", "share", *map(label, published.names)], rows, numbers=(0, 1))


def _premises(kind: str, grounds: str, assumptions: Sequence[str]) -> list[Content]:
    """What the promise rests on."""
    return [
        paragraph(f"{kind} In the words of the certificate: ", tag("q", grounds), " Its premises:"),
        points(assumptions),
        paragraph("The certificate beside this page holds all of it for programs."),
    ]
