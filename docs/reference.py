"""Writes the pages and pictures that follow from the code: `python docs/reference.py` (or `make reference`).

A test fails when one of them no longer says what the code says.
"""

from __future__ import annotations

import re
import runpy
from dataclasses import fields
from pathlib import Path

import click

from incrowd.cli import VERBS, incrowd
from incrowd.core.errors import CODES
from incrowd.mechanisms.described import Described
from incrowd.mechanisms.registry import MECHANISMS

HERE = Path(__file__).parent
NOTE = "<!-- Written by docs/reference.py from the code; change the code, then run `make reference`. -->\n\n"


def errors_page() -> str:
    """Every error code with its meaning."""
    intro = (
        "# Error codes\n\n"
        "Every error says what is wrong, where, and what to do. Its code is stable; scripts may rely on it. With "
        '`--json` an error is `{"error": {"code", "message", "remedy", "details"}}`. Messages never contain values '
        "from the data. Exit codes: 2 bad input, 3 a promise that cannot be kept, 1 a bug.\n"
    )
    return NOTE + intro + "".join(f"\n## `{code}`\n\n{text}\n" for code, text in sorted(CODES.items()))


def commands_page() -> str:
    """Every command with its options."""
    intro = (
        "# Commands\n\n"
        "Every command takes `--json`: one JSON object on standard output and nothing else there; progress and "
        "messages go to standard error. Exit codes: 0 done; 2 bad input; 3 a guarantee cannot be met or a budget "
        "would be overspent; 1 a bug.\n"
    )
    context = click.Context(incrowd, info_name="incrowd", help_option_names=["-h", "--help"])
    sections = []
    for name in VERBS:
        command = incrowd.get_command(context, name)
        if command is not None:
            sections.extend(_sections(command, f"incrowd {name}", context))
    return NOTE + intro + "".join(sections)


def certificate_page() -> str:
    """Every field of every certificate."""
    page: str = runpy.run_path(str(HERE / "certificate_page.py"))["certificate_page"]()
    return NOTE + page


def _sections(command: click.Command, path: str, parent: click.Context) -> list[str]:
    context = click.Context(
        command, info_name=path.rsplit(maxsplit=1)[-1], parent=parent, terminal_width=100, max_content_width=100
    )
    if isinstance(command, click.Group):
        inner = [
            text
            for name in command.list_commands(context)
            if (sub := command.get_command(context, name)) is not None
            for text in _sections(sub, f"{path} {name}", context)
        ]
        return [f"\n## `{path}`\n\n{(command.help or '').strip()}\n", *inner]
    return [f"\n{'#' * path.count(' ')}# `{path}`\n\n```text\n{command.get_help(context)}\n```\n"]


def mechanisms_for_whom() -> str:
    """The README's table: which mechanism for whom."""
    rows = [
        f"| {_called(name, one, 'docs/')} | {_from_root(one.whom)} | {one.promises} | {one.not_promised} |\n"
        for name, one in _described()
    ]
    return "| mechanism | for | promises | does not promise |\n|---|---|---|---|\n" + "".join(rows)


def mechanisms_side_by_side() -> str:
    """The table of docs/guarantees.md: one column for each mechanism and variant."""
    each = _described()
    head = "| | " + " | ".join(_called(name, one) for name, one in each) + " |\n" + "|---" * (len(each) + 1) + "|\n"
    rows = [part for part in fields(Described) if "row" in part.metadata]
    return head + "".join(
        f"| {part.metadata['row']} | " + " | ".join(getattr(one, part.name) for _, one in each) + " |\n"
        for part in rows
    )


def mechanisms_of_several_rows() -> str:
    """What is promised to people with several rows each."""
    rows = [f"| `{name}` | {mechanism.described[0].several_rows} |\n" for name, mechanism in MECHANISMS.items()]
    return "| mechanism | with m rows |\n|---|---|\n" + "".join(rows)


def _described() -> list[tuple[str, Described]]:
    return [(name, one) for name, mechanism in MECHANISMS.items() for one in mechanism.described]


def _called(name: str, one: Described, folder: str = "") -> str:
    variant = f", `{one.keys}`" if one.keys else ""
    return f"[`{name}`]({folder}{one.page}){variant}"


def _from_root(text: str) -> str:
    return re.sub(r"\]\((?=[a-z-]+\.md)", "](docs/", text)


TABLES = {
    ("README.md", "which mechanism for whom"): mechanisms_for_whom,
    ("docs/guarantees.md", "side by side"): mechanisms_side_by_side,
    ("docs/guarantees.md", "several rows"): mechanisms_of_several_rows,
}
"""Tables within pages, each between a comment with its name and an end mark."""


def with_table(page: str, name: str, table: str) -> str:
    """A page with a table of this name put in its place."""
    mark = f"<!-- registry: {name} -->\n"
    before, _, rest = page.partition(mark)
    return before + mark + table + rest[rest.index("<!-- end -->") :]


PAGES = {"errors.md": errors_page, "commands.md": commands_page, "certificate.md": certificate_page}

if __name__ == "__main__":
    for (file, name), make in TABLES.items():
        place = HERE.parent / file
        place.write_text(with_table(place.read_text(encoding="utf-8"), name, make()), encoding="utf-8")
    for file, page in PAGES.items():
        (HERE / file).write_text(page(), encoding="utf-8")
    for file, draw in runpy.run_path(str(HERE / "pictures.py"))["PICTURES"].items():
        (HERE / "pictures" / file).write_text(draw(), encoding="utf-8")
