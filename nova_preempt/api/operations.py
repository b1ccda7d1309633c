# Licensed under the Apache License, Version 2.0 (the "License"); you may
# not use this file except in compliance with the License. You may obtain
# a copy of the License at
#
#     http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the
# License for the specific language governing permissions and limitations
# under the License.
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
