"""The table beside what was published of it, as parts of the publisher's own report. Never to be published."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from incrowd.core.numbers import number, percent
from incrowd.hierarchy import CodedAttribute
from incrowd.recoding import utility
from incrowd.recoding.measures import MEASURES, UtilityMeasure
from incrowd.recoding.utility import Comparison
from incrowd.reports.bars import MOST, Row, bars, before_and_after, size_bins
from incrowd.reports.frame import cards, level_in_words
from incrowd.reports.page import Content, Html, heading, label, markup, paragraph, table, tag

_MARGINALS = 8
_UNITS = {"bits": " bits", "records": " records"}
_LOST = 6  # labels named in a row


def measures(c: Comparison, k: int | None = None) -> list[Content]:
    """Every measure of information loss."""
    rows = []
    for measure in MEASURES.values():
        best, worst = measure.best(c.sample.total), measure.worst(c.sample.total)
        value = _in_unit(measure, measure.shown(c)) + _UNITS.get(measure.unit, "")
        if measure.name == "class_size" and k is not None:
            value += f", {number(utility.normalised_class_size(c, k))} times k"
        rows.append([measure.title, value, f"{_in_unit(measure, best)} to {_in_unit(measure, worst)}"])
    said = "The documentation’s page on measures says what each is."
    if c.rate != 1.0:
        said += " Records are those of the sample: sampling alone loses nothing."
    caption = "Measures of information loss"
    return [table(caption, ["measure", "value", "from best to worst"], rows), paragraph(said)]


def _in_unit(measure: UtilityMeasure, value: float) -> str:
    return percent(value) if measure.unit == "share" and math.isfinite(value) else number(value)


def columns(c: Comparison, attributes: Sequence[CodedAttribute], levels: Mapping[str, int]) -> list[Content]:
    """Each column, before and after."""
    kept = utility.information_by_column(c)
    errors = {m.names[0]: m.query_error for m in c.marginals if len(m.names) == 1}
    rows, charts = [], []
    for a in attributes:
        recode = c.recodes[a.name]
        before, after = c.grouped[a.name], c.published.tallies[a.name]
        lost = np.flatnonzero((before > 0) & (after == 0))
        shown = level_in_words(levels[a.name], len(recode.labels))
        rows.append(
            [
                label(a.name),
                shown,
                f"{number(len(recode.labels))} of {number(len(recode.to))}",
                percent(kept[a.name]),
                percent(_error(before, after / c.rate)),
                percent(errors[a.name]),
                _named([recode.labels[i] for i in lost]),
            ]
        )
        if len(recode.labels) > MOST:
            shown += f"; the most frequent of {number(len(recode.labels))} values"
        if len(recode.labels) > 1:
            charts.append(before_and_after(label(a.name), shown, recode.labels, before, after))
    legend = tag(
        "p",
        tag("span", tag("i", class_="key was"), "the table, grouped as in the release"),
        tag("span", tag("i", class_="key"), "the release"),
        class_="legend",
    )
    return [
        table(
            "What each column has kept",
            ["column", "shown", "values", "kept", "error", "at finest", "values lost altogether"],
            rows,
            numbers=(2, 3, 4, 5),
        ),
        paragraph(
            "Values: how many are told apart, of how many. Kept: the information kept. Error: the mean relative error "
            "of the column’s counts, as they are shown and, spread evenly, at its finest values."
        ),
        heading("Shares of each value"),
        legend,
        cards(charts),
    ]


def _error(truth: NDArray[np.int64], estimate: NDArray[np.float64]) -> float:
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


def by_size(c: Comparison) -> Html:
    """Crowds of the table by size: how many of their records are in the release, as it would be scaled up."""
    sizes, cells = c.recoded.sizes
    bins = size_bins(sizes, most=12)
    edges = [low for low, _ in bins]
    place = np.searchsorted(edges, sizes, side="right") - 1
    crowds, records = (np.bincount(place, weights=each) for each in (cells, cells * sizes))
    there = np.flatnonzero(c.beside)
    place = np.searchsorted(edges, c.recoded.counts[there], side="right") - 1
    published = np.bincount(place, minlength=len(bins))
    shown = np.bincount(place, weights=c.beside[there] / c.rate, minlength=len(bins))
    rows = [
        Row(
            number(low) if low == high else f"{low:,} to {high:,}",
            [min(shown[i] / records[i], 1.0)],
            [f"{crowds[i]:,.0f}", f"{published[i]:,}", percent(shown[i] / records[i])],
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


def queries(c: Comparison) -> list[Content]:
    """How wrong counts from the release are."""
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
            "Counts of one or two columns at their finest values, estimated by spreading published records evenly over "
            f"the values that they cover. Errors are relative to the true count, or to {percent(utility.SANITY)} of "
            f"the table if that is more. Means: {'; '.join(means)}."
        ),
        table("The least accurate counts", ["columns", "mean relative error", "pMSE"], rows, numbers=(1, 2)),
    ]
