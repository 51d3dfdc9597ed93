"""Runs the notebooks in docs/notebooks, each in an empty folder, and writes what they show into them.

    python docs/notebooks.py

They are plain notebooks for Jupyter. A cell is Python, or commands that begin with "!". Tables are kept as text where
their HTML is long, so that the files stay small.
"""

from __future__ import annotations

import ast
import contextlib
import io
import json
import os
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).with_name("notebooks")
LONGEST = 8000  # characters of what is shown in one way


def run(cells: list[dict[str, Any]], folder: Path) -> list[list[dict[str, Any]]]:
    """What each cell of Python shows, run one after the other in a folder; an exception of one is ours."""
    before = Path.cwd()
    os.chdir(folder)
    names: dict[str, Any] = {"__name__": "__main__"}
    try:
        return [_shown("".join(cell["source"]), names) for cell in cells if cell["cell_type"] == "code"]
    finally:
        os.chdir(before)


def _shown(code: str, names: dict[str, Any]) -> list[dict[str, Any]]:
    if code.startswith("!"):
        said = "".join(_command(line.removeprefix("!")) for line in code.splitlines())
        return [_stream(said)] if said else []
    tree = ast.parse(code)
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    printed, value = io.StringIO(), None
    with contextlib.redirect_stdout(printed):
        exec(compile(tree, "cell", "exec"), names)  # noqa: S102 - that is what a notebook is for
        if last is not None:
            value = eval(compile(ast.Expression(last.value), "cell", "eval"), names)  # noqa: S307
    outputs = [_stream(printed.getvalue())] if printed.getvalue() else []
    if value is not None:
        outputs.append({"output_type": "execute_result", "data": _ways(value), "metadata": {}})
    return outputs


def _command(line: str) -> str:
    program, *rest = shlex.split(line)
    if program != "incrowd":
        raise ValueError("notebooks run incrowd and no other program")
    command = [sys.executable, "-m", "incrowd", *rest]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout  # noqa: S603


def _stream(text: str) -> dict[str, Any]:
    return {"output_type": "stream", "name": "stdout", "text": text.splitlines(keepends=True)}


def _ways(value: Any) -> dict[str, list[str]]:
    """The ways in which a value shows itself, but for long ones."""
    found = {"text/plain": repr(value)}
    for kind, method in (("text/html", "_repr_html_"), ("image/svg+xml", "_repr_svg_")):
        shown = getattr(value, method, lambda: None)()
        if shown is not None and (kind != "text/html" or len(shown) <= LONGEST):
            found[kind] = shown
    return {kind: text.splitlines(keepends=True) for kind, text in found.items()}


def main() -> None:
    """Run all and write what they show."""
    for path in sorted(FOLDER.glob("*.ipynb")):
        book = json.loads(path.read_text(encoding="utf-8"))
        with tempfile.TemporaryDirectory() as place:
            shown = iter(run(book["cells"], Path(place)))
        for number, cell in enumerate((c for c in book["cells"] if c["cell_type"] == "code"), start=1):
            cell["execution_count"], cell["outputs"] = number, next(shown)
            for output in cell["outputs"]:
                if output["output_type"] == "execute_result":
                    output["execution_count"] = number
        path.write_text(json.dumps(book, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
