"""Compiled and plain Python decide alike, bit by bit; and one compilation serves every round."""

import os
import subprocess
import sys
from hashlib import blake2b

from armada.scheduling.kernels.draw import draw
from armada.scheduling.round import schedule
from armada.scheduling.snapshot import PoolSnapshot
from tests.shared_folder import REPOSITORY
from tests.unit.scheduling.builders import Setting, node
from tests.unit.scheduling.test_search import random_setting

CODE = "from tests.unit.scheduling.test_machine_code import digest; print(digest())"


def digest() -> str:
    """Everything that some random rounds decide, figures to the last bit, as a hash."""
    whole = blake2b()
    for seed in range(20, 26):
        decisions = random_setting(seed, nodes=40, jobs=300, running=0.8).decide().decisions
        for part in (decisions.leases, decisions.preemptions, decisions.refusals):
            for name in part.__struct_fields__:
                whole.update(getattr(part, name).tobytes())
        for figures in decisions.queues:
            shares = (figures.fair_share, figures.demand_capped_share, figures.uncapped_share, figures.actual_share)
            whole.update(" ".join(one.hex() for one in shares).encode())
    return whole.hexdigest()


def test_plain_python_decides_the_same() -> None:
    environment = {**os.environ, "NUMBA_DISABLE_JIT": "1"}
    done = subprocess.run(
        [sys.executable, "-c", CODE], cwd=REPOSITORY, env=environment, check=True, capture_output=True, text=True
    )
    assert done.stdout.strip() == digest()


def test_one_compilation_serves_every_round() -> None:
    random_setting(1, nodes=20, jobs=50, running=0.5).decide()
    empty = Setting(nodes=[node("a")])
    empty.add("A")
    empty.decide()
    gang = Setting(nodes=[node("a", labels={"rack": "r"})])
    gang.add("A", 2, gang="g", size=2, label="rack")
    gang.decide()
    snapshot = PoolSnapshot.from_bytes(gang.snapshot().to_bytes())
    schedule(snapshot)
    if os.environ.get("NUMBA_DISABLE_JIT") != "1":
        assert len(draw.signatures) == 1  # type: ignore[attr-defined] # a compiled function has more than the plain one
