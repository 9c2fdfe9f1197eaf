"""One event of every kind, with every field set, for tests of the codec and the recordings of old versions."""

from armada.model import events as facts
from armada.model.events import Event
from armada.model.fleet import ClassLimit, ExecutorSettings, Node, Queue, QueuePermission, Subject, Taint
from armada.model.growth import MemoryGrowth
from armada.model.jobs import GangSpec, JobShape, JobTemplate, NewJob, SelectorRequirement, Toleration
from armada.model.policy import RetryMutation, RetryPolicy, RetryRule

_TOLERATION = Toleration(key="k", operator="Exists", value="", effect="NoSchedule")
_POD = facts.PodIdentity(cluster="c", namespace="ns", name="pod", uid="u", node_name="n", number=2)
_FAILURE = facts.Failure(
    reason="it failed",
    kind="pod",
    cause="oom",
    category="memory",
    subcategory="limit",
    debug="more",
    pod=_POD,
    containers=(facts.ContainerStatus(name="main", exit_code=137, reason="OOMKilled", message="over"),),
)
_TEMPLATE = JobTemplate(
    shape=JobShape(
        requests=(("cpu", "500m"), ("memory", "1Gi")),
        priority_class="armada-default",
        node_selector=(("zone", "a"),),
        tolerations=(_TOLERATION,),
        affinity=((SelectorRequirement(key="gpu", operator="In", values=("a", "b"), on_field=True),),),
    ),
    pod_spec=b'{"containers":[]}' * 100,
    namespace="ns",
    labels={"a": "{JobId}"},
    annotations={"b": "c"},
    gang=GangSpec("g", 2, "zone"),
    fail_fast=True,
    price_band=3,
    pools=("default",),
    services=({"kind": "Service"},),
    ingresses=({"kind": "Ingress"},),
    external_job_uri="uri",
    scheduler="s",
)
_QUEUE = Queue(
    name="qa",
    priority_factor=1.5,
    permissions=(QueuePermission(subjects=(Subject("User", "ann"),), verbs=("submit",)),),
    limits_by_class={"armada-default": ClassLimit({"cpu": 0.5}, {"default": {"cpu": 0.25}})},
    cordoned=True,
    labels={"team": "x"},
    retry_policies=("p",),
)
_NODE = Node(
    node_id="x-n",
    name="n",
    executor_id="x",
    pool="default",
    labels={"zone": "a"},
    taints=(Taint("k", "v", "NoExecute"),),
    total={"cpu": "8"},
    unallocatable={1000: {"cpu": "1"}},
    unschedulable=True,
    node_type="t",
    reservation="r",
)
_JOB = "01h00000000000000000000000"
_RUN = "00000000-0000-0000-0000-000000000001"

EVERY_EVENT: tuple[Event, ...] = (
    facts.JobsSubmitted(
        at_ms=1, template=_TEMPLATE, jobs=(NewJob(_JOB, 5, "client"), NewJob("other", -5)), owner="ann", groups=("g",)
    ),
    facts.JobReprioritisationRequested(at_ms=2, job_id=_JOB, priority=7, requestor="ann"),
    facts.JobReprioritised(at_ms=3, job_id=_JOB, priority=7, requestor="ann"),
    facts.JobCancelRequested(at_ms=4, job_id=_JOB, requestor="ann", reason="why"),
    facts.JobCancelled(at_ms=5, job_id=_JOB, requestor="ann", reason="why"),
    facts.JobPreemptRequested(at_ms=6, job_id=_JOB, requestor="ann", reason="why"),
    facts.JobRejected(at_ms=7, job_id=_JOB, reason="never fits"),
    facts.JobSucceeded(at_ms=8, job_id=_JOB),
    facts.JobFailed(at_ms=9, job_id=_JOB, failure=_FAILURE),
    facts.JobPreempted(at_ms=10, job_id=_JOB, failure=_FAILURE),
    facts.JobRequeued(
        at_ms=11,
        job_id=_JOB,
        avoid_nodes=("n",),
        failure=_FAILURE,
        policy="grow",
        growth=MemoryGrowth(added="1Gi"),
    ),
    facts.RunLeased(
        at_ms=12,
        job_id=_JOB,
        run_id=_RUN,
        executor_id="x",
        node_id="x-n",
        node_name="n",
        pool="default",
        priority=1000,
        attempt=1,
        tolerations=(_TOLERATION,),
        overlay={"a": "b"},
    ),
    facts.RunPending(at_ms=13, job_id=_JOB, run_id=_RUN, pod=_POD),
    facts.RunStarted(at_ms=14, job_id=_JOB, run_id=_RUN, pod=_POD),
    facts.RunAddressed(at_ms=15, job_id=_JOB, run_id=_RUN, addresses={80: "10.0.0.1:30080"}, pod=_POD),
    facts.RunUsageReported(
        at_ms=16,
        job_id=_JOB,
        run_id=_RUN,
        peak={"cpu": "1"},
        average={"cpu": "500m"},
        cumulative={"cpu": "9"},
        pod=_POD,
    ),
    facts.RunSucceeded(at_ms=17, job_id=_JOB, run_id=_RUN, pod=_POD),
    facts.RunFailed(at_ms=18, job_id=_JOB, run_id=_RUN, failure=_FAILURE),
    facts.RunReturned(at_ms=19, job_id=_JOB, run_id=_RUN, failure=_FAILURE, attempted=False),
    facts.RunLeaseExpired(at_ms=20, job_id=_JOB, run_id=_RUN),
    facts.RunPreempted(
        at_ms=21, job_id=_JOB, run_id=_RUN, kind="fairshare", reason="why", preempting_job_id="other", requestor="ann"
    ),
    facts.RunsReleased(at_ms=22, run_ids=(_RUN,)),
    facts.QueueCreated(at_ms=23, queue=_QUEUE),
    facts.QueueUpdated(at_ms=24, queue=_QUEUE),
    facts.QueueCordoned(at_ms=25, name="qa", cordoned=True),
    facts.QueueDeleted(at_ms=26, name="qa"),
    facts.RetryPolicySet(
        at_ms=26,
        policy=RetryPolicy(
            name="grow",
            retry_limit=3,
            retries_by_default=True,
            rules=(
                RetryRule(
                    retries=True,
                    on_category="mem",
                    on_subcategory="oom",
                    mutation=RetryMutation(memory_factor=1.5, avoid_same_node=True),
                ),
            ),
        ),
    ),
    facts.RetryPolicyDeleted(at_ms=26, name="grow"),
    facts.ExecutorReported(at_ms=27, executor_id="x", pool="default", nodes=(_NODE,), gone=("old",)),
    facts.ExecutorSettingsChanged(
        at_ms=28,
        settings=ExecutorSettings(executor_id="x", cordoned=True, cordon_reason="why", set_by="ann", set_at_ms=1),
    ),
    facts.ExecutorDeleted(at_ms=29, executor_id="x"),
    facts.LeadershipClaimed(at_ms=30, epoch=1, holder="r1"),
)
