"""The parameters of the generators, with their bounds.

They are apart from the generators, so that help lists them without importing what generators need.
"""

from contextlib import suppress
from datetime import UTC, datetime, timedelta
from decimal import Decimal, InvalidOperation
from fractions import Fraction
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, field_serializer, field_validator, model_validator

__all__ = ["PARAMS", "check_times", "interval_of", "plain"]

# The field of every rate.
RATE = Field(gt=0, le=10**9, decimal_places=6, description="tuples a second, at most 6 decimals")

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_LAST = 2**63 - 1
# Longest cost in ms: 10 days.
_LONGEST = 864_000_000


class Start(BaseModel):
    """The parameters of every generator: when the stream begins, and the seed of all draws."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    start: int = Field(
        default=0,
        ge=-(2**63),
        le=_LAST,
        description="time of the first tuple: us since 1970 (UTC), or an ISO 8601 text",
    )
    seed: int = Field(default=0, ge=0, le=_LAST, description="seed of all draws")

    @field_validator("start", mode="before")
    @classmethod
    def _moment(cls, value: Any) -> Any:
        if not isinstance(value, str) or value.strip().lstrip("+-").isdigit():
            return value
        moment = datetime.fromisoformat(value.strip())
        moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
        return (moment - _EPOCH) // timedelta(microseconds=1)


class Rated(Start):
    """The same with a constant rate."""

    rate: Annotated[Decimal, RATE] = Decimal(10_000)

    @field_serializer("rate")
    def _number(self, rate: Decimal) -> int | float:
        return plain(rate)

    @property
    def interval(self) -> Fraction:
        """Time between two tuples in us."""
        return interval_of(self.rate)


class Arrivals(Rated):
    """The same with a number of tuples."""

    tuples: int = Field(default=1_000_000, ge=1, le=10**12, description="number of tuples (m)")

    @model_validator(mode="after")
    def _fits(self) -> "Arrivals":
        check_times(self.start, self.interval, self.tuples)
        return self


class ZipfArrivals(Arrivals):
    """The same for streams whose keys come by a Zipf law."""

    keys: int = Field(default=10_000, ge=1, le=10**8, description="number of keys that may come (K)")
    exponent: float = Field(default=1.2, ge=0, le=3, description="skew: 0 is uniform (z)")


def plain(number: Decimal) -> int | float:
    """Return a number as manifests hold it: whole if it is."""
    return int(number) if number == int(number) else float(number)


def interval_of(rate: Decimal) -> Fraction:
    """Return the time in us between two tuples that come at a rate, exactly."""
    return 1_000_000 / Fraction(rate)


def check_times(start: int, interval: Fraction, tuples: int) -> None:
    """Raise ValueError when the last tuple's time in us does not fit into 64 bits."""
    if start + (tuples - 1) * interval > _LAST:
        raise ValueError("the last tuple's time does not fit into 64 bits; raise the rate or take fewer tuples")


class Bursty(Arrivals):
    """The parameters of a bursty stream."""

    length: float = Field(default=100.0, ge=1, le=10**9, description="mean number of tuples of a key")
    active: int = Field(default=1, ge=1, le=10_000, description="keys active at a time")

    @model_validator(mode="after")
    def _few_enough(self) -> "Bursty":
        if self.tuples / self.length > 10**8:
            raise ValueError("more than 10^8 keys; raise the length or take fewer tuples")
        return self


class Drift(ZipfArrivals):
    """The parameters of a drifting stream."""

    every: int = Field(default=10_000, ge=1, le=10**12, description="tuples from one move of the hot set to the next")
    step: int = Field(default=1, ge=0, le=10**8, description="ranks that each key falls at a move; 0 is no drift")


class EvolvingZipf(ZipfArrivals):
    """The parameters of an evolving Zipf stream."""

    tuples: int = Field(default=5_000_000, ge=1, le=10**12, description="number of tuples (N; 50M in Table 2)")
    keys: int = Field(default=100_000, ge=1, le=10**7, description="number of keys that may come (K)")
    exponent: float = Field(default=1.0, ge=0, le=3, description="skew: 0 is uniform (z; 1.0 to 2.0 in the paper)")
    reading: Literal["A", "B", "C", "D", "E"] = Field(
        default="B",
        description="what changes: A nothing, B ranks reversed, C permuted, D shifted by K/2, E permuted in blocks",
    )
    blocks: int | None = Field(
        default=None, ge=1, le=10_000, description="blocks one after the other, each with its change; 1, for E 10"
    )
    change: Decimal = Field(
        default=Decimal("0.8"), ge=0, le=1, decimal_places=6, description="share of a block before the ranks change"
    )

    @field_validator("reading", mode="before")
    @classmethod
    def _letter(cls, value: Any) -> Any:
        return value.strip().upper() if isinstance(value, str) else value

    @field_serializer("change")
    def _share(self, change: Decimal) -> float:
        return float(change)


class Posg(Start):
    """The parameters of a stream with costs. Times of execution are in ms, as in the paper."""

    tuples: int = Field(default=32_768, ge=1, le=10**12, description="number of tuples (m)")
    keys: int = Field(default=4_096, ge=1, le=10**7, description="number of items (n)")
    exponent: float = Field(default=1.0, ge=0, le=3, description="skew of the items: 0 is uniform (alpha)")
    w_n: int = Field(default=64, ge=1, le=10_000, description="number of distinct execution times")
    w_min: Decimal = Field(
        default=Decimal(1), gt=0, le=_LONGEST, decimal_places=6, description="shortest execution time in ms"
    )
    w_max: Decimal = Field(
        default=Decimal(64), gt=0, le=_LONGEST, decimal_places=6, description="longest execution time in ms"
    )
    steps: Literal["constant", "geometric"] = Field(
        default="constant", description="how the execution times go from w_min to w_max: by equal steps or equal ratios"
    )
    values: tuple[Decimal, ...] | None = Field(
        default=None, description="execution times in ms instead, with commas, as 25,5,1"
    )
    association: Literal["uniform", "geometric", "binomial"] = Field(
        default="uniform",
        description="how many items have each value: equally many, or by this law of the value's number",
    )
    probability: Decimal = Field(
        default=Decimal("0.5"), gt=0, lt=1, decimal_places=6, description="parameter of the geometric or binomial law"
    )
    shares: tuple[Decimal, ...] | None = Field(
        default=None, description="shares of the items instead, one for each value, with commas, in any unit"
    )
    rate: Annotated[Decimal | None, RATE] = Field(
        default=None, description="tuples a second; from instances and provisioning unless given"
    )
    instances: int = Field(default=5, ge=1, le=10**6, description="instances that the rate is for (k)")
    provisioning: Decimal = Field(
        default=Decimal(100),
        gt=0,
        le=10**6,
        decimal_places=6,
        description="percentage of the mean execution time by instances that lies between two tuples",
    )

    @field_validator("values", "shares", mode="before")
    @classmethod
    def _list(cls, value: Any) -> Any:
        return tuple(each.strip() for each in value.split(",")) if isinstance(value, str) else value

    @field_validator("values", "shares")
    @classmethod
    def _positive(cls, value: tuple[Decimal, ...] | None) -> tuple[Decimal, ...] | None:
        if value is not None:
            if not 1 <= len(value) <= 10_000:
                raise ValueError("1 to 10000 numbers, with commas between")
            for each in value:
                if not 0 <= each <= _LONGEST or each != round(each, 6):
                    raise ValueError(f"{each} is not a number from 0 to {_LONGEST} with at most 6 decimals")
        return value

    @model_validator(mode="after")
    def _agree(self) -> "Posg":
        given = self.model_fields_set
        if self.values is not None and (clash := sorted({"w_n", "w_min", "w_max", "steps"} & given)):
            raise ValueError(f"--values and --{clash[0].replace('_', '-')} are two ways to say the same: give one")
        if self.shares is not None and "association" in given:
            raise ValueError("--shares and --association are two ways to say the same: give one")
        count = self.w_n if self.values is None else len(self.values)
        if self.shares is not None and (len(self.shares) != count or not sum(self.shares)):
            raise ValueError(f"shares: {len(self.shares)} for {count} values; one for each is needed, not all 0")
        if count > self.keys:
            raise ValueError(f"{count} values for {self.keys} keys; take more keys or fewer values")
        if self.w_min > self.w_max:
            raise ValueError(f"w_min {self.w_min} is above w_max {self.w_max}")
        if self.rate is not None:
            check_times(self.start, interval_of(self.rate), self.tuples)
        return self

    @field_serializer("w_min", "w_max", "probability", "rate", "provisioning", when_used="unless-none")
    def _number(self, value: Decimal) -> int | float:
        return plain(value)

    @field_serializer("values", "shares", when_used="unless-none")
    def _numbers(self, value: tuple[Decimal, ...]) -> list[float]:
        return [float(each) for each in value]


class Skewed(Arrivals):
    """The parameters of a skewed stream."""

    share: Decimal = Field(
        default=Decimal("0.3"),
        ge=0,
        le=1,
        max_digits=18,
        description="share of the hot key, 0.3 or 30%; at 0 no key is singled out",
    )
    half: bool = Field(default=False, description="skew the first half of the stream only; all keys alike in the other")
    rest: Literal["others", "all"] = Field(
        default="others",
        description="who gets the rest: the 203 others, or all 204, the hot key too, as in the paper's published code",
    )

    @field_validator("share", mode="before")
    @classmethod
    def _percent(cls, value: Any) -> Any:
        if not isinstance(value, str):
            return value
        text = value.strip()
        # What is no number at all cannot be compared either.
        with suppress(InvalidOperation):
            share = Decimal(text.removesuffix("%")) / (100 if text.endswith("%") else 1)
            if 0 <= share <= 1:
                return share
        raise ValueError(f"{value!r} is not a share from 0 to 1 or 0% to 100%, such as 0.3 or 30%")

    @field_serializer("share")
    def _fraction(self, share: Decimal) -> float:
        return float(share)


class StandIn(Rated):
    """The parameters of a stand-in."""

    dataset: Literal["wp", "tw", "ct", "mt", "am", "tweets", "st", "ha", "mentions"] = Field(
        description="Wikipedia, Twitter, cashtags, MemeTracker, Amazon movies, tweets, stocks, hashtags or mentions"
    )
    scale: Decimal = Field(
        default=Decimal(1), gt=0, le=1, decimal_places=9, description="part of the tuples and of the keys to make"
    )
    p1: Decimal | None = Field(
        default=None, gt=0, lt=1, decimal_places=9, description="share of the most frequent key, instead of the paper's"
    )
    order: Literal["auto", "mixed", "drifting", "grouped"] = Field(
        default="auto",
        description="mixed; drifting: the hot set changes; grouped: all tuples of a key together; auto: the data set's",
    )
    moves: int = Field(default=9, ge=0, le=10**6, description="moves of the hot set by one key, where it drifts")

    @field_validator("dataset", mode="before")
    @classmethod
    def _name(cls, value: Any) -> Any:
        return value.strip().lower() if isinstance(value, str) else value

    @field_serializer("scale", "p1", when_used="unless-none")
    def _part(self, value: Decimal) -> int | float:
        return plain(value)


class Uniform(Arrivals):
    """The parameters of a uniform stream."""

    keys: int = Field(default=10_000, ge=1, le=10**8, description="number of keys that may come (K)")


class Zipf(ZipfArrivals):
    """The parameters of a Zipf stream."""


PARAMS: dict[str, type[BaseModel]] = {
    "bursty": Bursty,
    "drift": Drift,
    "evolving_zipf": EvolvingZipf,
    "posg": Posg,
    "skewed": Skewed,
    "stand_in": StandIn,
    "uniform": Uniform,
    "zipf": Zipf,
}
