"""What the certificate of a randomised table says."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from incrowd.mechanisms.certificate import Certificate, Many, Part, StatedMechanism, StatedPromise, Statement, Together


class PramTogether(Together):
    """What several randomised tables promise together. About linking they promise nothing."""

    epsilon: float = Field(description="The sum of their central ε.")
    delta: float = Field(description="The sum of their central δ.")
    local_epsilon: float = Field(description="The sum of their ε₀.")


class PramPart(Part):
    """One of the three promises of a randomised table."""

    notion: str = Field(description="Which promise it is.")
    relation: str = Field(description="Which tables are compared.")
    theorem: str = Field(description="The theorem that it rests on.")
    in_words: str = Field(description="The promise in a sentence.")


class LinkingPart(PramPart):
    """Nobody is linked to a record."""

    k: float = Field(description="Nobody is linked to a record with a probability above 1/k.")


class LocalPart(PramPart):
    """Each record by itself."""

    epsilon: float = Field(description="ε₀.")


class CentralPart(PramPart):
    """The shuffled table."""

    epsilon: float = Field(description="ε.")
    delta: float = Field(description="δ.")


class PramParts(Part):
    """The three promises, each by itself."""

    linking: LinkingPart = Field(
        description="The promise about k by itself: `notion`, `k`, `relation`, `theorem`, `in_words`."
    )
    local: LocalPart = Field(description="The promise about each record, in the same way.")
    central: CentralPart = Field(description="The promise about the shuffled table, in the same way.")


class PramStatedPromise(StatedPromise):
    """What a randomised table promises."""

    epsilon: float = Field(description="The central ε, of the shuffled table: the one that a ledger counts.")
    delta: float = Field(description="The central δ.")
    k: float = Field(description="Nobody is linked to a record with a probability above 1/k. Rounded down.")
    local_epsilon: float = Field(description="ε₀, of each record by itself.")
    records: int = Field(description="The number of records for which this is promised.")
    bound: str = Field(description="Which proof gives the central ε.")
    parts: PramParts = Field(description="The three promises, each by itself.")
    together: PramTogether | None = Field(default=None, description=StatedPromise.model_fields["together"].description)


class NoParts(Part):
    """Nothing."""


class InvariantStatedPromise(StatedPromise):
    """What invariant PRAM promises, which is nothing."""

    epsilon: None = Field(default=None, description="Nothing.")
    delta: None = Field(default=None, description="Nothing.")
    parts: NoParts = Field(default=NoParts(), description="Nothing.")


class StatedBlock(Part):
    """Columns that are redrawn together."""

    attributes: Many[str] = Field(description="Columns that are redrawn together.")
    sizes: Many[int] = Field(description="How many values each of them has.")


class KeptBlock(StatedBlock):
    """Columns whose values are kept with a probability, or else drawn from all."""

    rho: float = Field(description="The probability with which values are kept; or else `matrix`, in exact fractions.")


class MatrixBlock(StatedBlock):
    """Columns whose values are redrawn by a matrix."""

    matrix: Many[Many[str]] = Field(description="The transition probabilities, row by row, in exact fractions.")


class PramStatedMechanism(StatedMechanism):
    """How a randomised table was made."""

    name: Literal["pram"] = Field(default="pram", description="The mechanism.")
    blocks: Many[KeptBlock | MatrixBlock] = Field(description="How values were redrawn.")
    records: int = Field(description="The number of records published.")
    invariant: bool = Field(
        description="Whether shares are kept on average. Then nothing is promised, and `promise` says so."
    )
    randomised_by: Literal["curator", "respondents"] = Field(
        description="`curator`, or `respondents` if nobody ever had the true table."
    )


class SampledPramMechanism(PramStatedMechanism):
    """How a randomised sample of a table was made."""

    beta: float = Field(description="The probability with which each record was redrawn and published, if not 1.")
    already_sampled: bool = Field(
        description="Whether the table was taken to be a sample itself, so that nothing was sampled."
    )


AnyPramPromise = PramStatedPromise | InvariantStatedPromise
AnyPramMechanism = SampledPramMechanism | PramStatedMechanism
PramCertificate = Certificate[AnyPramPromise, AnyPramMechanism]
PramStatement = Statement[AnyPramPromise, AnyPramMechanism]
