"""The mechanism itself: one short method for each step."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from incrowd.core.numbers import number
from incrowd.mechanisms.base import (
    Check,
    ComparedAs,
    ComparedSection,
    Concern,
    FormField,
    Made,
    Mechanism,
    Publication,
    Tell,
)
from incrowd.mechanisms.certificate import Together
from incrowd.mechanisms.estimates import NO_OPTIONS, EstimateOptions, Estimates
from incrowd.mechanisms.sample.certificate import (
    SampleCertificate,
    SampleStatedMechanism,
    SampleStatedPromise,
    SampleStatement,
)
from incrowd.mechanisms.sample.described import DESCRIBED
from incrowd.mechanisms.sample.section import Sample

if TYPE_CHECKING:
    from incrowd.hierarchy import CodedAttribute
    from incrowd.histogram import Histogram
    from incrowd.marginals import Counted
    from incrowd.mechanisms.promises import Promise
    from incrowd.mechanisms.sample.draw import SampleOutcome
    from incrowd.mechanisms.sample.settle import SampleSettled
    from incrowd.policy import Policy
    from incrowd.randomness import RandomSource
    from incrowd.recoding.fidelity import Told


class SampleMechanism(
    Mechanism[Sample, "SampleSettled", "Histogram", "SampleOutcome", SampleStatedPromise, SampleStatedMechanism]
):
    """A plain random sample (Chaudhuri, Mishra)."""

    title = "Plain sample"
    summary = "A sample of the table as it is, at the largest safe rate. Weaker than differential privacy."
    form = (
        FormField("epsilon", "ε"),
        FormField("delta", "δ"),
        FormField("rate", "rate (empty: the largest)"),
        FormField("rows_unknown", "rows that may change", more=True),
    )
    start: ClassVar = {"epsilon": "0.5", "delta": "0.05"}
    several_rows = True
    compared_as: ClassVar = ComparedAs(
        "plain sample",
        lambda epsilon, delta: (
            f"(1, {number(math.expm1(epsilon), 3)}, {number(delta)})-privacy of this table, replace-one"
        ),
        "The plain sample's promise is about this table alone, for replacing one record, and the rate was found by "
        "looking at the table. With probability δ the sample keeps nothing of it. It is the weakest of all.",
    )
    described = DESCRIBED
    estimate_options = frozenset({"mean", "sum_of", "total"})
    section = Sample
    certificate = SampleCertificate
    claimed = (
        "that epsilon and delta hold at this rate: that depends on the whole table, which only the publisher has",
        "that the table published was drawn from the publisher's data as described, once",
        "that each record was sampled independently with the stated rate, from unpredictable bits",
    )
    in_use = "A row stands for 1/rate people. `incrowd estimate` counts them, with an interval for each number."
    policy_note = """\
# The policy as it was carried out, to be reviewed, and to be used again on another table. What was found by looking at
# this table (the rate, or what a planned rate promises) is found anew for each table.
"""

    def comparable(
        self,
        epsilon: float,
        delta: float,
        sizes: Sequence[int],  # noqa: ARG002
        records: int,  # noqa: ARG002
    ) -> Iterator[ComparedSection]:
        """A likelihood ratio of 1 + ε′ = e^ε."""
        yield ComparedSection({"epsilon": math.expm1(epsilon), "delta": delta})

    def compared_at(self, promise: SampleStatedPromise) -> tuple[float, float] | None:
        return math.log1p(promise.epsilon), promise.delta

    def weaker(self, section: Sample) -> Iterator[dict[str, Any]]:
        for delta in (0.01, 0.05, 0.1, 0.3):
            if section.delta is not None and delta > section.delta:
                yield {"delta": delta}

    def settle(self, policy: Policy, attributes: Sequence[CodedAttribute], copies: int) -> SampleSettled:
        from incrowd.mechanisms.sample.settle import settle

        return settle(self.section_in(policy), policy, attributes, copies)

    def prepare(self, settings: SampleSettled, table: Histogram, tell: Tell) -> tuple[SampleSettled, Histogram]:
        from incrowd.mechanisms.sample.settle import prepare

        return prepare(settings, table, tell)

    def spending(self, settings: SampleSettled) -> Promise:
        from incrowd.mechanisms.sample.settle import spending

        return spending(settings)

    def concerns(self, settings: SampleSettled, table: Counted) -> Iterable[Concern]:
        from incrowd.mechanisms.sample.settle import concerns

        return concerns(settings, table)

    def in_short(self, settings: SampleSettled) -> str:
        return "" if settings.terms is None else f"p = {number(settings.terms.rate, 3)}"

    def together(self, settings: SampleSettled, copies: int) -> Together | None:  # noqa: ARG002
        return None  # there is never more than one

    def draw(
        self, settings: SampleSettled, prepared: Histogram, source: RandomSource
    ) -> Made[SampleOutcome, SampleStatement]:
        from incrowd.mechanisms.sample.draw import draw

        return draw(settings, prepared, source)

    def check_promise(self, certificate: SampleCertificate) -> Iterator[Check]:
        from incrowd.mechanisms.sample.state import check_promise

        return check_promise(certificate)

    def settled_again(self, certificate: SampleCertificate) -> SampleSettled:
        from incrowd.mechanisms.sample.state import settled_again

        return settled_again(certificate)

    def check_table(self, certificate: SampleCertificate, published: Publication) -> Iterator[Check]:
        from incrowd.mechanisms.sample.state import check_table

        return check_table(certificate, published.table)

    def columns_needed(
        self, certificate: SampleCertificate, by: Sequence[str] = (), options: EstimateOptions = NO_OPTIONS
    ) -> Iterable[str]:
        from incrowd.mechanisms.sample.state import columns_needed

        return columns_needed(certificate, by, options.mean, options.sum_of)

    def estimate(
        self,
        certificate: SampleCertificate,
        published: Publication,
        by: Sequence[str],
        options: EstimateOptions = NO_OPTIONS,
    ) -> Estimates:
        from incrowd.mechanisms.sample.estimate import estimate

        return estimate(certificate, published.table, by, options)

    def told(self, settings: SampleSettled, made: Made[SampleOutcome, SampleStatement]) -> Told:
        from incrowd.mechanisms.sample.told import told

        return told(settings, made)

    def public_report(
        self,
        policy: Policy,
        settings: SampleSettled,
        published: Publication,
        statement: SampleStatement,
        *,
        void: str | None,
    ) -> bytes:
        from incrowd.mechanisms.sample.report import public_report

        return public_report(policy, settings, published.table, statement, void=void)

    def internal_files(
        self,
        policy: Policy,
        attributes: Sequence[CodedAttribute],
        settings: SampleSettled,
        table: Histogram,
        made: Made[SampleOutcome, SampleStatement],
        *,
        void: str | None,
    ) -> dict[str, bytes]:
        from incrowd.mechanisms.sample.report import internal_report

        report = internal_report(policy, attributes, settings, table, made, void=void)
        return {"report.html": report}


MECHANISM = SampleMechanism()
