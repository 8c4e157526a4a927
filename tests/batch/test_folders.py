"""A run's folder: whole or not there, in the place of nothing but a run, cleared after a kill."""

from __future__ import annotations

from pathlib import Path

import pytest

from sparselab.batch.folders import check_replaceable, complete_folder, remove_abandoned


def test_a_folder_appears_whole_or_not_at_all(tmp_path: Path) -> None:
    target = tmp_path / "run"
    with complete_folder(target) as partial:
        (partial / "file").write_text("first")
        assert not target.exists()
    assert (target / "file").read_text() == "first"
    with pytest.raises(RuntimeError), complete_folder(target) as partial:
        raise RuntimeError((partial / "file").write_text("second"))
    assert (target / "file").read_text() == "first"
    with complete_folder(target) as partial:
        (partial / "other").write_text("third")
    assert [path.name for path in target.iterdir()] == ["other"]
    assert [path.name for path in tmp_path.iterdir()] == ["run"]


@pytest.mark.parametrize("at", [1, 2])
def test_a_run_whose_replacing_is_interrupted_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, at: int
) -> None:
    target, rename, renamed = tmp_path / "run", Path.rename, []
    fill(target, ("first",))

    def rename_interrupted(path: Path, to: Path) -> Path:
        renamed.append(path)
        if len(renamed) == at:
            raise KeyboardInterrupt
        return rename(path, to)

    monkeypatch.setattr(Path, "rename", rename_interrupted)
    with pytest.raises(KeyboardInterrupt), complete_folder(target) as partial:
        (partial / "second").touch()
    assert [path.name for path in target.iterdir()] == ["first"]
    assert [path.name for path in tmp_path.iterdir()] == ["run"]


def test_what_a_killed_run_left_is_removed_and_what_somebody_works_in_is_not(
    tmp_path: Path,
) -> None:
    abandoned = tmp_path / ".partial-killed-1"
    abandoned.mkdir()
    (abandoned / "file").touch()
    with complete_folder(tmp_path / "run") as partial:
        (partial / "file").touch()
        remove_abandoned(tmp_path)
        assert not abandoned.exists()
        assert (partial / "file").exists()
    assert [path.name for path in tmp_path.iterdir()] == ["run"]


def test_a_folder_taken_for_abandoned_before_it_was_locked_is_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from sparselab.batch import folders

    make, made = folders.tempfile.mkdtemp, []

    def make_and_lose_the_first(**options: object) -> str:
        made.append(make(**options))
        if len(made) == 1:
            remove_abandoned(tmp_path)
        return made[-1]

    monkeypatch.setattr(folders.tempfile, "mkdtemp", make_and_lose_the_first)
    with complete_folder(tmp_path / "run") as partial:
        (partial / "file").touch()
    assert len(made) == 2
    assert (tmp_path / "run" / "file").exists()


@pytest.mark.parametrize(
    "files",
    [
        (),
        ("run.json", "tiny.ipynb", "tiny.html", "traceback.txt", "results/a.parquet"),
        ("run.json", ".DS_Store", ".ipynb_checkpoints/tiny-checkpoint.ipynb"),
        (".DS_Store",),
    ],
)
def test_nothing_and_a_run_may_be_replaced(tmp_path: Path, files: tuple[str, ...]) -> None:
    fill(tmp_path / "run", files)
    check_replaceable(tmp_path / "run")
    check_replaceable(tmp_path / "new")


@pytest.mark.parametrize(
    ("files", "other"),
    [
        (("data.csv",), "data.csv"),
        (("tiny.ipynb",), "tiny.ipynb"),
        (("run.json", "tiny.ipynb", "notes.txt"), "notes.txt"),
        (("run.json", "a.ipynb", "b.ipynb"), "b.ipynb"),
        (("run.json", "src/code.py"), "src"),
    ],
)
def test_a_folder_with_something_else_in_it_may_not(
    tmp_path: Path, files: tuple[str, ...], other: str
) -> None:
    fill(tmp_path / "run", files)
    with pytest.raises(ValueError, match=f"something else than a run: {other}; name another"):
        check_replaceable(tmp_path / "run")


@pytest.mark.parametrize("folder", [".", "..", "/", "../here"])
def test_nor_may_the_working_directory_and_what_holds_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, folder: str
) -> None:
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    with pytest.raises(ValueError, match=f"folder {folder} is or holds the working directory"):
        check_replaceable(folder)


def test_nor_may_a_file_or_a_link(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    (tmp_path / "link").symlink_to(tmp_path / "nowhere")
    for name in ("file", "link"):
        with pytest.raises(ValueError, match=f"{name} is a file or a link"):
            check_replaceable(tmp_path / name)


def fill(folder: Path, files: tuple[str, ...]) -> None:
    folder.mkdir()
    for name in files:
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).touch()
