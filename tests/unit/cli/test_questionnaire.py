"""`incrowd questionnaire`, `collect` and `collected` as a person or a script calls them."""

import json

import pytest

from incrowd.cli import incrowd
from incrowd.cli._shell import run
from incrowd.cli.collect import _without_password
from incrowd.survey import Questionnaire, Randomizer
from incrowd.survey.collector.store import Store


@pytest.fixture
def survey(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert run(incrowd, ["example", "survey", "-o", "survey.yaml"]) == 0
    capsys.readouterr()
    return tmp_path


def say(capsys, *arguments):
    code = run(incrowd, [*arguments, "--json"])
    return code, json.loads(capsys.readouterr().out)


MAKE = ["questionnaire", "survey.yaml", "-o", "survey.json", "--records", "10000"]


def test_a_questionnaire_is_made_from_a_policy(survey, capsys):
    assert run(incrowd, ["keys", "-o", "office"]) == 0
    capsys.readouterr()
    code, said = say(capsys, *MAKE, "--texts", "survey.texts.yaml", "--sign-with", "office.secret.pem")
    assert code == 0
    assert said["signed"]
    assert said["records"] == 10_000
    assert float(said["promise"]["local"]["epsilon"]) <= 4
    assert set(said["retentions"]) == {"age", "district", "commute", "fare_dodged"}
    made = Questionnaire.from_file("survey.json", public_key="office.public.pem")
    assert made.digest == said["digest"]
    assert made.questions[0].labels[0] == "under 20"


def test_a_person_reads_the_promise(survey, capsys):
    assert run(incrowd, MAKE) == 0
    shown = capsys.readouterr().out
    assert "asks 4 questions" in shown
    assert "Answer once." in shown


def test_a_file_is_not_overwritten_unasked(survey, capsys):
    assert say(capsys, *MAKE)[0] == 0
    code, said = say(capsys, *MAKE)
    assert (code, said["error"]["code"]) == (2, "output-exists")
    assert say(capsys, *MAKE, "--overwrite")[0] == 0


def test_a_policy_of_another_mechanism_is_refused(survey, capsys):
    text = (survey / "survey.yaml").read_text()
    release = "release: {mechanism: sampled_crowd, epsilon: 1, delta: 1e-6}\n"
    (survey / "survey.yaml").write_text(text[: text.index("release:")] + release)
    code, said = say(capsys, *MAKE)
    assert (code, said["error"]["code"]) == (2, "policy-invalid")


def test_collected_records_are_published(survey, capsys):
    assert say(capsys, *MAKE)[0] == 0
    made = Questionnaire.from_file("survey.json")
    store = Store("survey.sqlite", made)
    randomizer = Randomizer(made)
    answers = {"age": "[20, 40)", "district": "east", "commute": "bus", "fare_dodged": None}
    envelopes = [randomizer.envelope(answers) for _ in range(300)]
    store.add([store.entry(envelope["nonce"], made.codes(envelope["record"])) for envelope in envelopes])
    store.close()
    code, said = say(capsys, "collected", "survey.sqlite", "-o", "out")
    assert (code, said["error"]["code"]) == (2, "collection-small")
    code, said = say(capsys, "collected", "survey.sqlite", "-o", "out", "--fewer")
    assert code == 0
    assert said["guarantee"]["randomised_by"] == "respondents"
    assert said["guarantee"]["records"] == 300
    code, said = say(capsys, "verify", "out")
    assert (code, said["valid"]) == (0, True)
    assert run(incrowd, ["collected", "survey.sqlite", "-o", "again", "--fewer"]) == 0


def test_a_store_that_is_not_there_is_a_clear_error(survey, capsys):
    code, said = say(capsys, "collected", "nothing.sqlite", "-o", "out")
    assert (code, said["error"]["code"]) == (2, "store-unavailable")


def test_what_is_no_questionnaire_is_not_served(survey, capsys):
    (survey / "q.json").write_text("{}")
    code, said = say(capsys, "collect", "q.json", "--store", "s.sqlite")
    assert (code, said["error"]["code"]) == (2, "questionnaire-invalid")
    assert not (survey / "s.sqlite").exists()


@pytest.mark.parametrize(
    ("store", "shown"),
    [
        ("survey.sqlite", "survey.sqlite"),
        ("postgresql://u:hunter2@h:5432/db", "postgresql://h:5432/db"),
        ("postgresql://h/db?user=u&password=hunter2", "postgresql://h/db"),
        ("postgresql://h/db?user=u@x&password=hunter2", "postgresql://h/db"),
        ("postgresql://h?password=a/hunter2", "postgresql://h"),
        ("postgresql://u:hun?ter2@h/db", "postgresql://h/db"),
        ("postgresql:///db?host=/run", "postgresql:///db"),
    ],
)
def test_a_password_is_not_shown(store, shown):
    assert _without_password(store) == shown
