"""Writes a manual page for each command: `python docs/man.py man` (or `make man`)."""

from __future__ import annotations

import inspect
import sys
from pathlib import Path

import click

from incrowd import __version__
from incrowd.cli import VERBS, incrowd


def escaped(text: str) -> str:
    """Text as roff takes it: no line is a request, no character an escape."""
    return "\n".join(
        f"\\&{line}" if line.startswith((".", "'")) else line
        for line in text.replace("\\", "\\e").replace("-", "\\-").splitlines()
    )


def page(command: click.Command, path: str, context: click.Context, summary: str) -> str:
    """The manual page of one command."""
    parts = [
        f'.TH "{path.replace(" ", "-").upper()}" 1 "" "incrowd {__version__}" "incrowd"',
        ".SH NAME",
        escaped(f"{path.replace(' ', '-')} - {summary}"),
        ".SH SYNOPSIS",
        f".B {escaped(path)}",
        escaped(" ".join(command.collect_usage_pieces(context))),
        ".SH DESCRIPTION",
    ]
    for block in inspect.cleandoc(command.help or "").split("\n\n"):
        literal = block.lstrip().startswith("\b")
        text = escaped(block.replace("\b\n", "").replace("\b", ""))
        parts += [".PP", *([".nf", text, ".fi"] if literal else [text])]
    records = [record for p in command.get_params(context) if (record := p.get_help_record(context)) is not None]
    parts += [".SH OPTIONS", *(f".TP\n.B {escaped(names)}\n{escaped(text)}" for names, text in records)]
    if isinstance(command, click.Group):
        inner = [(name, command.get_command(context, name)) for name in command.list_commands(context)]
        lines = [(name, VERBS[name][1] if name in VERBS else c.get_short_help_str(200)) for name, c in inner if c]
        parts += [".SH COMMANDS", *(f".TP\n.B {escaped(name)}\n{escaped(text)}" for name, text in lines)]
    parts += [
        ".SH EXIT STATUS",
        "0 done; 2 bad input or policy; 3 a guarantee cannot be met or a budget would be overspent; 1 a bug.",
    ]
    return "\n".join(parts) + "\n"


def pages() -> dict[str, str]:
    """All manual pages by the names of their files."""
    root = click.Context(incrowd, info_name="incrowd", help_option_names=["-h", "--help"])
    found = {
        "incrowd.1": page(incrowd, "incrowd", root, "publish tables about people, with a proof of what is promised")
    }

    def add(command: click.Command, path: str, parent: click.Context, summary: str) -> None:
        context = click.Context(command, info_name=path.rsplit(maxsplit=1)[-1], parent=parent)
        found[f"{path.replace(' ', '-')}.1"] = page(command, path, context, summary)
        if isinstance(command, click.Group):
            for name in command.list_commands(context):
                if (inner := command.get_command(context, name)) is not None:
                    add(inner, f"{path} {name}", context, inner.get_short_help_str(200))

    for name, (_, summary) in VERBS.items():
        if (command := incrowd.get_command(root, name)) is not None:
            add(command, f"incrowd {name}", root, summary)
    return found


def main() -> None:
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else "man")
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in pages().items():
        (folder / name).write_text(text, encoding="utf-8")
    print(f"{len(pages())} manual pages in {folder}/")


if __name__ == "__main__":
    main()
