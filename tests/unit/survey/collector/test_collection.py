"""From a policy to a questionnaire, and from collected records to a release that anyone can check."""

import json
import secrets

import pytest

from incrowd import api
from incrowd.core.errors import InputError, PolicyError, UnreachableError
from incrowd.policy import Policy
from incrowd.survey import Question, Questionnaire, Randomizer
from incrowd.survey.collector.questions import questionnaire_of, read_texts
from incrowd.survey.collector.store import Store
from incrowd.theory.randomisation import RetentionReplacement, local_epsilon, pk

POLICY = """
incrowd: 1
title: A small survey
attributes:
  name: drop
  sex: {domain: [f, m]}
  smoker: {type: boolean, missing: keep}
  age: {type: integer, domain: {from: 0, to: 100, step: 20}}
release: RELEASE
"""


def policy(release="{mechanism: pram, epsilon: 3}"):
    return Policy.from_text(POLICY.replace("RELEASE", release))


def laws(made):
    return [RetentionReplacement(float(q.retention), len(q.values)) for q in made.questions]


def test_declared_values_become_answers():
    made = questionnaire_of(policy(), records=1000)
    assert [q.name for q in made.questions] == ["sex", "smoker", "age"]
    assert made.questions[1].values == ("false", "true", None)
    assert made.questions[1].labels == ("false", "true", "No answer")
    assert made.questions[2].values == ("[0, 20)", "[20, 40)", "[40, 60)", "[60, 80)", "[80, 100]")
    assert made.title == "A small survey"


@pytest.mark.parametrize(
    "release",
    [
        "{mechanism: pram, epsilon: 3}",
        "{mechanism: pram, epsilon: 3, importance: {sex: 4}}",
        "{mechanism: pram, k: 20}",
        "{mechanism: pram, k: 20, epsilon: 3}",
        "{mechanism: pram, rho: 0.25}",
        "{mechanism: pram, rho: {sex: 0.5, smoker: 0.25, age: 0.00001}}",
    ],
)
def test_retentions_keep_what_the_policy_asks_for(release):
    made = questionnaire_of(policy(release), records=1000)
    asked = policy(release).release
    assert (
        asked.epsilon is None or 0.9 * asked.epsilon * (asked.k is None) <= local_epsilon(laws(made)) <= asked.epsilon
    )
    assert asked.k is None or pk(laws(made), 1000) >= asked.k
    assert asked.epsilon is None or float(made.promise["local"]["epsilon"]) <= asked.epsilon
    assert asked.k is None or float(made.promise["linking"]["k"]) >= asked.k
    if isinstance(asked.rho, float):
        assert {q.retention for q in made.questions} == {0.25}
    elif asked.rho:
        assert [float(q.retention) for q in made.questions] == pytest.approx([0.5, 0.25, 0.00001], rel=1e-12)


@pytest.mark.parametrize(
    "release",
    [
        "{mechanism: sampled_crowd, epsilon: 1, delta: 1e-6}",
        "{mechanism: pram, rho: 0.5, matrix: {sex: [[0.6, 0.4], [0.4, 0.6]]}}",
        "{mechanism: pram, rho: 0.5, joint: [{of: [sex, smoker]}]}",
        "{mechanism: pram, rho: 0.5, invariant: true}",
    ],
)
def test_what_respondents_cannot_do_is_refused(release):
    with pytest.raises(PolicyError) as caught:
        questionnaire_of(policy(release), records=1000)
    assert caught.value.code == "policy-invalid"


def test_questions_and_labels_have_texts(tmp_path):
    (tmp_path / "texts.yaml").write_text(
        "sex: {question: 'What is your sex?', labels: {f: Female, m: Male}}\n"
        "smoker: {question: 'Do you smoke?', labels: {true: 'Yes', false: 'No', null: 'I would rather not say'}}\n"
    )
    made = questionnaire_of(policy(), records=1000, texts=read_texts(tmp_path / "texts.yaml"))
    assert made.questions[0].text == "What is your sex?"
    assert made.questions[0].labels == ("Female", "Male")
    assert made.questions[1].labels == ("No", "Yes", "I would rather not say")


@pytest.mark.parametrize(
    "texts",
    [
        "nobody: {question: Who?}",
        "sex: [a]",
        "sex: {labels: {x: X}}",
        "sex: {labels: [f]}",
        "sex: {more: 1}",
        "- a",
        "{",
    ],
)
def test_texts_that_do_not_fit_are_refused(tmp_path, texts):
    (tmp_path / "texts.yaml").write_text(texts)
    with pytest.raises(InputError) as caught:
        questionnaire_of(policy(), records=1000, texts=read_texts(tmp_path / "texts.yaml"))
    assert caught.value.code == "questionnaire-invalid"


@pytest.fixture
def collection(tmp_path):
    """A store with the records of 500 people."""
    made = questionnaire_of(policy(), records=1000)
    store = Store(str(tmp_path / "s.sqlite"), made)
    randomizer = Randomizer(made)
    answers = {"sex": "f", "smoker": None, "age": "[20, 40)"}
    store.add([store.entry(secrets.token_hex(16), made.codes(randomizer.randomize(answers))) for _ in range(500)])
    store.close()
    return tmp_path / "s.sqlite"


def test_a_collection_becomes_a_release(collection, tmp_path):
    folder = tmp_path / "out"
    made = api.publish_collected(str(collection), folder, fewer=True)
    assert made.histogram.total == 500
    certificate = json.loads((folder / "certificate.json").read_text())
    mechanism, promise = certificate["mechanism"], certificate["promise"]
    assert (mechanism["name"], mechanism["randomised_by"], mechanism["records"]) == ("pram", "respondents", 500)
    # The number that came decides, not the number expected.
    kept = laws(questionnaire_of(policy(), records=1000))
    assert promise["k"] == pytest.approx(pk(kept, 500), rel=1e-9)
    assert promise["local_epsilon"] <= 3
    assert "respondent" in certificate["randomness"]
    assert any("neither made nor learned" in text for text in certificate["assumptions"])
    assert [check for check in api.verify(folder).checks if not check.holds] == []
    internal = tmp_path / "out.internal"
    assert (internal / "questionnaire.json").is_file()


@pytest.mark.statistical
def test_what_was_answered_can_be_estimated(collection, tmp_path):
    """All 500 are women. An unbiased estimate misses by more than six standard errors once in 5e8 times."""
    api.publish_collected(str(collection), tmp_path / "out", fewer=True)
    found = {row.values: row for row in api.estimate(tmp_path / "out", ["sex"]).rows}
    assert abs(found["f",].estimate - 500) < 6 * found["f",].standard_error < 500


def test_one_collection_gives_one_table(collection, tmp_path):
    first = api.publish_collected(str(collection), tmp_path / "one", fewer=True)
    again = api.publish_collected(str(collection), tmp_path / "two", fewer=True)
    assert first.histogram.decode().equals(again.histogram.decode())
    store = Store(str(collection))
    with pytest.raises(InputError) as caught:
        store.add([store.entry("0" * 32, (0, 0, 0))])
    assert caught.value.code == "collection-closed"


def test_nothing_is_closed_if_the_folder_is_taken(collection, tmp_path):
    (tmp_path / "out").mkdir()
    with pytest.raises(InputError):
        api.publish_collected(str(collection), tmp_path / "out", fewer=True)
    store = Store(str(collection))
    assert store.add([store.entry("0" * 32, (0, 0, 0))]) == [True]


def test_a_questionnaire_that_could_not_be_published_is_not_made_or_served(tmp_path):
    with pytest.raises(UnreachableError):  # epsilon is above 100, which no certificate states
        questionnaire_of(policy("{mechanism: pram, rho: 0.9999999999999999}"), records=1000)
    made = Questionnaire.make("T", [Question("a", "A?", ("x", "y"), ("x", "y"), 2**64 - 1)], records=1000)
    (tmp_path / "q.json").write_bytes(made.to_bytes())
    with pytest.raises(UnreachableError):
        api.collect(tmp_path / "q.json", str(tmp_path / "s.sqlite"))
    assert not (tmp_path / "s.sqlite").exists()
