"""The error after which a node must stop."""

from __future__ import annotations


class FatalExitError(BaseException):
    """Stops the node whose request handler raises it (Kafka's class of this name): nothing more is handled, and
    ``EmbeddedCluster.failed()`` returns. For authorizers and faults of your own; a client cannot cause it.

    No ``Exception``, as it is no answer to a request: a handler for any error does not catch it.
    """
