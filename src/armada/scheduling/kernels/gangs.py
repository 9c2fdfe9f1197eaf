"""Gangs: placing one gang, all members or none, with undo."""

from typing import NamedTuple

from armada.scheduling.kernels import codes
from armada.scheduling.kernels.compiled import kernel
from armada.scheduling.kernels.jobs import Gangs, Jobs, Shapes
from armada.scheduling.kernels.nodes import Nodes, change, fits
from armada.scheduling.kernels.search import choose_among, first_fit
from armada.scheduling.kernels.streams import Streams
from armada.scheduling.kernels.victims import Victims, find, log_freed, lose, relink, unlink
from armada.scheduling.snapshot import Amounts, Flags, Rows

PLACED = 0
RETURNED = 1
GAVE_WAY = 2

NOT_FOUND = -3
"""A preempted-at priority that says: no place."""
UNDISTURBED = -2
"""The preempted-at priority of a job for which nobody has to move."""


class Placing(NamedTuple):
    """How to place, and the journal of the gang at hand: what was done to which job, in order."""

    home: int
    away: int
    gang_away: int
    takes_fair_share: int
    takes_by_urgency: int
    step: Flags
    job: Rows
    noted: Amounts


@kernel
def note(placing: Placing, step: int, job: int) -> None:
    """Write one step into the journal."""
    placing.step[placing.noted[0]] = step
    placing.job[placing.noted[0]] = job
    placing.noted[0] += 1


@kernel
def undo(jobs: Jobs, shapes: Shapes, nodes: Nodes, victims: Victims, placing: Placing) -> None:
    """Take back everything in the journal, latest step first."""
    highest = nodes.free.shape[0] - 1
    while placing.noted[0] > 0:
        placing.noted[0] -= 1
        job = placing.job[placing.noted[0]]
        step = placing.step[placing.noted[0]]
        shape, node = jobs.shape[job], jobs.node[job]
        top = jobs.bucket[job] if shapes.preemptible[shapes.class_row[shape]] else highest
        log_freed(victims, node)
        if step == PLACED:
            change(nodes, node, shapes.wanted[shape], 1, 0, top)
            jobs.node[job] = -1
        elif step == RETURNED:
            change(nodes, node, shapes.wanted[shape], 1, 1, top)
            jobs.state[job] = codes.EVICTED
            relink(victims, victims.place_of[job])
        else:
            change(nodes, node, shapes.wanted[shape], -1, 0, 0)
            jobs.state[job] = codes.EVICTED
            jobs.saved[job] = -1
            relink(victims, victims.place_of[job])


@kernel
def search(
    shapes: Shapes, nodes: Nodes, gangs: Gangs, bucket: int, shape: int, rule: int, label: int, value: int
) -> int:
    """Return the best node for the shape in one bucket, among those that carry the label's value when one is given."""
    wanted, verdict = shapes.wanted[shape], shapes.verdict[rule]
    if value >= 0:
        domain = gangs.base[label] + value
        return choose_among(
            nodes, bucket, wanted, verdict, gangs.nodes, gangs.offsets[domain], gangs.offsets[domain + 1]
        )
    if shapes.has_few[rule]:
        low, high = shapes.few_offsets[rule], shapes.few_offsets[rule + 1]
        return choose_among(nodes, bucket, wanted, verdict, shapes.few_nodes, low, high)
    return first_fit(nodes, bucket, wanted, verdict)


@kernel
def make_room(
    jobs: Jobs,
    shapes: Shapes,
    nodes: Nodes,
    victims: Victims,
    placing: Placing,
    job: int,
    node: int,
    place: int,
    bucket: int,
) -> int:
    """Let the victims gathered on the node up to `place` lose, with their gangs; return the highest one's bucket."""
    highest = 0
    for index in range(victims.offsets[node], victims.offsets[node + 1]):
        own = victims.on_node[index]
        if own < place:
            break
        if not victims.is_out[own] or jobs.bucket[victims.job[own]] > bucket:
            continue
        victim = lose(jobs, shapes, nodes, victims, own, job)
        note(placing, GAVE_WAY, victim)
        highest = max(highest, jobs.bucket[victim])
        if jobs.gang[victim] < 0:
            continue
        other = victims.gang_start[jobs.gang[victim]]
        while other >= 0:
            sibling = victims.job[other]
            gathered = jobs.node[sibling] == node and other >= place and jobs.bucket[sibling] <= bucket
            if victims.is_out[other] and not gathered:
                log_freed(victims, jobs.node[sibling])
                note(placing, GAVE_WAY, lose(jobs, shapes, nodes, victims, other, job))
            other = victims.sibling[other]
    return int(highest)


@kernel
def attempt(
    jobs: Jobs,
    shapes: Shapes,
    nodes: Nodes,
    gangs: Gangs,
    victims: Victims,
    placing: Placing,
    job: int,
    rule: int,
    bucket: int,
    label: int,
    value: int,
) -> int:
    """Try to place one new job at a bucket: free room, then evicted jobs' room, then lower jobs' room.

    Return the preempted-at priority, or NOT_FOUND. On success the job has its node and method; it is not bound yet.
    """
    shape = jobs.shape[job]
    node = search(shapes, nodes, gangs, 0, shape, rule, label, value)
    if node >= 0:
        jobs.node[job] = node
        jobs.method[job] = codes.FREE_ROOM
        return UNDISTURBED
    if not (placing.takes_fair_share or placing.takes_by_urgency):
        return NOT_FOUND
    if search(shapes, nodes, gangs, bucket, shape, rule, label, value) < 0:
        return NOT_FOUND
    if placing.takes_fair_share:
        domain = gangs.domain_of_type[label if label >= 0 else 0]
        node, place = find(jobs, shapes, nodes, victims, shape, rule, bucket, domain, value)
        if node >= 0:
            highest = make_room(jobs, shapes, nodes, victims, placing, job, node, place, bucket)
            jobs.node[job] = node
            jobs.method[job] = codes.FAIR_SHARE
            return int(shapes.priority_of_bucket[highest])
    if placing.takes_by_urgency:
        for lower in range(1, bucket + 1):
            node = search(shapes, nodes, gangs, lower, shape, rule, label, value)
            if node >= 0:
                jobs.node[job] = node
                jobs.method[job] = codes.URGENCY
                return int(shapes.priority_of_bucket[lower])
    return NOT_FOUND


@kernel
def place_new(
    jobs: Jobs,
    shapes: Shapes,
    nodes: Nodes,
    gangs: Gangs,
    victims: Victims,
    placing: Placing,
    job: int,
    label: int,
    value: int,
    is_single: bool,
) -> int:
    """Place a queued job, at home or away, and bind it; return the preempted-at priority, or NOT_FOUND."""
    shape = jobs.shape[job]
    if shapes.barred[shape]:
        return NOT_FOUND
    disturbed = NOT_FOUND
    bucket = shapes.bucket_of_class[shapes.class_row[shape]]
    if placing.home:
        disturbed = attempt(jobs, shapes, nodes, gangs, victims, placing, job, shapes.rule[shape], bucket, label, value)
    jobs.away_entry[job] = -1
    if disturbed == NOT_FOUND and placing.away and (is_single or placing.gang_away):
        for entry in range(shapes.away_offsets[shape], shapes.away_offsets[shape + 1]):
            bucket = shapes.away_bucket[entry]
            disturbed = attempt(
                jobs, shapes, nodes, gangs, victims, placing, job, shapes.away_rule[entry], bucket, label, value
            )
            if disturbed != NOT_FOUND:
                jobs.method[job] = codes.AWAY
                jobs.away_entry[job] = shapes.away_entry[entry]
                break
    if disturbed == NOT_FOUND:
        return NOT_FOUND
    jobs.bucket[job] = bucket
    jobs.state[job] = codes.RUNS
    highest = nodes.free.shape[0] - 1
    solid = not shapes.preemptible[shapes.class_row[shape]]
    change(nodes, jobs.node[job], shapes.wanted[shape], -1, 0, highest if solid else bucket)
    note(placing, PLACED, job)
    return disturbed


@kernel
def put_back(jobs: Jobs, shapes: Shapes, nodes: Nodes, victims: Victims, placing: Placing, job: int) -> bool:
    """Put an evicted job back onto its node, if it still fits there at its bucket."""
    shape, node, bucket = jobs.shape[job], jobs.node[job], jobs.bucket[job]
    if not nodes.overfull[node] and not fits(nodes.free, bucket, node, shapes.wanted[shape]):
        return False
    top = bucket if shapes.preemptible[shapes.class_row[shape]] else nodes.free.shape[0] - 1
    change(nodes, node, shapes.wanted[shape], -1, 1, top)
    jobs.state[job] = codes.RUNS
    unlink(victims, victims.place_of[job])
    note(placing, RETURNED, job)
    return True


@kernel
def place_members(
    jobs: Jobs,
    shapes: Shapes,
    nodes: Nodes,
    gangs: Gangs,
    victims: Victims,
    streams: Streams,
    placing: Placing,
    first: int,
    is_new: bool,
    label: int,
    value: int,
) -> float:
    """Place every member of a gang, or none; return the mean preempted-at priority, or NOT_FOUND."""
    job, members, disturbed = first, 0, 0.0
    is_single = streams.next_member[first] < 0
    while job >= 0:
        members += 1
        if is_new:
            at = place_new(jobs, shapes, nodes, gangs, victims, placing, job, label, value, is_single)
            disturbed += at
            if at == NOT_FOUND:
                undo(jobs, shapes, nodes, victims, placing)
                return float(NOT_FOUND)
        elif not put_back(jobs, shapes, nodes, victims, placing, job):
            undo(jobs, shapes, nodes, victims, placing)
            return float(NOT_FOUND)
        job = streams.next_member[job]
    return disturbed / members


@kernel
def place_gang(
    jobs: Jobs,
    shapes: Shapes,
    nodes: Nodes,
    gangs: Gangs,
    victims: Victims,
    streams: Streams,
    placing: Placing,
    first: int,
    is_new: bool,
) -> int:
    """Place a gang; return why it could not be placed, or `codes.NOT_CONSIDERED` when it was.

    A gang whose members must agree in a label is tried on every value of it: the first that disturbs nobody is
    taken, else the one that disturbs the lowest priorities.
    """
    placing.noted[0] = 0
    gang = jobs.gang[first]
    is_single = streams.next_member[first] < 0
    label = gangs.label[gang] if gang >= 0 and is_new else -1
    if label < 0:
        if place_members(jobs, shapes, nodes, gangs, victims, streams, placing, first, is_new, -1, -1) != NOT_FOUND:
            return codes.NOT_CONSIDERED
        if is_single and shapes.barred[jobs.shape[first]]:
            return codes.UNSCHEDULED_RESOURCE
        return codes.NO_FIT if is_single else codes.GANG_NO_FIT
    best, best_value, any_node = 0.0, -1, False
    for domain in range(gangs.base[label], gangs.base[label + 1]):
        if gangs.offsets[domain] == gangs.offsets[domain + 1]:
            continue
        any_node = True
        value = domain - gangs.base[label]
        disturbed = place_members(jobs, shapes, nodes, gangs, victims, streams, placing, first, is_new, label, value)
        if disturbed == NOT_FOUND:
            continue
        if disturbed == UNDISTURBED:
            stamp_value(jobs, streams, first, label, value)
            return codes.NOT_CONSIDERED
        undo(jobs, shapes, nodes, victims, placing)
        if best_value < 0 or disturbed < best:
            best, best_value = disturbed, value
    if best_value < 0:
        return codes.LABEL_NO_FIT if any_node else codes.LABEL_UNKNOWN
    place_members(jobs, shapes, nodes, gangs, victims, streams, placing, first, is_new, label, best_value)
    stamp_value(jobs, streams, first, label, best_value)
    return codes.NOT_CONSIDERED


@kernel
def stamp_value(jobs: Jobs, streams: Streams, first: int, label: int, value: int) -> None:
    """Write down which value of the label a gang's members agree in."""
    job = first
    while job >= 0:
        jobs.label[job] = label
        jobs.value[job] = value
        job = streams.next_member[job]
