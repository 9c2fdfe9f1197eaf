"""Queues, executors and their nodes, as the log last told. Small things: plain dictionaries, in order of arrival."""

from collections.abc import Iterator

from armada.model.events import ExecutorReported
from armada.model.fleet import ExecutorSettings, Node, Queue
from armada.state.records import ExecutorRecord
from armada.state.table import ensure


class ExecutorState:
    """One executor: its nodes by id, in index order."""

    __slots__ = ("changed_ms", "first_ms", "nodes", "pool", "record", "reported", "settings")

    def __init__(self, executor_id: str) -> None:
        self.pool = ""
        self.nodes: dict[str, Node] = {}
        self.settings = ExecutorSettings(executor_id=executor_id)
        self.reported = False
        """False while only an operator has spoken about it."""
        self.first_ms = 0
        self.changed_ms = 0
        self.record: ExecutorRecord | None = None
        """The last answer, until something changes."""


class Fleet:
    """All queues and executors.

    An executor enters the index order with its first report, a node with the first report that names it. `version`
    grows with every change of nodes, executors or their settings.
    """

    def __init__(self) -> None:
        self.queues: dict[str, Queue] = {}
        self.version = 0
        self._executors: dict[str, ExecutorState] = {}
        self._owner_of_node: dict[str, str] = {}

    # -- facts --------------------------------------------------------------------------------------------------------

    def report(self, event: ExecutorReported) -> tuple[str, ...]:
        """Take over what changed in an executor's fleet; return the ids of nodes that are gone.

        A node that another executor reported before moves to this one.
        """
        executor = self._executors.get(event.executor_id)
        if executor is None or not executor.reported:
            settings = executor.settings if executor else ExecutorSettings(executor_id=event.executor_id)
            self._executors.pop(event.executor_id, None)
            executor = self._executors[event.executor_id] = ExecutorState(event.executor_id)
            executor.settings = settings
            executor.reported = True
            executor.first_ms = event.at_ms
        executor.pool = event.pool
        self._changed(executor, event.at_ms)
        gone = self._remove(executor, event.gone)
        for node in event.nodes:
            owner = self._owner_of_node.get(node.node_id)
            if owner is not None and owner != event.executor_id:
                other = self._executors[owner]
                del other.nodes[node.node_id]
                other.record = None
            self._owner_of_node[node.node_id] = event.executor_id
            executor.nodes[node.node_id] = node
        return gone

    def _remove(self, executor: ExecutorState, names: tuple[str, ...]) -> tuple[str, ...]:
        """Forget an executor's nodes by name; names that are unknown say nothing."""
        if not names:
            return ()
        wanted = dict.fromkeys(names)
        gone = tuple(node.node_id for node in executor.nodes.values() if node.name in wanted)
        for node_id in gone:
            del executor.nodes[node_id]
            del self._owner_of_node[node_id]
        return gone

    def change_settings(self, settings: ExecutorSettings, at_ms: int) -> None:
        """Replace what an operator set for an executor, which need not have reported yet."""
        executor = self._executors.get(settings.executor_id)
        if executor is None:
            executor = self._executors[settings.executor_id] = ExecutorState(settings.executor_id)
        executor.settings = settings
        self._changed(executor, at_ms)

    def delete_executor(self, executor_id: str) -> bool:
        """Forget an executor and its nodes; False when it is unknown."""
        executor = self._executors.pop(executor_id, None)
        if executor is None:
            return False
        for node_id in executor.nodes:
            del self._owner_of_node[node_id]
        self.version += 1
        return True

    def _changed(self, executor: ExecutorState, at_ms: int) -> None:
        executor.changed_ms = at_ms
        executor.record = None
        self.version += 1

    # -- reading ------------------------------------------------------------------------------------------------------

    def executor_ids(self) -> tuple[str, ...]:
        """Return the ids of all executors that reported or were set, in index order."""
        return tuple(self._executors)

    def executor(self, executor_id: str) -> ExecutorRecord | None:
        """Return one executor."""
        executor = self._executors.get(executor_id)
        if executor is None:
            return None
        if executor.record is None:
            executor.record = ExecutorRecord(
                executor_id=executor_id,
                pool=executor.pool,
                nodes=tuple(executor.nodes.values()),
                settings=executor.settings,
                first_reported_ms=executor.first_ms,
                last_changed_ms=executor.changed_ms,
            )
        return executor.record

    def has_executor(self, executor_id: str) -> bool:
        """Return True when the executor is known."""
        return executor_id in self._executors

    def node(self, node_id: str) -> Node | None:
        """Return a node as last reported."""
        owner = self._owner_of_node.get(node_id)
        return None if owner is None else self._executors[owner].nodes[node_id]

    def nodes_of(self, executor_id: str) -> Iterator[Node]:
        """Iterate over an executor's nodes in index order."""
        return iter(self._executors[executor_id].nodes.values())

    def pools(self) -> tuple[str, ...]:
        """Return the pools of all known nodes, in index order."""
        return tuple(
            dict.fromkeys(node.pool for executor in self._executors.values() for node in executor.nodes.values())
        )

    # -- checkpoints --------------------------------------------------------------------------------------------------

    def columns(self) -> tuple[tuple[ExecutorRecord, bool], ...]:
        """Return all executors and whether they have reported, in index order."""
        records = ((self.executor(executor_id), state.reported) for executor_id, state in self._executors.items())
        return tuple((record, reported) for record, reported in records if record is not None)

    def restore(self, columns: tuple[tuple[ExecutorRecord, bool], ...]) -> None:
        """Take over what a checkpoint holds."""
        for record, reported in columns:
            executor = self._executors[record.executor_id] = ExecutorState(record.executor_id)
            executor.pool = record.pool
            executor.nodes = {node.node_id: node for node in record.nodes}
            executor.settings = record.settings
            executor.reported = reported
            executor.first_ms = record.first_reported_ms
            executor.changed_ms = record.last_changed_ms
            self._owner_of_node.update(dict.fromkeys(executor.nodes, record.executor_id))
        self.version += 1

    def validate(self) -> None:
        """Check that nodes and their owners agree.

        Raises:
            AssertionError: they do not.
        """
        for name, queue in self.queues.items():
            ensure(queue.name == name, f"queue {name} is kept under another name")
        owners = {
            node_id: executor_id for executor_id, executor in self._executors.items() for node_id in executor.nodes
        }
        ensure(owners == self._owner_of_node, "a node belongs to two executors, or to none")
        ensure(
            all(executor.reported or not executor.nodes for executor in self._executors.values()), "unreported nodes"
        )
