"""What made a result can be read off it."""

from importlib import metadata

from sparselab.provenance import provenance, version, versions


def test_versions_are_those_installed_and_what_is_missing_is_left_out():
    assert versions(("numpy", "no-such-package")).keys() == {"python", "numpy"}
    assert version("numpy") == metadata.version("numpy")
    assert version("no-such-package") is None


def test_details_stand_beside_time_and_versions():
    record = provenance(seed=3)
    assert record["seed"] == 3
    assert record["created"].endswith("+00:00")
    assert "numpy" in record["versions"]
