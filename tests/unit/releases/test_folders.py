"""Folders that appear together or not at all, and what killed runs have left."""

import errno
import os
import stat
from pathlib import Path

import pytest

from incrowd.core.errors import InputError
from incrowd.core.files import write_whole
from incrowd.releases import folders
from incrowd.releases.folders import require_free, staged, sweep


def places(folder, number=3):
    return [folder / f"out-{i + 1}" for i in range(number)]


def fill(stage):
    for one in stage.releases:
        (one.public / "table").write_text(one.folder.name)
        (one.internal / "report").write_text(one.folder.name)


def names(folder):
    return sorted(path.name for path in folder.iterdir())


ALL = sorted(f"out-{i}{end}" for i in (1, 2, 3) for end in ("", ".internal"))


def check_all(folder):
    for place in places(folder):
        assert (place / "table").read_text() == place.name
        assert (place.with_name(f"{place.name}.internal") / "report").read_text() == place.name


def test_copies_appear_together_as_folders(tmp_path):
    with staged(places(tmp_path)) as stage:
        fill(stage)
        assert not [name for name in names(tmp_path) if not name.startswith(".")]
        stage.appear()
    assert names(tmp_path) == ALL
    check_all(tmp_path)
    assert not any(path.is_symlink() for path in tmp_path.iterdir())


def test_without_an_exchange_links_stay_and_the_next_run_finishes(tmp_path, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(folders, "_exchanged", lambda *_: False)
        with staged(places(tmp_path)) as stage:
            fill(stage)
            stage.appear()
        assert all((tmp_path / name).is_symlink() for name in ALL)
        check_all(tmp_path)
        sweep(tmp_path)
        check_all(tmp_path)
    sweep(tmp_path)
    assert names(tmp_path) == ALL
    check_all(tmp_path)


@pytest.mark.parametrize("number", [errno.EPERM, errno.EINVAL, errno.ENOSYS])
def test_without_links_copies_are_refused_before_anything_is_made(tmp_path, monkeypatch, number):
    def refuses(*_, **__):
        raise OSError(number, "no links here")

    monkeypatch.setattr(Path, "symlink_to", refuses)
    with pytest.raises(InputError, match=r"symbolic links \(no links here\)") as caught, staged(places(tmp_path)):
        pytest.fail("it was begun")
    assert caught.value.code == "output-unwritable"
    assert names(tmp_path) == []
    with staged(places(tmp_path, 1)) as stage:  # a single release needs none
        stage.appear()
    assert names(tmp_path) == ["out-1", "out-1.internal"]


@pytest.mark.parametrize("length", [238, 239, 240])
def test_a_name_that_copies_could_not_have_is_refused_before_anything_is_made(tmp_path, length):
    """The hidden folder's second name is two characters longer than its first."""
    targets = [tmp_path / f"{'e' * length}-{i}" for i in (1, 2)]
    if length == 238:
        with staged(targets) as stage:
            stage.appear()
        assert len(names(tmp_path)) == 4
        return
    with pytest.raises(InputError) as caught, staged(targets):
        pytest.fail("it was begun")
    assert caught.value.code == "output-unwritable"
    assert names(tmp_path) == []


def interrupted(monkeypatch, name, call, *, after):
    """Ctrl-C just before or just after the nth call of a method of paths."""
    calls, original = [], getattr(Path, name)

    def stopped(path, *given, **named):
        calls.append(path)
        if len(calls) == call and not after:
            raise KeyboardInterrupt
        result = original(path, *given, **named)
        if len(calls) == call:
            raise KeyboardInterrupt
        return result

    monkeypatch.setattr(Path, name, stopped)


@pytest.mark.parametrize("after", [True, False])
@pytest.mark.parametrize(
    ("number", "name", "call"),
    [(1, "rename", 1), (1, "rename", 2), (3, "rename", 1), *((3, "symlink_to", i) for i in range(1, 7))],
)
def test_an_interrupt_leaves_all_or_nothing_and_it_is_known_which(tmp_path, monkeypatch, number, name, call, after):
    stages = []

    def publish():
        with staged(places(tmp_path, number)) as stage:
            stages.append(stage)
            fill(stage)
            interrupted(monkeypatch, name, call, after=after)
            stage.appear()

    with pytest.raises(KeyboardInterrupt):
        publish()
    monkeypatch.undo()
    last = (number, name, call, after) in [(1, "rename", 2, True), (3, "rename", 1, True)]
    assert stages[0].appeared is last
    sweep(tmp_path)
    assert names(tmp_path) == (sorted(ALL[: 2 * number]) if last else [])


def test_a_name_that_was_taken_meanwhile_lets_none_appear(tmp_path):
    stages = []

    def publish():
        with staged(places(tmp_path)) as stage:
            fill(stage)
            (tmp_path / "out-2").mkdir()
            (tmp_path / "out-2" / "of somebody else").touch()
            stages.append(stage)
            stage.appear()

    with pytest.raises(OSError, match="out-2"):
        publish()
    assert not stages[0].appeared
    assert names(tmp_path) == ["out-2"]
    assert names(tmp_path / "out-2") == ["of somebody else"]


@pytest.mark.parametrize("number", [1, 3])
def test_killed_runs_are_swept_and_living_ones_are_not(tmp_path, number):
    """A child is killed with its folders made and, if there are several, its links too; another one lives on."""
    ready, tell = os.pipe()
    hold, release = os.pipe()
    children = []
    for name in ("alive", "dead"):
        child = os.fork()
        if child == 0:
            targets = [tmp_path / f"{name}-{i + 1}" for i in range(number)]
            with staged(targets) as stage:
                fill(stage)
                for one in stage.releases if number > 1 else ():
                    for inside, target in one.moves:
                        target.symlink_to(Path(folders._complete(stage.root).name) / inside.name)
                os.write(tell, b"x")
                os.close(release)
                if name == "dead":
                    os.kill(os.getpid(), 9)
                os.read(hold, 1)
                os._exit(0)
        children.append(child)
        os.read(ready, 1)
    os.waitpid(children[1], 0)
    assert any("dead" in name for name in names(tmp_path))
    require_free([tmp_path / "other"])
    left = names(tmp_path)
    assert not any("dead" in name for name in left)
    assert len([name for name in left if "alive" in name]) == (1 if number == 1 else 1 + 2 * number)
    os.close(release)
    os.waitpid(children[0], 0)
    sweep(tmp_path)
    assert names(tmp_path) == []


def test_a_sweeper_that_is_killed_leaves_what_can_be_swept(tmp_path, monkeypatch):
    class KilledError(BaseException):
        pass

    root = tmp_path / ".out.0123abcd.part"
    for name in ("a", "lock", "z"):
        (root / name).mkdir(parents=True) if name != "lock" else (root / name).touch()
    removed = []

    def killed_after_one(path, **_):
        if removed:
            raise KilledError
        removed.append(path)
        path.rmdir()

    with monkeypatch.context() as patch:
        patch.setattr(folders.shutil, "rmtree", killed_after_one)
        with pytest.raises(KilledError):
            sweep(tmp_path)
    assert (root / "lock").exists()
    sweep(tmp_path)
    assert names(tmp_path) == []


def test_what_is_not_ours_is_left_alone(tmp_path):
    for name in (".x.part", ".x.0123abcd.part.txt", "x.0123abcd.part", ".x.0123abcg.part"):
        (tmp_path / name).mkdir()
    (tmp_path / ".y.0123abcd.part").mkdir()
    (tmp_path / ".y.0123abcd.part" / "no lock").touch()
    (tmp_path / ".z.0123abcd.part").write_text("a file")
    (tmp_path / ".l.0123abcd.part").symlink_to(tmp_path / ".x.part")
    (tmp_path / ".empty.0123abcd.part").mkdir()
    before = set(names(tmp_path))
    sweep(tmp_path)
    assert before - set(names(tmp_path)) == {".empty.0123abcd.part"}
    sweep(tmp_path / "nowhere")


def test_a_link_that_leads_nowhere_is_in_the_way(tmp_path):
    (tmp_path / "out").symlink_to("nowhere")
    with pytest.raises(InputError) as caught:
        require_free([tmp_path / "out"])
    assert caught.value.code == "output-exists"


@pytest.mark.parametrize(("mask", "mode"), [(0o022, 0o755), (0o077, 0o700), (0o027, 0o750), (0o002, 0o755)])
@pytest.mark.parametrize("number", [1, 3])
def test_the_umask_is_respected(tmp_path, mask, mode, number):
    before = os.umask(mask)
    try:
        with staged(places(tmp_path, number)) as stage:
            fill(stage)
            stage.appear()
        write_whole(tmp_path / "public", b"")
        write_whole(tmp_path / "private", b"", private=True)
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "out-1").stat().st_mode) == mode
    assert stat.S_IMODE((tmp_path / "out-1.internal").stat().st_mode) == 0o700
    assert stat.S_IMODE((tmp_path / "public").stat().st_mode) == 0o666 & ~mask
    assert stat.S_IMODE((tmp_path / "private").stat().st_mode) == 0o600
