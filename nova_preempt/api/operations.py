# SPDX-License-Identifier: Apache-2.0
"""Lists the operations of the API, as their handlers declare them."""

from nova_preempt.api import backlog
from nova_preempt.api import backlog_numbers
from nova_preempt.api import backlog_plan
from nova_preempt.api import classes
from nova_preempt.api import energy
from nova_preempt.api import handlers
from nova_preempt.api import openapi
from nova_preempt.api import operation
from nova_preempt.api import pauses
from nova_preempt.api import reservable
from nova_preempt.api import reservations

_MODULES = (handlers, reservable, reservations, pauses, energy, backlog,
            backlog_numbers, backlog_plan, classes)


@operation.serves('GET', '/v1/openapi.json', None, {'type': 'object'})
def document(call):
    """Show this document."""
    return openapi.document(PUBLIC, OPERATIONS, call.request.application_url)


_ALL = [
    found for module in _MODULES for item in vars(module).values()
    if isinstance(found := getattr(item, 'operation', None),
                  operation.Operation)]

#: Those without a token.
PUBLIC = (handlers.versions.operation, handlers.version.operation,
          document.operation)
#: Those with a token and a microversion.
OPERATIONS = tuple(item for item in _ALL if item not in PUBLIC)
