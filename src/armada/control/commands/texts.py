"""Text from callers: what is refused at the door so that no entry can ever stop a reader of the log."""


def text_fault(what: str, text: str, max_bytes: int, *, required: bool = False) -> str:
    """Say what is wrong with a name or reason (length counts bytes of UTF-8); empty when nothing is."""
    if required and not text:
        return f"{what} is missing"
    try:
        size_bytes = len(text) if text.isascii() else len(text.encode())
    except UnicodeEncodeError:
        return f"{what} holds a lone surrogate, which is no Unicode text"
    if size_bytes > max_bytes:
        return f"{what} has {size_bytes} bytes, at most {max_bytes} are allowed"
    if "\0" in text:
        return f"{what} holds a NUL character"
    return ""


def shortened(text: str, max_chars: int = 64) -> str:
    """Quote a text for a message, cut where it is long."""
    return repr(text) if len(text) <= max_chars else f"{text[:max_chars]!r}..."
