"""What the pages show, runs; what they link to, is there."""

import re
import shlex
from pathlib import Path

import pytest

from incrowd.cli import incrowd
from incrowd.cli._shell import run

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]


def blocks(page: Path, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)


PYTHON = [(page, i, code) for page in PAGES for i, code in enumerate(blocks(page, "python"))]
CONSOLE = [(page, i, text) for page in PAGES for i, text in enumerate(blocks(page, "console"))]


@pytest.mark.parametrize(("page", "number", "code"), PYTHON, ids=lambda v: v.name if isinstance(v, Path) else None)
def test_python_blocks_run(page, number, code, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    exec(compile(code, f"{page.name}, block {number}", "exec"), {})


@pytest.mark.parametrize(("page", "number", "text"), CONSOLE, ids=lambda v: v.name if isinstance(v, Path) else None)
def test_console_blocks_run(page, number, text, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    counts = "value,count\n" + "\n".join(f"v{i},{1000 + i}" for i in range(50))
    (tmp_path / "counts.csv").write_text(counts, encoding="utf-8")
    commands = [shlex.split(line[2:], comments=True) for line in text.splitlines() if line.startswith("$ ")]
    ran = 0
    for command in commands:
        if command[:1] == ["incrowd"]:
            assert run(incrowd, command[1:]) == 0, (command, capsys.readouterr().err)
            ran += 1
        else:
            assert command[0] in {"make", "pip"}, f"{page.name} shows a command that no test runs: {command}"
    assert ran or commands


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_links_lead_somewhere(page):
    text = page.read_text(encoding="utf-8")
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        if target.startswith(("http://", "https://")):
            continue
        file, _, anchor = target.partition("#")
        there = (page.parent / file) if file else page
        assert there.exists(), f"{page.name} links to {target}"
        if anchor:
            headings = re.findall(r"^#+ (.*)$", there.read_text(encoding="utf-8"), flags=re.MULTILINE)
            slugs = {re.sub(r"[^\w\- ]", "", h.lower()).replace(" ", "-") for h in headings}
            assert anchor in slugs, f"{page.name} links to {target}"
