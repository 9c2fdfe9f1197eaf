"""Priority overrides: the answer of the override service as data."""

from collections.abc import Mapping
from typing import Any

from armada._proto import prices_pb2 as api
from armada.model.fleet import MAX_FACTOR, MIN_FACTOR

WeightOverrides = dict[str, dict[str, float]]
"""Pool -> queue -> the priority factor that holds in place of the queue's own."""


def override_request() -> Any:
    """The question for all overrides."""
    return api.PriorityOverrideRequest()


def weight_overrides(message: api.PriorityOverrideResponse) -> WeightOverrides:
    """Return the overrides that say something. Where a pool is there twice, its later part wins queue by queue."""
    found: WeightOverrides = {}
    for pool in message.poolPriorityOverrides:
        found.setdefault(pool.pool, {}).update(pool.overrides)
    return effective(found)


def effective(overrides: Mapping[str, Mapping[str, float]]) -> WeightOverrides:
    """Return the overrides without those that say nothing: a factor that is no number from MIN_FACTOR to MAX_FACTOR."""
    return {
        pool: {queue: priority for queue, priority in sorted(queues.items()) if MIN_FACTOR <= priority <= MAX_FACTOR}
        for pool, queues in sorted(overrides.items())
    }


def override_message(overrides: WeightOverrides) -> api.PriorityOverrideResponse:
    """Return the answer of a service that overrides these."""
    return api.PriorityOverrideResponse(
        poolPriorityOverrides=[
            api.PoolPriorityOverrides(pool=pool, overrides=queues) for pool, queues in sorted(overrides.items())
        ]
    )
