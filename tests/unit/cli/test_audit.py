"""`incrowd audit` from the command line."""

import json

import pytest

PEOPLE = "\n".join(
    ['age,sex,disease,w,"city, state"']
    + ["<40,M,flu-secret,3,x"] * 4
    + ["<40,M,cold-secret,3,x"] * 2
    + [">=40,F,flu-secret,3,y"] * 3
    + [">=40,F,cold-secret,3,y", ">=40,F,,3,y"]
)
SECRETS = ("<40", ">=40", "flu-secret", "cold-secret")


@pytest.fixture
def people(tmp_path):
    path = tmp_path / "people.csv"
    path.write_text(PEOPLE + "\n", encoding="utf-8")
    return path


def test_json_has_what_scripts_rely_on(call, people):
    code, out, err = call("audit", people, "--quasi", "age,sex", "--sensitive", "disease", "--json")
    assert (code, err) == (0, "")
    answer = json.loads(out)
    assert {"k", "l_diversity", "t_closeness", "belief_ratio", "risks"} <= answer.keys()
    assert (answer["k"], answer["l_diversity"], answer["records"]) == (5, 2, 11)
    assert set(answer["belief_ratio"]) == {"III shape=table", "II sigma=1000"}
    assert {"prosecutor", "journalist", "marketer", "sample_uniques", "small_groups"} <= answer["risks"].keys()
    assert answer["sensitive"]["disease"]["missing"] == 1
    assert not any(secret in out for secret in SECRETS)


def test_one_record_is_one_record(call, people):
    people.write_text(PEOPLE + "\n>=80,F,flu-secret,3,y\n", encoding="utf-8")
    assert "  1 record is alone in its group, 8.3% of all\n" in call("audit", people, "--quasi", "age")[1]


def test_infinity_is_a_text_in_json(call, people):
    code, out, _ = call(
        "audit", people, "--quasi", "age", "--sensitive", "disease", "--adversary", "II sigma=100 b=5", "--json"
    )
    assert code == 0
    assert json.loads(out)["belief_ratio"] == {"II sigma=100 b=5": "inf"}


def test_a_page_for_people(call, people):
    code, out, err = call("audit", people, "--quasi", "age", "--quasi", "sex", "--sensitive", "disease")
    assert (code, err) == (0, "")
    for part in ("k = 5", "Being found", "What each column does", "Belief ratios", "worst groups", "keep in mind"):
        assert part in out
    assert not any(secret in out for secret in SECRETS)
    code, out, _ = call("audit", people, "--quasi", "age,sex", "--sensitive", "disease", "--show-values")
    assert code == 0
    assert all(secret in out for secret in SECRETS[:3])


def test_columns_with_commas_and_weights_and_no_sensitive_column(call, people):
    code, out, _ = call("audit", people, "--quasi", "city, state", "--quasi", "age,sex", "--weights", "w", "--json")
    assert code == 0
    answer = json.loads(out)
    assert answer["quasi"] == ["city, state", "age", "sex"]
    assert answer["risks"]["journalist"]["expected"] == pytest.approx(2 / 3)
    code, out, _ = call("audit", people, "--quasi", "age", "--weights", "w")
    assert code == 0
    assert "journalist" in out
    assert "smallest groups" in out


def test_the_report(call, people, tmp_path):
    page = tmp_path / "audit.html"
    arguments = ("audit", people, "--quasi", "age,sex", "--sensitive", "disease", "--html", page)
    code, out, _ = call(*arguments)
    assert code == 0
    assert "as confidential as the table" in out
    assert "INTERNAL" in page.read_text(encoding="utf-8")
    code, out, _ = call(*arguments, "--json")
    assert json.loads(out)["report"] == str(page)
    assert call("audit", people, "--quasi", "age", "--html", tmp_path / "audit.pdf")[0] == 2
    assert call("audit", people, "--quasi", "age", "--html", tmp_path / "no" / "audit.html")[0] == 2


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["--quasi", "age,sexes"], "column-unknown"),
        (["--quasi", "age", "--sensitive", "age"], "parameter-combination"),
        (["--quasi", "age", "--adversary", "nobody"], "adversary-invalid"),
        (["--quasi", "age", "--sensitive", "disease", "--domain", "disease=flu-secret"], "values-outside-domain"),
        (["--quasi", "age", "--sensitive", "disease", "--domain", "age=1"], "parameter-combination"),
        (["--quasi", "age", "--weights", "disease"], "weights-invalid"),
        (["--quasi", "age", "--sampling-rate", "2"], "parameter-range"),
        (["--quasi", "age", "--population", "no-such.csv"], "data-not-found"),
        (["--sensitive", "disease"], "usage"),
    ],
)
def test_bad_input_is_exit_code_2_without_values(call, people, arguments, code):
    exit_code, out, err = call("audit", people, *arguments, "--json")
    assert exit_code == 2
    error = json.loads(out)["error"]
    assert error["code"] == code
    assert not any(secret in out + err for secret in (*SECRETS, "Traceback"))


def test_class_four_is_exit_code_3(call, people):
    exit_code, out, err = call("audit", people, "--quasi", "age", "--sensitive", "disease", "--adversary", "IV")
    assert exit_code == 3
    assert out == ""
    assert "Theorem 4" in err


def test_people_in_groups(call, tmp_path):
    (tmp_path / "visits.csv").write_text("who,ward\na,x\na,x\na,x\nb,y\nc,y\n")
    code, out, _ = call("audit", tmp_path / "visits.csv", "--quasi", "ward", "--people", "who")
    assert code == 0
    assert "the smallest group has 1 person" in out
    assert "one person's: 3 records" in out
    code, out, _ = call("audit", tmp_path / "visits.csv", "--quasi", "ward", "--people", "who", "--json")
    assert json.loads(out)["people"]["k"] == 1
