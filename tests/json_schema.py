"""Enough of JSON Schema to check documents against ours."""

import math
import re


def accepts(schema: dict, value, root: dict) -> bool:
    """Whether a value is as a schema says, which stands in a root with its definitions."""
    if "$ref" in schema:
        return accepts(root["$defs"][schema["$ref"].removeprefix("#/$defs/")], value, root)
    kinds = schema.get("type")
    kinds = [kinds] if isinstance(kinds, str) else kinds
    known = {"string": str, "boolean": bool, "null": type(None), "array": list, "object": dict}
    if isinstance(value, str) and "pattern" in schema and not re.search(schema["pattern"], value):
        return False
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if kinds and not any(
        number and (kind == "number" or isinstance(value, int))
        if kind in ("number", "integer")
        else isinstance(value, known[kind])
        for kind in kinds
    ):
        return False
    checks = [
        "enum" not in schema or value in schema["enum"],
        "const" not in schema or value == schema["const"],
        "anyOf" not in schema or any(accepts(one, value, root) for one in schema["anyOf"]),
        "oneOf" not in schema or sum(accepts(one, value, root) for one in schema["oneOf"]) == 1,
        not number or value > schema.get("exclusiveMinimum", -math.inf),
        not number or value >= schema.get("minimum", -math.inf),
        not number or value < schema.get("exclusiveMaximum", math.inf),
    ]
    if isinstance(value, dict):
        inner = schema.get("properties", {})
        other = schema.get("additionalProperties", True)
        checks += [key in value for key in schema.get("required", [])]
        checks.append(len(value) >= schema.get("minProperties", 0))
        for key, item in value.items():
            rule = inner.get(key, other)
            checks.append(rule if isinstance(rule, bool) else accepts(rule, item, root))
    if isinstance(value, list) and "items" in schema:
        checks += [accepts(schema["items"], item, root) for item in value]
    return all(checks)
