"""What incrowd does, in one place: the command line and the studio call these functions and nothing below them.

Scripts rely on the names of `incrowd` itself, most of which are defined here; the others here may change.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from incrowd.api.advice import advise, advise_sample, choose_privately, compare, explore, look_at
from incrowd.api.examples import EXAMPLES, make_example
from incrowd.api.ledger import ledger_accept_loss, ledger_add, ledger_budget, ledger_datasets, ledger_statement
from incrowd.api.pages import (
    ENCODINGS,
    belief_at_most,
    collected,
    column_ranges,
    draw_attack,
    draw_compared,
    draw_explored,
    draw_frontier,
    draw_lattice,
    draw_plan,
    mechanism_forms,
    odds_at_most,
    open_questionnaire,
    plan_chart,
    policy_from_text,
    policy_levels,
    policy_paths,
    preview_text,
    read_certificate,
    rows_of_people,
    save_policy,
    style_sheet,
    table_columns,
    without_preamble,
    without_style,
)
from incrowd.auditing.tables import audit
from incrowd.core.errors import DataError, ParameterError
from incrowd.core.progress import Progress
from incrowd.papers.examples.survey import write_survey
from incrowd.releases.pipeline import (
    internal_folder,
    release,
    release_copies,
    release_folders,
)

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from incrowd.api.pages import Drawable
    from incrowd.auditing.audit import Audit as Audit
    from incrowd.auditing.rules import RuleOutcome as RuleOutcome
    from incrowd.comparison import Compared as Compared
    from incrowd.comparison.advice import Advised as Advised
    from incrowd.comparison.advice import Alternative as Alternative
    from incrowd.comparison.look import Looked as Looked
    from incrowd.comparison.private_choice import PrivateChoice as PrivateChoice
    from incrowd.drafting import Draft as Draft
    from incrowd.drafting import draft as draft_policy
    from incrowd.mechanisms.base import Concern as Concern
    from incrowd.mechanisms.certificate import AnyCertificate as AnyCertificate
    from incrowd.mechanisms.estimates import Estimates as Estimates
    from incrowd.mechanisms.planner import Planned as Planned
    from incrowd.mechanisms.planner import Planner as Planner
    from incrowd.mechanisms.planner import PlanOption as PlanOption
    from incrowd.mechanisms.planner import planners
    from incrowd.mechanisms.pram.plan import PramPlan, plan_pram
    from incrowd.mechanisms.registry import certificate_schema
    from incrowd.mechanisms.sample.advice import Advice as Advice
    from incrowd.mechanisms.sample.plan import SamplePlan, plan_sample
    from incrowd.mechanisms.sampled_crowd.plan import Amplification, plan_amplify
    from incrowd.mechanisms.sampled_crowd.tree.plan import TreePlan, plan_tree
    from incrowd.mechanisms.views.plan import ViewsBudget, plan_views
    from incrowd.papers.attacks.stories import Attack as Attack
    from incrowd.papers.attacks.stories import run as attack
    from incrowd.papers.examples.census import write_census as write_example
    from incrowd.papers.examples.visits import write_visits
    from incrowd.papers.gallery import Figure as Figure
    from incrowd.policy.edits import confirm, unconfirmed
    from incrowd.policy.edits import edit as edit_policy
    from incrowd.policy.edits import outline as policy_outline
    from incrowd.releases.combine import combine
    from incrowd.releases.estimate import estimate
    from incrowd.releases.opened import OpenedRelease as open_release  # noqa: N813
    from incrowd.releases.release import Release as Release
    from incrowd.releases.verify import Verification as Verification
    from incrowd.releases.verify import verify
    from incrowd.reports.column_bars import column_bars as draw_column
    from incrowd.reports.column_bars import column_shape as draw_shape
    from incrowd.sources.crowds import PeopleInGroups as PeopleInGroups
    from incrowd.sources.files import find_files
    from incrowd.sources.spark_session import configure as configure_spark
    from incrowd.survey import Questionnaire as Questionnaire
    from incrowd.survey.publish import collect, make_questionnaire, publish_collected, serve_application
    from incrowd.theory.crowd import CrowdPlan, FrontierPoint, frontier, survival
    from incrowd.theory.crowd import plan as plan_crowd
    from incrowd.theory.profile import Relation

__all__ = [
    "ENCODINGS",
    "EXAMPLES",
    "Amplification",
    "CrowdPlan",
    "FrontierPoint",
    "PramPlan",
    "Relation",
    "SamplePlan",
    "TreePlan",
    "ViewsBudget",
    "advise",
    "advise_sample",
    "attack",
    "attacks",
    "audit",
    "belief_at_most",
    "certificate_schema",
    "choose_privately",
    "collect",
    "collected",
    "column_ranges",
    "combine",
    "compare",
    "configure_spark",
    "confirm",
    "count_rows",
    "draft_policy",
    "draw_attack",
    "draw_column",
    "draw_compared",
    "draw_explored",
    "draw_frontier",
    "draw_lattice",
    "draw_plan",
    "draw_shape",
    "edit_policy",
    "estimate",
    "explore",
    "find_files",
    "frontier",
    "gallery",
    "gallery_figures",
    "internal_folder",
    "ledger_accept_loss",
    "ledger_add",
    "ledger_budget",
    "ledger_datasets",
    "ledger_statement",
    "look_at",
    "make_example",
    "make_keys",
    "make_questionnaire",
    "mechanism_forms",
    "minimised_measures",
    "odds_at_most",
    "open_questionnaire",
    "open_release",
    "output_formats",
    "plan_amplify",
    "plan_crowd",
    "plan_pram",
    "plan_sample",
    "plan_tree",
    "plan_views",
    "planners",
    "policy_from_text",
    "policy_levels",
    "policy_outline",
    "policy_paths",
    "policy_schema",
    "preview_text",
    "publish_collected",
    "read_certificate",
    "read_counts",
    "release",
    "release_copies",
    "release_folders",
    "rows_of_people",
    "save_audit",
    "save_chart",
    "save_policy",
    "serve_application",
    "style_sheet",
    "survival",
    "table_columns",
    "unconfirmed",
    "verify",
    "without_preamble",
    "without_style",
    "write_example",
    "write_survey",
    "write_visits",
]

# Where a name is defined, and what it is called there if not the same.
_HOMES = {
    "Amplification": "incrowd.mechanisms.sampled_crowd.plan",
    "CrowdPlan": "incrowd.theory.crowd",
    "FrontierPoint": "incrowd.theory.crowd",
    "PramPlan": "incrowd.mechanisms.pram.plan",
    "Relation": "incrowd.theory.profile",
    "SamplePlan": "incrowd.mechanisms.sample.plan",
    "TreePlan": "incrowd.mechanisms.sampled_crowd.tree.plan",
    "ViewsBudget": "incrowd.mechanisms.views.plan",
    "attack": "incrowd.papers.attacks.stories:run",
    "certificate_schema": "incrowd.mechanisms.registry",
    "collect": "incrowd.survey.publish",
    "combine": "incrowd.releases.combine",
    "configure_spark": "incrowd.sources.spark_session:configure",
    "confirm": "incrowd.policy.edits",
    "draft_policy": "incrowd.drafting:draft",
    "draw_column": "incrowd.reports.column_bars:column_bars",
    "draw_shape": "incrowd.reports.column_bars:column_shape",
    "edit_policy": "incrowd.policy.edits:edit",
    "estimate": "incrowd.releases.estimate",
    "find_files": "incrowd.sources.files",
    "frontier": "incrowd.theory.crowd",
    "make_questionnaire": "incrowd.survey.publish",
    "open_release": "incrowd.releases.opened:OpenedRelease",
    "plan_amplify": "incrowd.mechanisms.sampled_crowd.plan",
    "plan_crowd": "incrowd.theory.crowd:plan",
    "plan_pram": "incrowd.mechanisms.pram.plan",
    "plan_sample": "incrowd.mechanisms.sample.plan",
    "plan_tree": "incrowd.mechanisms.sampled_crowd.tree.plan",
    "plan_views": "incrowd.mechanisms.views.plan",
    "planners": "incrowd.mechanisms.planner",
    "policy_outline": "incrowd.policy.edits:outline",
    "publish_collected": "incrowd.survey.publish",
    "serve_application": "incrowd.survey.publish",
    "survival": "incrowd.theory.crowd",
    "unconfirmed": "incrowd.policy.edits",
    "verify": "incrowd.releases.verify",
    "write_example": "incrowd.papers.examples.census:write_census",
    "write_visits": "incrowd.papers.examples.visits",
}


def __getattr__(name: str) -> Any:
    """What not every command needs is imported when it is first used, so that the command line starts fast."""
    if name not in _HOMES:
        raise AttributeError(f"module 'incrowd.api' has no attribute {name!r}")
    module, _, there = _HOMES[name].partition(":")
    return getattr(importlib.import_module(module), there or name)


def read_counts(path: str | Path, **written: str) -> NDArray[np.int64]:
    """The column `count` of a CSV file that has one line for each distinct row of a table.

    `written` says how, where that is not found out: `encoding`, `delimiter`, `quote`.
    """
    import pyarrow as pa
    from pyarrow import csv

    def wrong(what: str) -> DataError:
        return DataError(
            f"{Path(path).name}: {what}",
            code="counts-file",
            remedy="Give a CSV file with a column `count`: how often each distinct row occurs, one line for each.",
        )

    if not Path(path).is_file():
        raise wrong("there is no such file.")
    try:
        found = preview_text(path, **written)
    except DataError as error:
        if error.code == "data-encoding":
            raise
        raise wrong("it has no column `count` of whole numbers.") from None
    options = {
        "read_options": csv.ReadOptions(encoding=found.encoding),
        "parse_options": csv.ParseOptions(delimiter=found.delimiter, quote_char=written.get("quote", '"')),
        "convert_options": csv.ConvertOptions(
            include_columns=["count"], column_types={"count": pa.int64()}, null_values=[]
        ),
    }
    try:
        column = csv.read_csv(path, **options)["count"]
    except (pa.ArrowInvalid, pa.ArrowKeyError, OSError, UnicodeDecodeError):
        # Arrow's message may quote the offending cell; ours says only what was expected.
        raise wrong("it has no column `count` of whole numbers.") from None
    if len(column) == 0:
        raise wrong("it has no rows.")
    counts: NDArray[np.int64] = column.to_numpy()
    if counts.min() < 1:
        raise wrong(f"{int((counts < 1).sum())} of its counts are below 1.")
    return counts


def count_rows(data: Any, columns: Sequence[str] | None = None, **reading: Any) -> NDArray[np.int64]:
    """How often each distinct row of a table occurs, over all of its columns or some of them.

    `reading` says how to read it: `table`, `engine`, `delimiter` and so on; see `incrowd.sources.options.Options`.
    """
    from incrowd.sources import open_source
    from incrowd.sources.values import distinct_counts

    return distinct_counts(open_source(data, **reading), columns)


def save_chart(plan: Drawable | CrowdPlan | Planned | Compared | Advised, path: str | Path) -> Path:
    """Draw a plan's trade-off, a comparison, or advice, as an SVG file."""
    from incrowd.comparison import Compared
    from incrowd.comparison.advice import Advised
    from incrowd.comparison.chart import draw, draw_advice
    from incrowd.core.files import write_whole

    if Path(path).suffix.lower() != ".svg":
        raise ParameterError(
            f"Charts are written as SVG; {Path(path).name} does not end in .svg.",
            code="parameter-range",
            remedy="Name the file something.svg; every browser opens it.",
        )
    if isinstance(plan, Advised):
        picture = draw_advice(plan)
    else:
        picture = draw(plan) if isinstance(plan, Compared) else plan_chart(plan)
    return write_whole(path, picture.encode())


# --- after the release --------------------------------------------------------------------------------------------


def output_formats() -> dict[str, str]:
    """The formats that tables are written in, with their names for people."""
    from incrowd.mechanisms.packages import PACKAGES
    from incrowd.policy.fields import OUTPUTS

    plain = {"parquet": "Parquet", "csv": "CSV", "arrow": "Arrow"}
    return {name: plain.get(name) or PACKAGES[name] for name in OUTPUTS}


def make_keys(secret: str | Path, public: str | Path) -> str:
    """Write a new pair of Ed25519 keys: the secret one for signing, the public one to be passed on.

    What is returned is the public key's fingerprint.
    """
    from incrowd.core.files import require_absent, write_whole
    from incrowd.core.signing import key_fingerprint, make_keys

    for path in (secret, public):
        require_absent(path, remedy="Choose another name.")
    secret_pem, public_pem = make_keys()
    write_whole(secret, secret_pem).chmod(0o600)
    return key_fingerprint(write_whole(public, public_pem))


# --- any table ----------------------------------------------------------------------------------------------------


def save_audit(audit: Audit, path: str | Path) -> Path:
    """Write an audit as a report, one HTML file, for its owner alone: it is as confidential as the table is."""
    from incrowd.auditing.report import audit_report
    from incrowd.core.files import write_whole

    if Path(path).suffix.lower() not in {".html", ".htm"}:
        raise ParameterError(
            f"Reports are written as HTML; {Path(path).name} does not end in .html.",
            code="output-format",
            remedy="Name the file something.html.",
        )
    return write_whole(path, audit_report(audit), private=True)


# --- policies and examples ----------------------------------------------------------------------------------------


def minimised_measures() -> dict[str, str]:
    """By what a generalization can be chosen: the names in a policy, and what each is in words."""
    from incrowd.mechanisms.generalization.section import MINIMISED

    return dict(MINIMISED)


def policy_schema() -> dict[str, Any]:
    """The JSON Schema of a policy file, for editors."""
    from incrowd.policy import Policy

    return Policy.json_schema()


def attacks() -> tuple[str, ...]:
    """The unsafe methods that can be shown being broken."""
    from incrowd.papers.attacks.stories import ATTACKS

    return tuple(ATTACKS)


def gallery_figures() -> tuple[str, ...]:
    """The names of the papers' tables and figures that can be drawn."""
    from incrowd.papers.gallery import FIGURES

    return tuple(FIGURES)


def gallery(
    folder: str | Path,
    *,
    only: Sequence[str] = (),
    data: Mapping[str, str | Path] | None = None,
    quick: bool = False,
    progress: Progress | None = None,
) -> list[Figure]:
    """Redraw the papers' tables and figures, as one page in a folder.

    Args:
        folder: where `index.html` goes.
        only: the names of figures; all of them if none is named.
        data: files to draw from, by what they are (``{"adult": "adult.csv"}``), in place of examples.
        quick: fewer records and runs, for a first look.
        progress: called with what is being done and the part of it that is done.
    """
    from incrowd.papers.gallery import Material, draw

    material = Material({kind: Path(file) for kind, file in (data or {}).items()}, quick)
    return draw(folder, only, material, progress)
