"""What the pages show, runs; what they link to, is there.

In the pages,

- every block of ``python`` and ``console`` is run, each in a folder of its own; in
  the pages that tell a story they continue each other;
- a block such as ``yaml office.yaml`` is a file that the blocks of its page find in their folder;
- a console line without ``$`` is part of what the command before it prints; a line that ends in ``# refused`` must be;
- ``python ibis``, ``sh``, ``text`` and other languages are not run here, because they need what tests do not have.
"""

import html
import importlib.util
import re
import runpy
import shlex
from collections import Counter
from itertools import pairwise
from pathlib import Path
from urllib.parse import unquote

import click
import pytest

from incrowd import __version__
from incrowd.cli import incrowd
from incrowd.cli._shell import run

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
STORIES = [page for page in PAGES if page.name.startswith(("tutorial-", "from-"))]
REFUSED = 3


def blocks(page: Path) -> list[tuple[str, str]]:
    """The blocks of a page, each with the words after its three backticks."""
    return re.findall(r"^```([^\n]*)\n(.*?)^```", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)


def save_files(page: Path) -> None:
    for words, text in blocks(page):
        if re.fullmatch(r"(yaml|csv|text) [\w.-]+\.\w+", words):
            Path(words.split()[1]).write_text(text, encoding="utf-8")


def run_python(page: Path, code: str, names: dict[str, object]) -> None:
    above = page.read_text(encoding="utf-8").partition(code)[0].count("\n")
    exec(compile("\n" * above + code, str(page), "exec"), names)


def run_console(page: Path, text: str, capsys: pytest.CaptureFixture[str]) -> None:
    printed = ""
    lines = text.splitlines()
    assert lines[0].startswith("$ "), f"{page.name} shows what no command prints"
    for line in lines:
        if not line.startswith("$ "):
            assert plain(line) in printed, f"{page.name} shows what is not printed: {line}\n{printed}"
            continue
        command = shlex.split(line[2:], comments=True)
        if command[0] != "incrowd":
            assert command[0] in {"make", "pip"}, f"{page.name} shows a command that no test runs: {command}"
            continue
        expected = REFUSED if line.endswith("# refused") else 0
        code = run(incrowd, command[1:])
        output = capsys.readouterr()
        assert code == expected, (command, output.err)
        printed = plain(output.out + output.err)


def plain(text: str) -> str:
    """Without line breaks and columns, which depend on the width of the terminal."""
    return " ".join(text.split())


def alone(language: str) -> list[object]:
    """The blocks of a language that continue no other."""
    return [
        pytest.param(page, text, id=f"{page.name}-{number}")
        for page in PAGES
        if page not in STORIES
        for number, (words, text) in enumerate(blocks(page))
        if words == language
    ]


@pytest.mark.parametrize(("page", "code"), alone("python"))
def test_python_blocks_run(page, code, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    save_files(page)
    run_python(page, code, {})


@pytest.mark.parametrize(("page", "text"), alone("console"))
def test_console_blocks_run(page, text, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    counts = "value,count\n" + "\n".join(f"v{i},{1000 + i}" for i in range(50))
    (tmp_path / "counts.csv").write_text(counts, encoding="utf-8")
    save_files(page)
    run_console(page, text, capsys)


@pytest.mark.parametrize("page", STORIES, ids=lambda page: page.name)
def test_stories_run_from_start_to_end(page, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    save_files(page)
    names: dict[str, object] = {}
    shown = [(words, text) for words, text in blocks(page) if words in {"python", "console"}]
    assert len(shown) > 1, f"{page.name} shows hardly anything"
    for words, text in shown:
        if words == "python":
            run_python(page, text, names)
        else:
            run_console(page, text, capsys)


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


# --- the site -----------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def site():
    spec = importlib.util.spec_from_file_location("site_of_docs", ROOT / "docs" / "site.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_tables_of_mechanisms_are_the_registrys():
    reference = runpy.run_path(str(ROOT / "docs" / "reference.py"))
    for (file, name), table in reference["TABLES"].items():
        page = (ROOT / file).read_text(encoding="utf-8")
        assert reference["with_table"](page, name, table()) == page, f"run `make reference`: {file}"
        assert reference["with_table"](page, name, "") != page


def test_every_page_is_in_one_part_of_the_site(site):
    listed = Counter(name for names in site.PARTS.values() for name in names)
    assert listed == Counter(page.stem for page in PAGES if page.name != "README.md")


def test_the_list_of_pages_is_the_sites(site):
    text = (ROOT / "docs" / "README.md").read_text(encoding="utf-8")
    shown = {
        part: tuple(re.findall(r"\(([\w-]+)\.md\)", pages))
        for part, pages in re.findall(r"^- \*\*(.+?)\*\*:(.*?)(?=^- |^$)", text, flags=re.MULTILINE | re.DOTALL)
    }
    assert shown == site.PARTS


@pytest.mark.parametrize(
    ("written", "shown"),
    [
        ("at most e^ε-fold", "at most e<sup>ε</sup>-fold"),
        ("e^{−ε₁}M(S) < β^k", "e<sup>−ε₁</sup>M(S) &lt; β<sup>k</sup>"),
        ("x₊ ≤ e^(λ(x−1))/λ", "x₊ ≤ e<sup>λ(x−1)</sup>/λ"),
        ("p_in, n_φ and h_{J+1}(n)", "p<sub>in</sub>, n<sub>φ</sub> and h<sub>J+1</sub>(n)"),
        ("C_jw² x", "C<sub>jw</sub>² x"),
        ("sampled_crowd, e_mail", "sampled_crowd, e_mail"),
        ("Σc_s ≥ min_s (σ_s)", "Σc<sub>s</sub> ≥ min<sub>s</sub> (σ<sub>s</sub>)"),
        ("C(n'_v, s_v), R_{x'}", "C(n'<sub>v</sub>, s<sub>v</sub>), R<sub>x'</sub>"),
        ("x\u0302_j = Σ_w C_jw", "x\u0302<sub>j</sub> = Σ<sub>w</sub> C<sub>jw</sub>"),
        ("Σ_{i=1..a_v} e^{z_k²/2}", "Σ<sub>i=1..a<sub>v</sub></sub> e<sup>z<sub>k</sub>²/2</sup>"),
    ],
)
def test_formulas_are_set(site, written, shown):
    assert site.formulas(written) == shown


def test_the_site_holds_together(site, tmp_path):
    written = site.build(tmp_path)
    assert len(written) == len({page.stem for page in PAGES})  # the list of pages stands beside each
    texts = {path.name: path.read_text(encoding="utf-8") for path in written}
    anchors = {name: re.findall(r' id="([^"]*)"', text) for name, text in texts.items()}
    for name, text in texts.items():
        for target in (html.unescape(found) for found in re.findall(r' (?:href|src)="([^"]*)"', text)):
            if target.startswith(("http://", "https://")):
                continue
            file, _, anchor = unquote(target).partition("#")
            assert (tmp_path / (file or name)).is_file(), f"{name} leads to {target}"
            assert not anchor or anchor in anchors[file or name], f"{name} leads to {target}"
        assert "```" not in text, f"{name} shows a block as it is written"
        assert len(anchors[name]) == len(set(anchors[name])), f"{name} has two places of the same name"
        assert not re.search(r"<(?:link|img|script)[^>]*(?:href|src)=.(?:https?:)?//", text), f"{name} needs a network"


def test_pages_lead_to_the_next_and_long_ones_list_their_parts(site, tmp_path):
    texts = {path.stem: path.read_text(encoding="utf-8") for path in site.build(tmp_path)}
    order = list(texts)
    for before, after in pairwise(order):
        assert f'<a href="{after}.html" rel="next">' in texts[before]
        assert f'<a href="{before}.html" rel="prev">' in texts[after]
    assert "<title>incrowd</title>" in texts["index"]
    assert "<title>Proofs · incrowd</title>" in texts["proofs"]
    for name, text in texts.items():
        parts = len(re.findall(r"<h2 id=", text))
        assert ('class="inside"' in text) == (parts >= site.MANY), name


def test_the_first_page_has_one_picture_three_commands_and_where_to_go(site, tmp_path):
    texts = {path.stem: path.read_text(encoding="utf-8") for path in site.build(tmp_path)}
    main = texts["index"].split("<main>")[1].split("<h2")[0]
    assert len(re.findall("<img ", main)) == 1
    assert main.count('<span class="gp">$') == 3
    assert 'href="cost.html"' in main
    assert "gallery/index.html" not in main  # which is drawn only where it is asked for
    assert "gallery/index.html" in site.front((ROOT / "README.md").read_text(encoding="utf-8"), gallery=True)
    assert "588 ms" not in texts["index"]
    assert all(f'<span class="version">{__version__}</span>' in text for text in texts.values())


def test_every_option_named_on_a_page_is_one():
    """In what stands as code on the pages; programs of others, and options of ours that are gone, aside."""
    context = click.Context(incrowd)

    def options(command, context):
        found = {option for parameter in command.params for option in parameter.opts + parameter.secondary_opts}
        if isinstance(command, click.Group):
            for name in command.list_commands(context):
                found |= options(command.get_command(context, name), context)
        return found

    known = options(incrowd, context) | {"--help", "--version"}
    named = {
        (page.name, option)
        for page in PAGES
        for code in re.findall(r"`([^`\n]+)`", page.read_text(encoding="utf-8"))
        if not code.startswith(("pip ", "make ", "python ", "psql ", "spark-submit"))
        for option in re.findall(r"(?<![\w-])--[a-z][\w-]*", code)
    }
    assert len(named) > 50
    assert not [(page, option) for page, option in sorted(named) if option not in known]


def test_pictures_are_what_is_computed():
    """Numbers may differ by a fifth of a point, words not at all."""
    pictures = runpy.run_path(str(ROOT / "docs" / "pictures.py"))["PICTURES"]
    kept = ROOT / "docs" / "pictures"
    number = re.compile(r"-?\d+(?:\.\d+)?")
    for name, draw in pictures.items():
        now, then = draw(), (kept / name).read_text(encoding="utf-8")
        assert number.sub("", now) == number.sub("", then), f"run `make reference`: {name}"
        assert [float(x) for x in number.findall(now)] == pytest.approx(
            [float(x) for x in number.findall(then)], abs=0.2, rel=0
        ), name


def test_pictures_are_shown_and_described():
    shown = Counter()
    for page in PAGES:
        for words, file in re.findall(r"!\[([^\]]*)\]\(([^)]+)\)", page.read_text(encoding="utf-8")):
            assert len(words) > 20, f"{page.name} does not say what {file} shows"
            assert (page.parent / file).is_file()
            shown[Path(file).name] += 1
    assert set(shown) == {path.name for path in (ROOT / "docs" / "pictures").iterdir()}
