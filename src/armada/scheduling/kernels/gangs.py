"""Gangs: placing one gang, all members or none, with undo."""

from typing import NamedTuple

from armada.scheduling.kernels import codes
from armada.scheduling.kernels.compiled import part, woven
from armada.scheduling.kernels.jobs import WITHHELD, Gangs, Jobs, Shapes
from armada.scheduling.kernels.nodes.room import Nodes, change, fits
from armada.scheduling.kernels.nodes.search import search
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


@part
def note(placing: Placing, step: int, job: int) -> None:
    """Write one step into the journal."""
    placing.step[placing.noted[0]] = step
    placing.job[placing.noted[0]] = job
    placing.noted[0] += 1


@part
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
            jobs.state[job] = codes.EVICTED
            if shapes.preemptible[shapes.class_row[shape]]:
                change(nodes, node, shapes.wanted[shape], 1, 1, top)
                relink(victims, victims.place_of[job])
        else:
            change(nodes, node, shapes.wanted[shape], -1, 0, 0)
            jobs.state[job] = codes.EVICTED
            jobs.saved[job] = -1
            relink(victims, victims.place_of[job])


@part
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


@woven
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
    The buckets searched are the lowest (free room), the job's own (is there any hope?), then from 1 up to its own.
    """
    shape = jobs.shape[job]
    wanted, verdict = shapes.wanted[shape], shapes.verdict[rule]
    listed, low, high, is_listed = shapes.few_nodes, shapes.few_offsets[rule], shapes.few_offsets[rule + 1], True
    if value >= 0:
        domain = gangs.base[label] + value
        listed, low, high = gangs.nodes, gangs.offsets[domain], gangs.offsets[domain + 1]
    elif not shapes.has_few[rule]:
        is_listed = False
    steps = 2
    if not (placing.takes_fair_share or placing.takes_by_urgency):
        steps = 1
    elif placing.takes_by_urgency:
        steps = 2 + bucket
    disturbed = NOT_FOUND
    for step in range(steps):
        searched = 0 if step == 0 else bucket if step == 1 else step - 1
        node = search(nodes, searched, wanted, verdict, listed, low, high, is_listed)
        if step == 1:
            if node < 0:
                break
            if not placing.takes_fair_share:
                continue
            types = gangs.domain_of_type[max(label, 0)]
            node, place = find(jobs, shapes, nodes, victims, shape, rule, bucket, types, value)
            if node >= 0:
                highest = make_room(jobs, shapes, nodes, victims, placing, job, node, place, bucket)
                disturbed = shapes.priority_of_bucket[highest]
                jobs.method[job] = codes.FAIR_SHARE
        elif node >= 0:
            disturbed = shapes.priority_of_bucket[searched]
            jobs.method[job] = codes.FREE_ROOM if step == 0 else codes.URGENCY
        if node >= 0:
            jobs.node[job] = node
            break
    return disturbed


@woven
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
    """Place a queued job, at home or else away, and bind it; return the preempted-at priority, or NOT_FOUND."""
    shape = jobs.shape[job]
    away, last_away = shapes.away_offsets[shape], shapes.away_offsets[shape + 1]
    if not placing.away or not (is_single or placing.gang_away):
        last_away = away
    if shapes.barred[shape]:
        last_away = away - 1
    disturbed = NOT_FOUND
    for entry in range(away - 1, last_away):
        at_home = entry < away
        if at_home and not placing.home:
            continue
        rule = shapes.rule[shape] if at_home else shapes.away_rule[entry]
        bucket = shapes.bucket_of_class[shapes.class_row[shape]] if at_home else shapes.away_bucket[entry]
        disturbed = attempt(jobs, shapes, nodes, gangs, victims, placing, job, rule, bucket, label, value)
        if disturbed != NOT_FOUND:
            jobs.away_entry[job] = -1 if at_home else shapes.away_entry[entry]
            if not at_home:
                by_urgency = jobs.method[job] == codes.URGENCY
                jobs.method[job] = codes.AWAY_BY_URGENCY if by_urgency else codes.AWAY
            jobs.bucket[job] = bucket
            break
    if disturbed != NOT_FOUND:
        jobs.state[job] = codes.RUNS
        top = jobs.bucket[job] if shapes.preemptible[shapes.class_row[shape]] else nodes.free.shape[0] - 1
        change(nodes, jobs.node[job], shapes.wanted[shape], -1, 0, top)
        note(placing, PLACED, job)
    return disturbed


@part
def put_back(jobs: Jobs, shapes: Shapes, nodes: Nodes, victims: Victims, placing: Placing, job: int) -> bool:
    """Put an evicted job back onto its node, if it still fits there at its bucket.

    What can't be preempted has kept its room.
    """
    shape, node, bucket = jobs.shape[job], jobs.node[job], jobs.bucket[job]
    if shapes.preemptible[shapes.class_row[shape]]:
        if not nodes.overfull[node] and not fits(nodes.free, bucket, node, shapes.wanted[shape]):
            return False
        change(nodes, node, shapes.wanted[shape], -1, 1, bucket)
        unlink(victims, victims.place_of[job])
    jobs.state[job] = codes.RUNS
    note(placing, RETURNED, job)
    return True


@woven
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
    """Place every member of a gang; return the mean preempted-at priority, or NOT_FOUND with some placed."""
    job, members, disturbed = first, 0, 0.0
    is_single = streams.next_member[first] < 0
    while job >= 0:
        members += 1
        at = UNDISTURBED
        if is_new:
            at = place_new(jobs, shapes, nodes, gangs, victims, placing, job, label, value, is_single)
        elif not put_back(jobs, shapes, nodes, victims, placing, job):
            at = NOT_FOUND
        if at == NOT_FOUND:
            disturbed = float(NOT_FOUND * members)
            break
        disturbed += at
        job = streams.next_member[job]
    return disturbed / members


@woven
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
    taken, else the one that disturbs the lowest priorities, which is then tried once more. Any other gang has one try.
    """
    placing.noted[0] = 0
    gang = jobs.gang[first]
    label = gangs.label[gang] if gang >= 0 and is_new else -1
    turn, last = -1, 0
    if label >= 0:
        turn, last = gangs.base[label], gangs.base[label + 1]
    best, best_turn, seen_nodes, is_repeat = 0.0, -1, False, False
    while turn < last:
        value = turn - gangs.base[label] if label >= 0 else -1
        disturbed = float(NOT_FOUND)
        if label < 0 or gangs.offsets[turn] < gangs.offsets[turn + 1]:
            seen_nodes = True
            disturbed = place_members(
                jobs, shapes, nodes, gangs, victims, streams, placing, first, is_new, label, value
            )
        if disturbed != NOT_FOUND and (label < 0 or disturbed == UNDISTURBED or is_repeat):
            if label >= 0:
                gangs.agreed[gang] = value
            return codes.NOT_CONSIDERED
        undo(jobs, shapes, nodes, victims, placing)
        if disturbed != NOT_FOUND and (best_turn < 0 or disturbed < best):
            best, best_turn = disturbed, turn
        turn += 1 if label >= 0 else last + 1
        if turn == last and best_turn >= 0 and not is_repeat:
            turn, last, is_repeat = best_turn, best_turn + 1, True
    if label >= 0:
        return codes.LABEL_NO_FIT if seen_nodes else codes.LABEL_UNKNOWN
    if streams.next_member[first] >= 0:
        return codes.GANG_NO_FIT
    return codes.UNSCHEDULED_RESOURCE if shapes.barred[jobs.shape[first]] == WITHHELD else codes.NO_FIT
