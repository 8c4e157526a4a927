"""Saving entries: tensors as safetensors, beside a JSON manifest that says what they are.

The manifest is written last and names the tensor file, with its checksum, so a folder always holds
either the entry from before or the new one. Nothing that disagrees with its manifest is loaded.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any
from uuid import uuid4

import numpy as np
import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file

from sparselab.files import atomic_path, sha256, write_json
from sparselab.provenance import provenance
from sparselab.replay.devices import DTYPES, HOST, check_fits
from sparselab.replay.entry import Entry, check_captured_with
from sparselab.replay.models import ReplayModel
from sparselab.replay.offload import to_device
from sparselab.replay.state import Tensors

MANIFEST = "manifest.json"
FORMAT = "sparselab entry"
FORMAT_VERSION = 1


def save_entry(entry: Entry, folder: str | Path) -> None:
    """Write ``entry`` to ``folder`` (made if missing), replacing an entry that is there."""
    folder = Path(folder)
    # A new name each time, so that the file from before stays until the manifest names this one.
    name = f"tensors-{uuid4().hex[:16]}.safetensors"
    with atomic_path(folder / name) as temporary:
        save_file(_flatten(entry), temporary)
        checksum = sha256(temporary)
    manifest = {
        "format": FORMAT,
        "version": FORMAT_VERSION,
        "tensors": name,
        "sha256": checksum,
        "tokens": entry.length,
        "positions": entry.positions.tolist(),
        "chunk": entry.chunk,
        "cuts": list(entry.cuts),
        "fingerprint": entry.fingerprint,
        "dtype": str(entry.dtype).removeprefix("torch."),
        "capture_ms": entry.capture_ms,
        "provenance": provenance(),
    }
    write_json(folder / MANIFEST, manifest | {"manifest_sha256": _checksum(manifest)})
    # Those of earlier entries, and what a save that was killed has left (hidden, or not named).
    for pattern in ("tensors-*.safetensors", ".tensors-*.safetensors"):
        for left in folder.glob(pattern):
            if left.name != name:
                left.unlink()


def load_entry(folder: str | Path, model: ReplayModel) -> Entry:
    """Read an entry and make sure that it is whole, untouched and of ``model``.

    Raises ``FileNotFoundError`` where there is none, ``ValueError`` in one sentence for a folder
    that is truncated, changed, written by something else, or of another model or dtype.
    """
    folder = Path(folder)
    manifest = _read_manifest(folder / MANIFEST)
    # Before gigabytes are read and hashed.
    check_captured_with(model, manifest["fingerprint"], DTYPES[manifest["dtype"]])
    path = folder / Path(str(manifest["tensors"])).name
    if not path.is_file():
        raise ValueError(f"{folder} is no whole entry: its tensor file {path.name} is missing.")
    if sha256(path) != manifest["sha256"]:
        raise ValueError(f"{path} was truncated or changed: its checksum is not the manifest's.")
    check_fits(f"the entry in {folder}", path.stat().st_size, HOST)
    try:
        tensors = load_file(path)
    except SafetensorError as error:
        raise ValueError(f"{path} is not a safetensors file ({error}).") from None
    return _assemble(tensors, manifest, model.device)


def _flatten(entry: Entry) -> Tensors:
    """All tensors of an entry under one flat naming; contiguous, as safetensors wants them."""
    flat = {"tokens": torch.from_numpy(entry.tokens.astype(np.int64)), "logits": entry.logits}
    flat |= {f"kv/{name}": tensor for name, tensor in entry.kv.items()}
    for position, state in entry.checkpoints.items():
        flat |= {f"{position}/{name}": tensor for name, tensor in state.items()}
    return {name: tensor.cpu().contiguous() for name, tensor in flat.items()}


def _assemble(tensors: Tensors, manifest: dict[str, Any], device: torch.device) -> Entry:
    """The inverse of :func:`_flatten`."""
    parts: dict[str, Tensors] = {str(position): {} for position in manifest["positions"]}
    kv: Tensors = {}
    for name, tensor in tensors.items():
        part, _, inner = name.partition("/")
        if inner:
            (kv if part == "kv" else parts[part])[inner] = tensor
    if device.type == "cuda":
        parts = {
            part: {name: tensor.pin_memory() for name, tensor in state.items()}
            for part, state in parts.items()
        }
    return Entry(
        tokens=tensors["tokens"].numpy(),
        kv=to_device(kv, device),
        checkpoints={int(part): state for part, state in parts.items()},
        logits=tensors["logits"],
        chunk=manifest["chunk"],
        cuts=tuple(manifest["cuts"]),
        fingerprint=manifest["fingerprint"],
        dtype=DTYPES[manifest["dtype"]],
        capture_ms=manifest["capture_ms"],
    )


def _read_manifest(path: Path) -> dict[str, Any]:
    """Return a manifest once its own checksum holds."""
    if not path.is_file():
        raise FileNotFoundError(f"no saved entry in {path.parent}: {path.name} is missing.")
    try:
        manifest = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise ValueError(f"{path} is not the manifest of an entry ({error}).") from None
    if not isinstance(manifest, dict) or manifest.get("format") != FORMAT:
        raise ValueError(f"{path} is not the manifest of an entry: it has no format {FORMAT!r}.")
    if manifest.get("version") != FORMAT_VERSION:
        raise ValueError(
            f"{path} has version {manifest.get('version')!r} of the format, this program reads "
            f"version {FORMAT_VERSION}."
        )
    recorded = manifest.pop("manifest_sha256", None)
    if recorded != _checksum(manifest):
        raise ValueError(f"{path} was changed: its checksum does not hold.")
    return manifest


def _checksum(manifest: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(manifest, sort_keys=True).encode()).hexdigest()
