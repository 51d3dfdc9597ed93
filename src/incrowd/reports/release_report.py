"""The reports on a sampled crowd: `report.html`, which is published with it, and the publisher's own.

The public one is made of the policy, the settings and the published table, and of nothing else: the raw table and the
sample are not even passed to it.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence

import numpy as np

from incrowd.errors import InternalError
from incrowd.histogram import Histogram
from incrowd.mechanisms.sampled_crowd import CrowdSettings
from incrowd.policy import Policy
from incrowd.releases.estimate import hidden_at_most
from incrowd.releases.release import assumptions, grounds, table_name
from incrowd.reports.bars import MOST, crowd_sizes, distribution, tally
from incrowd.reports.internal_report import internal_report
from incrowd.reports.page import (
    Content,
    Fact,
    Html,
    Page,
    Section,
    code,
    count,
    heading,
    label,
    listing,
    markup,
    number,
    paragraph,
    percent,
    points,
    table,
    tag,
)
from incrowd.reports.promise import promise, trade_off

__all__ = ["internal_report", "public_report"]

_CROWDS = 10


def public_report(
    policy: Policy, settings: CrowdSettings, published: Histogram, levels: Mapping[str, int], *, void: bool
) -> bytes:
    """The report that is published beside the release.

    Args:
        policy: what was asked for.
        settings: what is promised.
        published: the release.
        levels: at which level each column is shown.
        void: whether the random bits were predictable, so that nothing is promised.
    """
    if len(published) and int(published.counts.min()) < settings.k:
        raise InternalError("a report was asked for on a release with too small a crowd")
    chosen = [n for n in published.names if settings.selection_epsilon and policy.attributes[n].level is None]
    output = policy.release.output if policy.release else "parquet"
    sections = [
        Section("promise", "What is promised", tuple(promise(settings, grounds(chosen=bool(chosen))))),
        Section("trade-off", "The trade-off", tuple(trade_off(settings))),
        Section("release", "What the release looks like", tuple(_looks(settings, published, levels, chosen))),
        Section("use", "How to use it", tuple(_use(settings, published, output))),
        Section("assumptions", "What it rests on", tuple(_assumptions(settings))),
    ]
    return Page(
        kind="Release report",
        title=policy.title or "A table, published in crowds",
        lead=_lead(settings),
        facts=[
            Fact("ε", number(settings.epsilon), "how much one record can matter"),
            Fact("δ", number(settings.delta), "a probability on top of that"),
            Fact("k", number(settings.k), "the smallest crowd"),
            Fact("β", number(settings.beta), "the sampling rate"),
            Fact("records", number(published.total), "published"),
            Fact("crowds", number(len(published)), "that share all values"),
        ],
        sections=sections,
        closing="This page was made of the policy, the settings and the published table, and of nothing else.",
        notice=_void() if void else None,
    ).render()


def _void() -> Html:
    return markup(
        [
            tag("strong", "This release promises nothing."),
            tag(
                "p",
                "It was drawn from predictable bits, for a test. Whoever knows the seed can undo the sampling. "
                "Everything below would hold for a release from unpredictable bits; none of it holds for this one. "
                "Do not publish it.",
            ),
        ]
    )


def _lead(settings: CrowdSettings) -> str:
    drawn = "came into the data by chance" if settings.already_sampled else "was drawn at random from the data"
    company = f" and shares all published values with at least {count(settings.k - 1, 'other', 'others')}"
    return (
        f"Every row of this table is one person who {drawn}{company if settings.k > 1 else ''}. This page says what "
        "that promises to the people in it, and how to work with it."
    )


def _looks(
    settings: CrowdSettings, published: Histogram, levels: Mapping[str, int], chosen: Sequence[str]
) -> list[Content]:
    if not len(published):
        return _empty(settings)
    occurring = {name: tally(published, name) for name in published.names}
    overview = table(
        "The columns",
        ["column", "shown", "values that could occur", "values that do"],
        [
            [
                label(c.name),
                _shown(levels[c.name], len(c.labels), chosen=c.name in chosen),
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
    sizes = crowd_sizes(
        "Sizes of crowds",
        f"Half of the crowds have {number(int(np.median(published.counts)))} records or fewer; the largest has "
        f"{number(int(published.counts.max()))}.",
        published.counts,
    )
    return [
        paragraph(
            f"{count(published.total, 'record', 'records')} in {count(len(published), 'crowd', 'crowds')}. A value "
            "that is shown as never occurring may be absent from the data, or too rare to be published."
        ),
        overview,
        *([heading("Each column"), tag("div", cards, class_="cards")] if cards else []),
        heading("The crowds"),
        sizes,
        _largest(published),
    ]


def _shown(level: int, labels: int, *, chosen: bool) -> str:
    how = "as it is" if level == 0 else "all alike" if labels == 1 else f"coarser (level {level})"
    return f"{how}, {'chosen privately' if chosen else 'fixed beforehand'}"


def _kinds(labels: int) -> str:
    return "" if labels <= MOST else f"the most frequent of {labels:,} values"


def _largest(published: Histogram) -> Html:
    order = np.lexsort((np.arange(len(published)), -published.counts))[:_CROWDS]
    rows = [
        [
            number(int(published.counts[i])),
            percent(int(published.counts[i]) / published.total),
            *(label(c.labels[int(c.codes[i])]) for c in published.columns),
        ]
        for i in order
    ]
    caption = f"The {len(rows)} largest crowds" if len(published) > len(rows) else "All crowds, largest first"
    return table(caption, ["records", "share", *map(label, published.names)], rows, numbers=(0, 1))


def _empty(settings: CrowdSettings) -> list[Content]:
    likely = hidden_at_most(settings.k, settings.beta)
    choose = (
        "Let the levels be chosen privately instead of fixing them: set ",
        code("selection_epsilon"),
        " and leave out the levels.",
    )
    return [
        tag(
            "div",
            paragraph(
                tag("b", "The release is empty."),
                f" No combination of values was shared by {number(settings.k)} sampled records, so there was no crowd "
                "in which anybody could have been hidden. The promise holds all the same, and nothing went wrong: the "
                "table was shown too finely for its size.",
            ),
            class_="aside",
        ),
        paragraph("What a publisher can do about it:"),
        points(
            [
                (
                    "Show fewer columns, or show them more coarsely: crowds grow quickly. With "
                    f"these settings a crowd is likely to appear (95%) if {likely:,} people share its values."
                ),
                *([] if settings.selection_epsilon else [choose]),
                "Allow a larger ε or δ, with which smaller crowds are enough.",
                (
                    "Every further release of the same data spends from its budget again. Do not look for a policy "
                    "that works by trying many on the real table: plan with "
                    "what is known about it anyway."
                ),
            ]
        ),
    ]


def _use(settings: CrowdSettings, published: Histogram, output: str) -> list[Content]:
    beta = repr(settings.beta)
    likely = hidden_at_most(settings.k, settings.beta)
    if not len(published):
        return [paragraph("There is nothing to be used. That it is what it claims to be can be checked:"), _verify()]
    whole = "population" if settings.already_sampled else "original table"
    # The command takes names apart at commas.
    names = sorted(published.names, key=lambda name: "," in name)[:2]
    by = shlex.quote(",".join(names))
    read = (
        f'pd.read_csv("{table_name(output)}", dtype=str, keep_default_na=False, na_values=[""], skip_blank_lines=False)'
        if output == "csv"
        else f'pd.read_parquet("{table_name(output)}")'
    )
    return [
        points(
            [
                (
                    tag("b", "Give every row the weight 1/β."),
                    (
                        f" A row stands for 1/{number(settings.beta, 6)} ≈ {number(1 / settings.beta)} people of the "
                        f"{whole}, a crowd of n rows for about n/β, with a standard error of about √(n(1−β))/β."
                    ),
                ),
                (
                    tag("b", "Expect small crowds to be missing."),
                    (
                        f" What was not published was shared by fewer than about {likely:,} people (with a probability "
                        "of 95%). Totals over many small crowds come out too small, rare values rarer than they are."
                    ),
                ),
                (
                    tag("b", "Rows have no order and no identity."),
                    " They are sorted by their values; nothing links them to the rows of the original table.",
                ),
            ]
        ),
        heading("Estimates with standard errors"),
        listing(f"incrowd estimate FOLDER --by {by}"),
        heading("In Python"),
        listing(
            "import pandas as pd\n\n"
            f"release = {read}\n"
            f"people = release.groupby({names!r}, dropna=False).size() / {beta}\n"
            "print(people.round())"
        ),
        heading("Check it"),
        _verify(),
    ]


def _verify() -> Html:
    return markup(
        [
            listing("incrowd verify FOLDER"),
            paragraph(
                "needs nothing but this folder. It recounts every crowd, derives ε and δ once more from k and β, and "
                "compares every file, this page included, with the certificate. It cannot see how the sample was "
                "drawn: that is taken on the publisher’s word."
            ),
        ]
    )


def _assumptions(settings: CrowdSettings) -> list[Content]:
    return [
        paragraph("The promise is a theorem about how the release was made. These are its premises:"),
        points(assumptions(settings)),
        paragraph(
            "The certificate beside this page holds all of it in a form that programs can read: the promise, the "
            "policy, the digests of the files, and the versions of the software."
        ),
    ]
