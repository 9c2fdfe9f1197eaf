"""`make nightly`: draw problems for a long time and compare the product with the plain oracle.

A run is given by its seed: it consists of chunks of examples, each with a seed of its own, so that the same seed gives
the same problems on any number of cores. A failing problem is shrunk and written as a file that `armada decide` reads.
"""

import argparse
import json
import sys
import time
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from multiprocessing import get_context
from pathlib import Path

from tests.nightly.chunks import LAWS, Chunk, Verdict, decide_chunk

CHUNK = 250


def chunks_of(seed: int, laws: list[str], examples: int) -> list[Chunk]:
    """Return the work of a run: of every law so many examples, laws by turns."""
    numbers = range(-(-examples // CHUNK))
    return [Chunk(law, seed, number, min(CHUNK, examples - number * CHUNK)) for number in numbers for law in laws]


def report(verdict: Verdict, folder: Path) -> Path:
    """Write the failing problem as a file, and what is wrong with it beside it."""
    folder.mkdir(parents=True, exist_ok=True)
    chunk = verdict.chunk
    file = folder / f"{chunk.law}-{chunk.seed}-{chunk.number}.jsonl"
    file.write_text(json.dumps(verdict.problem) + "\n", encoding="utf-8")
    return file


def say(text: str) -> None:
    """Print at once, also into a pipe."""
    print(text, flush=True)  # noqa: T201 - the command's own output


def run(chunks: list[Chunk], workers: int, minutes: float, folder: Path) -> int:
    """Decide chunks until all are decided, one fails, or the time is over; return the exit status."""
    began = time.monotonic()
    planned, done = sum(chunk.examples for chunk in chunks), 0
    left = iter(chunks)
    with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool:
        running: set[Future[Verdict]] = set()
        while True:
            while len(running) < workers and time.monotonic() - began < minutes * 60:
                chunk = next(left, None)
                if chunk is None:
                    break
                running.add(pool.submit(decide_chunk, chunk))
            if not running:
                break
            finished, running = wait(running, return_when=FIRST_COMPLETED)
            for verdict in (future.result() for future in finished):
                if verdict.complaints:
                    for future in running:
                        future.cancel()
                    say(f"\n{verdict.chunk.law}: {LAWS[verdict.chunk.law].says}, but not in this problem:")
                    say(json.dumps(verdict.problem))
                    for complaint in verdict.complaints[:20]:
                        say(f"  {complaint}")
                    say(f"armada decide {report(verdict, folder)}")
                    return 1
                done += verdict.chunk.examples
                say(f"{done:,} of {planned:,} examples hold, {time.monotonic() - began:,.0f} s")
    if done < planned:
        say(f"time is over: {done:,} of {planned:,} examples were drawn, none failed")
        return 2
    say(f"all {done:,} examples hold")
    return 0


def main() -> int:
    """Read the command line and run."""
    parser = argparse.ArgumentParser(prog="python -m tests.nightly.run", description=__doc__)
    parser.add_argument("--seed", type=int, default=None, help="default: drawn from the clock, and printed")
    parser.add_argument("--examples", type=int, default=20_000, help="of each law")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--minutes", type=float, default=240.0, help="no chunk starts after so many minutes")
    parser.add_argument("--law", choices=sorted(LAWS), action="append", help="only this one; may be given again")
    parser.add_argument("--folder", type=Path, default=Path("build/nightly"), help="where a failing problem is written")
    arguments = parser.parse_args()
    seed = arguments.seed if arguments.seed is not None else int(time.time())
    laws = arguments.law or list(LAWS)
    say(f"seed {seed}: {arguments.examples:,} examples of each of {', '.join(laws)}, {arguments.workers} workers")
    return run(chunks_of(seed, laws, arguments.examples), arguments.workers, arguments.minutes, arguments.folder)


if __name__ == "__main__":
    sys.exit(main())
