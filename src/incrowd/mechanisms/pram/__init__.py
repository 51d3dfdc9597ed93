"""Redraw every value at random (Ikarashi, Kikuchi, Chida, Takahashi)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from incrowd.mechanisms.base import Check, Estimates, FormField, Made, Mechanism, Tell
from incrowd.mechanisms.certificate import Together
from incrowd.mechanisms.pram.section import Pram
from incrowd.mechanisms.pram.stated import AnyPramPromise, PramCertificate, PramStatedMechanism, PramStatement

if TYPE_CHECKING:
    from incrowd.hierarchy import CodedAttribute
    from incrowd.histogram import Histogram
    from incrowd.mechanisms.pram.settle import PramSettled
    from incrowd.mechanisms.promises import Promise
    from incrowd.policy import Policy
    from incrowd.randomness import RandomSource


class PramMechanism(
    Mechanism[Pram, "PramSettled", "Histogram", "Histogram | None", AnyPramPromise, PramStatedMechanism]
):
    """Redraw every value at random (Ikarashi, Kikuchi, Chida, Takahashi)."""

    title = "Randomised records"
    summary = "Keep each value with probability ρ, else draw it anew; then shuffle."
    form = (
        FormField("rho", "ρ"),
        FormField("k", "k"),
        FormField("epsilon", "ε₀ of one record"),
        FormField("delta", "δ"),
    )
    start: ClassVar = {"rho": "0.5"}
    section = Pram
    certificate = PramCertificate
    claimed = (
        "that the table published was drawn from the publisher's data as described",
        "that each value of each record was redrawn independently, from unpredictable bits",
        "that matrices which the policy keeps in files are the ones stated",
    )
    policy_note = """\
# The policy as it was carried out: to be reviewed, and to be used again on another table, such as next year's.
"""

    def settle(self, policy: Policy, attributes: Sequence[CodedAttribute], copies: int) -> PramSettled:  # noqa: ARG002
        from incrowd.mechanisms.pram.settle import settle

        return settle(self.section_in(policy), policy, attributes)

    def prepare(self, settings: PramSettled, table: Histogram, tell: Tell) -> tuple[PramSettled, Histogram]:
        from incrowd.mechanisms.pram.settle import prepare

        return prepare(settings, table, tell)

    def spending(self, settings: PramSettled) -> Promise:
        from incrowd.mechanisms.pram.settle import spending

        return spending(settings)

    def together(self, settings: PramSettled, copies: int) -> Together | None:
        from incrowd.mechanisms.pram.state import together

        return together(settings, copies)

    def draw(
        self, settings: PramSettled, prepared: Histogram, source: RandomSource
    ) -> Made[Histogram | None, PramStatement]:
        from incrowd.mechanisms.pram.draw import draw

        return draw(settings, prepared, source)

    def check_promise(self, certificate: PramCertificate) -> Iterator[Check]:
        from incrowd.mechanisms.pram.state import check_promise

        return check_promise(certificate)

    def settled_again(self, certificate: PramCertificate) -> PramSettled:
        from incrowd.mechanisms.pram.state import settled_again

        return settled_again(certificate)

    def check_table(self, certificate: PramCertificate, table: Histogram) -> Iterator[Check]:
        from incrowd.mechanisms.pram.state import check_table

        return check_table(certificate, table)

    def columns_needed(self, certificate: PramCertificate, by: Sequence[str] = (), **options: Any) -> Iterable[str]:
        from incrowd.mechanisms.pram.state import columns_needed

        return columns_needed(certificate, by, **options)

    def estimate(self, certificate: PramCertificate, table: Histogram, by: Sequence[str], **options: Any) -> Estimates:
        from incrowd.mechanisms.pram.estimate import estimate

        return estimate(certificate, table, by, **options)

    def public_report(
        self, policy: Policy, settings: PramSettled, published: Histogram, statement: PramStatement, *, void: str | None
    ) -> bytes:
        from incrowd.mechanisms.pram.report import public_report

        return public_report(policy, settings, published, statement, void=void)

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
