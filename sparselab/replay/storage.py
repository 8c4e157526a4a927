"""Saving entries: tensors as safetensors, beside a JSON manifest that says what they are.

The manifest is written last and names the tensor file, with its checksum, so a folder always holds
either the entry from before or a new one, also where several programs save to it. Nothing that
disagrees with its manifest is loaded.
"""

from __future__ import annotations

import hashlib
import json
import re
import time
from contextlib import suppress
from pathlib import Path
from typing import Any
from uuid import uuid4

import numpy as np
import torch
from safetensors import SafetensorError
from safetensors.torch import load, save_file

from sparselab.files import atomic_path, parse_json, sha256, write_json
from sparselab.provenance import provenance
from sparselab.replay.devices import DTYPES, HOST, check_fits
from sparselab.replay.entry import Entry, check_captured_with
from sparselab.replay.models import ReplayModel
from sparselab.replay.offload import to_device
from sparselab.replay.state import Tensors
from sparselab.validation import check_choice

MANIFEST = "manifest.json"
FORMAT = "sparselab entry"
FORMAT_VERSION = 2
FIELDS = ("tensors", "sha256", "positions", "chunk", "cuts", "fingerprint", "dtype", "capture_ms")

# Also hidden, with a random part, while it is written.
TENSOR_FILE = re.compile(r"tensors-[0-9a-f]{16}\.safetensors|\.tensors-[0-9a-f]{16}\..*")
# After this long nobody is still writing a file that no manifest names.
ABANDONED_S = 3600.0


def save_entry(entry: Entry, folder: str | Path) -> None:
    """Write ``entry`` to ``folder`` (made if missing), replacing an entry that is there."""
    folder = Path(folder)
    before = _named_tensor_file(folder)
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
    if before is not None:
        before.unlink(missing_ok=True)
    _remove_abandoned(folder, name)


def load_entry(folder: str | Path, model: ReplayModel) -> Entry:
    """Read an entry and make sure that it is whole, untouched and of ``model``.

    Raises ``FileNotFoundError`` where there is none, ``ValueError`` in one sentence for a folder
    that is truncated, changed, written by something else, or of another model or dtype.
    """
    folder = Path(folder)
    manifest = _read_manifest(folder / MANIFEST)
    check_choice("dtype", manifest["dtype"], DTYPES)
    # Before gigabytes are read and hashed.
    check_captured_with(model, manifest["fingerprint"], DTYPES[manifest["dtype"]])
    path = folder / Path(str(manifest["tensors"])).name
    if not path.is_file():
        raise ValueError(f"{folder} is no whole entry: its tensor file {path.name} is missing.")
    # Read once, into memory: what is checked is what is loaded, whatever happens to the file.
    check_fits(f"the entry in {folder}", 2 * path.stat().st_size, HOST)
    content = path.read_bytes()
    if hashlib.sha256(content).hexdigest() != manifest["sha256"]:
        raise ValueError(f"{path} was truncated or changed: its checksum is not the manifest's.")
    try:
        return _assemble(load(content), manifest, model.device)
    except (SafetensorError, LookupError, TypeError) as error:
        raise ValueError(f"{path} does not hold what its manifest says ({error!r}).") from None


def _named_tensor_file(folder: Path) -> Path | None:
    """Return the tensor file that a manifest in ``folder`` names, if there is a good one."""
    try:
        manifest = _read_manifest(folder / MANIFEST)
    except (OSError, ValueError):
        return None
    name = str(manifest["tensors"])
    return folder / name if TENSOR_FILE.fullmatch(name) else None


def _remove_abandoned(folder: Path, current: str) -> None:
    """Remove what saves that were killed have left: old files with our names, not ``current``."""
    for path in folder.iterdir():
        if path.name == current or not TENSOR_FILE.fullmatch(path.name):
            continue
        # Another save may have removed it by now.
        with suppress(FileNotFoundError):
            if path.is_file() and time.time() - path.stat().st_mtime > ABANDONED_S:
                path.unlink()


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
    stateless = [part for part, state in parts.items() if not state]
    if stateless:
        raise LookupError(f"no state at position {stateless[0]}")
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
        manifest = parse_json(path.read_text(encoding="utf-8"), path)
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
    missing = [name for name in FIELDS if name not in manifest]
    if missing:
        raise ValueError(f"{path} is not the manifest of an entry: it has no {missing[0]!r}.")
    return manifest


def _checksum(manifest: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(manifest, sort_keys=True).encode()).hexdigest()
