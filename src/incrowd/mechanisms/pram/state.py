"""A randomised table as a release: what it promises, and how that is checked.

Three promises stand side by side, each with its own theorem. *Pk*: nobody is linked to a record with a probability
above 1/k. *Local*: ε₀ bounds what one randomised record says about its owner, even if it is known whose it is.
*Central*: (ε,δ) bounds what the whole table says about anyone, because it is shuffled. All of them hold for tables of
the same size, of which one record is replaced, and the number of records is public. What adds up over several releases
is the central promise, so it is the one that the ledger counts.

The same statement is made about records that their owners have randomised before anyone collected them (`collected`).
"""

from __future__ import annotations

import decimal
import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from typing import Any

from incrowd.core.errors import InternalError
from incrowd.core.numbers import grown
from incrowd.core.signing import canonical
from incrowd.histogram import Histogram
from incrowd.marginals import Counted
from incrowd.mechanisms.base import (
    Check,
    published_attributes,
    section_of,
)
from incrowd.mechanisms.certificate import Statement, Together
from incrowd.mechanisms.declared import check_labels, held_columns, says_together
from incrowd.mechanisms.persons import Persons
from incrowd.mechanisms.pram.blocks import Block, Rows, as_drawn
from incrowd.mechanisms.pram.certificate import (
    AnyPramMechanism,
    CentralPart,
    InvariantStatedPromise,
    KeptBlock,
    LinkingPart,
    LocalPart,
    MatrixBlock,
    PramCertificate,
    PramParts,
    PramStatedMechanism,
    PramStatedPromise,
    PramStatement,
    PramTogether,
    SampledPramMechanism,
)
from incrowd.mechanisms.pram.section import MatrixFile, Pram, unfit_rows, write_probability
from incrowd.mechanisms.pram.settle import (
    FEWEST,
    PramPromise,
    PramSettled,
    _wishes,
    each_of,
    keeps,
    likely_sample,
    solve,
)
from incrowd.policy import Attribute
from incrowd.theory._numbers import round_up
from incrowd.theory.randomisation import RetentionReplacement, TransitionMatrix, local_epsilon


def state(settings: PramSettled, published: Counted) -> PramStatement:
    """The whole statement; all of it follows from the blocks, the levels and the number of records."""
    labels = {a.name: a.hierarchy.recode(settings.levels[a.name]).labels for a in settings.attributes}
    if published.total != settings.records or {c.name: c.labels for c in published.columns} != labels:
        raise InternalError("the release is not what the policy promises")
    return describe(settings)


def together(settings: PramSettled, copies: int) -> Together | None:
    """Promises add up over independent releases, but for k, which speaks of one table alone."""
    return _together(settings.promise, copies)


# --- checking it ----------------------------------------------------------------------------------------------------


def check_promise(certificate: PramCertificate) -> Iterator[Check]:
    """The blocks are the policy's, and every number follows from them."""
    mechanism, section = certificate.mechanism, section_of(certificate, Pram)
    attributes = {
        name: Attribute.model_construct(
            hierarchy=a["hierarchy"], level=a["level"], role=a["role"], missing=a["missing"]
        )
        for name, a in published_attributes(certificate).items()
    }
    blocks = [read_block(written) for written in mechanism.blocks]
    sizes = {name: size for block in blocks for name, size in zip(block.names, block.sizes, strict=True)}
    labels = {column.name: len(column.labels) for column in certificate.columns}
    records, by = mechanism.records, mechanism.randomised_by
    needed = _needed(certificate, section)
    whole = (
        sum(len(block.names) for block in blocks) == len(sizes) and sizes == labels and set(labels) == set(attributes)
    )
    asked = whole and not section.unfit(attributes)
    persons = Persons.in_certificate(certificate)
    enough = records >= FEWEST if section.beta is not None else needed <= records
    asked = asked and needed >= FEWEST and enough and _as_asked(section, blocks, needed, persons)
    asked = asked and not (persons.declared and (by == "respondents" or section.already_sampled))
    asked = asked and mechanism.invariant == section.invariant and not (section.invariant and by == "respondents")
    asked = asked and math.isfinite(local_epsilon([block.law for block in blocks]))
    yield Check("the values are redrawn as the policy says", asked, "the blocks or their parameters are others")
    if not asked:
        return
    settled = settled_again(certificate)
    promise = settled.promise
    if promise is not None:
        for name, holds in promise.holds(blocks).items():
            yield Check(f"{name}, from the transition probabilities", holds, "they promise less")
    if section.beta is not None:
        likely = likely_sample(records, needed, as_drawn(section.beta))
        yield Check("the table is as large as a sample of so many people is", likely, "it is far too small")
    reached = keeps(blocks, section.k, each_of(section.epsilon, persons), needed)
    yield Check("the policy's k and epsilon are reached", reached, "they are not")
    levels = {name: 0 if a.level is None else a.level for name, a in attributes.items()}
    same = canonical(mechanism.levels) == canonical(levels)
    yield Check("the levels are the policy's", same, "a level differs from the policy's")
    if same:
        yield check_labels(certificate, held_columns(certificate))
    said = describe(replace(settled, levels=levels)).is_in(certificate)
    said = said and not (section.already_sampled and certificate.promise.together)
    said = said and says_together(certificate, lambda copies: _together(promise, copies))
    yield Check("the promise says what the parameters mean", said, "its words or numbers are others")


def _as_asked(section: Pram, blocks: Sequence[Block], records: int, persons: Persons) -> bool:
    """Whether blocks are those of a policy: solved once more, which may differ in the last digits elsewhere.

    Matrices that the policy keeps in files are taken from the blocks themselves.
    """
    stated = {block.names: block.law for block in blocks}
    sizes = {name: size for block in blocks for name, size in zip(block.names, block.sizes, strict=True)}

    def rows(names: tuple[str, ...], spec: Rows | MatrixFile) -> Rows:
        law = stated[names]
        return spec if isinstance(spec, tuple) else law.rows if isinstance(law, TransitionMatrix) else ()

    wished = solve(list(_wishes(section, sizes, rows)), section.k, each_of(section.epsilon, persons), records)
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


def settled_again(certificate: PramCertificate) -> PramSettled:
    """How values were redrawn and what that promises, as stated."""
    mechanism, section, stated = certificate.mechanism, section_of(certificate, Pram), certificate.promise
    records, persons = mechanism.records, Persons.in_certificate(certificate)
    promise, needed = None, _needed(certificate, section)
    if isinstance(stated, PramStatedPromise):
        promise = PramPromise(
            needed,
            stated.k,
            stated.local_epsilon,
            stated.epsilon,
            section.delta,
            stated.bound,
            persons.at_most,
            1.0 if section.beta is None else as_drawn(section.beta),
            None if section.beta is None else records,
        )
    if section.invariant != (promise is None):
        raise ValueError("the promise is not of the policy's kind")
    return PramSettled(
        section, (), mechanism.levels, (), blocks_of(certificate), promise, records, mechanism.randomised_by, persons
    )


def _needed(certificate: PramCertificate, section: Pram) -> int:
    """For how many records at least it is promised. Of a sample, how many it is from is the publisher's word."""
    if section.records is not None:
        return section.records
    stated = certificate.promise
    if section.beta is not None and isinstance(stated, PramStatedPromise):
        return stated.records
    return certificate.mechanism.records


def columns_needed(certificate: PramCertificate, by: Sequence[str], mean: str | None) -> list[str]:
    """Records are only counted; estimates need what is asked for, and what was redrawn together with it."""
    from incrowd.mechanisms.pram.estimate import columns_of

    invariant = certificate.mechanism.invariant
    return columns_of(blocks_of(certificate), [*by, *([] if mean is None else [mean])], invariant=invariant)


def check_table(certificate: PramCertificate, table: Histogram) -> Iterator[Check]:
    """As many records as the promise is about."""
    records = certificate.mechanism.records
    yield Check(f"the table has {records} records", table.total == records, f"it has {table.total}")


def blocks_of(certificate: PramCertificate) -> tuple[Block, ...]:
    """How the values of a release were redrawn."""
    return tuple(read_block(written) for written in certificate.mechanism.blocks)


def describe(settings: PramSettled) -> PramStatement:
    """The whole statement. Without a promise it is one about invariant PRAM, which has none."""
    promise, section = settings.promise, settings.section
    parameters: dict[str, Any] = {
        "blocks": tuple(_written(block) for block in settings.blocks),
        "records": settings.records,
        "invariant": promise is None,
        "randomised_by": settings.by,
        "levels": dict(settings.levels),
    }
    mechanism: AnyPramMechanism = (
        PramStatedMechanism(**parameters)
        if section.beta is None
        else SampledPramMechanism(**parameters, beta=settings.rate, already_sampled=section.already_sampled)
    )
    stated = _NOTHING if promise is None else _promise(promise, settings.blocks, settings.persons)
    return Statement(stated, mechanism, _assumptions(settings))


def _written(block: Block) -> KeptBlock | MatrixBlock:
    law = block.law
    if isinstance(law, RetentionReplacement):
        return KeptBlock(attributes=block.names, sizes=block.sizes, rho=law.retention)
    matrix = tuple(tuple(write_probability(entry) for entry in row) for row in law.rows)
    return MatrixBlock(attributes=block.names, sizes=block.sizes, matrix=matrix)


def read_block(written: KeptBlock | MatrixBlock) -> Block:
    """The block that a certificate describes; whatever is wrong with it is an error."""
    names, sizes = written.attributes, written.sizes
    if isinstance(written, KeptBlock):
        return Block(names, sizes, RetentionReplacement(written.rho, math.prod(sizes)))
    rows = tuple(tuple(Fraction(entry) for entry in row) for row in written.matrix)
    if unfit_rows(rows):
        raise ValueError("this is not a transition matrix")
    return Block(names, sizes, TransitionMatrix(rows))


def _promise(promise: PramPromise, blocks: Sequence[Block], persons: Persons) -> PramStatedPromise:
    several = persons.several
    most = f"{persons.at_most:,}"
    whose = "a certain one of a given person's" if several else "a given person's"
    relation = f"replace all records of one person, {most} at most" if several else "replace-one"
    group = f"; {most} records by group privacy" if several else ""
    central, local = (factor(epsilon) for epsilon in (promise.epsilon, promise.local_epsilon))
    kept = all(isinstance(block.law, RetentionReplacement) for block in blocks)
    empty = says_nothing(promise)
    parts = PramParts(
        linking=LinkingPart(
            notion="Pk-anonymity",
            k=promise.k,
            relation="none: it holds whatever is known about the table, even all of it",
            theorem=f"Ikarashi, Kikuchi, Chida, Takahashi, Corollary {5 if kept else 4}",
            in_words=(
                "Nobody can tell with a probability above "
                f"1/k = {_part(promise.k)} which record of this table is {whose}, even knowing everybody's "
                f"true values.{_EACH if several else ''}{_SO_LITTLE if 'linking' in empty else ''}"
            ),
        ),
        local=LocalPart(
            notion="local differential privacy",
            epsilon=promise.local_epsilon,
            relation=relation,
            theorem=f"Ikarashi, Kikuchi, Chida, Takahashi, Corollary {2 if kept else 1}{group}",
            in_words=(
                "Even to someone who knows which record is whose, "
                f"{f'all records of a person, {most} at most, are' if several else 'a record is'} at most "
                f"e^ε₀ = {local} times as likely for one person as for any other."
                f"{_SO_LITTLE if 'local' in empty else ''}"
            ),
        ),
        central=CentralPart(
            notion="(epsilon, delta)-differential privacy of the shuffled table",
            epsilon=promise.epsilon,
            delta=promise.delta,
            relation=relation,
            theorem=_BOUNDS[promise.bound] + (_SAMPLED if promise.rate < 1 else "") + group,
            in_words=(
                "Whatever anyone might conclude from this table, its probability is at most "
                f"e^ε = {central} times what it would be had any one person's "
                f"{f'records, {most} at most, been others' if several else 'record been another'}, plus "
                f"δ = {promise.delta!r}.{_SO_LITTLE if 'central' in empty else ''}"
            ),
        ),
    )
    each = (parts.linking, parts.local, parts.central)
    return PramStatedPromise(
        notion="Pk-anonymity and differential privacy, of each record and of the shuffled table",
        epsilon=promise.epsilon,
        delta=promise.delta,
        relation=relation,
        k=promise.k,
        local_epsilon=promise.local_epsilon,
        records=promise.records,
        bound=promise.bound,
        parts=parts,
        in_words=" ".join(part.in_words for part in each),
        grounds="; ".join(f"{part.notion}: {part.theorem}" for part in each) + ".",
    )


_BOUNDS = {
    "privacy blanket": "privacy blanket (Balle, Bell, Gascón, Nissim 2019), computed numerically (docs/pram.md)",
    "clones": "clones (Feldman, McMillan, Talwar 2021), computed numerically (docs/pram.md)",
    "local": "the promise for one record; shuffling adds nothing here",
}


_SAMPLED = ", of a random sample (docs/proofs.md, Shuffling)"


_LARGEST_TELLING = 10.0  # e to this is 22,027


_SMALLEST_TELLING = 1.1


_LARGEST_EXPONENT = 700.0  # of floating-point numbers, nearly


_EACH = " That is about each record by itself: who has several has as many chances to be linked to one."


_SO_LITTLE = " With such a number, that is practically no promise at all."


def says_nothing(promise: PramPromise) -> tuple[str, ...]:
    """The parts of a promise that hold but say practically nothing: linking, local, central."""
    empty = {
        "linking": promise.k < _SMALLEST_TELLING,
        "local": promise.local_epsilon > _LARGEST_TELLING,
        "central": promise.epsilon > _LARGEST_TELLING,
    }
    return tuple(part for part, is_so in empty.items() if is_so)


def _part(k: float) -> str:
    """1/k, rounded up."""
    with decimal.localcontext(decimal.Context(prec=3, rounding=decimal.ROUND_CEILING)):
        return repr(float(1 / Decimal(k)))


def factor(epsilon: float) -> str:
    """e^ε in a sentence, also beyond the largest floating-point number."""
    found = grown(epsilon, 4)
    return f"{float(found):g}" if epsilon < _LARGEST_EXPONENT else f"{found:e}"


_NOTHING = InvariantStatedPromise(
    notion="none (invariant PRAM)",
    relation="none",
    in_words=(
        "Every value was redrawn by chance, but the chances were computed from the true shares of the values, so "
        "that these stay as they are on average. What is lost by that is every proved promise: neither "
        "Pk-anonymity nor differential privacy, of a record or of the table, holds for chances that depend on "
        "the table."
    ),
    grounds=(
        "None. The theorems on randomised tables need transition probabilities that were fixed without looking at "
        "the table."
    ),
)


def _assumptions(settings: PramSettled) -> list[str]:
    """The premises of the theorems that nobody can check from outside."""
    promise, by, persons = settings.promise, settings.by, settings.persons
    redrawn = (
        "Every respondent randomised their own record once, as the questionnaire says, and sent nothing else."
        if by == "respondents"
        else "Each value of each record was redrawn once, independently, and the true table is not published."
    )
    unknown = (
        "k and the central promise count only records that the onlooker neither made nor learned as they were sent: "
        "whoever adds records of their own takes them out again. The local promise does not depend on it."
    )
    return [
        persons.premise,
        (
            "The number of records is public; tables are compared that differ in "
            f"{'the records of one person' if persons.several else 'one record'} but not in that number."
        ),
        *_sampling(settings),
        redrawn,
        *([unknown] if by == "respondents" else []),
        "Domains, hierarchies, levels and transition probabilities were declared, not read off this table."
        if promise is not None
        else "Domains, hierarchies and levels were declared, not read off this table.",
        "Every record fits the declarations; whether a run was refused for the sake of a record is not published.",
        "The order of the records carries nothing: they were published sorted by their values.",
        "The random bits were unpredictable, and have been forgotten.",
    ]


def _sampling(settings: PramSettled) -> list[str]:
    """What a sample must be for the central promise to hold."""
    if settings.promise is None or settings.section.beta is None:
        return []
    records, rate = settings.promise.records, settings.rate
    if settings.section.already_sampled:
        return [
            (
                f"The table is itself a random sample: each of at least {records} people came into it with probability "
                f"{rate!r} at most, independently of everything else, and the promise is about all of them."
            ),
            "Nobody learns otherwise who is in the sample, and nothing else is published from it.",
        ]
    return [
        (
            f"Each of at least {records} records was redrawn and published with probability {rate!r}, independently of "
            "everything else; the promise is about all of them, and the sample itself has been forgotten."
        )
    ]


def _together(promise: PramPromise | None, copies: int) -> Together | None:
    """Promises add up over independent releases, but for k, which speaks of one table alone."""
    if copies == 1:
        return None
    if promise is None:
        return Together(copies=copies, in_words=f"This is one of {copies} releases of the same table.")
    return PramTogether(
        copies=copies,
        epsilon=_times(copies, promise.epsilon),
        delta=min(1.0, _times(copies, promise.delta)),
        local_epsilon=_times(copies, promise.local_epsilon),
        in_words=(
            f"This is one of {copies} independent releases of the same table. Who has all of them has the central and "
            "the local promise with the numbers given here. k speaks of each release alone: nothing is promised about "
            "linking a person by several of them."
        ),
    )


def _times(copies: int, value: float) -> float:
    """The sum over the copies, rounded up."""
    return round_up(copies * value) if value else 0.0
