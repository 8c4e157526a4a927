"""Files appear whole or not at all, and what is wrong in one is named with its line."""

import gzip
import os
import stat

import pytest

from sparselab.files import (
    atomic_path,
    check_writable,
    open_text,
    read_csv,
    read_json_lines,
    sha256,
    write_json,
    write_text,
)


class TestWriting:
    def test_a_file_appears_with_its_folders_and_the_usual_permissions(self, tmp_path):
        target = tmp_path / "a" / "b.txt"
        write_text(target, "grün\n")
        assert target.read_text(encoding="utf-8") == "grün\n"
        mask = os.umask(0)
        os.umask(mask)
        assert stat.S_IMODE(target.stat().st_mode) == 0o666 & ~mask

    def test_a_failed_write_keeps_what_was_there_and_leaves_no_rest(self, tmp_path):
        target = tmp_path / "table.csv"
        target.write_text("old")

        def fail_half_way():
            with atomic_path(target) as temporary:
                temporary.write_text("half")
                raise RuntimeError

        with pytest.raises(RuntimeError):
            fail_half_way()
        assert target.read_text() == "old"
        assert list(tmp_path.iterdir()) == [target]

    def test_the_temporary_name_keeps_the_suffix_that_writers_go_by(self, tmp_path):
        with atomic_path(tmp_path / "table.csv.gz") as temporary:
            assert temporary.name.endswith(".csv.gz")

    def test_a_folder_or_a_file_in_the_way_is_named(self, tmp_path):
        with pytest.raises(ValueError, match="is a folder, not a file to write"):
            write_text(tmp_path, "")
        (tmp_path / "file").write_text("")
        for inside in ("file/a.txt", "file/b/a.txt"):
            with pytest.raises(ValueError, match="a part of its path is a file"):
                write_text(tmp_path / inside, "")
        assert [path.name for path in tmp_path.iterdir()] == ["file"]

    def test_whether_a_file_can_be_written_is_known_before(self, tmp_path):
        check_writable(tmp_path / "new" / "runs.csv")
        (tmp_path / "runs.csv").write_text("old")
        check_writable(tmp_path / "runs.csv")
        assert (tmp_path / "runs.csv").read_text() == "old"
        assert list((tmp_path / "new").iterdir()) == []
        with pytest.raises(ValueError, match="is a folder, not a file to write"):
            check_writable(tmp_path)
        with pytest.raises(ValueError, match="a part of its path is a file"):
            check_writable(tmp_path / "runs.csv" / "inside.csv")

    def test_a_link_is_followed_and_a_pipe_is_refused(self, tmp_path):
        (tmp_path / "file").write_text("old")
        (tmp_path / "link").symlink_to(tmp_path / "file")
        write_text(tmp_path / "link", "new")
        assert (tmp_path / "link").is_symlink()
        assert (tmp_path / "file").read_text() == "new"
        os.mkfifo(tmp_path / "pipe")
        with pytest.raises(ValueError, match="is a device or a pipe, not a file to write"):
            write_text(tmp_path / "pipe", "")
        assert stat.S_ISFIFO((tmp_path / "pipe").stat().st_mode)

    def test_json_is_readable_by_people(self, tmp_path):
        write_json(tmp_path / "a.json", {"name": "ä", "rows": [1]})
        assert (tmp_path / "a.json").read_text(encoding="utf-8").startswith('{\n  "name": "ä"')

    def test_checksums_are_those_of_sha256sum(self, tmp_path):
        write_text(tmp_path / "a", "abc")
        assert sha256(tmp_path / "a").startswith("ba7816bf8f01cfea")


class TestReading:
    def test_lines_come_with_their_numbers_and_blank_ones_are_skipped(self, tmp_path):
        path = tmp_path / "a.jsonl"
        path.write_text('{"x": 1}\n\n{"x": 2}\n')
        assert list(read_json_lines(path)) == [(1, {"x": 1}), (3, {"x": 2})]

    @pytest.mark.parametrize(
        ("content", "message"),
        [
            (b"", "is empty"),
            (b'{"x": 1}\n{"x":\n', "line 2: not valid JSON"),
            (b'{"x": 1}\n[1]\n', "line 2: a JSON object is expected, got list"),
            (b'{"x": "\xff"}\n', "not UTF-8"),
            (b'{"x": ' + b"[" * 100_000, "line 1: not valid JSON .nested too deeply"),
        ],
    )
    def test_what_is_wrong_is_named(self, tmp_path, content, message):
        path = tmp_path / "a.jsonl"
        path.write_bytes(content)
        with pytest.raises(ValueError, match=message):
            list(read_json_lines(path))

    def test_broken_gzip_files_are_named(self, tmp_path):
        path = tmp_path / "a.jsonl.gz"
        whole = gzip.compress(b'{"x": 1}\n' * 5000)
        path.write_bytes(whole)
        assert len(list(read_json_lines(path))) == 5000
        path.write_bytes(whole[:-12])
        with pytest.raises(ValueError, match="truncated gzip"):
            list(read_json_lines(path))
        path.write_bytes(whole[:12] + bytes(byte ^ 0xFF for byte in whole[12:]))
        with pytest.raises(ValueError, match="not a readable gzip"):
            list(read_json_lines(path))
        path.write_bytes(b'{"x": 1}\n')
        with pytest.raises(ValueError, match="not a readable gzip"):
            list(read_json_lines(path))

    def test_csv_rows_come_with_their_numbers_and_blank_ones_are_skipped(self, tmp_path):
        path = tmp_path / "a.csv"
        path.write_text('a,b\n\n"1\n2",3\n')
        assert list(read_csv(path)) == [(1, ["a", "b"]), (4, ["1\n2", "3"])]

    def test_missing_files_and_folders_are_named(self, tmp_path):
        with pytest.raises(FileNotFoundError, match="no such file"), open_text(tmp_path / "no"):
            pass
        with pytest.raises(ValueError, match="is a folder"), open_text(tmp_path):
            pass
