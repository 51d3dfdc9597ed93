"""What other people's pipelines run: the pre-commit hook and the composite action, by their own commands."""

import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from incrowd import Policy, release

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def folder(tmp_path):
    """Two releases in a folder, and the program `incrowd` on the path."""
    import pandas as pd

    people = pd.DataFrame({"sex": ["f", "m"] * 300})
    policy = Policy.from_text(
        "incrowd: 1\nattributes: {sex: {domain: [f, m]}}\n"
        "release: {mechanism: sampled_crowd, epsilon: 2, delta: 1e-4, beta: 0.5, k: 20}\n"
    )
    for name in ("good", "a copy"):
        release(people, policy, folder=tmp_path / name)
    program = tmp_path / "bin" / "incrowd"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m incrowd "$@"\n')
    program.chmod(0o755)
    return tmp_path


def forge(folder):
    table = folder / "release.parquet"
    table.write_bytes(table.read_bytes() + b" ")


def run(command, folder, **environment):
    path = f"{folder / 'bin'}{os.pathsep}{os.environ['PATH']}"
    return subprocess.run(
        command, cwd=folder, env={**os.environ, "PATH": path, **environment}, capture_output=True, check=False
    )


def test_the_hook_passes_good_releases_and_stops_a_forged_one(folder):
    [hook] = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text())
    command = shlex.split(hook["entry"])
    touched = ["notes.txt", "good/certificate.json", "a copy/release.parquet"]
    assert run([*command, *touched], folder).returncode == 0
    forge(folder / "a copy")
    assert run([*command, *touched], folder).returncode != 0
    assert run([*command, "a copy/views/pair.csv"], folder).returncode != 0
    assert run([*command, "notes.txt", "good/certificate.json"], folder).returncode == 0


def test_the_action_verifies_each_folder(folder):
    steps = yaml.safe_load((ROOT / "action.yml").read_text())["runs"]["steps"]
    command = ["bash", "-eo", "pipefail", "-c", steps[-1]["run"]]
    given = {"FOLDERS": "good\n\na copy\n", "PUBLIC_KEY": ""}
    assert run(command, folder, **given).returncode == 0
    forge(folder / "good")
    assert run(command, folder, **given).returncode != 0


def test_the_container_has_what_the_package_is_built_from():
    lines = (ROOT / "Dockerfile").read_text().splitlines()
    copied = {
        name for line in lines if line.startswith("COPY ") and "--from" not in line for name in line.split()[1:-1]
    }
    assert {"pyproject.toml", "README.md", "LICENSE", "src"} <= copied
    assert all((ROOT / name).exists() for name in copied)
    assert lines.index("USER 1000") < lines.index('ENTRYPOINT ["incrowd"]')
