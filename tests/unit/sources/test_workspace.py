"""Temporary folders go away: at the end, after an error, and after the process was killed."""

import subprocess
import sys

import pytest

from incrowd.sources.workspace import workspace

KILLED = """
import os, sys
from incrowd.sources.workspace import workspace
with workspace(sys.argv[1]) as folder:
    (folder / "records.csv").write_text("about people")
    print(folder.name, flush=True)
    os.kill(os.getpid(), 9)
"""


def test_a_folder_is_gone_afterwards(tmp_path):
    with workspace(tmp_path) as folder:
        (folder / "file").write_text("x")
        assert folder.parent == tmp_path
    with pytest.raises(RuntimeError), workspace(tmp_path):
        raise RuntimeError
    assert not any(tmp_path.iterdir())


@pytest.mark.skipif(sys.platform == "win32", reason="no locks that a killed process gives up")
def test_what_a_killed_process_left_is_removed_and_nothing_else(tmp_path):
    (tmp_path / "incrowd-work-of-somebody").mkdir()
    (tmp_path / "other").mkdir()
    (tmp_path / "incrowd-work-link").symlink_to(tmp_path / "other")
    killed = subprocess.run([sys.executable, "-c", KILLED, tmp_path], capture_output=True, text=True, check=False)
    left = tmp_path / killed.stdout.strip()
    assert (left / "records.csv").is_file()
    with workspace(tmp_path) as mine, workspace(tmp_path):
        assert not left.exists()
        assert mine.exists()
    assert {path.name for path in tmp_path.iterdir()} == {"incrowd-work-of-somebody", "incrowd-work-link", "other"}
