"""The notebooks of the documentation run from start to end, and hold what they show."""

import json
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
BOOKS = sorted((ROOT / "docs" / "notebooks").glob("*.ipynb"))


@pytest.mark.parametrize("path", BOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs(path, tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "docs")
    monkeypatch.delitem(sys.modules, "notebooks", raising=False)
    import notebooks

    book = json.loads(path.read_text(encoding="utf-8"))
    code = [cell for cell in book["cells"] if cell["cell_type"] == "code"]
    for cell, shown in zip(code, notebooks.run(book["cells"], tmp_path), strict=True):
        kept = [output["output_type"] for output in cell["outputs"]]
        assert kept == [output["output_type"] for output in shown], cell["source"]
        for output in cell["outputs"]:
            if output["output_type"] == "execute_result":
                assert "text/plain" in output["data"]
    assert path.stat().st_size < 50_000
    assert str(Path.home()) not in path.read_text(encoding="utf-8")


def test_there_are_three():
    assert [path.stem for path in BOOKS] == ["hospital", "office", "survey"]
