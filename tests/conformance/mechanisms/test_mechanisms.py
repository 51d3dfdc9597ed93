"""What every registered mechanism must do. A new one only needs a case in conftest.py, and to pass.

Each check is a plain function, so that `test_the_suite_catches_broken_mechanisms` can run it on mechanisms that were
broken on purpose.
"""

import json
import math
import re
import shutil
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Literal, get_args, get_origin

import pandas as pd
import pyarrow.parquet as pq
import pytest
from conformance_mechanisms import CASES

import incrowd
from incrowd import api
from incrowd.core.errors import IncrowdError, PolicyError
from incrowd.hierarchy import codings
from incrowd.histogram import Histogram
from incrowd.mechanisms.registry import MECHANISMS
from incrowd.policy import Policy
from incrowd.randomness import RandomSource
from incrowd.recoding.fidelity import fidelity
from incrowd.releases.description import described
from incrowd.releases.ledger import Ledger
from incrowd.releases.pipeline import count_table

ROOT = Path(__file__).resolve().parents[3]
CROWD = type(MECHANISMS["sampled_crowd"])


def seeded(people, case, seed=5, **options):
    return api.release(people, case.policy, _source=RandomSource.seeded(seed), **options)


# --- checks -----------------------------------------------------------------------------------------------------------


def check_row_order_does_not_matter(case, people, tmp_path):
    first, second = (seeded(table, case) for table in (people, people.sample(frac=1, random_state=3)))
    assert first.histogram == second.histogram
    assert first.report == second.report


def check_chance_is_used_where_it_is_promised(case, people, tmp_path):
    first, second = (seeded(people, case, seed) for seed in (1, 2))
    assert (first.histogram != second.histogram) is case.random


def check_predictable_bits_void_the_promise(case, people, tmp_path):
    made = seeded(people, case, folder=tmp_path / "seeded")
    assert made.certificate["promise"]["void"] is not None
    assert not api.verify(tmp_path / "seeded").valid
    assert api.release(people, case.policy).certificate["promise"]["void"] is None


def check_a_release_is_verified(case, people, tmp_path):
    made = api.release(people, case.policy, folder=tmp_path / "out")
    assert (tmp_path / "out" / made.main_file).exists()
    assert "." in made.main_file
    found = api.verify(tmp_path / "out")
    assert found.valid, [check for check in found.checks if not check.holds]
    assert found.claimed


def check_a_forged_release_is_not_verified(case, people, tmp_path):
    """Another table under the same certificate, and another certificate around the same table, each sealed anew."""
    from incrowd.core.signing import seal, sha256, to_bytes

    api.release(people, case.policy, folder=tmp_path / "true")
    for number, part in enumerate(("table", "promise")):
        forged = tmp_path / f"forged-{number}"
        shutil.copytree(tmp_path / "true", forged)
        certificate = json.loads((forged / "certificate.json").read_bytes())
        if part == "table":
            name = next(name for name in certificate["files"] if name in ("release.parquet", "combined.parquet"))
            table = pq.read_table(forged / name)
            pq.write_table(table.slice(1), forged / name, store_schema=False)
            written = (forged / name).read_bytes()
            certificate["files"][name] = {"sha256": sha256(written), "bytes": len(written)}
            certificate["columns"] = certificate["columns"][::-1]
        else:
            certificate["promise"]["in_words"] = "Nobody learns anything."
        (forged / "certificate.json").write_bytes(to_bytes(seal(certificate)))
        assert not api.verify(forged).valid, part


def check_the_description_says_what_the_certificate_does(case, people, tmp_path):
    """Each file, each column with what it could show, what copies promise together; made otherwise, it is noticed."""
    from incrowd.core.signing import seal, sha256, to_bytes

    copies = 2 if case.copies else 1
    api.release_copies(people, case.policy, copies=copies, folder=tmp_path / "out")
    folders = [tmp_path / ("out" if copies == 1 else f"out-{number + 1}") for number in range(copies)]
    for folder in folders:
        package = json.loads((folder / "datapackage.json").read_bytes())
        certificate = json.loads((folder / "certificate.json").read_bytes())
        assert package["incrowd"]["promise"] == certificate["promise"]
        assert package["description"] == certificate["promise"]["in_words"]
        paths = {resource["path"] for resource in package["resources"]}
        assert paths == set(certificate["files"]) - {"report.html", "datapackage.json"}
        for resource in package["resources"]:
            if resource["format"] == "parquet":
                table = pq.read_table(folder / resource["path"]).to_pandas()
                assert [field["name"] for field in resource["schema"]["fields"]] == list(table.columns)
                for field in resource["schema"]["fields"]:
                    if field["type"] == "string":
                        assert set(table[field["name"]]) <= set(field["constraints"]["enum"])
    for number, change in enumerate(({"rows": 3000}, {"description": "Nobody learns anything."}, {"resources": []})):
        forged = tmp_path / f"forged-{number}"
        shutil.copytree(folders[0], forged)
        written = json.dumps({**json.loads((forged / "datapackage.json").read_bytes()), **change}, indent=1).encode()
        (forged / "datapackage.json").write_bytes(written)
        assert not api.verify(forged).valid, change
        certificate = json.loads((forged / "certificate.json").read_bytes())
        certificate["files"]["datapackage.json"] = {"sha256": sha256(written), "bytes": len(written)}
        (forged / "certificate.json").write_bytes(to_bytes(seal(certificate)))
        failed = [check.name for check in api.verify(forged).checks if not check.holds]
        assert failed == ["the description is the one that the certificate gives"], change


def check_what_is_refused_is_not_charged(case, people, tmp_path):
    plan = case.with_ledger(tmp_path)
    Ledger(tmp_path / "ledger.sqlite").set_budget("people", 1.0, 0.001, "replace-one")
    (tmp_path / "taken").mkdir()
    with pytest.raises(IncrowdError):
        api.release(people, plan, folder=tmp_path / "taken")
    with pytest.raises(IncrowdError):
        api.release(people.replace({"sex": {"m": "undeclared"}}), plan, folder=tmp_path / "out")
    assert not Ledger(tmp_path / "ledger.sqlite").statement("people").releases
    assert not (tmp_path / "out").exists()


def check_a_release_is_charged_once(case, people, tmp_path):
    plan = case.with_ledger(tmp_path)
    Ledger(tmp_path / "ledger.sqlite").set_budget("people", 1.0, 0.001, "replace-one")
    api.release(people, plan, folder=tmp_path / "out")
    (line,) = Ledger(tmp_path / "ledger.sqlite").statement("people").releases
    assert (line.recorded.entry.mechanism, str(line.recorded.state)) == (plan.release.mechanism, "published")
    promised = json.loads((tmp_path / "out" / "certificate.json").read_bytes())["promise"]
    if line.recorded.entry.composes:
        assert 0 < line.epsilon <= promised["epsilon"] + 1e-9


def check_copies_are_counted_or_refused(case, people, tmp_path):
    if not case.copies:
        with pytest.raises(IncrowdError):
            api.release_copies(people, case.policy, copies=2)
        return
    made = api.release_copies(people, case.policy, copies=2)
    assert [one.certificate["promise"]["together"]["copies"] for one in made] == [2, 2]
    assert made[0].certificate["promise"]["together"]["epsilon"] >= made[0].certificate["promise"]["epsilon"]
    assert made[0].histogram != made[1].histogram


def check_a_forged_number_of_copies_is_not_verified(case, people, tmp_path):
    from incrowd.core.signing import seal, to_bytes
    from incrowd.mechanisms.registry import mechanism_named

    if not case.copies:
        return
    api.release_copies(people, case.policy, copies=2, folder=tmp_path / "out")
    folder = tmp_path / "out-1"
    assert api.verify(folder).valid
    certificate = json.loads((folder / "certificate.json").read_bytes())
    mechanism = mechanism_named(case.policy.release.mechanism)
    for copies in (0, 1, -3, 0.25, True, 10**6):
        meant = certificate["promise"]["together"]
        if copies == 10**6:  # as consistent as can be
            meant = mechanism.together(
                mechanism.settled_again(mechanism.certificate.read(certificate)), copies
            ).document()
        forged = {**certificate, "promise": {**certificate["promise"], "together": {**meant, "copies": copies}}}
        (folder / "certificate.json").write_bytes(to_bytes(seal(forged)))
        assert not api.verify(folder).valid, copies


def check_people_can_be_estimated(case, people, tmp_path):
    api.release(people, case.policy, folder=tmp_path / "out")
    found = api.estimate(tmp_path / "out", by=["sex"])
    truth = Counter(people["sex"])
    assert found.by == ("sex",)
    assert {row.values[0] for row in found.rows} == set(truth)
    for row in found.rows:
        assert math.isfinite(row.estimate)
        assert row.estimate == pytest.approx(truth[row.values[0]], rel=0.5)


def check_reports_keep_to_their_readers(case, people, tmp_path):
    made = seeded(people, case)
    assert b"never publish" in made.internal["report.html"]
    assert b"never publish" not in made.report
    for page in (made.report, made.internal["report.html"]):
        assert page[:15].lower() == b"<!doctype html>"
        assert b"http://" not in page.replace(b"http://www.w3.org/", b"")
        assert b"https://" not in page


def check_the_public_report_speaks_of_the_release_alone(case, people, tmp_path):
    """The number of people who are not in the release stands nowhere in what is published."""
    made = seeded(people, case)
    if made.histogram.total == len(people):
        return
    for secret in (f"{len(people):,}", str(len(people)), f"{len(people) - made.histogram.total:,} records"):
        assert secret.encode() not in made.report
        assert secret.encode() not in described(made.certified)
        assert secret not in json.dumps(made.certificate, ensure_ascii=False)


def check_small_groups_stay_hidden(case, people, tmp_path):
    """A table of three people who share nothing is published by no mechanism that promises a crowd."""
    few = people.head(3)
    try:
        made = seeded(few, case)
    except IncrowdError:
        return
    least = made.certificate["mechanism"].get("k")
    assert least is None or not made.histogram.total


def check_neighbouring_tables_look_alike(case, people, tmp_path):
    """No event that was chosen on some draws tells two neighbouring tables apart by more than promised, on others.

    The tables are tiny, and the one person is alone in her cell. An event that holds for a mechanism with its promise
    exceeds δ by more than four standard deviations in one run of 30,000.
    """
    promise = seeded(people, case).certificate["promise"]
    if promise.get("relation") not in ("add/remove", "replace-one") or "differential" not in promise["notion"]:
        return
    mechanism, attributes, draws = MECHANISMS[case.policy.release.mechanism], codings(case.policy), case.draws
    crowd = people[(people.sex == "f") & (people.age < 20)].head(30)
    alone = people[(people.sex == "m") & (people.age >= 40)].head(1)
    other = crowd.head(1) if promise["relation"] == "replace-one" else crowd.head(0)
    law = []
    for number, table in enumerate((pd.concat([crowd, alone]), pd.concat([crowd, other]))):
        counted = count_table(table, case.policy, attributes, show_values=False, progress=lambda part: None)
        settings, prepared = mechanism.prepare(
            mechanism.settle(case.policy, attributes, 1), counted, lambda what, part: None
        )
        source = RandomSource.seeded(100 + number)
        law.append([_key(mechanism.draw(settings, prepared, source).published) for _ in range(2 * draws)])
        promise = mechanism.draw(settings, prepared, source).statement.promise
    epsilon, delta = promise.epsilon, promise.delta
    for one, two in (law, law[::-1]):
        seen, against = Counter(one[:draws]), Counter(two[:draws])
        event = {key for key, n in seen.items() if n > math.exp(epsilon) * against[key]}
        p, q = (sum(key in event for key in drawn[draws:]) / draws for drawn in (one, two))
        spread = math.sqrt((p * (1 - p) + math.exp(2 * epsilon) * q * (1 - q)) / draws)
        assert p - math.exp(epsilon) * q <= delta + 4 * spread + 1 / draws


def _key(table):
    return tuple(column.codes.tobytes() for column in table.columns), table.counts.tobytes()


def check_what_is_told_is_near_the_truth(case, people, tmp_path):
    mechanism, attributes = MECHANISMS[case.policy.release.mechanism], codings(case.policy)
    counted = count_table(people, case.policy, attributes, show_values=False, progress=lambda part: None)
    settings, prepared = mechanism.prepare(
        mechanism.settle(case.policy, attributes, 1), counted, lambda what, part: None
    )
    told = mechanism.told(settings, mechanism.draw(settings, prepared, RandomSource.seeded(5)))
    levels = {a.name: a.hierarchy.recode(case.policy.attributes[a.name].level or 0) for a in attributes}
    one, two, _ = fidelity(counted, told, levels)
    assert one.score > 0.9
    assert two.score > 0.8
    assert told(("sex", "job")).sum() == pytest.approx(len(people), rel=0.1)


def check_people_with_several_rows_are_covered_or_refused(case, people, tmp_path):
    """Their rows beyond those that count change nothing, and a certificate of fewer rows than count is not believed."""
    name = case.policy.release.mechanism
    rows = pd.DataFrame({"who": range(len(people)), "visit": 1}) // 2
    visits = pd.concat([people.reset_index(drop=True), rows.assign(visit=range(len(people)))], axis=1)
    policy = case.with_people(2)
    if not MECHANISMS[name].several_rows:
        with pytest.raises(PolicyError, match="at_most: 1"):
            api.release(visits, policy)
        return
    made = api.release(visits, policy, folder=tmp_path / "people")
    assert api.verify(tmp_path / "people").valid
    assert "at most 2 rows count" in made.certified.assumptions[0]
    more = pd.concat([visits, visits[visits["who"] == 7].sample(50, replace=True, random_state=1).assign(visit=10**6)])
    first, second = (api.release(table, policy, _source=RandomSource.seeded(5)) for table in (visits, more))
    assert first.histogram == second.histogram
    assert first.beside == second.beside
    document = made.certified.document()
    document["policy"]["people"]["at_most"] = 12
    forged = type(made.certified).model_validate(document)
    assert not all(check.holds for check in MECHANISMS[name].check_promise(forged))


CHECKS = {name.removeprefix("check_"): check for name, check in globals().items() if name.startswith("check_")}


# --- the suite --------------------------------------------------------------------------------------------------------


def test_every_mechanism_has_a_case():
    assert set(CASES) == set(MECHANISMS)


@pytest.mark.parametrize("check", CHECKS)
@pytest.mark.parametrize("name", MECHANISMS)
def test_conformance(name, check, people, tmp_path):
    CHECKS[check](CASES[name], people, tmp_path)


@pytest.mark.parametrize("name", MECHANISMS)
def test_the_registry_says_what_it_is(name):
    mechanism = MECHANISMS[name]
    assert mechanism.section.model_fields["mechanism"].annotation.__args__ == (name,)
    assert {one.key.partition(".")[0] for one in mechanism.form} <= set(mechanism.section.model_fields)
    assert mechanism.title
    assert mechanism.summary
    schema = Policy.json_schema()
    assert mechanism.section.__name__ in schema["$defs"]


FILES = {"mechanism.py", "section.py", "settle.py", "draw.py", "state.py", "estimate.py", "told.py", "report.py"} | {
    "proof.md"
}


@pytest.mark.parametrize("name", MECHANISMS)
def test_a_form_lets_choose_where_there_are_few_values(name):
    """A key with few values has them all, in words, and none that it does not have; what is usual is among them."""
    mechanism = MECHANISMS[name]
    for field in mechanism.form:
        first, *within = field.key.split(".")
        section = mechanism.section.PARTS[first] if within else mechanism.section
        (key,) = within or [first]
        kind = section.model_fields[key].annotation
        few = {"true", "false"} if kind is bool else set(get_args(kind)) if get_origin(kind) is Literal else set()
        assert set(field.choices) - {""} == few, field.key
        assert not few or field.usual(mechanism.section) in field.choices, field.key


@pytest.mark.parametrize("name", MECHANISMS)
def test_every_folder_has_the_same_files(name):
    folder = Path(incrowd.__file__).parent / "mechanisms" / name
    assert {path.name for path in folder.iterdir()} >= FILES
    proof, page = (folder / "proof.md").read_text(encoding="utf-8"), ROOT / "docs" / "proofs.md"
    for file in re.findall(r"`(proofs/\w+\.v)`", proof):
        assert (ROOT / file).is_file(), file
    headings = set(re.findall(r"^###? (.+)$", page.read_text(encoding="utf-8"), flags=re.MULTILINE))
    for named in re.findall(r'"([^"]+)"', proof):
        assert any(heading.startswith(named) for heading in headings), named
    for file in re.findall(r"`(\w+\.py)`", proof):
        assert (folder / file).is_file(), file


# --- mechanisms that are broken on purpose ----------------------------------------------------------------------------


def broken(**changes):
    return type("Broken", (CROWD,), changes)()


def everything(self, settings, prepared, source):
    """Publishes the sample, small groups included."""
    made = CROWD.draw(self, settings, prepared, source)
    return replace(made, published=made.outcome.sample)


def estimated_by_another_rate(self, certificate, table, by, options):
    mechanism = certificate.mechanism.model_copy(update={"beta": 0.9})
    return CROWD.estimate(self, certificate.model_copy(update={"mechanism": mechanism}), table, by, options)


def without_chance(self, settings, prepared, source):
    return CROWD.draw(self, settings, prepared, RandomSource.seeded(0))


def for_free(self, settings):
    from incrowd.mechanisms.promises import Point

    return Point(0.0, 0.0, "add/remove")


def telling(self, policy, settings, published, statement, *, void):
    page = CROWD.public_report(self, policy, settings, published, statement, void=void)
    return page + b"<!-- made of 3,000 -->"


def refused_late(self, settings, prepared, source):
    raise AssertionError("nothing may be refused once the ledger was charged")


def told_unscaled(self, settings, made):
    return lambda names: CROWD.told(self, settings, made)(names) * settings.crowd.beta


def for_one_row(self, policy, attributes, copies):
    fewer = policy if policy.people is None else policy.changed({("people", "at_most"): 1})
    return CROWD.settle(self, fewer, attributes, copies)


BROKEN = {
    "promises to rows": (broken(settle=for_one_row), {"people_with_several_rows_are_covered_or_refused"}),
    "tells the sample's counts": (broken(told=told_unscaled), {"what_is_told_is_near_the_truth"}),
    "publishes everything": (broken(draw=everything), {"a_release_is_verified", "neighbouring_tables_look_alike"}),
    "uses no chance": (broken(draw=without_chance), {"chance_is_used_where_it_is_promised"}),
    "charges nothing": (broken(spending=for_free), {"a_release_is_charged_once"}),
    "tells the number of people": (
        broken(public_report=telling),
        {"the_public_report_speaks_of_the_release_alone"},
    ),
    "estimates nonsense": (
        broken(estimate=estimated_by_another_rate),
        {"people_can_be_estimated"},
    ),
}  # fmt: skip


@pytest.mark.parametrize("what", BROKEN)
def test_the_suite_catches_broken_mechanisms(what, people, tmp_path, monkeypatch):
    mechanism, caught_by = BROKEN[what]
    monkeypatch.setitem(MECHANISMS, "sampled_crowd", mechanism)
    caught = set()
    for name, check in CHECKS.items():
        (tmp_path / name).mkdir()
        try:
            check(CASES["sampled_crowd"], people, tmp_path / name)
        except (AssertionError, IncrowdError):
            caught.add(name)
    assert caught_by <= caught, f"only {caught} noticed"


def test_histograms_compare_by_content(people):
    """The checks rest on it."""
    made = seeded(people, CASES["sampled_crowd"])
    assert made.histogram == Histogram.of(made.histogram.columns, made.histogram.counts)
    assert made.histogram != Histogram.of(made.histogram.columns, made.histogram.counts + 1)
