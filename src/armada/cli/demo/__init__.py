"""`armada demo`: the whole system at work in about a minute, everything it shows checked.

`mix` says what is submitted, `system` runs `armada up` as a child, `performance` submits and follows, `verdict`
compares what happened with what should have, `screen` draws, `show` holds it together. Everything goes through the
public API.
"""
