"""Sample, recode, and publish only crowds (Li, Qardaji, Su)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from incrowd.mechanisms.base import Check, Estimates, FormField, Made, Mechanism, Tell
from incrowd.mechanisms.certificate import Together
from incrowd.mechanisms.sampled_crowd.section import SampledCrowd
from incrowd.mechanisms.sampled_crowd.stated import (
    CrowdCertificate,
    CrowdStatedMechanism,
    CrowdStatedPromise,
    CrowdStatement,
)

if TYPE_CHECKING:
    from incrowd.hierarchy import CodedAttribute
    from incrowd.histogram import Histogram
    from incrowd.mechanisms.promises import Promise
    from incrowd.mechanisms.sampled_crowd.draw import CrowdOutcome
    from incrowd.mechanisms.sampled_crowd.settle import CrowdSettled
    from incrowd.policy import Policy
    from incrowd.randomness import RandomSource


class SampledCrowdMechanism(
    Mechanism[SampledCrowd, "CrowdSettled", "Histogram", "CrowdOutcome", CrowdStatedPromise, CrowdStatedMechanism]
):
    """Sample, recode, and publish only crowds (Li, Qardaji, Su)."""

    title = "Sampled crowds"
    summary = "(ε,δ)-differential privacy: sample, make coarser, publish crowds of k."
    form = (
        FormField("epsilon", "ε"),
        FormField("delta", "δ"),
        FormField("selection_epsilon", "ε₁, for choosing levels"),
        FormField("beta", "β (empty: chosen)"),
        FormField("k", "k (empty: chosen)"),
    )
    start: ClassVar = {"epsilon": "1", "delta": "1e-6", "selection_epsilon": "0.1"}
    section = SampledCrowd
    certificate = CrowdCertificate
    claimed = (
        "that the table published was drawn from the publisher's data as described",
        "that each record was sampled independently with probability beta, from unpredictable bits",
        "that chosen levels were chosen on the full table with no more than selection_epsilon",
    )
    policy_note = """\
# The policy as it was carried out, with every level fixed: to be reviewed, and to be used again on another table, such
# as next year's. Nothing is then left to choose, so all of epsilon goes to the crowd.
"""

    def settle(self, policy: Policy, attributes: Sequence[CodedAttribute], copies: int) -> CrowdSettled:
        from incrowd.mechanisms.sampled_crowd.settle import settle

        return settle(self.section_in(policy), policy, attributes, copies)

    def prepare(self, settings: CrowdSettled, table: Histogram, tell: Tell) -> tuple[CrowdSettled, Histogram]:
        from incrowd.mechanisms.sampled_crowd.settle import prepare

        return prepare(settings, table, tell)

    def spending(self, settings: CrowdSettled) -> Promise:
        from incrowd.mechanisms.sampled_crowd.settle import spending

        return spending(settings)

    def together(self, settings: CrowdSettled, copies: int) -> Together | None:
        from incrowd.mechanisms.sampled_crowd.state import together

        return together(settings, copies)

    def draw(
        self, settings: CrowdSettled, prepared: Histogram, source: RandomSource
    ) -> Made[CrowdOutcome, CrowdStatement]:
        from incrowd.mechanisms.sampled_crowd.draw import draw

        return draw(settings, prepared, source)

    def check_promise(self, certificate: CrowdCertificate) -> Iterator[Check]:
        from incrowd.mechanisms.sampled_crowd.state import check_promise

        return check_promise(certificate)

    def settled_again(self, certificate: CrowdCertificate) -> CrowdSettled:
        from incrowd.mechanisms.sampled_crowd.state import settled_again

        return settled_again(certificate)

    def check_table(self, certificate: CrowdCertificate, table: Histogram) -> Iterator[Check]:
        from incrowd.mechanisms.sampled_crowd.state import check_table

        return check_table(certificate, table)

    def columns_needed(self, certificate: CrowdCertificate, by: Sequence[str] = (), **options: Any) -> Iterable[str]:
        from incrowd.mechanisms.sampled_crowd.state import columns_needed

        return columns_needed(certificate, by, **options)

    def estimate(self, certificate: CrowdCertificate, table: Histogram, by: Sequence[str], **options: Any) -> Estimates:
        from incrowd.mechanisms.sampled_crowd.estimate import estimate

        return estimate(certificate, table, by, **options)

    def public_report(
        self,
        policy: Policy,
        settings: CrowdSettled,
        published: Histogram,
        statement: CrowdStatement,
        *,
        void: str | None,
    ) -> bytes:
        from incrowd.mechanisms.sampled_crowd.report import public_report

        return public_report(policy, settings, published, statement, void=void)

    def internal_files(
        self,
        policy: Policy,
        attributes: Sequence[CodedAttribute],
        settings: CrowdSettled,
        table: Histogram,
        made: Made[CrowdOutcome, CrowdStatement],
        *,
        void: str | None,
    ) -> dict[str, bytes]:
        from incrowd.mechanisms.sampled_crowd.report import internal_report

        report = internal_report(policy, attributes, settings, table, made, void=void)
        return {"report.html": report}
