"""What a release is good for, in three lines, and what to change about it.

`verdict` speaks of what is published, and of nothing else: it stands on top of the public report, and whoever verifies
a release makes it again. `insight` compares the release with the table and is for the publisher alone. Both know no
mechanism: they see the published table, the levels, and the counts that a release tells. A new finding is one more
function in `FINDINGS`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np

from incrowd.core.errors import IncrowdError
from incrowd.core.numbers import count, number, per_mille, percent
from incrowd.histogram import Histogram, Labels
from incrowd.mechanisms.base import AnyMechanism, Concern
from incrowd.mechanisms.certificate import StatedMechanism, StatedPromise, Statement
from incrowd.mechanisms.persons import Persons
from incrowd.mechanisms.registry import mechanism_named
from incrowd.recoding.fidelity import Fidelity, Told, dense, fidelities, score
from incrowd.recoding.mapping import MAPPING, read_tree
from incrowd.reports.bars import Row, bars
from incrowd.reports.page import Content, Html, code, heading, label, markup, paragraph, points, table, tag
from incrowd.sources.column_names import may_weigh, says_weight, words_of

if TYPE_CHECKING:
    from incrowd.hierarchy import CodedAttribute
    from incrowd.marginals import Counted, Crowds
    from incrowd.mechanisms.base import Made
    from incrowd.policy import Policy
    from incrowd.sources.kept import KeptTable

AnyStatement = Statement[StatedPromise, StatedMechanism]

MOSTLY_HIDDEN = 0.5
"""A column that a larger part of the records shows as everything alike says little."""
NEARLY_EMPTY = 30
"""A table with fewer records is hardly worth publishing."""
UNCONFIRMED = "unconfirmed"
_NAMED = 4  # values or columns in a line
_ROWS = 20  # in the plot of shares
_WORK = 20_000_000  # cells that scores may take, for each number of columns
_MANY, _FEW = 1000, 100  # values, and how many times fewer that occur
_MINORITY = 0.005  # of the table; smaller groups are lost with less ado
_LOST = 0.5  # of a group's share
_BELOW = 0.05  # what a score may be below its control before that is told
_COLUMNS = ("one column", "two columns", "three columns")
_SMALL_CELLS_STAYED = (
    "The table has too many different rows to be fetched: counts are compared column by column, and small cells stayed "
    "where it is."
)


@dataclass(frozen=True)
class ColumnVerdict:
    """A column as it is published.

    Attributes:
        name: of the column.
        shown: how finely, in words.
        values: how many it could show.
        occurring: how many it does.
        gone: those that it does not.
        hidden: all values look alike.
        at_one_level: whether all records show it at the same one. If not, values of several levels stand side by side,
            and `values` are those that occur: of the others nothing is said.
        at_top: the part of the records that show it at the top of its hierarchy, if levels stand side by side.
    """

    name: str
    shown: str
    values: int
    occurring: int
    gone: Labels = ()
    hidden: bool = False
    at_one_level: bool = True
    at_top: float = 0.0

    @property
    def occurring_of(self) -> str:
        """How many values occur, of how many."""
        return f"{self.occurring:,} of {self.values:,}" if self.at_one_level else f"{self.occurring:,}"


@dataclass(frozen=True)
class Verdict:
    """What a release is good for, as far as everyone may know.

    Attributes:
        lines: in three lines.
        columns: each of them.
        warnings: what is wrong with it, and what to change.
    """

    lines: tuple[str, ...] = ()
    columns: tuple[ColumnVerdict, ...] = ()
    warnings: tuple[Concern, ...] = ()

    @property
    def text(self) -> str:
        """The lines, one below the other."""
        return "\n".join(self.lines)

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True)
class ValueShare:
    """What became of a value: its column, itself, and its part of the table before and after."""

    column: str
    value: str | None
    before: float
    after: float

    @property
    def kept(self) -> float:
        """Which part of its share is left."""
        return self.after / self.before if self.before else 1.0


@dataclass(frozen=True)
class Insight:
    """What a release has kept of the table. For the publisher's eyes only.

    Attributes:
        shown: scores of counts of one, two and three columns, at the published levels.
        finest: the same at the finest values.
        errors: for each column, the part of its records that its published counts put elsewhere.
        shares: of values at the published levels, the ones that lost most first.
        lines: further things to say.
        warnings: groups that lost most.
    """

    shown: tuple[Fidelity, ...] = ()
    finest: tuple[Fidelity, ...] = ()
    errors: Mapping[str, float] = field(default_factory=dict)
    shares: tuple[ValueShare, ...] = ()
    lines: tuple[str, ...] = ()
    warnings: tuple[Concern, ...] = ()

    @property
    def headline(self) -> str:
        """The scores in a sentence; empty if there are none."""
        if not self.finest:
            return ""
        told = [(self.shown, "at the published levels")] if self.shown != self.finest else []
        told.append((self.finest, "at the finest values"))
        scores = " and ".join(f"{', '.join(per_mille(one.score) for one in at)} {where}" for at, where in told)
        control = " and ".join(", ".join(per_mille(one.control) for one in at) for at, _ in told)
        return (
            f"How right counts of {_sizes(self.finest)} are, of 1000: {scores}. True counts of each column alone, "
            f"taken as independent, would reach {control}."
        )


# --- what everyone may know -------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class PublicView:
    """What findings are made from.

    Attributes:
        policy: what was asked for.
        records: how many are published; None if there is no table.
        columns: each of them.
        mechanism: how it was made.
        flat: whether columns were cut as a whole, and have no levels.
    """

    policy: Policy
    records: int | None
    columns: tuple[ColumnVerdict, ...]
    mechanism: AnyMechanism
    flat: bool = False

    @property
    def in_use(self) -> str:
        """What users do with it."""
        return Persons.in_policy(self.policy).worded(self.mechanism.in_use)


def in_brief(warnings: Sequence[Concern]) -> tuple[Concern, ...]:
    """Warnings as a person reads them: all parts that nobody has confirmed are one."""
    marked = [one for one in warnings if one.code == UNCONFIRMED]
    if len(marked) < 2:
        return tuple(warnings)
    names = dict.fromkeys(one.column for one in marked if one.column)
    about = f" ({', '.join(names)})" if names else ""
    text = f"{len(marked)} parts of the policy were read off the data, and nobody has confirmed them{about}."
    return (Concern(UNCONFIRMED, None, text), *(one for one in warnings if one.code != UNCONFIRMED))


def _hidden(seen: PublicView) -> Iterator[Concern]:
    for column in seen.columns:
        if column.hidden:
            weight = f"give it more weight (importance: {{{column.name}: 3}})"
            instead = weight if seen.flat else "fix its level below the top"
            yield Concern(
                "hidden",
                column.name,
                f"All values of {column.name} look alike. Leave the column out (role: drop), so that the others can be "
                f"finer, or {instead}.",
            )


def _mostly_hidden(seen: PublicView) -> Iterator[Concern]:
    found = sorted((c for c in seen.columns if c.at_top > MOSTLY_HIDDEN), key=lambda column: -column.at_top)
    if found:
        section = seen.policy.release
        keys = type(section).model_fields if section is not None else {}
        named = _listed([f"{column.name} ({percent(column.at_top)})" for column in found])
        weight = f"Give a column that matters more weight (importance: {{{found[0].name}: 3}}), l"
        yield Concern(
            "mostly-hidden",
            found[0].name if len(found) == 1 else None,
            f"In most records all values look alike of {named}. {weight if 'importance' in keys else 'L'}eave out "
            "columns that matter less (role: drop), so that the others can be finer, or accept "
            f"{'a larger epsilon' if 'epsilon' in keys else 'a weaker promise'}.",
        )


def _single(seen: PublicView) -> Iterator[Concern]:
    for column in seen.columns:
        if not column.hidden and not column.at_top and column.occurring == 1 and seen.records:
            yield Concern(
                "single-value",
                column.name,
                f"Only one value of {column.name} is left, so it tells nothing. Show it or other columns more "
                "coarsely, or leave it out (role: drop).",
            )


def _empty(seen: PublicView) -> Iterator[Concern]:
    if seen.records is not None and seen.records < NEARLY_EMPTY:
        what = "is empty" if not seen.records else f"has {count(seen.records, 'record', 'records')}"
        yield Concern(
            "nearly-empty",
            None,
            f"The table {what}. Publish fewer columns or show them more coarsely, or accept a weaker promise.",
        )


FINDINGS: tuple[Callable[[PublicView], Iterator[Concern]], ...] = (_empty, _hidden, _mostly_hidden, _single)
"""What is looked for in every release. Each sees what is published and the policy, never the table."""


def verdict(
    policy: Policy, published: Counted, statement: AnyStatement, beside: Mapping[str, bytes] = MappingProxyType({})
) -> Verdict:
    """What a release is good for, as far as what is published says it.

    Args:
        policy: what was asked for.
        published: the table, or its counts by each column.
        statement: what the release says of itself.
        beside: the public files beside the table.
    """
    mechanism = mechanism_named(statement.mechanism.name)
    section = policy.release
    has_table = section is not None and mechanism.table_stem(section) is not None
    levels = statement.mechanism.levels
    tree = read_tree(beside[MAPPING]) if MAPPING in beside else None
    flat = tree is not None and tree.cuts is not None
    tops = {} if tree is None else {c.name: c.labels[0] for c in tree.columns}
    columns = tuple(_column(published, name, levels, mechanism, tops, flat=flat) for name in published.names)
    seen = PublicView(policy, published.total if has_table else None, columns if has_table else (), mechanism, flat)
    lines = _lines(seen) if has_table else (f"{count(len(columns), 'column', 'columns')}. {seen.in_use}",)
    warnings = [replace(concern, internal=False) for find in FINDINGS for concern in find(seen)]
    return Verdict(lines, seen.columns, tuple(warnings))


def _column(
    published: Counted,
    name: str,
    levels: Mapping[str, int],
    mechanism: AnyMechanism,
    tops: Mapping[str, str | None],
    *,
    flat: bool,
) -> ColumnVerdict:
    labels = published[name].labels
    part = published.project([name])
    there = np.zeros(len(labels), dtype=np.bool_)
    there[part[name].codes] = True
    level = levels.get(name)
    hidden = (flat or bool(level)) and len(labels) == 1
    if hidden:
        shown = "hidden, all values alike"
    elif flat:
        shown = "coarser, the same labels in all records"
    elif level is None:
        shown = "each record as finely as its group allows"
    elif level:
        shown = f"coarser, level {level}" + ("" if mechanism.kept_as == "as it is" else f", {mechanism.kept_as}")
    else:
        shown = mechanism.kept_as
    occurring = int(there.sum())
    if level is None and not flat:
        alike = np.array([name in tops and text == tops[name] for text in labels], dtype=np.bool_)
        at_top = int(part.counts[alike[part[name].codes]].sum()) / (part.total or 1)
        return ColumnVerdict(name, shown, occurring, occurring, at_one_level=False, at_top=at_top)
    gone = tuple(text for text, is_there in zip(labels, there, strict=True) if not is_there)
    return ColumnVerdict(name, shown, len(labels), occurring, gone, hidden)


def _lines(seen: PublicView) -> tuple[str, ...]:
    if not seen.records:
        return ("Nothing could be published: the table is empty.",)
    telling = [column.name for column in seen.columns if column.occurring > 1]
    idle = len(seen.columns) - len(telling) if seen.records > 1 else 0
    first = count(seen.records, *seen.mechanism.records_called)
    first += f"; {_listed(telling)} tell{'s' if len(telling) == 1 else ''} them apart" if telling else ""
    if idle:
        first += f", {count(idle, 'column does', 'columns do')} not" if telling else ", and no column tells them apart"
    return f"{first}.", " ".join(_values_in_words(seen.columns)), seen.in_use


def _values_in_words(columns: Sequence[ColumnVerdict]) -> Iterator[str]:
    level = [column for column in columns if column.at_one_level]
    lost = [column for column in level if column.gone]
    if lost:
        values, occurring = sum(column.values for column in level), sum(column.occurring for column in level)
        names = _listed([f"{column.name} ({len(column.gone):,})" for column in lost])
        yield f"{occurring:,} of {values:,} values that could be shown occur; absent are values of {names}."
    elif level:
        yield "Every value that could be shown occurs."
    if len(level) < len(columns):
        names = _listed([f"{column.name} ({column.occurring:,})" for column in columns if not column.at_one_level])
        yield f"Each record is shown as finely as its group allows, in so many different values: {names}."


def _listed(names: Sequence[str]) -> str:
    shown = list(names[:_NAMED])
    if len(names) > _NAMED:
        shown.append(f"{len(names) - _NAMED} more")
    return shown[0] if len(shown) == 1 else f"{', '.join(shown[:-1])} and {shown[-1]}" if shown else ""


def before_publishing(
    mechanism: AnyMechanism, policy: Policy, settings: Any, table: Histogram | Crowds | KeptTable
) -> Iterator[Concern]:
    """What had better be changed before anything is charged or drawn. For the publisher's eyes only."""
    whole: Counted = table if isinstance(table, Histogram) else table.whole
    for mark in policy.unconfirmed:
        name = mark.path.split(".")[1] if mark.path.startswith("attributes.") else None
        said = f" ({mark.text})" if mark.text else ""
        text = f"{mark.path or 'The policy'} was read off the data{said}. Confirm it, then remove the mark."
        yield Concern(UNCONFIRMED, name, text)
    for name in policy.published if not mechanism.weights else ():
        if says_weight(words_of(name)) or may_weigh(words_of(name)):
            yield Concern(
                "survey-weight",
                name,
                f"Is {name} a survey weight? Then drop it: it has nearly as many values as people, and no count is "
                "weighted by it. If it is the weight of a body or the like, all is well.",
            )
    for column, tally in zip(whole.columns, whole.tallies.values(), strict=True):
        values, there = len(column.labels), int(np.count_nonzero(tally))
        if values >= _MANY and there * _FEW <= values:
            yield Concern(
                "mostly-unused",
                column.name,
                f"{column.name} declares {values:,} values, of which {there:,} occur. Every one of them could be a "
                "person's, so they count: declare fewer, or group them with a hierarchy.",
            )
    yield from mechanism.concerns(settings, whole)


# --- what only the publisher may know ---------------------------------------------------------------------------------


def insight(
    mechanism: AnyMechanism,
    attributes: Sequence[CodedAttribute],
    settings: Any,
    table: Histogram | Crowds | KeptTable,
    made: Made[Any, Any],
) -> Insight:
    """Compare a release with the table that it was made of.

    Args:
        mechanism: that made it.
        attributes: the columns of the table.
        settings: what was settled.
        table: the full table, base codes; or what is known of it.
        made: what came out.
    """
    some = not isinstance(table, Histogram)
    whole: Counted = table if isinstance(table, Histogram) else table.whole
    lines = tuple(mechanism.remarks(settings, table, made)) if isinstance(table, Histogram) else (_SMALL_CELLS_STAYED,)
    try:
        told = mechanism.told(settings, made)
        recodes = {a.name: a.hierarchy.recode(made.levels[a.name]) for a in attributes if a.name in made.levels}
        errors, shares = value_shares(whole, told, recodes, attributes)
        at_levels = len(recodes) == len(attributes) and any(made.levels[a.name] for a in attributes)
        looked_at = ({}, recodes) if at_levels else ({},)
        finest, *coarser = fidelities(whole, told, looked_at, most=1 if some else 3, work=_WORK)
        shown = coarser[0] if coarser else finest
    except IncrowdError:  # a column that cannot be undone, or has values of its own
        return Insight(lines=lines)
    warnings: list[Concern] = []
    if made.published.total >= NEARLY_EMPTY:
        at_a_level = [share for share in shares if share.column in recodes]
        warnings += [*_below_control(shown), *(_losers(at_a_level) if mechanism.leaves_out else ())]
    return Insight(shown, finest, errors, shares, lines, tuple(warnings))


def value_shares(
    whole: Counted, told: Told, recodes: Mapping[str, Any], attributes: Sequence[CodedAttribute]
) -> tuple[dict[str, float], tuple[ValueShare, ...]]:
    """For each column the part of its records that is told to be elsewhere, and what became of each value's share."""
    errors, found = {}, []
    for a in attributes:
        counts = [np.maximum(dense(whole, (a.name,)), 0.0), np.maximum(told((a.name,)), 0.0)]
        labels: Labels = whole[a.name].labels
        if a.name in recodes:
            recode = recodes[a.name]
            labels = recode.labels
            counts = [np.bincount(recode.to, weights=part, minlength=len(labels)) for part in counts]
        errors[a.name] = 1.0 - score(*counts)
        before, after = (part / (float(part.sum()) or 1.0) for part in counts)
        found += [
            ValueShare(a.name, labels[i], float(before[i]), float(after[i])) for i in np.flatnonzero(before).tolist()
        ]
    lost = sorted(found, key=lambda share: (share.kept, -share.before))
    return errors, tuple(lost)


def _below_control(shown: Sequence[Fidelity]) -> Iterator[Concern]:
    """Counts of several columns that are further from the truth than what one-way counts alone would say."""
    if found := next((f for f in shown[1:] if f.score < f.control - _BELOW), None):
        text = (
            f"Counts of {_COLUMNS[found.columns - 1]} score {per_mille(found.score)} of 1000, where true counts of "
            f"each column alone would score {per_mille(found.control)}. Publish fewer columns or show them more "
            "coarsely, or ask `incrowd advise` for another mechanism."
        )
        yield Concern("below-control", None, text)


def _losers(shares: Sequence[ValueShare]) -> Iterator[Concern]:
    """Minorities of which most is gone, column by column."""
    lost: dict[str, list[ValueShare]] = {}
    for share in shares:
        if share.kept < _LOST and share.before >= _MINORITY:
            lost.setdefault(share.column, []).append(share)
    for column, values in sorted(lost.items(), key=lambda item: -max(share.before for share in item[1]))[:_NAMED]:
        values.sort(key=lambda share: share.after - share.before)
        named = [
            f"{_quoted(share.value)} ({percent(share.before)} of the table, {percent(share.after)} of the release)"
            for share in values
        ]
        yield Concern(
            "lost-most",
            column,
            f"Of {column}, {_listed(named)} lost most. Fewer or coarser columns beside it would show more of them.",
        )


def _quoted(value: str | None) -> str:
    return "the missing value" if value is None else f"“{value}”"


def _sizes(found: Sequence[Fidelity]) -> str:
    words = ["one", "two", "three"][: len(found)]
    return f"{', '.join(words[:-1])} and {words[-1]} columns" if len(words) > 1 else "one column"


# --- on top of the reports --------------------------------------------------------------------------------------------


def public_block(found: Verdict) -> Html:
    """The verdict for the public report."""
    parts: list[Content] = [*map(_line, found.lines), *_warned("To keep in mind", found.warnings)]
    if found.columns:
        parts.append(_column_table(found))
    return _block(parts)


def internal_block(found: Verdict, inside: Insight, concerns: Sequence[Concern] = ()) -> Html:
    """The verdict for the publisher's own report: the same, what is lost, and each column."""
    parts: list[Content] = [*map(_line, (*found.lines, *inside.lines))]
    if inside.finest:
        parts.append(_score_table(inside))
    parts += _warned("To be changed, perhaps", (*concerns, *found.warnings, *inside.warnings))
    if found.columns:
        parts.append(_column_table(found, inside))
    if inside.shares:
        parts += [heading("What became of each value’s share"), share_bars(inside.shares)]
    return _block(parts)


def _block(parts: Sequence[Content]) -> Html:
    return tag("section", tag("h2", "What it is good for", id="verdict"), markup(parts))


def _line(text: str) -> Html:
    return paragraph(*_worded(text))


def _worded(text: str) -> list[Content]:
    """A sentence, in which what stands between backticks is a command."""
    return [code(part) if place % 2 else part for place, part in enumerate(text.split("`"))]


def _warned(title: str, warnings: Sequence[Concern]) -> list[Content]:
    if not warnings:
        return []
    return [tag("div", tag("b", title), points([_worded(w.text) for w in in_brief(warnings)]), class_="aside")]


def _score_table(inside: Insight) -> Html:
    rows = [
        [
            _COLUMNS[at.columns - 1],
            f"{per_mille(s.score)}",
            f"{per_mille(s.control)}",
            f"{per_mille(at.score)}",
            f"{per_mille(at.control)}",
            number(at.sets),
        ]
        for s, at in zip(inside.shown, inside.finest, strict=True)
    ]
    return markup(
        [
            table(
                "How right counts are, of 1000",
                ["counts of", "as shown", "control", "at the finest", "control", "sets of columns"],
                rows,
                numbers=(1, 2, 3, 4, 5),
            ),
            paragraph(
                "1000: all shares are right (1 minus their total variation distance). Control: what a true table for "
                "each column alone would score; a release below it says less than that."
            ),
        ]
    )


def _column_table(found: Verdict, inside: Insight | None = None) -> Html:
    """How finely each column is shown and what is gone; for the publisher, also how far its counts are off."""
    rows: list[list[Content]] = [
        [label(column.name), _shown_in_words(column), column.occurring_of, markup(_names(column))]
        for column in found.columns
    ]
    heads = ["column", "shown", "values that occur", "values gone"]
    if inside is not None:
        heads.insert(3, "counts off by")
        for row, column in zip(rows, found.columns, strict=True):
            row.insert(3, percent(inside.errors[column.name]) if column.name in inside.errors else "–")
    return table("Each column", heads, rows, numbers=range(2, len(heads) - 1))


def _shown_in_words(column: ColumnVerdict) -> str:
    shown = column.shown if column.at_one_level else "as its group allows"
    return shown + (f"; {percent(column.at_top)} of the records all alike" if column.at_top else "")


def _names(column: ColumnVerdict) -> list[Content]:
    if not column.at_one_level:
        return ["–"]
    parts: list[Content] = []
    for text in column.gone[:_NAMED]:
        parts += [", " if parts else None, label(text)]
    if len(column.gone) > _NAMED:
        parts.append(f" and {len(column.gone) - _NAMED:,} more")
    return parts or ["none"]


def share_bars(shares: Sequence[ValueShare]) -> Html:
    """How much of its share each value has kept, the ones that lost most first."""
    rows = [
        Row(
            markup([label(share.column), ": ", label(share.value)]),
            [min(share.kept, 1.0)],
            [percent(share.before), percent(share.after)],
        )
        for share in shares[:_ROWS]
    ]
    if len(shares) > _ROWS:
        rows.append(Row(f"and {len(shares) - _ROWS:,} more values, which lost less", [], ["", ""], rest=True))
    return bars(
        "Values by how much of their share is left",
        "A full bar: as large a part of the release as of the table, or larger. Values are as the release shows them.",
        ("table", "release"),
        rows,
    )
