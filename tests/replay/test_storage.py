"""Saved entries: what is loaded is what was saved, and anything else is refused."""

import json
import os
import re
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch

from sparselab import replay
from sparselab.replay import storage

MANIFEST = "manifest.json"


@pytest.fixture
def folder(entry, tmp_path):
    entry.save(tmp_path / "saved")
    return tmp_path / "saved"


def tensor_file(folder):
    (path,) = folder.glob("*.safetensors")
    return path


def edit(folder, **changes):
    path = folder / MANIFEST
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_a_loaded_entry_resumes_to_the_same_bits(models, tmp_path, dtype):
    model = models("tiny", dtype)
    prompt = replay.random_tokens(100, model.vocab_size, seed=1)
    entry = replay.capture(model, prompt, [33, 64], chunk=32)
    entry.save(tmp_path)
    loaded = replay.Entry.load(tmp_path, model)
    assert loaded.positions.tolist() == [33, 64]
    assert loaded.cuts == entry.cuts
    assert loaded.bytes == entry.bytes
    assert loaded.capture_ms == entry.capture_ms
    assert torch.equal(loaded.logits, entry.logits)
    tokens = replay.diverging(prompt, 70, 100, model.vocab_size, seed=2)
    before, after = (replay.resume(model, e, tokens) for e in (entry, loaded))
    assert before.resume_point == after.resume_point == 64
    assert torch.equal(before.logits, after.logits)
    assert replay.verify(model, loaded, tokens).exact


def test_saving_again_replaces_the_entry_and_leaves_nothing_behind(tiny, prompt, folder):
    replay.capture(tiny, prompt[:50], [7]).save(folder)
    assert len(list(folder.iterdir())) == 2
    assert replay.Entry.load(folder, tiny).positions.tolist() == [7]


def test_an_entry_without_checkpoints_can_be_saved(tiny, prompt, tmp_path):
    replay.capture(tiny, prompt, []).save(tmp_path)
    assert replay.Entry.load(tmp_path, tiny).positions.size == 0


def truncate(folder):
    path = tensor_file(folder)
    path.write_bytes(path.read_bytes()[:-100])


def flip_a_byte(folder):
    path = tensor_file(folder)
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(bytes(content))


def point_elsewhere(folder):
    outside = folder.parent / "outside.safetensors"
    outside.write_bytes(tensor_file(folder).read_bytes())
    edit(folder, tensors="../outside.safetensors")


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (truncate, "was truncated or changed: its checksum is not the manifest's"),
        (flip_a_byte, "was truncated or changed"),
        (lambda folder: tensor_file(folder).unlink(), "no whole entry: its tensor file .* missing"),
        (lambda folder: edit(folder, positions=[1]), "was changed: its checksum does not hold"),
        (lambda folder: edit(folder, dtype="bfloat16"), "was changed"),
        (point_elsewhere, "was changed"),
        (lambda folder: edit(folder, format="other"), "not the manifest of an entry"),
        (lambda folder: edit(folder, version=1), "version 1 .* this program reads version 2"),
        (lambda folder: (folder / MANIFEST).write_text("{"), "not the manifest of an entry"),
        (lambda folder: (folder / MANIFEST).write_text("[]"), "not the manifest of an entry"),
    ],
    ids=[
        "truncated",
        "flipped",
        "no tensors",
        "positions",
        "dtype",
        "path",
        "foreign",
        "version",
        "not JSON",
        "not an object",
    ],
)
def test_a_damaged_or_foreign_folder_is_refused_in_one_sentence(tiny, folder, damage, message):
    damage(folder)
    with pytest.raises(ValueError, match=message) as refusal:
        replay.Entry.load(folder, tiny)
    assert "\n" not in str(refusal.value)


def test_a_folder_without_an_entry(tiny, tmp_path):
    with pytest.raises(FileNotFoundError, match=r"no saved entry in .*manifest\.json is missing"):
        replay.Entry.load(tmp_path, tiny)


def test_an_entry_of_another_model_or_dtype_is_refused(models, folder):
    with pytest.raises(ValueError, match=r"captured in torch\.float32"):
        replay.Entry.load(folder, models("tiny", "bfloat16"))
    other = replay.load_model("tiny", device="cpu", dtype="float32", seed=7)
    with pytest.raises(ValueError, match="captured with another model"):
        replay.Entry.load(folder, other)


def test_the_model_is_compared_before_the_tensors_are_read(models, folder):
    truncate(folder)
    with pytest.raises(ValueError, match=r"captured in torch\.float32"):
        replay.Entry.load(folder, models("tiny", "bfloat16"))


def age(path, content, seconds):
    path.write_bytes(content)
    os.utime(path, (time.time() - seconds,) * 2)


def test_what_a_killed_save_leaves_is_cleared_by_a_later_one(tiny, entry, folder, monkeypatch):
    seen = []
    original = os.replace

    def replace(source, target):
        original(source, target)
        seen.extend(path.name for path in folder.iterdir())

    monkeypatch.setattr(os, "replace", replace)
    entry.save(folder)
    # Whenever the save is killed, everything there is the manifest or has a name as these.
    assert all(re.fullmatch(r"manifest\.json|tensors-\w+\.safetensors", name) for name in seen)
    for name in (
        "tensors-0123456789abcdef.safetensors",
        ".tensors-0123456789abcdef.ab.safetensors",
    ):
        age(folder / name, b"killed", storage.ABANDONED_S + 60)
    entry.save(folder)
    assert len(list(folder.iterdir())) == 2
    assert replay.Entry.load(folder, tiny).positions.tolist() == entry.positions.tolist()


def test_saving_removes_nothing_that_may_be_somebody_elses(entry, folder):
    names = ["model.safetensors", "tensors-final.safetensors", "tensors-00001-of-2.safetensors"]
    for name in names:
        age(folder / name, b"a model's", storage.ABANDONED_S + 60)
    # A save of another program that is under way.
    age(folder / ".tensors-0123456789abcdef.ab.safetensors", b"half", 1)
    (folder / "tensors-fedcba9876543210.safetensors").mkdir()
    entry.save(folder)
    assert len(list(folder.iterdir())) == 2 + len(names) + 2


def test_saves_at_the_same_time_leave_a_whole_entry(tiny, entry, tmp_path):
    for attempt in range(5):
        folder = tmp_path / str(attempt)
        with ThreadPoolExecutor(4) as pool:
            list(pool.map(lambda _, folder=folder: entry.save(folder), range(8)))
        assert replay.Entry.load(folder, tiny).positions.tolist() == entry.positions.tolist()


def test_a_loaded_entry_no_longer_depends_on_its_files(tiny, entry, folder):
    loaded = replay.Entry.load(folder, tiny)
    path = tensor_file(folder)
    path.write_bytes(bytes(path.stat().st_size))
    assert all(torch.equal(loaded.kv[name], tensor) for name, tensor in entry.kv.items())
    os.truncate(path, 0)
    assert torch.equal(loaded.logits, entry.logits)


def forge(folder, **changes):
    """Change a manifest and make its checksum hold again."""
    manifest = json.loads((folder / MANIFEST).read_text()) | changes
    del manifest["manifest_sha256"]
    manifest = {name: value for name, value in manifest.items() if value is not None}
    manifest["manifest_sha256"] = storage._checksum(manifest)
    (folder / MANIFEST).write_text(json.dumps(manifest))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"chunk": None}, "not the manifest of an entry: it has no 'chunk'"),
        ({"dtype": "int8"}, "unknown dtype 'int8'"),
        ({"positions": [1, 40, 64, 65, 100, 150, 160]}, "no state at position 150"),
        ({"positions": [1]}, "does not hold what its manifest says"),
    ],
)
def test_a_manifest_that_does_not_fit_its_tensors_is_refused(tiny, folder, changes, message):
    forge(folder, **changes)
    with pytest.raises(ValueError, match=message) as refusal:
        replay.Entry.load(folder, tiny)
    assert "\n" not in str(refusal.value)


def test_a_failed_save_keeps_the_entry_from_before(tiny, prompt, folder, monkeypatch):
    def fail(tensors, path):
        path.write_bytes(b"half")
        raise OSError("disk full")

    monkeypatch.setattr(storage, "save_file", fail)
    with pytest.raises(OSError, match="disk full"):
        replay.capture(tiny, prompt[:50], [7]).save(folder)
    assert replay.Entry.load(folder, tiny).positions.tolist() == [1, 40, 64, 65, 100, 160]
    assert len(list(folder.iterdir())) == 2
