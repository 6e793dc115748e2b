"""The marker that a task's transaction writes after its rows: if the marker can be read, so can the rows."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from typing import Any, Final, Self

from aioproducer.errors import KafkaError
from aioproducer.types import OffsetAndMetadata

VERSION: Final = 4
"""The version of the protocol, of the markers' form and of their digests, so that others can be recognised."""

OLDER: Final = (1, 2, 3)
"""Versions that can be read; their digests cannot be compared. With 1 and 2 each task ended its own transaction."""


class MarkerMismatchException(KafkaError):
    """An epoch was run again and has other rows than before, or later epochs were written since."""


class MissingMarkerException(KafkaError):
    """The markers of earlier epochs are gone, so it is unknown whether this one was written before."""


@dataclass(frozen=True)
class Marker:
    """The metadata of an offset that a group of the partition's own commits; the offset itself is the epoch."""

    epoch: int
    rows: int
    digest: str
    version: int = field(default=VERSION, kw_only=True)

    @classmethod
    def read(cls, committed: OffsetAndMetadata | None, where: str) -> Self | None:
        """The last one, or None if there has been none yet; MarkerMismatchException if it cannot be read."""
        if committed is None:
            return None
        with_fields = fields_of(committed, where)
        try:
            return cls(
                int(with_fields["epoch"]),
                int(with_fields["rows"]),
                str(with_fields["digest"]),
                version=with_fields["version"],
            )
        except (KeyError, TypeError, ValueError) as error:
            raise no_marker(committed, where) from error

    def as_offset(self) -> OffsetAndMetadata:
        """The marker in the form in which it is committed."""
        return OffsetAndMetadata(max(self.epoch, 0), as_text(asdict(self)))

    def __str__(self) -> str:
        return f"{self.rows} rows (digest {self.digest})"


def is_of(marker: Marker | None, epoch: int) -> bool:
    """Whether a marker shows that rows of the epoch can be read; a later one does as well."""
    return marker is not None and marker.epoch >= epoch


def as_text(fields: dict[str, Any]) -> str:
    """The metadata of an offset."""
    return json.dumps(fields, separators=(",", ":"))


def fields_of(committed: OffsetAndMetadata, where: str) -> dict[str, Any]:
    """What the metadata hold; MarkerMismatchException if another program or a later version wrote them."""
    try:
        fields = json.loads(committed.metadata)
        version = fields["version"]
        if version == VERSION or version in OLDER:
            return dict(fields)
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise no_marker(committed, where) from error
    raise MarkerMismatchException(
        f"{where}: its marker has version {version!r}, and this sink reads version {VERSION} and older: "
        "use the version of aioproducer that has written it"
    )


def no_marker(committed: OffsetAndMetadata, where: str) -> MarkerMismatchException:
    """The error for metadata of others."""
    return MarkerMismatchException(
        f"{where}: its group has committed {committed.metadata!r}, which is not a marker of this sink: "
        'another program uses the name; set another "transactionalIdPrefix"'
    )
