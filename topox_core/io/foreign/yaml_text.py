"""YAML from a stranger's bytes: plain values, a key once in one object, no aliases."""

from typing import Any

import yaml

from topox_core.errors import InputError, printable, refuse_if
from topox_core.io.limits import MAX_NESTING, Limits, check_count


class _EachOnce(yaml.CSafeLoader):  # type: ignore[misc]
    """The safe loader, for which a key is there once."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        seen = set()
        for key, _ in node.value:
            refuse_if(
                (key.value in seen, "is given twice"),
                item=f"line {key.start_mark.line + 1}",
                field=printable(str(key.value)),
            )
            seen.add(key.value if isinstance(key.value, str) else id(key))
        return dict(super().construct_mapping(node, deep))


def loaded_yaml(text: str, file: str, limits: Limits) -> Any:
    """Return what a YAML text says.

    Raises
    ------
    InputError
        If it is none, has an alias, is nested too deeply, holds more than the limits allow, or a key twice.
    """
    try:
        depth = 0
        for count, event in enumerate(yaml.parse(text, yaml.CSafeLoader)):
            depth += isinstance(event, yaml.CollectionStartEvent)
            depth -= isinstance(event, yaml.CollectionEndEvent)
            check_count(count, limits.entries, "entries such a file may have", file)
            if isinstance(event, yaml.AliasEvent) or depth > MAX_NESTING:
                problem = "has an alias (*)" if depth <= MAX_NESTING else "is nested too deeply"
                line = event.start_mark.line + 1
                raise InputError(problem, file=file, item=f"line {line}")
        return yaml.load(text, _EachOnce)
    except InputError as error:
        raise error.in_file(file) from None
    except (yaml.YAMLError, ValueError) as error:
        raise InputError(f"is not valid YAML: {error}", file=file) from None
