"""The mechanism itself: one short method for each step."""

from __future__ import annotations

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
from incrowd.mechanisms.pram.certificate import AnyPramMechanism, AnyPramPromise, PramCertificate, PramStatement
from incrowd.mechanisms.pram.described import DESCRIBED
from incrowd.mechanisms.pram.section import Pram

if TYPE_CHECKING:
    from incrowd.hierarchy import CodedAttribute
    from incrowd.histogram import Histogram
    from incrowd.marginals import Counted
    from incrowd.mechanisms.pram.executors import PramExecutors
    from incrowd.mechanisms.pram.settle import PramSettled
    from incrowd.mechanisms.promises import Promise
    from incrowd.policy import Policy
    from incrowd.randomness import RandomSource
    from incrowd.recoding.fidelity import Told
    from incrowd.sources import Source


class PramMechanism(Mechanism[Pram, "PramSettled", "Histogram", "Histogram | None", AnyPramPromise, AnyPramMechanism]):
    """Redraw every value at random (Ikarashi, Kikuchi, Chida, Takahashi)."""

    title = "Randomised records"
    summary = "Keep each value with probability ρ, else draw it anew; then shuffle."
    form = (
        FormField("rho", "ρ, the chance to keep a value"),
        FormField("k", "or k"),
        FormField("epsilon", "or ε₀ of one record"),
        FormField("delta", "δ, after shuffling"),
        FormField("beta", "β, to redraw a sample only (empty: all)", more=True),
        FormField(
            "already_sampled",
            "The table is itself such a sample",
            choices={"false": "no", "true": "yes, of rate β"},
            more=True,
        ),
    )
    start: ClassVar = {"rho": "0.5"}
    several_rows = True
    drawn_by_executors = True
    compared_as: ClassVar = ComparedAs(
        "randomised records",
        lambda epsilon, delta: f"({number(epsilon)}, {number(delta)})-differential privacy, replace-one",
        "The randomised table is (ε, δ)-differentially private for replacing one record, if it is shuffled and has as "
        "many records as stated; each record alone has the much larger local ε.",
    )
    described = DESCRIBED
    section = Pram
    certificate = PramCertificate
    claimed = (
        "that the table published was drawn from the publisher's data as described",
        "that each value of each record was redrawn independently, from unpredictable bits",
        "that a sample, where only one was redrawn, was drawn at the rate and from as many records as stated",
        "that matrices which the policy keeps in files are the ones stated",
    )
    estimate_options = frozenset({"mean", "method"})
    leaves_out = False
    epsilon_called = "local ε"
    kept_as = "redrawn at random"
    in_use = (
        "No row can be relied upon, and rows are not to be counted as they are: `incrowd estimate` undoes the "
        "randomisation, for a few columns at a time."
    )
    policy_note = """\
# The policy as it was carried out: to be reviewed, and to be used again on another table, such as next year's.
"""

    def comparable(self, epsilon: float, delta: float, sizes: Sequence[int], records: int) -> Iterator[ComparedSection]:
        """The largest ρ, one for all columns, whose shuffled table keeps (ε, δ)."""
        from incrowd.mechanisms.pram.plan import largest_retention

        several = [size for size in sizes if size > 1]
        if several:
            yield ComparedSection({"rho": largest_retention(several, records, epsilon, delta), "delta": delta})

    def variations(self, section: Pram) -> Iterator[dict[str, Any]]:
        """Others of rho or k: what each of them promises stands beside it."""
        if section.importance or section.matrix or section.joint:
            return
        for rho in (0.1, 0.2, 0.3, 0.5, 0.7, 0.8, 0.9):
            if rho != section.rho:
                yield {"rho": rho, "k": None, "epsilon": None}
        for k in (2, 5, 10, 50):
            if k != section.k:
                yield {"k": k, "rho": None, "epsilon": None}

    def settle(self, policy: Policy, attributes: Sequence[CodedAttribute], copies: int) -> PramSettled:
        from incrowd.mechanisms.pram.settle import settle

        return settle(self.section_in(policy), policy, attributes, copies)

    def prepare(self, settings: PramSettled, table: Histogram, tell: Tell) -> tuple[PramSettled, Histogram]:
        from incrowd.mechanisms.pram.settle import prepare

        return prepare(settings, table, tell)

    def spending(self, settings: PramSettled) -> Promise:
        from incrowd.mechanisms.pram.settle import spending

        return spending(settings)

    def concerns(self, settings: PramSettled, table: Counted) -> Iterable[Concern]:
        from incrowd.mechanisms.pram.settle import concerns

        return concerns(settings, table)

    def in_short(self, settings: PramSettled) -> str:
        from incrowd.mechanisms.pram.settle import in_short

        return in_short(settings)

    def together(self, settings: PramSettled, copies: int) -> Together | None:
        from incrowd.mechanisms.pram.state import together

        return together(settings, copies)

    def draw(
        self, settings: PramSettled, prepared: Histogram, source: RandomSource
    ) -> Made[Histogram | None, PramStatement]:
        from incrowd.mechanisms.pram.draw import draw

        return draw(settings, prepared, source)

    def executors_lack(self, section: Pram) -> str | None:
        """How many records they write must be known; of a table that is itself a sample it is."""
        draws = section.beta is not None and not section.already_sampled
        return "do not sample: how many records they write must be known (beta)" if draws else None

    def by_executors(
        self, settings: PramSettled, attributes: Sequence[CodedAttribute], source: Source
    ) -> PramExecutors:
        from incrowd.sources import require_spark

        table = require_spark(source)
        from incrowd.mechanisms.pram.executors import PramExecutors

        return PramExecutors(settings, attributes, table)

    def check_promise(self, certificate: PramCertificate) -> Iterator[Check]:
        from incrowd.mechanisms.pram.state import check_promise

        return check_promise(certificate)

    def enclosed(self, certificate: PramCertificate) -> Iterator[Check]:
        from incrowd.mechanisms.pram.enclosed import enclosed

        return enclosed(certificate)

    def by_respondents(self, certificate: PramCertificate) -> bool:
        return certificate.mechanism.randomised_by == "respondents"

    def settled_again(self, certificate: PramCertificate) -> PramSettled:
        from incrowd.mechanisms.pram.state import settled_again

        return settled_again(certificate)

    def check_table(self, certificate: PramCertificate, published: Publication) -> Iterator[Check]:
        from incrowd.mechanisms.pram.state import check_table

        return check_table(certificate, published.table)

    def columns_needed(
        self, certificate: PramCertificate, by: Sequence[str] = (), options: EstimateOptions = NO_OPTIONS
    ) -> Iterable[str]:
        from incrowd.mechanisms.pram.state import columns_needed

        return columns_needed(certificate, by, options.mean)

    def estimate(
        self,
        certificate: PramCertificate,
        published: Publication,
        by: Sequence[str],
        options: EstimateOptions = NO_OPTIONS,
    ) -> Estimates:
        from incrowd.mechanisms.pram.estimate import reconstruct

        return reconstruct(certificate, published.table, by, options.method, options.mean)

    def told(self, settings: PramSettled, made: Made[Histogram | None, PramStatement]) -> Told:
        from incrowd.mechanisms.pram.told import told

        return told(settings, made)

    def public_report(
        self,
        policy: Policy,
        settings: PramSettled,
        published: Publication,
        statement: PramStatement,
        *,
        void: str | None,
    ) -> bytes:
        from incrowd.mechanisms.pram.report import public_report

        return public_report(policy, settings, published.table, statement, void=void)

    def internal_files(
        self,
        policy: Policy,
        attributes: Sequence[CodedAttribute],
        settings: PramSettled,
        table: Histogram,
        made: Made[Histogram | None, PramStatement],
        *,
        void: str | None,
    ) -> dict[str, bytes]:
        from incrowd.mechanisms.pram.report import internal_report

        report = internal_report(policy, attributes, settings, table, made, void=void)
        return {"report.html": report}


MECHANISM = PramMechanism()
