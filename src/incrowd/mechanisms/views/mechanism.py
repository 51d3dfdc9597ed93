"""The mechanism itself: one short method for each step."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from incrowd.core.errors import InternalError
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
    all_columns,
)
from incrowd.mechanisms.certificate import Together
from incrowd.mechanisms.estimates import NO_OPTIONS, EstimateOptions, Estimates
from incrowd.mechanisms.views.certificate import (
    AnyViewsMechanism,
    ViewsCertificate,
    ViewsStatedPromise,
    ViewsStatement,
)
from incrowd.mechanisms.views.described import DESCRIBED
from incrowd.mechanisms.views.section import Views

if TYPE_CHECKING:
    from incrowd.hierarchy import CodedAttribute
    from incrowd.histogram import Histogram
    from incrowd.marginals import Counted, Crowds
    from incrowd.mechanisms.promises import Promise
    from incrowd.mechanisms.views.draw import ViewsOutcome
    from incrowd.mechanisms.views.settle import ViewsSettled
    from incrowd.policy import Policy
    from incrowd.randomness import RandomSource
    from incrowd.recoding.fidelity import Told
    from incrowd.sources.at_least import CrowdsAsked
    from incrowd.sources.kept import KeptTable


class ViewsMechanism(
    Mechanism[Views, "ViewsSettled", "Histogram | KeptTable", "ViewsOutcome", ViewsStatedPromise, AnyViewsMechanism]
):
    """Many small tables of a few columns each, and one synthetic table made of them."""

    title = "Views"
    summary = (
        "(ε,δ)-differential privacy for many columns: small tables of a few columns each, as crowds or with noise, and "
        "a synthetic table made of them."
    )
    form = (
        FormField("epsilon", "ε"),
        FormField("delta", "δ"),
        FormField("by", "Counts are", choices={"crowd": "of crowds in a sample", "noise": "of everybody, with noise"}),
        FormField(
            "choose.how",
            "Views are chosen",
            choices={"": "as suits", "tree": "along a tree of columns", "adaptive": "where those so far say least"},
        ),
        FormField("choose.columns", "columns of a chosen view (2 or 3)"),
        FormField("views", "or listed: age, sex; region, income", lists=True),
        FormField("share", "share of the promise for choosing", more=True),
        FormField(
            "combine", "A synthetic table", choices={"table": "is made of them", "none": "is not made"}, more=True
        ),
        FormField("rows", "its rows (empty: as many as people)", more=True),
        FormField(
            "already_sampled",
            "The table is itself a random sample",
            choices={"false": "no", "true": "yes, at the rate below"},
            more=True,
        ),
        FormField("beta", "its rate", more=True),
    )
    start: ClassVar = {"epsilon": "1", "delta": "1e-6"}
    kept_as = "synthetic"
    scored_with: ClassVar = {"combine": "none", "rows": None}  # counts are the model's, with synthetic rows or without
    records_called = ("synthetic row, nobody's record", "synthetic rows, nobody's records")
    in_use = "Count with `incrowd estimate`, which reads the views and gives an interval for each number."
    table_notes: ClassVar = {"synthetic": "true", "about": "made from published views; its rows are nobody's records"}
    estimate_options = frozenset({"mean"})
    compared_as: ClassVar = ComparedAs(
        "views",
        lambda epsilon, delta: f"({number(epsilon)}, {number(delta)})-differential privacy, add/remove",
        "The views are (ε, δ)-differentially private for adding or removing one record, on any table; counts that no "
        "view carries come from a model of all of them.",
        {"by": "noise"},
    )
    described = DESCRIBED
    several_rows = True
    weights = False
    section = Views
    certificate = ViewsCertificate
    claimed = (
        "that the views published were drawn from the publisher's data as described",
        "that every view was drawn with fresh, unpredictable bits",
        "that the views were chosen on the full table with no more than was charged",
        "that the synthetic table was made from the views alone",
    )
    policy_note = """\
# The policy as it was carried out: to be reviewed, and to be used again on another table, such as next year's.
"""

    def comparable(
        self,
        epsilon: float,
        delta: float,
        sizes: Sequence[int],
        records: int,  # noqa: ARG002
    ) -> Iterator[ComparedSection]:
        promise = {"epsilon": epsilon, "delta": delta}
        yield ComparedSection(promise, chooses=True)
        yield ComparedSection({**promise, "by": "noise"}, chooses=True)
        if len(sizes) > 2:
            yield ComparedSection({**promise, "by": "noise", "choose": {"how": "adaptive"}}, chooses=True)

    def variations(self, section: Views) -> Iterator[dict[str, Any]]:
        """The other kind of counts; other sets of views, and other shares for choosing them."""
        if not section.already_sampled:
            yield {"by": "crowd" if section.by == "noise" else "noise"}
        choice = section.chosen
        if choice is None:
            yield {"views": None}
            return
        for how, columns in (("tree", 2), ("tree", 3), ("adaptive", 2), ("adaptive", 3)):
            if (how, columns) != (choice.how, choice.columns):
                yield {"choose": {"how": how, "columns": columns}}
        yield from ({"share": share} for share in (0.05, 0.1, 0.2) if share != section.share)

    def settle(self, policy: Policy, attributes: Sequence[CodedAttribute], copies: int) -> ViewsSettled:
        from incrowd.mechanisms.views.settle import settle

        return settle(self.section_in(policy), policy, attributes, copies)

    def prepare(self, settings: ViewsSettled, table: Histogram, tell: Tell) -> tuple[ViewsSettled, Histogram]:
        from incrowd.mechanisms.views.settle import prepare

        return prepare(settings, table, tell)

    def crowds_asked(self, settings: ViewsSettled) -> CrowdsAsked:
        """Nothing but counts by a few columns is ever looked at, so cells may stay in the engine."""
        from incrowd.sources.at_least import CrowdsAsked

        return CrowdsAsked({name: settings.recode(name) for name, level in settings.base.items() if level}, None)

    def prepare_crowds(self, settings: ViewsSettled, crowds: Crowds | KeptTable) -> KeptTable:
        from incrowd.sources.kept import KeptTable

        del settings
        if not isinstance(crowds, KeptTable):
            raise InternalError("views were given the large cells of a table")
        return crowds

    def spending(self, settings: ViewsSettled) -> Promise:
        from incrowd.mechanisms.views.settle import spending

        return spending(settings)

    def concerns(self, settings: ViewsSettled, table: Counted) -> Iterable[Concern]:  # noqa: ARG002
        from incrowd.mechanisms.views.settle import concerns

        return concerns(settings)

    def in_short(self, settings: ViewsSettled) -> str:
        return f"{settings.plan.singles + settings.plan.views} views with {settings.by}"

    def together(self, settings: ViewsSettled, copies: int) -> Together | None:
        from incrowd.mechanisms.views.state import together

        return together(settings, copies)

    def draw(
        self, settings: ViewsSettled, prepared: Histogram | KeptTable, source: RandomSource
    ) -> Made[ViewsOutcome, ViewsStatement]:
        from incrowd.mechanisms.views.draw import draw

        return draw(settings, prepared, source)

    def check_promise(self, certificate: ViewsCertificate) -> Iterator[Check]:
        from incrowd.mechanisms.views.state import check_promise

        return check_promise(certificate)

    def drawn_again(
        self, certificate: ViewsCertificate, published: Publication, rows: int | None, seed: int | None
    ) -> Histogram:
        from incrowd.mechanisms.views.draw import drawn_again

        return drawn_again(certificate, published, rows, seed)

    def settled_again(self, certificate: ViewsCertificate) -> ViewsSettled:
        from incrowd.mechanisms.views.state import settled_again

        return settled_again(certificate)

    def table_stem(self, section: Views) -> str | None:
        """The synthetic table, if there is one. Where a file has no metadata to say what it is, its name does."""
        if section.combine == "none":
            return None
        return "combined" if section.output in ("parquet", "arrow") else "combined-synthetic"

    def most_rows(self, section: Views, records: int) -> int | None:
        del records
        return section.rows

    def beside_names(self, certificate: ViewsCertificate) -> Sequence[str]:
        from incrowd.mechanisms.views.state import beside_names

        return beside_names(certificate)

    def tables_beside(self, certificate: ViewsCertificate) -> Mapping[str, Mapping[str, Sequence[str | None] | str]]:
        """The views: columns and counts."""
        from incrowd.mechanisms.views.state import tables_beside

        return tables_beside(certificate)

    def check_table(self, certificate: ViewsCertificate, published: Publication) -> Iterator[Check]:
        from incrowd.mechanisms.views.state import check_table

        return check_table(certificate, published)

    def columns_needed(
        self, certificate: ViewsCertificate, by: Sequence[str] = (), options: EstimateOptions = NO_OPTIONS
    ) -> Iterable[str]:
        del by, options
        return all_columns(certificate)

    def estimate(
        self,
        certificate: ViewsCertificate,
        published: Publication,
        by: Sequence[str],
        options: EstimateOptions = NO_OPTIONS,
    ) -> Estimates:
        from incrowd.mechanisms.views.estimate import estimate

        return estimate(certificate, published, by, options.mean)

    def told(self, settings: ViewsSettled, made: Made[ViewsOutcome, ViewsStatement]) -> Told:
        from incrowd.mechanisms.views.told import told

        return told(settings, made)

    def public_report(
        self,
        policy: Policy,
        settings: ViewsSettled,
        published: Publication,
        statement: ViewsStatement,
        *,
        void: str | None,
    ) -> bytes:
        from incrowd.mechanisms.views.report import public_report

        return public_report(policy, settings, published, statement, void=void)

    def internal_files(
        self,
        policy: Policy,
        attributes: Sequence[CodedAttribute],
        settings: ViewsSettled,
        table: Histogram,
        made: Made[ViewsOutcome, ViewsStatement],
        *,
        void: str | None,
    ) -> dict[str, bytes]:
        from incrowd.mechanisms.views.report import internal_report

        del attributes, settings, table
        return {"report.html": internal_report(policy, made, void=void)}

    def internal_crowds(
        self,
        policy: Policy,
        settings: ViewsSettled,
        crowds: Crowds | KeptTable,
        made: Made[ViewsOutcome, ViewsStatement],
        *,
        void: str | None,
    ) -> dict[str, bytes]:
        """The same: it takes counts of columns and of pairs of them."""
        from incrowd.mechanisms.views.report import internal_report

        del settings, crowds
        return {"report.html": internal_report(policy, made, void=void)}


MECHANISM = ViewsMechanism()
