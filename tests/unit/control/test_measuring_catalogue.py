"""Every series that dashboards for the reference ask for is there: exact name, type and labels."""

from typing import Final

import pytest

from armada.control.measuring.catalogue import SERIES
from armada.control.measuring.series import Series

BY_NAME: Final = {series.name: series for series in SERIES}

ROUNDS: Final = """
gauge pool,queue: considered_jobs fair_share adjusted_fair_share uncapped_adjusted_fair_share actual_share demand
gauge pool,queue: constrained_demand short_job_penalty queue_weight raw_queue_weight gangs_considered gangs_scheduled
gauge pool,queue: first_gang_queue_position last_gang_queue_position per_queue_schedule_cycle_times evicted_jobs
gauge pool,queue: spot_price_override idealised_scheduled_value realised_scheduled_value
gauge pool,queue,resource: evicted_resources billable_resources idealised_allocated_resource
gauge pool: fairness_error loop_number spot_price protected_fraction_of_fair_share node_pool_size
gauge pool,priority: indicative_share
gauge pool,job_shape: indicative_price
gauge pool,job_shape,unschedulable_reason: indicative_price_is_schedulable
gauge pool,node,cluster,nodeType,isPreemptible,reason: node_preemptibility
gauge pool,node,cluster,nodeType,resource,reservation,schedulable,overAllocated,\
physical_pool,capacity_class,scalable_unit: node_allocatable_resource node_allocated_resource
counter pool,queue,priority_class,type: scheduled_jobs preempted_jobs failed_jobs
counter pool,outcome,termination_reason: pool_scheduling_outcome
counter outcome: schedule_outcome
histogram -: schedule_cycle_times reconciliation_cycle_times scheduling_cycle_times
histogram pool: pool_scheduling_cycle_times
histogram queue: submit_check_times
histogram queue,pool: job_run_completed_duration_seconds
counter queue,pool,state,priorState: job_state_counter_by_queue job_state_seconds_by_queue
counter node,pool,cluster,state,priorState: job_state_counter_by_node job_state_seconds_by_node
counter queue,pool,state,priorState,resource: job_state_resource_seconds_by_queue
counter node,pool,cluster,state,priorState,resource: job_state_resource_seconds_by_node
counter queue,pool,category,subcategory: job_error_classification_by_queue
counter node,pool,cluster,category,subcategory: job_error_classification_by_node
counter queue,pool,checkpoint_interval,resource: job_resource_seconds_lost_to_preemption
counter queue,pool,policy,decision: retry_policy_decisions_total
counter policy: retry_policy_gang_skipped_total
gauge name: leader_status
"""
"""With the prefix armada_scheduler_; "-" is no label."""

STANDING: Final = """
gauge queueName,queue,state: queue_size
gauge queueName,queue: queue_priority queue_distinct_scheduling_keys queue_labels
gauge pool,priorityClass,queueName,queue,priceBand,resourceType,accounting_role: queue_resource_queued \
queue_resource_queued_min queue_resource_queued_max queue_resource_queued_median queue_resource_queued_count
histogram pool,priorityClass,queueName,queue,accounting_role: job_queued_seconds
gauge pool,priorityClass,queueName,queue,accounting_role: job_queued_seconds_min job_queued_seconds_max
gauge pool,priorityClass,queueName,queue,accounting_role: job_queued_seconds_median
histogram pool,priorityClass,queueName,queue: job_run_time_seconds
gauge pool,priorityClass,queueName,queue: job_run_time_seconds_min job_run_time_seconds_max
gauge pool,priorityClass,queueName,queue: job_run_time_seconds_median
gauge cluster,pool,priorityClass,queueName,queue,priceBand,resourceType,nodeType,reservation,\
physical_pool,scalable_unit: queue_resource_allocated
gauge pool,priorityClass,queueName,queue,priceBand,resourceType: queue_resource_allocated_min \
queue_resource_allocated_max queue_resource_allocated_median
gauge cluster,pool,queueName,queue,resourceType,nodeType,reservation,physical_pool,scalable_unit: queue_resource_used
gauge cluster,pool,queueName,queue,phase,nodeType,reservation: queue_leased_pod_count
gauge node,cluster,phase: node_job_phase_count
gauge cluster,pool,resourceType,nodeType,reservation,physical_pool,capacity_class,scalable_unit: cluster_capacity \
cluster_farm_capacity cluster_available_capacity
gauge cluster,reason,setByUser: cluster_cordoned_status
gauge pool,priorityClass,queue,accounting_role: queue_price_queued_min queue_price_queued_max queue_price_queued_median
gauge pool,priorityClass,queue: queue_price_running_min queue_price_running_max queue_price_running_median
gauge pool,queueName,queue,phase,priceBand: queue_price_band_phase_bid
gauge pool: scheduler_pool_info
counter -: scheduler_interned_strings
gauge -: scheduler_bid_price_cache_last_refresh_timestamp_seconds
"""
"""With the prefix armada_."""


def listed(table: str, prefix: str) -> list[tuple[str, str, frozenset[str]]]:
    """(name, type, labels) of each series of a table."""
    found = []
    for line in table.strip().splitlines():
        head, _, names = line.partition(":")
        kind, labels = head.split()
        wanted = frozenset() if labels == "-" else frozenset(labels.split(","))
        found += [(prefix + name, kind, wanted) for name in names.split()]
    return found


WANTED: Final = [*listed(ROUNDS, "armada_scheduler_"), *listed(STANDING, "armada_")]


@pytest.mark.parametrize(("name", "kind", "labels"), WANTED, ids=[name for name, _, _ in WANTED])
def test_a_series_is_as_the_reference_has_it(name: str, kind: str, labels: frozenset[str]) -> None:
    series = BY_NAME[name]
    assert (series.kind, frozenset(series.labels)) == (kind, labels)
    assert len(series.labels) == len(labels)


def test_names_stand_for_one_series_each() -> None:
    assert len(BY_NAME) == len(SERIES)
    assert all(series.meaning and series.name.startswith("armada_") for series in SERIES)


def edges(name: str) -> tuple[float, ...]:
    series: Series = BY_NAME[f"armada_scheduler_{name}"]
    return series.edges


@pytest.mark.parametrize("name", ["schedule", "reconciliation", "scheduling", "pool_scheduling"])
def test_cycles_are_timed_from_ten_milliseconds_on(name: str) -> None:
    found = edges(f"{name}_cycle_times")
    assert len(found) == 110
    assert found[:3] == (10.0, 11.0, 12.1)
    assert found[-1] == pytest.approx(10 * 1.1**109, rel=1e-5)


def test_checks_are_timed_from_half_a_millisecond_on() -> None:
    assert (len(edges("submit_check_times")), edges("submit_check_times")[:2]) == (25, (0.5, 0.75))
