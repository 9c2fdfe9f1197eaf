"""YAML of an operator's files as plain values: whatever is wrong with a text, the answer is one kind of refusal."""

from typing import Any

import yaml

from armada.model.errors import InvalidRequest


def yaml_values(content: str) -> Any:
    """Read a YAML document.

    Raises:
        InvalidRequest: it is no YAML, is nested too deeply, or a value can't be what it looks like (the 31st of June).
    """
    try:
        return yaml.safe_load(content)
    except yaml.YAMLError as error:
        raise InvalidRequest(str(error)) from error
    except RecursionError as error:
        raise InvalidRequest("it is nested too deeply") from error
    # What the parser's constructors of dates, numbers and tagged values let through.
    except (ValueError, KeyError, AttributeError, OverflowError) as error:
        raise InvalidRequest(f"a value in it can't be read: {error}") from error
