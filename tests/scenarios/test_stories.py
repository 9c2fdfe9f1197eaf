"""Every story of stories.toml brings about what it says."""

import tomllib
from pathlib import Path
from typing import Any

import pytest

from tests.scenarios.playing import Play

STORIES: dict[str, dict[str, Any]] = tomllib.loads((Path(__file__).parent / "stories.toml").read_text(encoding="utf-8"))


@pytest.mark.parametrize("name", STORIES)
def test_a_story_goes_as_it_says(name: str) -> None:
    story = STORIES[name]
    play = Play(story)
    for number, step in enumerate(story["steps"], 1):
        try:
            play.play(step)
        except AssertionError as error:
            error.add_note(f"in step {number} of {name}: {step}")
            raise
    play.world.ledger.validate()


def test_what_a_story_expects_can_be_wrong() -> None:
    play = Play({})
    play.play({"do": "submit", "jobs": ["A"]})
    with pytest.raises(AssertionError):
        play.play({"do": "cancel", "job": "A", "states": {"A": "queued"}})
    with pytest.raises(AssertionError):
        play.play({"do": "submit", "jobs": ["B"], "facts": []})
