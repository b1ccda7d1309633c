# SPDX-License-Identifier: Apache-2.0
"""Lists the operations of the API, as their handlers declare them."""

from nova_preempt.api import backlog_handlers
from nova_preempt.api import backlog_plan
from nova_preempt.api import backlog_statistics
from nova_preempt.api import class_handlers
from nova_preempt.api import energy_handlers
from nova_preempt.api import openapi
from nova_preempt.api import operation
from nova_preempt.api import pause_handlers
from nova_preempt.api import preemption_handlers
from nova_preempt.api import reservable_host_handlers
from nova_preempt.api import reservation_handlers

_MODULES = (preemption_handlers, reservable_host_handlers,
            reservation_handlers, pause_handlers, energy_handlers,
            backlog_handlers, backlog_statistics, backlog_plan, class_handlers)


@operation.serves('GET', '/v1/openapi.json', None, {'type': 'object'})
def document(call):
    """Show this document."""
    return openapi.document(PUBLIC, OPERATIONS, call.request.application_url)


_ALL = [
    found for module in _MODULES for item in vars(module).values()
    if isinstance(found := getattr(item, 'operation', None),
                  operation.Operation)]

#: Those without a token.
PUBLIC = (preemption_handlers.versions.operation,
          preemption_handlers.version.operation, document.operation)
#: Those with a token and a microversion.
OPERATIONS = tuple(item for item in _ALL if item not in PUBLIC)
