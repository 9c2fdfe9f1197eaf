"""Jobs and shapes of a round, as kernels see them. Running jobs come first, then the queued ones; X jobs in all."""

from typing import NamedTuple

from armada.scheduling.kernels import codes
from armada.scheduling.kernels.compiled import kernel
from armada.scheduling.snapshot import Amounts, Flags, Rows

WITHHELD = 1
HOPELESS = 2


class Shapes(NamedTuple):
    """What jobs ask for. `wanted` is what a node must have, `request` all that is accounted.

    `few_offsets[rule]` to `few_offsets[rule + 1]` are places in `few_nodes` for a rule that only few nodes satisfy
    (`has_few[rule]`). `bucket_of_class` [C] is the bucket of a class's priority (0 for classes without jobs). `barred`
    marks shapes that are placed nowhere: WITHHELD where they ask for what the pool does not give out, HOPELESS where no
    node could hold them even if nothing ran there.
    """

    request: Amounts
    wanted: Amounts
    class_row: Rows
    rule: Rows
    verdict: Rows
    has_few: Flags
    few_offsets: Rows
    few_nodes: Rows
    away_offsets: Rows
    away_rule: Rows
    away_bucket: Rows
    away_entry: Rows
    bucket_of_class: Rows
    priority_of_class: Amounts
    preemptible: Flags
    barred: Flags
    priority_of_bucket: Amounts


class Jobs(NamedTuple):
    """The jobs: what they are, and where the round has put them so far.

    `node` is -1 for a job without a place; `state` is one of `codes` RUNS, EVICTED, LOST and has a meaning for jobs
    with a node only. `bucket` is the one the job is bound at; `leased_at` [running] that of the priority it was leased
    at, which is another for guests that give way. `saved` is the job that made this one lose its place.
    """

    shape: Rows
    gang: Rows
    queue: Rows
    node: Rows
    bucket: Rows
    leased_at: Rows
    state: Flags
    method: Flags
    reason: Flags
    saved: Rows
    away_entry: Rows
    running: int


class Gangs(NamedTuple):
    """Gangs and their uniformity labels. Value v of label l is the domain `base[l] + v`.

    Its nodes are `nodes[offsets[domain]]` to `nodes[offsets[domain + 1] - 1]`; `domain_of_type` [L, T] is -1 where
    nodes of the type lack the label. `agreed` [G] is the value on which a gang was placed last, or -1.
    """

    cardinality: Rows
    label: Rows
    base: Rows
    domain_of_type: Rows
    offsets: Rows
    nodes: Rows
    agreed: Rows


@kernel
def sort_out(jobs: Jobs, placed: Rows, refused: Rows, reason: Flags) -> tuple[int, int]:
    """Sort the queued jobs into those that have a place in the end and those that were refused, with the reasons.

    Both are written as places among the queued jobs. Who had a place and lost it again gets that for a reason. Returns
    how many are in each.
    """
    won, waits = 0, 0
    for job in range(jobs.running, jobs.node.shape[0]):
        why = jobs.reason[job]
        if jobs.node[job] >= 0:
            if jobs.state[job] == codes.RUNS:
                placed[won] = job - jobs.running
                won += 1
                continue
            if jobs.state[job] == codes.LOST:
                why = codes.LOST_AGAIN if jobs.gang[job] < 0 else codes.GANG_LOST_AGAIN
        if why:
            refused[waits] = job - jobs.running
            reason[waits] = why
            waits += 1
    return won, waits
