"""The publisher's own report on a sampled crowd: what the release has lost of the table. Never to be published."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from incrowd.hierarchy import CodedAttribute
from incrowd.histogram import Histogram
from incrowd.mechanisms.sampled_crowd import CrowdSettings, Outcome
from incrowd.policy import Policy
from incrowd.recoding import utility
from incrowd.recoding.utility import Comparison
from incrowd.reports.bars import MOST, Row, bars, before_and_after, size_bins, tally
from incrowd.reports.page import (
    Content,
    Fact,
    Html,
    Page,
    Section,
    count,
    heading,
    label,
    markup,
    number,
    paragraph,
    percent,
    points,
    table,
    tag,
)

MARKING = "INTERNAL — never publish"

_SUPPRESSED = 12
_MARGINALS = 8
_LOST = 6  # labels named in a row


def internal_report(
    policy: Policy,
    attributes: Sequence[CodedAttribute],
    settings: CrowdSettings,
    raw: Histogram,
    outcome: Outcome,
    *,
    void: bool = False,
) -> bytes:
    """The report that only the publisher may see.

    Args:
        policy: what was asked for.
        attributes: the columns of the table, in its order.
        settings: what is promised.
        raw: the full table, base codes.
        outcome: what came out, the sample included.
        void: whether the random bits were predictable.
    """
    c = Comparison(
        raw,
        {a.name: a.hierarchy.recode(outcome.levels[a.name]) for a in attributes},
        outcome.sample,
        outcome.published,
        1.0 if settings.already_sampled else settings.beta,
    )
    sections = [
        Section("rules", "What this page is for", tuple(_rules())),
        Section("numbers", "What became of the records", tuple(_numbers(c, settings))),
        Section("loss", "How much information is left", tuple(_loss(c, settings))),
        Section("columns", "Each column, before and after", tuple(_columns(c, attributes, outcome))),
        Section("suppressed", "What was suppressed", tuple(_suppressed(c, settings))),
        Section("queries", "How wrong counts are", tuple(_queries(c))),
    ]
    return Page(
        kind="Internal report",
        title=policy.title or "A table, published in crowds",
        lead="What the release has lost of the table. The numbers on this page are read off the raw data, and no "
        "promise covers them.",
        facts=[
            Fact("in the table", number(raw.total), "records"),
            Fact("sampled", number(c.sample.total), _of(c.sample.total, raw.total)),
            Fact("published", number(c.published.total), f"{_of(c.published.total, c.sample.total)} of the sample"),
            Fact("suppressed", number(c.suppressed), f"{_of(c.suppressed, c.sample.total)} of the sample"),
            Fact("information kept", percent(utility.information_kept(c)), "of the sample"),
        ],
        sections=sections,
        closing=f"{MARKING}. This page belongs to the publisher and stays in the internal folder.",
        notice=_void() if void else None,
        marking=MARKING,
    ).render()


def _void() -> Html:
    return markup(
        [
            tag("strong", "The release promises nothing."),
            tag("p", "It was drawn from predictable bits, for a test. Do not publish it either."),
        ]
    )


def _rules() -> list[Content]:
    return [
        points(
            [
                (
                    "Nothing on this page may be published, quoted or shown to people who may not see the table. With "
                    "the size of the sample or the number of suppressed records alone, the promise would be broken."
                ),
                (
                    "It helps to judge whether the release is worth publishing. A release that is not published has "
                    "been paid for all the same: the ledger counts it."
                ),
                (
                    "A policy that is changed because of what stands here has been made by looking at the table, and "
                    "no theorem covers that. Let the levels be chosen privately, or learn from last year’s table."
                ),
            ]
        )
    ]


def _numbers(c: Comparison, settings: CrowdSettings) -> list[Content]:
    raw, steps = c.before.total, []
    steps.append(("records in the table", c.before.total, len(c.recoded)))
    steps.append(("sampled", c.sample.total, len(c.sample)))
    steps.append(("published", c.published.total, len(c.published)))
    steps.append(("suppressed after sampling", c.suppressed, len(c.sample) - len(c.published)))
    rows = [[name, number(records), percent(records / raw), number(crowds)] for name, records, crowds in steps]
    expected = "" if settings.already_sampled else f" On average {number(round(settings.beta * raw))} would be sampled."
    return [
        table("Records and crowds", ["", "records", "of the table", "crowds"], rows, numbers=(1, 2, 3)),
        paragraph(
            "Crowds are combinations of values as the release shows them. "
            + (
                "The table was declared to be a sample already, so all of it is the sample."
                if settings.already_sampled
                else f"Each record was sampled with probability β = {number(settings.beta, 6)}.{expected}"
            )
        ),
    ]


def _loss(c: Comparison, settings: CrowdSettings) -> list[Content]:
    records = c.sample.total
    rows = [
        [
            "information kept",
            percent(utility.information_kept(c)),
            "0% to 100%",
            (
                "Granularity, 1 − GIL: the mean over sampled records and columns of 1 − (values covered − 1)/(values "
                "of the domain − 1). A suppressed record keeps nothing."
            ),
        ],
        [
            "entropy lost",
            percent(utility.nonuniform_entropy(c)),
            "0% to 100%",
            (
                "Non-uniform entropy: −log₂ of how likely the true value is among those that look alike, relative to "
                "suppressing everything; rare values tell more."
            ),
        ],
        [
            "discernibility",
            number(utility.discernibility(c)),
            f"{number(records)} to {number(records**2)}",
            "Each sampled record costs as many records as it cannot be told from; a suppressed one, the whole sample.",
        ],
        [
            "average crowd",
            number(utility.average_class_size(c)),
            f"1 to {number(records)}",
            (
                "Sampled records divided by crowds, all suppressed ones being one crowd. Divided by k: "
                f"{number(utility.normalised_class_size(c, settings.k))}, 1 being best."
            ),
        ],
        [
            "KL divergence",
            f"{number(utility.kl_divergence(c))} bits",
            "0 to ∞",
            (
                "How far the distribution that the release suggests, spread evenly over what its labels cover, is from "
                "the table’s."
            ),
        ],
        [
            "pMSE",
            number(utility.pmse(c)),
            "0 to 0.25",
            "How well published records can be told from records of the table by two columns at a time.",
        ],
        [
            "query error",
            percent(utility.query_error(c)),
            "0% to ∞",
            "The mean relative error of all counts of one or two columns, estimated from the release. See below.",
        ],
    ]
    return [table("Measures of information loss", ["measure", "value", "from best to worst", "what it is"], rows)]


def _columns(c: Comparison, attributes: Sequence[CodedAttribute], outcome: Outcome) -> list[Content]:
    kept = utility.information_by_column(c)
    errors = {m.names[0]: m.query_error for m in c.marginals if len(m.names) == 1}
    rows, cards = [], []
    for a in attributes:
        recode = c.recodes[a.name]
        before, after = tally(c.recoded, a.name), tally(c.published, a.name)
        lost = np.flatnonzero((before > 0) & (after == 0))
        level, height = outcome.levels[a.name], a.hierarchy.height
        rows.append(
            [
                label(a.name),
                f"{level} of {height}",
                f"{number(len(recode.labels))} of {number(len(recode.to))}",
                percent(kept[a.name]),
                percent(_error(before, after / c.rate)),
                percent(errors[a.name]),
                _named([recode.labels[i] for i in lost]),
            ]
        )
        shown = f"level {level} of {height}"
        if len(recode.labels) > MOST:
            shown += f", the most frequent of {number(len(recode.labels))} values"
        if len(recode.labels) > 1:
            cards.append(before_and_after(label(a.name), shown, recode.labels, before, after))
    legend = tag(
        "p",
        tag("span", tag("i", class_="key was"), "the table, grouped as in the release"),
        tag("span", tag("i", class_="key"), "the release"),
        class_="legend",
    )
    return [
        table(
            "What each column has kept",
            ["column", "level", "values", "kept", "error", "at finest", "values lost altogether"],
            rows,
            numbers=(1, 2, 3, 4, 5),
        ),
        paragraph(
            "Values: how many are told apart, of how many. Kept: the information kept. Error: the mean relative error "
            "of the column’s counts, as they are shown and, spread evenly, at its finest values."
        ),
        heading("Shares of each value"),
        legend,
        tag("div", cards, class_="cards"),
    ]


def _error(truth: NDArray[np.int64], estimate: utility.Floats) -> float:
    """The mean relative error of the counts of values that occur, as in `utility.query_error`."""
    error = np.abs(estimate - truth) / np.maximum(truth, utility.SANITY * truth.sum())
    return float(error[truth > 0].mean())


def _named(labels: Sequence[str | None]) -> Html:
    if not labels:
        return markup("none")
    parts: list[Content] = []
    for text in labels[:_LOST]:
        parts += [", " if parts else None, label(text)]
    if len(labels) > _LOST:
        parts.append(f" and {number(len(labels) - _LOST)} more")
    return markup(parts)


def _suppressed(c: Comparison, settings: CrowdSettings) -> list[Content]:
    if not c.suppressed:
        return [paragraph("No sampled record was suppressed."), _by_size(c)]
    gone = c.sample.where(c.sample.counts < settings.k)
    order = np.lexsort((np.arange(len(gone)), -gone.counts))[:_SUPPRESSED]
    rows = [
        [
            number(int(gone.counts[i])),
            number(_size(c.recoded, gone, int(i))),
            *(label(column.labels[int(column.codes[i])]) for column in gone.columns),
        ]
        for i in order
    ]
    return [
        paragraph(
            f"{count(c.suppressed, 'sampled record', 'sampled records')} in {count(len(gone), 'crowd', 'crowds')} of "
            f"fewer than k = {number(settings.k)}."
        ),
        _by_size(c),
        table(
            f"The largest of them ({number(len(rows))} of {number(len(gone))})",
            ["sampled", "in the table", *map(label, gone.names)],
            rows,
            numbers=(0, 1),
        ),
    ]


def _size(whole: Histogram, part: Histogram, cell: int) -> int:
    """How many records of the whole table are in one cell of a part of it."""
    alike: NDArray[np.bool_] = np.ones(len(whole), dtype=bool)
    for name in whole.names:
        alike &= whole[name].codes == part[name].codes[cell]
    return int(whole.counts[alike].sum())


def _by_size(c: Comparison) -> Html:
    """Crowds of the table by size: how many of their records are in the release, as it would be scaled up."""
    bins = size_bins(c.recoded.counts, most=12)
    place = np.searchsorted([low for low, _ in bins], c.recoded.counts, side="right") - 1
    crowds = np.bincount(place, minlength=len(bins))
    published = np.bincount(place[c.beside > 0], minlength=len(bins))
    records, shown = (np.bincount(place, weights=counts) for counts in (c.recoded.counts, c.beside / c.rate))
    rows = [
        Row(
            number(low) if low == high else f"{low:,} to {high:,}",
            [min(shown[i] / records[i], 1.0)],
            [f"{crowds[i]:,}", f"{published[i]:,}", percent(shown[i] / records[i])],
        )
        for i, (low, high) in enumerate(bins)
        if crowds[i]
    ]
    return bars(
        "Crowds of the table by their size",
        "and how much of them the release shows, once it is scaled up by the sampling rate",
        ("crowds", "published", "shown"),
        rows,
    )


def _queries(c: Comparison) -> list[Content]:
    worst = sorted(c.marginals, key=lambda m: -m.query_error)[:_MARGINALS]
    one = [m.query_error for m in c.marginals if len(m.names) == 1]
    two = [m.query_error for m in c.marginals if len(m.names) == 2]
    rows = [
        [
            markup([markup([" × " if i else None, label(name)]) for i, name in enumerate(m.names)]),
            percent(m.query_error),
            number(m.pmse),
        ]
        for m in worst
    ]
    means = [f"one column: {percent(float(np.mean(one)))}"]
    if two:
        means.append(f"two columns: {percent(float(np.mean(two)))}")
    return [
        paragraph(
            "Each count of one or two columns of the table, at its finest values, is estimated from the release by "
            "spreading published records evenly over the values that they cover and dividing by the sampling rate. "
            f"Errors are relative to the true count, or to {percent(utility.SANITY)} of the table if that is more. "
            f"Means: {'; '.join(means)}."
        ),
        table("The least accurate counts", ["columns", "mean relative error", "pMSE"], rows, numbers=(1, 2)),
    ]


def _of(part: int, whole: int) -> str:
    return percent(part / whole) if whole else "–"
