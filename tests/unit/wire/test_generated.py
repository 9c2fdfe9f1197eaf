"""The generated modules: beside the client package in one process, and up to date."""

import subprocess
import sys

from google.protobuf.descriptor_pool import Default

from armada._proto import control_pb2, events_pb2, metrics_pb2, operations_pb2, prices_pb2, reports_pb2, scheduler_pb2
from tests.shared_folder import REPOSITORY


def test_the_committed_code_is_what_the_generator_makes() -> None:
    run = subprocess.run(
        [sys.executable, "proto/generate.py", "--check"], cwd=REPOSITORY, capture_output=True, text=True, check=False
    )
    assert run.returncode == 0, run.stdout + run.stderr


def test_all_files_share_one_pool_with_the_client_package() -> None:
    modules = (control_pb2, events_pb2, metrics_pb2, operations_pb2, prices_pb2, reports_pb2, scheduler_pb2)
    for module in modules:
        assert Default().FindFileByName(module.DESCRIPTOR.name) is module.DESCRIPTOR
    assert Default().FindMessageTypeByName("armadaevents.EventSequence.Event")
    assert Default().FindServiceByName("api.BidRetrieverService")
    assert Default().FindServiceByName("api.PriorityOverrideService")
    assert Default().FindFileByName("armada/submit.proto")
