"""What if: moves as the page sends them, answered without a browser or a process."""

import json
from types import SimpleNamespace

import pytest

pytest.importorskip("starlette", reason="the studio's packages are not installed")
pytest.importorskip("jinja2", reason="the studio's packages are not installed")

from incrowd.core.errors import IncrowdError
from incrowd.studio import explored, work
from incrowd.studio.folders import Folders

TEXT = """\
incrowd: 1
data: {path: t.csv}
attributes:
  # in completed years
  age: {type: integer, domain: {from: 0, to: 9}, hierarchy: {widths: [5]}}
  sex: {domain: [f, m]}
  ill: {domain: ["no", flu, "<b>rare</b>"]}
release: {mechanism: sampled_crowd, epsilon: 2, delta: 1e-4, selection_epsilon: 0.1}
"""


@pytest.fixture(scope="module")
def asker(tmp_path_factory):
    folder = tmp_path_factory.mktemp("explored")
    rows = "".join(f"{i % 10},{'fm'[i % 2]},{'flu' if i % 3 else 'no'}\n" for i in range(1500))
    (folder / "t.csv").write_text(f"age,sex,ill\n{rows}3,f,<b>rare</b>\n")
    asked = {"text": TEXT, "base": str(folder), "data": [str(folder / "t.csv")]}
    first, answer = work.KEPT["explore"](asked, lambda *_: None)
    job = SimpleNamespace(ask=answer, result=first)

    def ask(what, changes=(), **more):
        made = getattr(explored, what)(
            Folders.of([folder]), job, {"text": TEXT, "changes": list(changes), **more}, folder
        )
        return made.body.decode() if what == "plot" else json.loads(made.body)

    return ask


def test_a_move_is_shown_and_is_a_point(asker):
    whole = asker("look")
    assert "Which values survive" in whole["html"]
    assert "<b>rare" not in whole["html"]
    assert (whole["point"]["epsilon"], whole["point"]["mechanism"]) == (2.0, "sampled_crowd")
    moved = asker("look", [{"place": ["release", "epsilon"], "content": "4"}])
    assert moved["point"]["epsilon"] == 4.0
    without = asker("look", [{"place": ["attributes", "age", "role"], "content": "drop"}])
    assert without["content"]["attributes"]["age"]["role"] == "drop"
    assert "not published" in without["html"]
    assert set(without["levels"]) == {"sex", "ill"}


def test_another_mechanism_makes_the_same_promise_and_says_so_in_the_policys_text(asker):
    changes = asker("by_mechanism", mechanism="views")["changes"]
    found = asker("look", changes)
    assert (found["point"]["mechanism"], found["point"]["epsilon"]) == ("views", 2.0)
    back = asker("by_mechanism", changes, mechanism="sampled_crowd")["changes"]
    assert asker("look", [*changes, *back])["point"]["mechanism"] == "sampled_crowd"
    for name in ("generalization", "pram", "sample"):
        assert asker("look", asker("by_mechanism", mechanism=name)["changes"])["point"]["mechanism"] == name


def test_moves_leave_the_rest_of_the_text_alone(asker):
    moves = [("attributes", "sex", "role"), ("attributes", "sex", "level")]
    changes = [{"place": list(place), "content": content} for place, content in zip(moves, ("drop", None), strict=True)]
    changes.append({"place": ["release", "totals", "epsilon"], "content": "0.2"})
    found = asker("look", changes)
    lines = set(found["text"].splitlines())
    assert [line for line in TEXT.splitlines() if line not in lines] == [TEXT.splitlines()[5], TEXT.splitlines()[-1]]
    assert found["content"]["release"]["totals"] == {"epsilon": "0.2"}


def test_what_lies_around_is_tried_one_by_one(asker):
    of = asker("around", number=0)["of"]
    found = next(one for number in range(of) if (one := asker("around", number=number))["words"] == "drop age")
    assert found["changes"] == [{"place": ["attributes", "age", "role"], "content": "drop"}]
    assert 0 < found["score"] < 1
    assert asker("around", number=found["of"])["score"] is None
    dots = [{"epsilon": 1, "score": 0.5, "mechanism": "m", "words": '"><script>', "name": "now", "key": "0"}]
    drawn = asker("plot", points=[*dots, {"score": 0.25}])
    assert 'data-dot="0"' in drawn
    assert "INTERNAL" in drawn
    assert "<script" not in drawn
    assert "<style" not in drawn


@pytest.mark.parametrize("asked", [
    ("look", {"changes": [{"confirm": "age"}]}), ("around", {"number": -1}), ("around", {"number": "1"}),
    ("plot", {"points": [1]}), ("plot", {"points": [{"score": "x"}]}), ("plot", {"points": None}),
    ("by_mechanism", {"mechanism": "none"}),
    ("look", {"changes": [{"place": ["data", "path"], "content": "/etc/passwd"}]}),
])  # fmt: skip
def test_what_no_page_asks_is_refused(asker, asked):
    what, body = asked
    with pytest.raises(IncrowdError) as refused:
        asker(what, **body)
    assert refused.value.code in {"request-malformed", "parameter-range", "path-outside"}
