"""An error advises in the words of who reads it: options on the command line, arguments in Python."""

import re
from pathlib import Path

import pytest

import incrowd
from incrowd.cli import incrowd as command
from incrowd.cli._shell import run
from incrowd.core.errors import IncrowdError, InputError

POLICY = (
    "incrowd: 1\nattributes:\n  sex: {domain: [f, m]}\nrelease: {mechanism: sampled_crowd, epsilon: 1, delta: 1e-6}\n"
)


def said(remedy):
    return str(InputError("Wrong.", code="parameter-range", remedy=remedy))


@pytest.mark.parametrize(
    ("remedy", "python"),
    [
        ("Leave out --write-with.", "Leave out `write_with`."),
        ("Declare it: --new-ledger with the first release.", "Declare it: `new_ledger=True` with the first release."),
        ("Say which: --encoding=latin-1, or so.", "Say which: `encoding='latin-1'`, or so."),
        ("Choose another format (--format): csv.", "Choose another format (`output`): csv."),
        ("`incrowd plan sample POLICY --advice` says it.", "`incrowd plan sample POLICY --advice` says it."),
        ("A rule of dashes -- or a--b stays.", "A rule of dashes -- or a--b stays."),
    ],
)
def test_python_is_advised_in_its_own_words(remedy, python):
    assert said(remedy) == f"Wrong. {python}"


def test_the_same_error_on_both_sides(tmp_path, capsys):
    Path(tmp_path / "policy.yaml").write_text(POLICY, encoding="utf-8")
    with pytest.raises(IncrowdError) as error:
        incrowd.release(policy=tmp_path / "policy.yaml")
    assert "`data`" in str(error.value)
    assert "--" not in str(error.value)
    assert run(command, ["release", str(tmp_path / "policy.yaml"), "-o", str(tmp_path / "out")]) == 2
    assert "--data" in capsys.readouterr().err


def test_options_that_errors_name_exist_as_arguments():
    """What an error calls an argument is one of a function that scripts may rely on."""
    source = Path(incrowd.__file__).parent
    page = (source.parents[1] / "docs" / "python.md").read_text(encoding="utf-8")
    for file in source.rglob("*.py"):
        if {"cli", "studio", "collector"} & set(file.parts) or file.name == "server.py":
            continue
        for remedy in re.findall(r'remedy=((?:f?"[^"]*"\s*)+)', file.read_text(encoding="utf-8")):
            for option in set(re.findall(r"(?<=--)[a-z][a-z-]*", re.sub(r"`[^`]*`", "", remedy))):
                name = said(f"--{option}").split("`")[1].split("=")[0]
                assert f"{name}=" in page, (file.name, name)
