"""Coq accepts the proofs, they rest on nothing, and they are the ones that docs/proofs.md speaks of."""

import re
import runpy
import shutil
from pathlib import Path
from types import SimpleNamespace

import pytest

ROOT = Path(__file__).resolve().parents[2]
PROOFS = ROOT / "proofs"
PAGE = (ROOT / "docs" / "proofs.md").read_text(encoding="utf-8")
check = SimpleNamespace(**runpy.run_path(str(PROOFS / "check.py")))

pytestmark = pytest.mark.xdist_group("proofs")


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """A copy of the proofs, compiled."""
    if why := check.missing():
        pytest.skip(why)
    folder = tmp_path_factory.mktemp("built") / "proofs"
    shutil.copytree(PROOFS, folder)
    check.build(folder, check.files(folder))
    return folder


@pytest.fixture
def copy(built, tmp_path):
    """A copy that a test may spoil."""
    return Path(shutil.copytree(built, tmp_path / "proofs"))


def test_where_coq_is_missing_that_is_said(monkeypatch, tmp_path, capsys):
    monkeypatch.setenv("PATH", str(tmp_path))
    assert check.main() == 1
    assert "Coq is not installed" in capsys.readouterr().out


def test_every_file_is_listed():
    assert sorted(check.files()) == sorted(path.stem for path in PROOFS.glob("*.v"))


def test_the_page_names_every_theorem_and_no_other():
    files = "|".join(check.files())
    named = re.findall(rf"`((?:{files})\.\w+)`", PAGE)
    assert sorted(set(named)) == sorted(check.theorems())


def test_the_page_shows_what_coq_prints():
    assert "\n".join(["```text", *check.theorems(), check.CLOSED]) in PAGE


def test_no_proof_is_left_out():
    assert check.shortcuts() == []


@pytest.mark.parametrize("word", ["Admitted.", "Axiom a : False.", "Parameter a : False.", "Unset Guard Checking."])
def test_what_leaves_a_proof_out_is_seen(word, tmp_path):
    (tmp_path / "_CoqProject").write_text("A.v\n", encoding="utf-8")
    (tmp_path / "A.v").write_text(f"(* Axiom (* Admitted *) *)\n{word}\n", encoding="utf-8")
    assert len(check.shortcuts(tmp_path)) == 1


def test_the_independent_checker_accepts_them(built):
    check.recheck(built)


def test_every_theorem_is_proved_from_nothing(built):
    assert check.assumptions(built) == check.CLOSED


def test_an_assumption_would_be_seen(copy):
    """A hypothesis outside of a section is an axiom, by whatever name."""
    with (copy / "_CoqProject").open("a", encoding="utf-8") as listed:
        listed.write("Smuggled.v\n")
    (copy / "Smuggled.v").write_text("Hypothesis gift : False.\nTheorem all : 1 = 2.\nProof. case gift. Qed.\n")
    check.build(copy, ["Smuggled"])
    assert "gift" in check.assumptions(copy)


MUTANTS = {
    "another law": ("Binomial", "'C(n, j)%:R.", "'C(n, j.+1)%:R."),
    "a threshold one higher": ("Crowd", "if (k <= j)%N then j", "if (k < j)%N then j"),
    "another worst table": ("Crowd", "gamma b E : R := 1 - (1 - b) / E", "gamma b E : R := 1 - (1 - b) * E"),
    "not the first such table": ("Crowd", "g * m.+1%:R < i%:R", "g * m%:R < i%:R"),
    "another divergence": (
        "Crowd",
        "loss b E a J n : R := (1 - tail b J n)",
        "loss b E a J n : R := (1 - tail b J.+1 n)",
    ),
    "a lower threshold": ("Tables", "published k #|part A c|]", "published k.-1 #|part A c|]"),
    "half of a neighbour": (
        "Groups",
        "law b k (n + a) S <= E * law b k n S + d /",
        "law b k n S <= E * law b k n S + d /",
    ),
    "another counter-example": ("Choice", "(#|A :\\ t| - 19))%N.", "(#|A :\\ t| - 9))%N."),
    "replacing nothing": ("Pram", "A u w <= E * A v w.", "A u w <= E * A u w."),
    "one record less": ("Pram", "(#|I|%:R - 1) * (A u v'", "(#|I|%:R - 2) * (A u v'"),
    "another criterion": ("Samples", "(forall v, (1 + eps) * (s v)%:R <= eps", "(forall v, (s v)%:R <= eps"),
    "another score": ("Score", "j%:R * (k <= j)%N%:R).", "j%:R * (k < j)%N%:R)."),
    "too little room": ("Corners", "(s v + c <= n v)%N.", "(s v + c <= (n v).+1)%N."),
    "another prior": (
        "Beliefs",
        "rising (a : R) (c : nat) : R := \\prod_(i < c)",
        "rising (a : R) (c : nat) : R := \\prod_(i < c.+1)",
    ),
    "another belief": ("Beliefs", "p_out (n f : nat) : R := (f%:R - 1", "p_out (n f : nat) : R := (f%:R - 2"),
    "another sampling": ("Tables", "(1 - b) ^+ #|T :\\: A|", "(1 - b) ^+ #|T|"),
}


@pytest.mark.parametrize("mutant", MUTANTS)
def test_wrong_definitions_break_the_proofs(copy, mutant):
    name, right, wrong = MUTANTS[mutant]
    file = copy / f"{name}.v"
    text = file.read_text(encoding="utf-8")
    assert text.count(right) == 1
    file.write_text(text.replace(right, wrong), encoding="utf-8")
    with pytest.raises(RuntimeError, match="Error") as failed:
        check.build(copy, [name])
    assert "Syntax error" not in str(failed.value)
    assert "not found" not in str(failed.value)
