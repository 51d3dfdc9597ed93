"""The command that starts the studio; what it serves is tested in tests/studio."""

import json
import subprocess
import sys

import pytest


@pytest.mark.parametrize("package", ["starlette", "uvicorn", "jinja2"])
def test_without_its_packages_it_says_what_to_install(tmp_path, package):
    program = f"import sys; sys.modules[{package!r}] = None; from incrowd.cli import main; main()"
    command = [sys.executable, "-c", program, "studio", "--json", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 2
    error = json.loads(done.stdout)["error"]
    assert error["code"] == "studio-missing"
    assert "pip install 'incrowd[studio]'" in error["remedy"]
