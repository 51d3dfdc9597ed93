"""The service described for programs: OpenAPI 3.1, with the very values that the questionnaire lists."""

from __future__ import annotations

import json
from typing import Any

from incrowd._version import __version__
from incrowd.survey import Questionnaire

NONCE = "^[0-9a-f]{32}$"
LEAST_LIMIT = 64 * 1024

STATUS = {
    "request-malformed": 400,
    "not-found": 404,
    "method-not-allowed": 405,
    "record-replayed": 409,
    "questionnaire-other": 409,
    "collection-closed": 410,
    "request-too-large": 413,
    "request-type": 415,
    "answers-invalid": 422,
    "internal": 500,
    "store-unavailable": 503,
}
"""The HTTP status of each error."""
_OUTCOME = {409: "Not stored now", 500: "Not known whether stored", 503: "Not known whether stored"}


def largest_body(questionnaire: Questionnaire) -> int:
    """How many bytes a request may have: twice what the longest record takes, every character of it escaped."""
    longest = {q.name: max(q.values, key=lambda value: len(json.dumps(value))) for q in questionnaire.questions}
    envelope = {"questionnaire": questionnaire.digest, "nonce": "0" * 32, "record": longest}
    return max(LEAST_LIMIT, 2 * len(json.dumps(envelope)))


def describe(questionnaire: Questionnaire) -> dict[str, Any]:
    """The description of the service for one questionnaire."""
    record = {
        "type": "object",
        "description": "The randomised record. Answers must be randomised before they are sent.",
        "required": [question.name for question in questionnaire.questions],
        "additionalProperties": False,
        "properties": {
            question.name: {"description": question.text, "enum": list(question.values)}
            for question in questionnaire.questions
        },
    }
    envelope = {
        "type": "object",
        "required": ["questionnaire", "nonce", "record"],
        "additionalProperties": False,
        "properties": {
            "questionnaire": {"const": questionnaire.digest, "description": "The questionnaire's digest."},
            "nonce": {
                "type": "string",
                "pattern": NONCE,
                "description": "128 random bits, new for each record; the same when a record is sent again.",
            },
            "record": record,
        },
    }
    error = {
        "type": "object",
        "required": ["error"],
        "additionalProperties": False,
        "properties": {
            "error": {
                "type": "object",
                "required": ["code", "message", "remedy"],
                "additionalProperties": False,
                "properties": {key: {"type": "string"} for key in ("code", "message", "remedy")},
            }
        },
    }
    refusals: dict[int, list[str]] = {}
    for code, status in STATUS.items():
        if code not in ("not-found", "method-not-allowed"):
            refusals.setdefault(status, []).append(code)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": questionnaire.title,
            "version": __version__,
            "description": "Takes in records that respondents have randomised; keeps nothing about who sent them.",
        },
        "paths": {
            "/": {"get": _get("The questionnaire as a page, which randomises in the browser.", "text/html")},
            "/questionnaire": {"get": _get("The questionnaire.", "application/json", {"type": "object"})},
            "/openapi.json": {"get": _get("This description.", "application/json", {"type": "object"})},
            "/health": {"get": _health()},
            "/records": {
                "post": {
                    "summary": "Store one randomised record.",
                    "operationId": "storeRecord",
                    "requestBody": {"required": True, "content": {"application/json": {"schema": envelope}}},
                    "responses": {
                        "201": {
                            "description": "It is stored, on disk.",
                            "content": _content(
                                "application/json",
                                {
                                    "type": "object",
                                    "required": ["stored"],
                                    "additionalProperties": False,
                                    "properties": {"stored": {"const": True}},
                                },
                            ),
                        },
                        **{
                            str(status): {
                                "description": f"{_OUTCOME.get(status, 'Not stored')}: {', '.join(codes)}.",
                                "content": _content("application/json", {"$ref": "#/components/schemas/Error"}),
                            }
                            for status, codes in refusals.items()
                        },
                    },
                }
            },
        },
        "components": {"schemas": {"Error": error}},
    }


def _health() -> dict[str, Any]:
    status = {"type": "object", "required": ["status"], "properties": {"status": {"const": "ok"}}}
    described = _get("Whether the service is there and mixes what it stores.", "application/json", status)
    described["responses"]["503"] = {
        "description": "Records are stored, but mixing fails again and again: store-unavailable.",
        "content": _content("application/json", {"$ref": "#/components/schemas/Error"}),
    }
    return described


def _get(summary: str, kind: str, schema: dict[str, Any] | None = None) -> dict[str, Any]:
    return {"summary": summary, "responses": {"200": {"description": summary, "content": _content(kind, schema)}}}


def _content(kind: str, schema: dict[str, Any] | None) -> dict[str, Any]:
    return {kind: {"schema": schema or {"type": "string"}}}
