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
"""What Nova's hooks have to know of the request that this thread works on."""

from __future__ import annotations

from collections.abc import Callable
import contextlib
import contextvars
import dataclasses
import typing

if typing.TYPE_CHECKING:
    from nova_preempt import headroom
    from nova_preempt.scheduler import carrying
    from nova_preempt.scheduler import cycle


@dataclasses.dataclass(frozen=True)
class RequestContext:
    """What a request is. By default one that is none of our business.

    :ivar cycle: of a request that may preempt, while it is scheduled
    :ivar headroom: what a preemptible request leaves free, None if nothing
    :ivar project_id: the project that it claims for, '' for the server's
    :ivar chosen: what carries out which hosts were chosen for it, None if
        none were
    :ivar get_operation: returns which one it is, and looks that up once; it
        makes nothing our business
    """

    cycle: cycle.SchedulingCycle | None = None
    headroom: headroom.Headroom | None = None
    project_id: str = ''
    chosen: carrying.Carrying | None = None
    get_operation: Callable[[], str] = dataclasses.field(
        default=lambda: 'create', compare=False)


_CURRENT = contextvars.ContextVar(
    'nova_preempt_request',
    default=RequestContext())  # noqa: B039 (nobody can change it)


def current():
    """The RequestContext of this thread."""
    return _CURRENT.get()


def current_with(**known):
    """The same, with this known of it, too."""
    return dataclasses.replace(_CURRENT.get(), **known)


@contextlib.contextmanager
def working_on(request):
    """Within, this thread works on the request of this RequestContext."""
    token = _CURRENT.set(request)
    try:
        yield
    finally:
        _CURRENT.reset(token)
