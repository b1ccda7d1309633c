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

"""The terms on which a preemptible server ends.

What its flavor says, within the bounds of the operator's options.
"""

from __future__ import annotations

from collections.abc import Sequence
import dataclasses

from nova_preempt.core import actions as rules
from nova_preempt.core import eligibility
from nova_preempt.core.model import Server
from nova_preempt.core.notice import NoticeRule


@dataclasses.dataclass(frozen=True, slots=True)
class Terms:
    """How one server ends.

    ``action`` is delete, shelve or stop. With ``restore`` it comes back once
    there is room. With ``migrate`` its flavor asks to be moved instead, if it
    can be.
    """

    action: str
    notice_s: int
    restore: bool
    migrate: bool = False


def of(server: Server, actions: Sequence[str], notice: NoticeRule) -> Terms:
    """Return the terms of a server.

    ``actions``: what the operator allows, [preemption]actions.
    """
    action = rules.choose(server.action, actions, pinned=server.pinned)
    asked = (
        server.action if server.action in actions else rules.default(actions)
    )
    return Terms(
        action,
        notice.length_s(server.notice_s),
        restore=server.restore and action == rules.SHELVE,
        migrate=asked == rules.MIGRATE
        and not eligibility.why_not_by(server, asked),
    )


def is_migrated_first(
    action: str, actions: Sequence[str], *, one_time: bool = False
) -> bool:
    """Tell whether a victim is live-migrated where that is possible.

    Its own flavor asks for it, or the operator wants it of all. ``action``:
    of the victim. ``one_time``: whether it has a device that can be used once
    only.
    """
    return rules.MIGRATE in (action, *actions[:1]) and (
        not eligibility.wastes_device(rules.MIGRATE, one_time=one_time)
    )
