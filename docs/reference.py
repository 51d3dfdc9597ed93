"""Writes the pages and pictures that follow from the code: `python docs/reference.py` (or `make reference`).

A test fails when one of them no longer says what the code says.
"""

from __future__ import annotations

import runpy
from pathlib import Path

import click

from incrowd.cli import VERBS, incrowd
from incrowd.core.errors import CODES

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


PAGES = {"errors.md": errors_page, "commands.md": commands_page, "certificate.md": certificate_page}

if __name__ == "__main__":
    for file, page in PAGES.items():
        (HERE / file).write_text(page(), encoding="utf-8")
    for file, draw in runpy.run_path(str(HERE / "pictures.py"))["PICTURES"].items():
        (HERE / "pictures" / file).write_text(draw(), encoding="utf-8")
