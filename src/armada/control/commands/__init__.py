"""Commands of users: submit, cancel, reprioritise, preempt, edit queues. PURE.

Every function takes the ledger, the policy, the caller and the request, and returns the facts to append together with
the answer. A request that can't be carried out raises a `Refusal` of `armada.model.errors` and leaves nothing behind.
"""
