"""`incrowd init`: the JSON contract, a readable summary without values, and a release from the draft once confirmed."""

import json
import random
import re

import pytest

from incrowd.policy import Policy
from incrowd.sources import open_source


@pytest.fixture
def table(tmp_path):
    """A survey of 3000 people, in which one has a quirk."""
    r = random.Random(1)
    lines = ["person_id,age,sex,income [net],smokes"]
    for i in range(3000):
        town = "quirk" if i == 77 else r.choice(["female", "male"])
        lines.append(f"{i},{r.randint(18, 93)},{town},{r.randint(5, 900) * 100},{r.choice(['0', '1', ''])}")
    file = tmp_path / "survey.csv"
    file.write_text("\n".join(lines), encoding="utf-8")
    return file


def test_json(call, table):
    code, out, err = call("init", table, "--json")
    assert (code, err) == (0, "")
    answer = json.loads(out)
    assert answer["policy"] == str(table.with_suffix(".yaml"))
    assert [(c["name"], c["type"], c["role"]) for c in answer["columns"]] == [
        ("person_id", "integer", "drop"),
        ("age", "integer", "quasi"),
        ("sex", "text", "quasi"),
        ("income [net]", "integer", "sensitive"),
        ("smokes", "boolean", "quasi"),
    ]
    assert all(column["why"] for column in answer["columns"])
    assert all(decision.keys() == {"column", "question"} for decision in answer["decisions"])
    assert any("CONFIRM" in decision["question"] for decision in answer["decisions"])
    assert "quirk" not in out
    assert set(Policy.from_file(answer["policy"]).published) == {"age", "sex", "income [net]", "smokes"}


def test_the_summary_shows_every_column_and_decision_and_no_values(call, table):
    code, out, err = call("init", table)
    assert (code, err) == (0, "")
    for word in ("person_id", "income [net]", "sensitive", "drop", "A person must decide", "CONFIRM", "survey.yaml"):
        assert word in out
    for word in ("quirk", "female"):
        assert word not in out
    assert "quirk" not in table.with_suffix(".yaml").read_text(encoding="utf-8")


def test_printed(call, table, tmp_path):
    code, out, err = call("init", table, "-o", "-")
    assert (code, err) == (0, "")
    assert set(Policy.from_text(out).published) == {"age", "sex", "income [net]", "smokes"}
    code, text, _ = call("init", table, "-o", "-", "--json")
    assert code == 0
    assert json.loads(text)["policy"] == "-"
    assert json.loads(text)["text"] == out
    assert list(tmp_path.iterdir()) == [table]


def test_nothing_is_overwritten_unasked(call, table, tmp_path):
    target = tmp_path / "mine.yaml"
    target.write_text("precious", encoding="utf-8")
    code, out, err = call("init", table, "-o", target, "--json")
    assert code == 2
    assert json.loads(out)["error"]["code"] == "output-exists"
    assert "Traceback" not in err
    assert target.read_text(encoding="utf-8") == "precious"
    assert call("init", table, "-o", target, "--overwrite")[0] == 0
    assert Policy.from_file(target).data.path == "survey.csv"


@pytest.mark.parametrize(
    ("content", "code"),
    [
        (None, "data-not-found"),
        (b"", "data-empty"),
        (b"a,b\n", "data-empty"),
        (b"a,b\n1,2\n3\n", "data-malformed"),
        (b"PK\x03\x04 no table", "data-format"),
        ("größe\nä\n".encode("latin-1"), "data-encoding"),
        (b"id\n" + b"".join(b"%d\n" % i for i in range(100)), "draft-empty"),
        (b"17,2024-01-31\n" * 100, "data-malformed"),
    ],
)
def test_mistakes_get_one_clear_message_and_nothing_is_written(call, tmp_path, content, code):
    file = tmp_path / "data.csv"
    if content is not None:
        file.write_bytes(content)
    before = set(tmp_path.iterdir())
    exit_code, out, err = call("init", file, "--json")
    assert exit_code == 2
    assert json.loads(out)["error"]["code"] == code
    assert err.startswith("error: ")
    assert len(err.splitlines()) <= 4
    assert set(tmp_path.iterdir()) == before


def test_how_to_read_is_handed_on(call, tmp_path):
    file = tmp_path / "data.csv"
    file.write_bytes(("größe~wert\n" + "groß~b\n'klein~er'~a\n" * 40).encode("latin-1"))
    assert call("init", file, "--encoding", "latin-1", "--delimiter", "~", "--quote", "'")[0] == 0
    policy = Policy.from_file(tmp_path / "data.yaml")
    assert (policy.data.encoding, policy.data.delimiter, policy.data.quote) == ("iso8859-1", "~", "'")
    assert policy.attributes["größe"].domain == ("groß", "klein~er")


def test_odd_names_do_not_disturb_the_terminal(call, tmp_path):
    file = tmp_path / "data.csv"
    header = '"[bold]",\x1b[31mred,"two\nlines", blank '
    file.write_text("\n".join([header, *(f"{i % 2},a{i % 3},b{i % 2},c{i % 3}" for i in range(90))]), encoding="utf-8")
    code, out, _ = call("init", file)
    assert code == 0
    assert "[bold]" in out
    assert "\x1b[31mred" not in out
    assert "'two\\nlines'" in out


def test_the_draft_can_be_released_once_it_is_confirmed(call, table, tmp_path):
    assert call("init", table)[0] == 0
    draft = table.with_suffix(".yaml")
    assert call("release", draft, "-o", tmp_path / "out", "--json")[0] == 2
    assert call("release", draft, "-o", tmp_path / "look", "--rehearse", "--json")[0] == 0
    draft.write_text(re.sub(r"\s+# CONFIRM\b.*", "", draft.read_text(encoding="utf-8")), encoding="utf-8")
    code, out, err = call("release", draft, "-o", tmp_path / "out", "--json")
    assert code == 0, err
    assert json.loads(out)["guarantee"]["epsilon"] == 2
    assert call("verify", tmp_path / "out", "--json")[0] == 0


def test_a_token_is_neither_in_the_draft_nor_on_the_screen(call, table, monkeypatch):
    from incrowd import drafting

    opened = []

    def open_here(data, *, engine, **options):
        opened.append(engine)
        return open_source(data, **options)

    monkeypatch.setattr(drafting, "open_source", open_here)
    engine = "sc://head:15002/;token=S3CRET"
    code, out, err = call("init", table, "--engine", engine)
    assert (code, err) == (0, "")
    assert opened == [engine]
    for text in (out, table.with_suffix(".yaml").read_text(encoding="utf-8")):
        assert "S3CRET" not in text
        assert "--engine 'sc://head:15002/;...'" in text.replace("\n# ", " ")
    code, out, err = call("init", table, "--engine", engine, "--overwrite", "--json")
    assert "S3CRET" not in out + err
