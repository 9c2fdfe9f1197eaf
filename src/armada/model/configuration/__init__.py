"""Reading policies from the reference's configuration keys (spec/scheduling.md section 25). PURE.

The keys are those of the reference's configuration file, in camel case. Durations are texts such as `10m`, `1h30m` or
`500ms`, or numbers of seconds. An unknown key is an error that names its path; the few keys that the reference itself
reads nowhere are accepted and ignored. Knows no file format: it is given mappings and lists.
"""

from armada.model.configuration.feeds import ServiceFeed, bid_feed, override_feed
from armada.model.configuration.metrics import metrics_policy
from armada.model.configuration.retries import retry_policy
from armada.model.configuration.scheduling import scheduling_policy

__all__ = ["ServiceFeed", "bid_feed", "metrics_policy", "override_feed", "retry_policy", "scheduling_policy"]
