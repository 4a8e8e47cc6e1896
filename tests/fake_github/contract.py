"""GitHub's description of its API: checks requests and responses, and completes answers with the fields it asks for.

>>> contract().problems("GET", "/repos/o/r/issues", query={"state": "opened"})
['GET /repos/{owner}/{repo}/issues: query state: "opened" is not one of "open", "closed" or "all"']
"""

from __future__ import annotations

import gzip
import json
import re
from functools import cache
from pathlib import Path
from typing import Any

import jsonschema_rs

DESCRIPTION = Path(__file__).parent / "github-openapi.json.gz"
#: Gaps of the description, found by comparing with GitHub: labels may be added and set as a bare array.
GAPS = {
    ("POST", "/repos/{owner}/{repo}/issues/{issue_number}/labels"),
    ("PUT", "/repos/{owner}/{repo}/issues/{issue_number}/labels"),
}
#: Annotations a check run takes in one request.
EXAMPLE_TIME = "2026-01-01T00:00:00Z"


class Contract:
    """The description, ready to check."""

    def __init__(self, description: dict[str, Any]) -> None:
        self.paths: dict[str, Any] = description["paths"]
        self.components: dict[str, Any] = _json_schema(description["components"])
        self._patterns = [
            (re.compile(re.sub(r"\\\{[a-z_]+\\\}", "[^/]+", re.escape(path))), path)
            for path in sorted(self.paths, key=lambda p: p.count("{"))
        ]
        self._validators: dict[str, Any] = {}

    def template(self, path: str) -> str:
        """The described path a request's path is an example of; empty when there is none."""
        return next((template for pattern, template in self._patterns if pattern.fullmatch(path)), "")

    def problems(
        self,
        method: str,
        path: str,
        *,
        query: dict[str, str] | None = None,
        body: Any = None,
        status: int | None = None,
        answer: Any = None,
    ) -> list[str]:
        """What in a request (and, with `status`, its response) does not fit the description."""
        template = self.template(path)
        operation = self.paths.get(template, {}).get(method.lower())
        if operation is None:
            return [f"{method} {path}: not described"]
        where = f"{method} {template}"
        found = self._query_problems(where, operation, query or {})
        wanted = operation.get("requestBody", {}).get("content", {}).get("application/json")
        if body is not None and wanted and not ((method, template) in GAPS and isinstance(body, list)):
            found += self._check(f"{where}: request", wanted["schema"], body)
        if status is not None:
            found += self._answer_problems(where, operation, status, answer)
        return found

    def _query_problems(self, where: str, operation: dict[str, Any], query: dict[str, str]) -> list[str]:
        known = {}
        for parameter in operation.get("parameters", []):
            if "$ref" in parameter:
                parameter = self.components["parameters"][parameter["$ref"].rpartition("/")[2]]
            if parameter["in"] == "query":
                known[parameter["name"]] = parameter.get("schema", {})
        found = [f"{where}: unknown query {name}" for name in query if name not in known]
        for name, value in query.items():
            schema = known.get(name, {})
            typed: Any = int(value) if schema.get("type") == "integer" and value.isdigit() else value
            found += self._check(f"{where}: query {name}", schema, typed)
        return found

    def _answer_problems(self, where: str, operation: dict[str, Any], status: int, answer: Any) -> list[str]:
        # Any operation may answer 401, 403, 404, 429 or 5xx; the description lists them unevenly.
        response = operation["responses"].get(str(status))
        if response is None:
            return [] if status >= 400 else [f"{where}: status {status} is not described"]
        if "$ref" in response:
            response = self.components["responses"][response["$ref"].rpartition("/")[2]]
        schema = response.get("content", {}).get("application/json", {}).get("schema")
        return self._check(f"{where}: {status}", schema, answer) if schema else []

    def _check(self, where: str, schema: dict[str, Any], value: Any) -> list[str]:
        name = json.dumps(schema, sort_keys=True)
        if name not in self._validators:
            rooted = {"allOf": [_json_schema(schema)], "components": self.components}
            self._validators[name] = jsonschema_rs.Draft202012Validator(rooted)
        return [f"{where}: {error.message}"[:400] for error in self._validators[name].iter_errors(value)]

    def complete(self, name: str, values: dict[str, Any]) -> dict[str, Any]:
        """`values` with the required fields of schema `name` it lacks, filled with empty values of their type."""
        filled = self._example({"$ref": f"#/components/schemas/{name}"}, values)
        assert isinstance(filled, dict)
        return filled

    def _example(self, schema: dict[str, Any], values: Any = None) -> Any:
        if "$ref" in schema:
            return self._example(self.components["schemas"][schema["$ref"].rpartition("/")[2]], values)
        if isinstance(values, dict) and "properties" in schema:
            missing = [field for field in schema.get("required", []) if field not in values]
            return {**{field: self._example(schema["properties"][field]) for field in missing}, **values}
        if isinstance(values, dict) and {"type": "null"} in schema.get("anyOf", []):
            return self._example(schema["anyOf"][0], values)
        if values is not None:
            return values
        choices = schema.get("anyOf") or schema.get("oneOf") or schema.get("allOf")
        if choices:
            return None if {"type": "null"} in choices else self._example(choices[0])
        if "enum" in schema:
            return schema["enum"][0]
        if schema.get("type") == "object":
            return self._example(schema, {}) if "properties" in schema else {}
        if schema.get("type") == "string":
            return {"uri": "https://example.invalid/", "date-time": EXAMPLE_TIME}.get(schema.get("format", ""), "")
        return {"integer": 0, "number": 0, "boolean": False, "array": []}.get(schema.get("type", ""), "")


def _json_schema(node: Any) -> Any:
    """OpenAPI 3.0 to JSON Schema: `nullable` becomes a choice with null (also where an enum forgets it)."""
    if isinstance(node, list):
        return [_json_schema(item) for item in node]
    if not isinstance(node, dict):
        return node
    plain = {key: _json_schema(value) for key, value in node.items() if key != "nullable"}
    return {"anyOf": [plain, {"type": "null"}]} if node.get("nullable") is True else plain


@cache
def contract() -> Contract:
    """The committed description, read once."""
    with gzip.open(DESCRIPTION, "rt", encoding="utf-8") as file:
        return Contract(json.load(file))
