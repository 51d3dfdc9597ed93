"""A randomised table as a release: what it promises, and how that is checked.

Three promises stand side by side, each with its own theorem. *Pk*: nobody is linked to a record with a probability
above 1/k. *Local*: ε₀ bounds what one randomised record says about its owner, even if it is known whose it is.
*Central*: (ε,δ) bounds what the whole table says about anyone, because it is shuffled. All of them hold for tables of
the same size, of which one record is replaced, and the number of records is public. What adds up over several releases
is the central promise, so it is the one that the ledger counts.

The same statement is made about records that their owners have randomised before anyone collected them (`collected`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from incrowd.errors import DataError, InternalError, PolicyError, UnreachableError
from incrowd.guarantees.profile import Relation
from incrowd.guarantees.randomisation import RetentionReplacement, TransitionMatrix, local_epsilon
from incrowd.hierarchy import CodedAttribute
from incrowd.histogram import Histogram
from incrowd.marginals import Counted
from incrowd.mechanisms import pram
from incrowd.mechanisms.pram import Block, Rows
from incrowd.mechanisms.pram_settings import PramPromise, Wish, keeps, needs_records, solve, uncertain
from incrowd.policy import Attribute, Policy
from incrowd.policy import Pram as Section
from incrowd.policy.mechanisms.pram import LARGEST_MATRIX, MatrixFile
from incrowd.randomness import RandomSource
from incrowd.releases import pram_statement
from incrowd.releases.declared import check_labels, held_columns
from incrowd.releases.entries import LARGEST_EPSILON, Point, Uncomposable
from incrowd.releases.kinds import (
    Check,
    Estimates,
    Made,
    Statement,
    Tell,
    fixed_levels,
    published_attributes,
    section_of,
)
from incrowd.releases.matrices import rows_of
from incrowd.releases.pram_statement import By, read_block
from incrowd.signing import canonical

CLAIMED = (
    "that the table published was drawn from the publisher's data as described",
    "that each value of each record was redrawn independently, from unpredictable bits",
    "that matrices which the policy keeps in files are the ones stated",
)
POLICY_NOTE = """\
# The policy as it was carried out: to be reviewed, and to be used again on another table, such as next year's.
"""


@dataclass(frozen=True, eq=False)
class Settled:
    """What a policy asks for and, once the number of records is known, what is done and promised.

    Attributes:
        section: the policy's.
        attributes: the columns.
        levels: the level at which each is shown.
        wishes: the blocks as asked for.
        blocks: the blocks as they are redrawn; none before the table was counted.
        promise: what that promises; None before the table was counted, and for invariant PRAM.
        records: the number of records; 0 before the table was counted.
        by: who redraws.
    """

    section: Section
    attributes: Sequence[CodedAttribute]
    levels: Mapping[str, int]
    wishes: tuple[Wish, ...]
    blocks: tuple[Block, ...] = ()
    promise: PramPromise | None = None
    records: int = 0
    by: By = "curator"


@dataclass(frozen=True, eq=False)
class Prepared:
    """All that is needed to draw."""

    settings: Settled
    table: Histogram


def settle(policy: Policy, attributes: Sequence[CodedAttribute], copies: int) -> Settled:  # noqa: ARG001
    """What the policy asks for, without any number of records unless the policy declares it."""
    section = policy.release
    if not isinstance(section, Section):
        raise InternalError("a randomised table was asked for by another mechanism's policy")
    levels = {a.name: 0 for a in attributes} | fixed_levels(policy, attributes)
    labels = {a.name: a.hierarchy.recode(levels[a.name]).labels for a in attributes}
    for name, texts in labels.items():
        if len(texts) < 2:
            raise PolicyError(
                f"Attribute {name}: at level {levels[name]} it has one value, so there is nothing to be redrawn.",
                code="policy-invalid",
                remedy="Choose a lower level, or drop it.",
                details={"attribute": name},
            )
    sizes = {name: len(texts) for name, texts in labels.items()}
    wishes = tuple(_wishes(section, sizes, partial(_matrix, policy, labels)))
    if section.invariant and any(wish.size > LARGEST_MATRIX for wish in wishes):
        raise PolicyError(
            f"An attribute, alone or joint, has more than {LARGEST_MATRIX:,} values: too many to be made invariant.",
            code="domain-large",
            remedy="Show it more coarsely.",
        )
    settled = Settled(section, attributes, levels, wishes)
    if section.records is not None:
        _decide(settled, section.records)  # what can be refused without the table is refused before it is read
    return settled


def _matrix(
    policy: Policy, labels: Mapping[str, Sequence[str | None]], names: tuple[str, ...], spec: Rows | MatrixFile
) -> Rows:
    called = f"Attribute {names[0]}" if len(names) == 1 else f"The joint attribute of {' and '.join(names)}"
    size = math.prod(len(labels[name]) for name in names)
    return rows_of(spec, policy.base, size, labels[names[0]] if len(names) == 1 else None, called)


def _wishes(
    section: Section, sizes: Mapping[str, int], rows: Callable[[tuple[str, ...], Rows | MatrixFile], Rows]
) -> Iterator[Wish]:
    """The blocks that a policy asks for: attributes by themselves, then joint ones.

    Args:
        section: the policy's.
        sizes: how many values each attribute has.
        rows: how to get at a matrix that the policy names.
    """
    weighted = bool(section.importance) or any(one.importance is not None for one in section.joint)
    each = section.rho if isinstance(section.rho, Mapping) else {}
    rho = None if isinstance(section.rho, Mapping) else section.rho
    asked: list[tuple[tuple[str, ...], Any, float | None, float | None]] = [
        ((name,), section.matrix.get(name), each.get(name, rho), section.importance.get(name))
        for name in section.alone(sizes)
    ]
    asked += [(one.of, one.matrix, rho if one.rho is None else one.rho, one.importance) for one in section.joint]
    for names, matrix, kept, weight in asked:
        own = tuple(sizes[name] for name in names)
        if matrix is not None:
            yield Wish(names, own, rows(names, matrix))
        else:
            yield Wish(names, own, rho=kept, weight=(1.0 if weight is None else weight) if weighted else None)


def _decide(settled: Settled, records: int) -> Settled:
    """The same with blocks and promise, for so many records."""
    section = settled.section
    blocks = solve(settled.wishes, section.k, section.epsilon, records)
    uncertain(blocks)  # invariant PRAM promises nothing, but it does redraw
    promise = None if section.invariant else PramPromise.of(blocks, records, section.delta)
    if promise is not None and promise.epsilon > LARGEST_EPSILON:
        raise UnreachableError(
            f"So much is kept that epsilon is above {LARGEST_EPSILON:g}, even for the shuffled table.",
            code="unreachable",
            remedy="Keep less: that would promise nothing.",
        )
    return replace(settled, blocks=blocks, promise=promise)


def prepare(settings: Settled, table: Histogram, tell: Tell) -> Prepared:
    """Count the records, which decides what is promised."""
    tell("solving", 0.0)
    recodes = {a.name: a.hierarchy.recode(settings.levels[a.name]) for a in settings.attributes}
    shown = table.recode({name: recode for name, recode in recodes.items() if settings.levels[name]})
    return Prepared(completed(decided(settings, shown.total), shown), shown)


def decided(settings: Settled, records: int) -> Settled:
    """The same for a table of so many records: how values are redrawn, but for a second step, and what that promises.

    Raises:
        DataError: they are too few.
        GuaranteeError: nothing can be promised about them.
    """
    declared = settings.section.records
    if records < (declared or 2):
        raise DataError(
            f"The promise needs {declared or 2:,} records at least, and there are fewer.",
            code="data-empty",
            remedy="Nobody can hide in a table of one record; use a larger one."
            if records < 2
            else "Declare fewer 'records', or leave the key out to have the promise found for those there are.",
            details={"needed": declared or 2},
        )
    return replace(_decide(settings, declared or records), records=records)


def completed(settings: Settled, table: Counted) -> Settled:
    """The same with the second step of invariant PRAM, which is computed from the table at the published levels."""
    if not settings.section.invariant:
        return settings
    blocks = tuple(replace(b, back=pram.backward(b, _marginal(table, b))) for b in settings.blocks)
    return replace(settings, blocks=blocks)


def _marginal(table: Counted, block: Block) -> list[int]:
    shares = table.project(block.names)
    counts = np.zeros(block.size, dtype=np.int64)
    counts[pram.fold([shares[name].codes for name in block.names], block.sizes)] = shares.counts
    found: list[int] = counts.tolist()
    return found


def spending(settings: Settled) -> Point | Uncomposable:
    """The central promise; invariant PRAM promises nothing that could be added up."""
    if settings.promise is None:
        return Uncomposable("invariant PRAM: no promise")
    return Point(settings.promise.epsilon, settings.promise.delta, Relation.REPLACE_ONE)


def draw(prepared: Prepared, source: RandomSource) -> Made:
    """Redraw every record."""
    published = pram.run(prepared.table, prepared.settings.blocks, source)
    return Made(published, prepared.settings.levels, state(prepared.settings, published), prepared.table)


def collected(settings: Settled, published: Histogram) -> tuple[Settled, Made]:
    """A release of records that their owners have randomised, by the retentions and matrices of the policy.

    The policy gives `rho` (or matrices) outright: what was kept cannot depend on how many answered. The promise for one
    record holds whatever happens here; k and the central promise hold for the records that came.

    Args:
        settings: what `settle` found.
        published: the records as they came, columns and labels in the order of the policy.
    """
    if needs_records(settings.wishes, settings.section.k) or settings.section.invariant:
        raise InternalError("what respondents keep would depend on the table")
    found = replace(decided(settings, published.total), by="respondents")
    return found, Made(published, found.levels, state(found, published), None)


def state(settings: Settled, published: Counted) -> Statement:
    """The whole statement; all of it follows from the blocks, the levels and the number of records."""
    labels = {a.name: a.hierarchy.recode(settings.levels[a.name]).labels for a in settings.attributes}
    if published.total != settings.records or {c.name: c.labels for c in published.columns} != labels:
        raise InternalError("the release is not what the policy promises")
    return pram_statement.state(settings.blocks, settings.promise, settings.levels, settings.records, settings.by)


def together(settings: Settled, copies: int) -> dict[str, Any] | None:
    """Promises add up over independent releases, but for k, which speaks of one table alone."""
    return pram_statement.together(settings.promise, copies)


# --- checking it ----------------------------------------------------------------------------------------------------


def check_promise(certificate: Mapping[str, Any]) -> Iterator[Check]:
    """The blocks are the policy's, and every number follows from them."""
    mechanism, section, stated = certificate["mechanism"], section_of(certificate), certificate["promise"]
    attributes = {
        name: Attribute.model_construct(
            hierarchy=a["hierarchy"], level=a["level"], role=a["role"], missing=a["missing"]
        )
        for name, a in published_attributes(certificate).items()
    }
    blocks = [read_block(written) for written in mechanism["blocks"]]
    sizes = {name: size for block in blocks for name, size in zip(block.names, block.sizes, strict=True)}
    labels = {column["name"]: len(column["labels"]) for column in certificate["columns"]}
    records, by = mechanism["records"], mechanism["randomised_by"]
    needed = records if section.records is None else section.records
    whole = (
        sum(len(block.names) for block in blocks) == len(sizes) and sizes == labels and set(labels) == set(attributes)
    )
    asked = whole and not section.unfit(attributes) and isinstance(records, int)
    asked = asked and 2 <= needed <= records and _as_asked(section, blocks, needed) and by in ("curator", "respondents")
    asked = asked and mechanism["invariant"] == section.invariant and not (section.invariant and by == "respondents")
    asked = asked and math.isfinite(local_epsilon([block.law for block in blocks]))
    yield Check("the values are redrawn as the policy says", asked, "the blocks or their parameters are others")
    if not asked:
        return
    promise = settled_again(certificate).promise
    if promise is not None:
        for name, holds in promise.holds(blocks).items():
            yield Check(f"{name}, from the transition probabilities", holds, "they promise less")
    reached = keeps(blocks, section.k, section.epsilon, needed)
    yield Check("the policy's k and epsilon are reached", reached, "they are not")
    levels = {name: 0 if a.level is None else a.level for name, a in attributes.items()}
    same = canonical(mechanism["levels"]) == canonical(levels)
    yield Check("the levels are the policy's", same, "a level differs from the policy's")
    if same:
        yield check_labels(certificate, held_columns(certificate))
    several = stated["together"]
    said = pram_statement.state(blocks, promise, levels, records, by).is_in(certificate)
    said = said and several == pram_statement.together(promise, several["copies"] if several else 1)
    yield Check("the promise says what the parameters mean", said, "its words or numbers are others")


def _as_asked(section: Section, blocks: Sequence[Block], records: int) -> bool:
    """Whether blocks are those of a policy: solved once more, which may differ in the last digits elsewhere.

    Matrices that the policy keeps in files are taken from the blocks themselves.
    """
    stated = {block.names: block.law for block in blocks}
    sizes = {name: size for block in blocks for name, size in zip(block.names, block.sizes, strict=True)}

    def rows(names: tuple[str, ...], spec: Rows | MatrixFile) -> Rows:
        law = stated[names]
        return spec if isinstance(spec, tuple) else law.rows if isinstance(law, TransitionMatrix) else ()

    wished = solve(list(_wishes(section, sizes, rows)), section.k, section.epsilon, records)
    if {block.names: block.sizes for block in wished} != {block.names: block.sizes for block in blocks}:
        return False
    for block in wished:
        law, given = block.law, stated[block.names]
        if isinstance(law, RetentionReplacement) and isinstance(given, RetentionReplacement):
            if not math.isclose(law.retention, given.retention, rel_tol=1e-9, abs_tol=2.0**-60):
                return False
        elif law != given:
            return False
    return True


def settled_again(certificate: Mapping[str, Any]) -> Settled:
    """How values were redrawn and what that promises, as stated."""
    mechanism, section, stated = certificate["mechanism"], section_of(certificate), certificate["promise"]
    records = mechanism["records"]
    needed = records if section.records is None else section.records
    promise = None
    if not section.invariant:
        promise = PramPromise(
            needed, stated["k"], stated["local_epsilon"], stated["epsilon"], section.delta, stated["bound"]
        )
    return Settled(
        section, (), mechanism["levels"], (), blocks_of(certificate), promise, records, mechanism["randomised_by"]
    )


def columns_needed(certificate: Mapping[str, Any], by: Sequence[str] = (), **options: Any) -> list[str]:
    """Records are only counted; estimates need what is asked for, and what was redrawn together with it."""
    from incrowd.releases.reconstruction import columns_of

    mean, invariant = options.get("mean"), bool(certificate["mechanism"]["invariant"])
    return columns_of(blocks_of(certificate), [*by, *([] if mean is None else [mean])], invariant=invariant)


def check_table(certificate: Mapping[str, Any], table: Histogram) -> Iterator[Check]:
    """As many records as the promise is about."""
    records = certificate["mechanism"]["records"]
    yield Check(f"the table has {records} records", table.total == records, f"it has {table.total}")


def blocks_of(certificate: Mapping[str, Any]) -> tuple[Block, ...]:
    """How the values of a release were redrawn."""
    return tuple(read_block(written) for written in certificate["mechanism"]["blocks"])


def estimate(certificate: Mapping[str, Any], table: Histogram, by: Sequence[str], **options: Any) -> Estimates:
    """Statistics of the table before it was randomised."""
    from incrowd.releases.reconstruction import reconstruct

    return reconstruct(certificate, table, by, **options)
