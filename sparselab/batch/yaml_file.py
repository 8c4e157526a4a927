"""Reading a YAML file strictly: nothing in it is lost silently, and numbers are numbers."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import yaml

from sparselab.files import open_text


class _StrictLoader(yaml.SafeLoader):
    """PyYAML's safe loader, which takes the last of two equal keys and ``1e-3`` for text."""

    def compose_mapping_node(self, anchor: Any) -> yaml.MappingNode:
        """Return the next mapping as written; ``ConstructorError`` for a key that is there twice.

        Later, when mappings are merged (``<<``), a key that is overruled is there twice as well.
        """
        node = super().compose_mapping_node(anchor)
        seen = set()
        for key_node, _ in node.value:
            key = (key_node.tag, key_node.value) if isinstance(key_node, yaml.ScalarNode) else None
            if key is not None and key in seen:
                raise yaml.constructor.ConstructorError(
                    problem=f"the key {key_node.value!r} is there twice",
                    problem_mark=key_node.start_mark,
                )
            seen.add(key)
        return node


# As YAML 1.2 has it; PyYAML's 1.1 wants a point and a sign in the exponent.
_StrictLoader.add_implicit_resolver(
    "tag:yaml.org,2002:float", re.compile(r"[-+]?\d+(\.\d*)?[eE][-+]?\d+$"), list("-+0123456789")
)


def load_yaml(path: Path) -> dict[str, Any]:
    """Return the mapping that a YAML file holds.

    Raises ``FileNotFoundError`` or ``ValueError`` with one sentence that names the file, and the
    line where it is known, for what cannot be read, a key that is there twice, and no mapping.
    """
    with open_text(path) as stream:
        text = stream.read()
    try:
        content = yaml.load(text, _StrictLoader)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        line = f", line {mark.line + 1}" if mark else ""
        problem = getattr(error, "problem", None) or "unreadable"
        raise ValueError(f"{path}{line}: not valid YAML ({problem}).") from None
    except RecursionError:
        raise ValueError(f"{path}: not valid YAML (nested too deeply).") from None
    except (ValueError, TypeError, OverflowError) as error:  # a date or number that is none
        reason = str(error).partition(";")[0]
        raise ValueError(f"{path}: not valid YAML ({reason}).") from None
    if not isinstance(content, dict):
        raise ValueError(f"{path}: a mapping with the key 'runs' is expected.")
    return content
