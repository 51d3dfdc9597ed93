"""Adding a mechanism takes one folder and its name: a copy of the package gets a new one, and all of it knows it."""

import os
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

import incrowd

ROOT = Path(__file__).parents[3]
SECTION = '''
"""`mechanism: threshold`: publish what at least k records share. For a test; it promises nothing."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from pydantic import Field

from incrowd.policy.attributes import Attribute
from incrowd.policy.fields import Finding
from incrowd.policy.release import ReleaseSection


class Threshold(ReleaseSection):
    mechanism: Literal["threshold"] = Field(description="The method.")
    k: int = Field(ge=1, description="The least number of records that is published.")
    table: bool = Field(default=True, description="Whether there is a table, or only the file beside it.")

    def unfit(self, attributes: Mapping[str, Attribute]) -> list[Finding]:
        return []
'''
PLANNER = '''
"""What can be planned."""

from incrowd.mechanisms.planner import Planned, Planner, PlanOption

PLANNERS = (
    Planner(
        "threshold",
        "Threshold",
        "How many people a k needs.",
        (PlanOption("k", "The k.", "count", required=True),),
        lambda k: Planned(k, {"people": k}, f"{k} people", section={"mechanism": "threshold", "k": k}),
    ),
)
'''
MECHANISM = '''
"""Publish what at least k records share."""

from __future__ import annotations

from incrowd.mechanisms.base import Check, ComparedAs, ComparedSection, FormField, Made, Mechanism, all_columns
from incrowd.mechanisms.described import Described
from incrowd.mechanisms.estimates import EstimatedCell, Estimates
from incrowd.mechanisms.certificate import Certificate, StatedMechanism, StatedPromise, Statement
from incrowd.mechanisms.threshold.section import Threshold


class ThresholdStated(StatedMechanism):
    k: int


class ThresholdMechanism(Mechanism):
    title, summary, form, start = "Threshold", "For a test.", (FormField("k", "k"),), {"k": "5"}
    section, claimed, policy_note = Threshold, ("everything",), "# As it was carried out.\\n"
    certificate = Certificate[StatedPromise, ThresholdStated]
    described = (Described("limits.md", "a test", *["nothing"] * 13),)
    compared_as = ComparedAs("threshold", lambda epsilon, delta: "nothing", "The threshold promises nothing.")

    def comparable(self, epsilon, delta, sizes, records):
        yield ComparedSection({"k": 2})

    def in_short(self, settings):
        return f"k = {settings}"

    def settle(self, policy, attributes, copies):
        return self.section_in(policy).k

    def prepare(self, settings, table, tell):
        return settings, table

    def spending(self, settings):
        from incrowd.mechanisms.promises import Uncomposable

        return Uncomposable("nothing")

    def together(self, settings, copies):
        return None

    def draw(self, settings, prepared, source):
        levels = {column.name: 0 for column in prepared.columns}
        published = prepared.where(prepared.counts >= settings)
        return Made(published, levels, self._state(settings, levels), None, {"notes/k.txt": b"%d" % settings})

    def table_stem(self, section):
        return "shown" if section.table else None

    def beside_names(self, certificate):
        return ["notes/k.txt"]

    def _state(self, k, levels):
        promise = StatedPromise(notion="none", relation="none", in_words="Nothing is promised.", grounds="None.")
        return Statement(promise, ThresholdStated(name="threshold", k=k, levels=levels), ["Nothing."])

    def check_promise(self, certificate):
        mechanism = certificate.mechanism
        yield Check("the statement", self._state(mechanism.k, mechanism.levels).is_in(certificate))

    def settled_again(self, certificate):
        return certificate.mechanism.k

    def columns_needed(self, certificate, by=(), options=None):
        return all_columns(certificate)

    def check_table(self, certificate, published):
        k, table = certificate.mechanism.k, published.table
        yield Check("every group has k records", bool((table.counts >= k).all()))
        yield Check("k stands beside the table", published.beside["notes/k.txt"] == b"%d" % k)

    def estimate(self, certificate, published, by, options):
        groups = published.table.project(by)
        rows = tuple(EstimatedCell((), count, 0.0, count, count) for count in groups.counts.tolist())
        return Estimates(tuple(by), rows, ())

    def told(self, settings, made):
        from incrowd.recoding.fidelity import dense

        return lambda names: dense(made.published, names)

    def public_report(self, policy, settings, published, statement, *, void):
        return b"<!doctype html><p>A table.</p>"

    def internal_files(self, policy, attributes, settings, table, made, *, void):
        return {"report.html": b"<!doctype html><p>Never publish this page.</p>"}


MECHANISM = ThresholdMechanism()
'''
USE = '''
import json, shutil, sys
from pathlib import Path
import pandas as pd
from incrowd import api
from click.testing import CliRunner
from incrowd.cli import incrowd as command
from incrowd.policy import Policy
from incrowd.studio import plans
import runpy

reference = runpy.run_path(sys.argv[2])
compared = api.compare(api.look_at(pd.DataFrame({"sex": ["f"] * 50 + ["m"] * 20})), epsilons=[1.0], runs=1)

TEXT = """
incrowd: 1
attributes: {sex: {domain: [f, m]}}
release: {mechanism: threshold, k: 3}
"""
people = pd.DataFrame({"sex": ["f"] * 5 + ["m"] * 2})
policy = Policy.from_text(TEXT)
release = api.release(people, policy, folder=sys.argv[1])
found = api.verify(sys.argv[1])

def files(folder):
    return sorted(path.relative_to(folder).as_posix() for path in Path(folder).rglob("*") if path.is_file())

tableless, saved, forged = (sys.argv[1] + end for end in ("-tableless", "-saved", "-forged"))
api.release(people, Policy.from_text(TEXT.replace("k: 3", "k: 3, table: false")), folder=tableless)
api.release(people, policy).save(saved)
shutil.copytree(sys.argv[1], forged)
(Path(forged) / "notes" / "more.txt").write_text("7 people were left out")
(Path(forged) / "notes" / "k.txt").write_text("2")
print(json.dumps({
    "published": release.histogram.total,
    "failed": [check.name for check in found.checks if not check.holds],
    "estimate": [row.estimate for row in api.estimate(sys.argv[1], by=["sex"]).rows],
    "form": [[field["key"], field["label"]] for field in api.mechanism_forms()["threshold"]["fields"]],
    "compared": {one.mechanism: one.settings for one in compared.contenders}["threshold"],
    "readme": "| [`threshold`](docs/limits.md) | a test |" in reference["mechanisms_for_whom"](),
    "planned": json.loads(CliRunner().invoke(command, ["plan", "threshold", "--k", "7", "--json"]).output),
    "studio": "7 people" in plans.solved({"planner": "threshold", "k": "7"}),
    "schema": "Threshold" in Policy.json_schema()["$defs"],
    "certificate": "ThresholdCertificate" in api.certificate_schema()["$defs"],
    "files": files(sys.argv[1]),
    "saved": files(saved) == files(sys.argv[1]) and api.verify(saved).valid,
    "tableless": files(tableless),
    "tableless is valid": api.verify(tableless).valid,
    "forged": [check.name for check in api.verify(forged).checks if not check.holds],
    "written": policy.to_yaml().splitlines()[-1].strip(),
}))
'''


def test_one_folder_and_one_line(tmp_path):
    import json

    package = tmp_path / "src" / "incrowd"
    shutil.copytree(Path(incrowd.__file__).parent, package, ignore=shutil.ignore_patterns("__pycache__"))
    folder = package / "mechanisms" / "threshold"
    folder.mkdir()
    (folder / "section.py").write_text(textwrap.dedent(SECTION), encoding="utf-8")
    (folder / "planner.py").write_text(textwrap.dedent(PLANNER), encoding="utf-8")
    (folder / "mechanism.py").write_text(textwrap.dedent(MECHANISM), encoding="utf-8")
    (folder / "__init__.py").touch()
    names = package / "mechanisms" / "__init__.py"
    line = names.read_text(encoding="utf-8").replace("NAMES = (", 'NAMES = ("threshold", ')
    names.write_text(line, encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-c", USE, str(tmp_path / "out"), str(ROOT / "docs" / "reference.py")],
        env={**os.environ, "PYTHONPATH": str(tmp_path / "src")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == {
        "published": 5,
        "failed": [],
        "estimate": [5],
        "form": [["k", "k"]],
        "compared": "k = 2",
        "readme": True,
        "planned": {"people": 7},
        "studio": True,
        "schema": True,
        "certificate": True,
        "files": ["certificate.json", "datapackage.json", "notes/k.txt", "report.html", "shown.parquet"],
        "saved": True,
        "tableless": ["certificate.json", "datapackage.json", "notes/k.txt", "report.html"],
        "tableless is valid": True,
        "forged": ["notes/k.txt is the file certified", "nothing else is in the folder"],
        "written": "release: {mechanism: threshold, k: 3}",
    }
