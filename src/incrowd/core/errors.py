"""Every error that incrowd raises on purpose.

::

    IncrowdError
    ├── InputError              exit 2: what was given cannot be used
    │   ├── ParameterError      a number or option outside its range
    │   ├── PolicyError         the policy file
    │   ├── HierarchyError      a hierarchy of values
    │   └── DataError           the table itself
    │       └── MissingLibraryError: what reads or writes it is not installed
    ├── GuaranteeError          exit 3: what was asked for cannot be promised
    │   ├── UnreachableError    no parameters within the limits reach it
    │   ├── BudgetError         it would overspend, or reuse a sample
    │   └── RelationError       promises about different neighbours would be mixed
    └── InternalError           exit 1: a bug; nothing was released

An error says what is wrong, where, and what to do, and carries a stable ``code`` that scripts may rely on and
that the documentation explains. Messages never contain values from the data: a count, a column and a line
number are enough to find them, and a log is not a place for personal data.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

CODES: Mapping[str, str] = {
    # parameters
    "parameter-range": "A number lies outside the range in which it has a meaning.",
    "parameter-type": "A parameter is of the wrong kind (text where a number is wanted, say).",
    "parameter-combination": "Parameters are each fine but do not go together.",
    # domains and policies
    "domain-empty": "A declared domain holds no value.",
    "domain-duplicate": "A declared domain lists a value more than once.",
    "domain-cuts": "Cut points are too few or not increasing.",
    "domain-large": "A declared domain has more values than can be handled one by one.",
    "domain-file": "A file that lists the values of a domain cannot be read as such.",
    "labels-file": "A code book cannot be read as such, or says nothing about the column that it is given for.",
    "labels-unfit": "Labels are for values that the domain does not have, or two values would have the same label.",
    "matrix-invalid": "A transition matrix does not fit the values of its attribute, or its file cannot be read.",
    "policy-file": "A policy, or a file that it names, cannot be read.",
    "policy-unconfirmed": "A policy is a draft with parts that were read off the data and that nobody has confirmed.",
    "policy-syntax": "A policy is not written in the YAML that policies are written in.",
    "policy-invalid": "A policy says things that do not exist, are out of range or do not go together.",
    "views-too-large": "A listed view has more cells than can be drawn and combined.",
    "views-too-many": "More views are listed or to be chosen than the budget carries.",
    # hierarchies
    "hierarchy-file": "A hierarchy file cannot be read as such.",
    "hierarchy-ragged": "The lines of a hierarchy file have different numbers of columns, or leave a level empty.",
    "hierarchy-duplicate": "A hierarchy has the same value twice.",
    "hierarchy-nesting": "A level of a hierarchy cuts a group of the level below it apart.",
    "hierarchy-root": "The highest level of a hierarchy is not one group.",
    "hierarchy-uncovered": "A hierarchy leaves out values of the declared domain.",
    "hierarchy-label": "Two groups of a level would be published under the same name.",
    "hierarchy-domain": "A hierarchy is of a kind, or has edges, that its domain does not allow.",
    "hierarchy-level": "A level was asked for that the hierarchy does not have.",
    # tables read
    "data-kind": "What was given is neither a table nor a file name nor anything else that can be read.",
    "data-not-found": "No file of that name exists, or a pattern matches none.",
    "data-unreadable": "A file cannot be read: permission is lacking, it is a directory, damaged or cut short.",
    "data-format": "A file is of a kind that is not read, or is not what its name says.",
    "data-encoding": "A text file is not in the encoding it is read in.",
    "data-malformed": "Lines do not fit the header, a quote stays open, line ends are mixed, or the header is missing.",
    "data-line-too-long": "A line of a text file is too long to be a record.",
    "data-columns": "Two columns of a table have the same name.",
    "data-parts-differ": "The parts of a table do not have the same columns or are not of the same kind.",
    "data-empty": "A table holds no record, or none that is to be kept.",
    "records-differ": "The number of records that were read is not the number of those that the table holds.",
    "data-memory": "Counting needs more memory or temporary disk space than it may use.",
    "cells-too-many": "A table has more different combinations of values than may be collected on one machine.",
    "engine-unavailable": "The engine that is to read a table is not installed, or its cluster cannot be reached.",
    "data-connection": "A database cannot be reached, or does not let the user in.",
    "executors-unfit": "The executors of a cluster have no such incrowd, or cannot write to the folder of a release.",
    "engine-missing": "The package that reads or writes tables of such a kind is not installed.",
    "column-unknown": "A table has no column of that name.",
    "column-type": "A column's type can never hold the values of its declared domain.",
    "values-outside-domain": "Records hold values outside the declared domain of a column.",
    "values-missing": "Records have no value in a column that needs one.",
    "weights-invalid": "A column of weights holds something else than numbers above zero.",
    "adversary-invalid": "The spelling of an adversary cannot be understood.",
    # tables of counts
    "labels-duplicate": "Two codes of a column would be printed alike.",
    "counts-invalid": "A table of groups and sensitive values is not made of whole numbers, or holds no record.",
    "predicate-invalid": "A sensitive predicate names no value, every value, or a value outside the domain.",
    "tree-invalid": "A tree of sensitive values does not hold each value once, or its levels are not nested.",
    # the planner's own input
    "counts-file": "A file of counts has no column `count` with a positive whole number on each line.",
    "data-missing": "Neither the policy nor the caller names a table.",
    "column-unlisted": "The table has columns that the policy does not name, and the policy refuses such.",
    "ledger-budget-differs": "The budget in the policy is not the one in the ledger.",
    "draft-empty": "No column of a table seems fit to be published, so no policy can be drafted.",
    # outputs
    "output-unwritable": "A result could not be written there, or several copies could not appear at once.",
    "file-name": "A name that no file can have: empty, too long, or with a character that the system refuses.",
    "output-exists": "A file that would be written exists already.",
    "output-inexact": "The release cannot be written in that format exactly: a limit of the format is exceeded.",
    "output-format": "The name of a file to be written does not end in a format that incrowd writes.",
    # the ledger
    "ledger-unavailable": "The ledger cannot be opened or written, or other processes keep it locked.",
    "ledger-invalid": "The file is not a ledger, is damaged, or was written by a newer version.",
    "ledger-unknown": "The ledger knows no such dataset or entry.",
    "ledger-new": "A policy names a ledger or a dataset that is not there yet, and a first use is declared.",
    "ledger-missing": "There is no ledger where one was last seen.",
    "ledger-older": "A ledger is older than when it was last seen, or is another one.",
    "ledger-settled": "An entry of the ledger was settled before, with another release.",
    # questionnaires and collectors
    "questionnaire-invalid": "A file is not a questionnaire, was changed after it was made, or cannot be read.",
    "questionnaire-signature": "A questionnaire is not signed by the key that it should be signed by.",
    "answers-invalid": "Answers or a record do not fit the questionnaire: an attribute or a value is not in it.",
    "questionnaire-other": "A record was made for another questionnaire than the collector's.",
    "request-malformed": "A request to a collector or the studio is not JSON of the described shape.",
    "request-too-large": "A request to a collector or the studio is larger than it may be.",
    "request-type": "A request to a collector is not application/json.",
    "not-found": "A collector or the studio has nothing at this path.",
    "method-not-allowed": "The address exists, but does not accept this HTTP method.",
    "record-replayed": "A record was sent before and is stored already.",
    "collection-closed": "A collection has ended; records are not taken any more.",
    "collection-empty": "A collection holds too few records to be published.",
    "collection-small": "A collection holds fewer records than its questionnaire's promise speaks of.",
    "collector-address": "A collector or the studio cannot listen where it should, or TLS files cannot be read.",
    "collector-missing": "The packages that a collector needs are not installed.",
    "store-other": "A store holds the records of another questionnaire.",
    "store-unavailable": "The store of a collector cannot be opened or written.",
    # the studio
    "path-outside": "A path leads out of the folders that the studio was given.",
    "request-refused": "A request to the studio comes from elsewhere, or without the right to ask.",
    "studio-busy": "The studio works on as much as it can, and as much waits for it already.",
    "studio-missing": "The packages that the studio needs are not installed.",
    # certificates
    "key-unreadable": "A key file is missing or is not an Ed25519 key in PEM form.",
    "release-unreadable": "A folder is not a release: a file is missing or cannot be read.",
    # guarantees
    "budget-overspent": "The release would spend more than the budget of its dataset. Nothing was recorded.",
    "budget-below-spent": "A budget was asked for that is less than what has been spent already.",
    "budget-fixed": "The rule of a budget is fixed: by its first release, or because its ledger was lost.",
    "budget-unit": "A release cannot be measured in the unit of its dataset's budget.",
    "sample-reused": "A sample would serve a second release; promises about one sample do not add up.",
    "unreachable": "No parameters within the stated limits reach the promise asked for.",
    "relation-mismatch": "Promises about adding or removing a record and about replacing one were mixed.",
    "promise-not-kept": "The parameters given do not keep the promise given with them.",
    "choice-on-sample": "A mapping would have been chosen on a sample, where no theorem covers the choice.",
    "any-adversary": "No generalization protects against an adversary who may believe anything beforehand.",
    # bugs
    "internal": "incrowd contradicted itself. Nothing was released. Please report it.",
}


class IncrowdError(Exception):
    """The root of every deliberate error.

    Args:
        message: what is wrong, and where.
        code: the stable identifier, one of `CODES`.
        remedy: what the person can do about it.
        details: the numbers behind the message, for scripts (never values from the data).
    """

    exit_code = 1

    def __init__(self, message: str, *, code: str, remedy: str = "", details: Mapping[str, Any] | None = None) -> None:
        if code not in CODES:
            raise ValueError(f"unregistered error code {code!r}")
        super().__init__(message)
        self.message = message
        self.code = code
        self.remedy = remedy
        self.details = dict(details or {})

    def __str__(self) -> str:
        """In Python's words: what the command line prints is built of `message` and `remedy` as they are."""
        return _OPTION.sub(_argument, f"{self.message} {self.remedy}".rstrip())

    def to_dict(self) -> dict[str, Any]:
        """The one shape in which an error leaves the program, on every interface."""
        message = " ".join((self.message, *notes_of(self)))
        return {"code": self.code, "message": message, "remedy": self.remedy, "details": self.details}


def notes_of(error: BaseException) -> tuple[str, ...]:
    """What was found out about an exception on its way: that a ledger was charged before, say."""
    return tuple(getattr(error, "__notes__", ()))


# A command that is quoted whole stays a command.
_OPTION = re.compile(r"`incrowd [^`]*`|(?<!\S)\(?--(?P<name>[a-z][a-z-]*)(?:=(?P<value>[\w-]+))?")
_FLAGS = frozenset({"fewer", "new_ledger", "rehearse", "show_values"})
_ARGUMENTS = {"format": "output"}


def _argument(option: re.Match[str]) -> str:
    """An option of the command line as the argument of the function that it stands for."""
    if option["name"] is None:
        return option[0]
    name = option["name"].replace("-", "_")
    name = _ARGUMENTS.get(name, name)
    value = f"={option['value']!r}" if option["value"] else "=True" if name in _FLAGS else ""
    return f"{'(' if option[0].startswith('(') else ''}`{name}{value}`"


class InputError(IncrowdError):
    """What was given cannot be used."""

    exit_code = 2


class ParameterError(InputError):
    """A number or an option is outside its range."""


class PolicyError(InputError):
    """The policy file is wrong."""


class HierarchyError(InputError):
    """A hierarchy of values is wrong."""


class DataError(InputError):
    """The table cannot be read, or holds what the policy does not allow."""


class MissingLibraryError(DataError):
    """What reads or writes such a table is not installed."""


class GuaranteeError(IncrowdError):
    """What was asked for cannot be promised."""

    exit_code = 3


class UnreachableError(GuaranteeError):
    """No parameters within the limits reach the promise."""


class BudgetError(GuaranteeError):
    """The release would overspend the budget, or reuse a sample."""


class RelationError(GuaranteeError):
    """Promises about different neighbour relations would be mixed."""


class InternalError(IncrowdError):
    """incrowd contradicted itself."""

    def __init__(self, message: str, **details: Any) -> None:
        super().__init__(
            message,
            code="internal",
            remedy="Nothing was released. Please report this as a bug.",
            details=details,
        )
