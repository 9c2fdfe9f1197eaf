"""The REST routes of the API, read from the HTTP options of its methods."""

from functools import cache
from typing import Final

import msgspec
from armada_client.armada import binoculars_pb2, event_pb2, job_pb2, submit_pb2
from armada_client.google.api import annotations_pb2
from google.protobuf.descriptor import FileDescriptor

from armada._proto import operations_pb2, reports_pb2

_FILES: Final[tuple[FileDescriptor, ...]] = (
    submit_pb2.DESCRIPTOR,
    event_pb2.DESCRIPTOR,
    job_pb2.DESCRIPTOR,
    binoculars_pb2.DESCRIPTOR,
    reports_pb2.DESCRIPTOR,
    operations_pb2.DESCRIPTOR,
)


class Route(msgspec.Struct, frozen=True):
    """One REST route: `path` holds `{field}` places; `whole_body` says that the body is the request message."""

    verb: str
    path: str
    service: str
    method: str
    whole_body: bool
    streams: bool


@cache
def rest_routes() -> tuple[Route, ...]:
    """All routes that the descriptors declare, in their order."""
    return tuple(
        Route(
            verb=rule.WhichOneof("pattern").upper(),
            path=getattr(rule, rule.WhichOneof("pattern")),
            service=service.full_name,
            method=method.name,
            whole_body=rule.body == "*",
            streams=method.server_streaming,
        )
        for file in _FILES
        for service in file.services_by_name.values()
        for method in service.methods
        if (rule := method.GetOptions().Extensions[annotations_pb2.http]).WhichOneof("pattern")
    )
