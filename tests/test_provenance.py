"""What made a result can be read off it."""

import os
import shutil
import subprocess
from importlib import metadata
from pathlib import Path

import pytest

from sparselab.provenance import code_checksum, provenance, revision, version, versions


def test_versions_are_those_installed_and_what_is_missing_is_left_out():
    assert versions(("numpy", "no-such-package")).keys() == {"python", "numpy"}
    assert version("numpy") == metadata.version("numpy")
    assert version("no-such-package") is None


def test_details_stand_beside_time_and_versions():
    record = provenance(seed=3)
    assert record["seed"] == 3
    assert record["created"].endswith("+00:00")
    assert "numpy" in record["versions"]


def test_a_checksum_tells_when_the_code_was_edited(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)
    code = tmp_path / "edited_package" / "__init__.py"
    code.parent.mkdir()
    code.write_text("answer = 1")
    before = code_checksum(("edited_package",))
    assert code_checksum(("edited_package",)) == before
    (code.parent / ".#lock.py").symlink_to("me@a-machine.1234")  # as Emacs does while one edits
    assert code_checksum(("edited_package",)) == before
    code.write_text("answer = 2")
    assert code_checksum(("edited_package",)) != before


@pytest.mark.skipif(shutil.which("git") is None, reason="needs git")
class TestRevision:
    @pytest.fixture
    def checkout(self, tmp_path, monkeypatch):
        """A git checkout with one committed file, the package's `__init__.py`."""
        # Not the one whose hook runs the tests, and not as whoever runs them has set git up.
        for name in ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE"):
            monkeypatch.delenv(name, raising=False)
        monkeypatch.setenv("GIT_CONFIG_GLOBAL", os.devnull)
        (tmp_path / "__init__.py").write_text("one")
        git(tmp_path, "init", "-q")
        git(tmp_path, "add", "__init__.py")
        who = ("-c", "user.name=me", "-c", "user.email=me@localhost")
        git(tmp_path, *who, "commit", "-q", "-m", "one")
        git(tmp_path, "tag", "v1")
        return tmp_path

    def test_is_the_commit_and_says_when_files_differ_from_it(self, checkout):
        commit = git(checkout, "rev-parse", "HEAD")
        assert revision(checkout) == commit
        (checkout / "untracked").touch()
        assert revision(checkout) == commit
        (checkout / "__init__.py").write_text("two")
        assert revision(checkout) == f"{commit}-dirty"

    def test_is_none_for_a_package_that_only_lies_in_a_checkout(self, checkout):
        (checkout / "venv").mkdir()
        (checkout / "venv" / "__init__.py").touch()
        assert revision(checkout / "venv") is None

    def test_is_none_without_git(self, checkout, monkeypatch):
        monkeypatch.setenv("PATH", "")
        assert revision(checkout) is None

    def test_is_none_outside_a_checkout_where_git_is_not_asked(self, tmp_path, monkeypatch):
        monkeypatch.setattr("sparselab.provenance._git", None)
        assert revision(Path(tmp_path.anchor)) is None  # `/`, which is in nobody's checkout

    def test_stands_in_a_record_only_where_it_is_known(self, monkeypatch):
        monkeypatch.setattr("sparselab.provenance.revision", lambda: "abc-dirty")
        assert provenance()["revision"] == "abc-dirty"
        monkeypatch.setattr("sparselab.provenance.revision", lambda: None)
        assert "revision" not in provenance()


def git(folder, *arguments):
    command = ["git", "-C", str(folder), *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()
