"""Running a command in this process: its exit code, standard output and standard error."""

import pytest

from incrowd.cli import incrowd
from incrowd.cli._shell import run


@pytest.fixture
def call(capsys):
    def invoke(*arguments):
        code = run(incrowd, [str(a) for a in arguments])
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return invoke
