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
"""What is left to do for a victim that has given way."""

from oslo_utils import timeutils

from nova_preempt.core import ending
from nova_preempt.handover import claim


def close(end, status, clients, decisions, events):
    """Free what was held for it, and note what became of it.

    :param end: a nova_preempt.handover.ends.End
    :param status: how it has given way, see nova_preempt.core.ending
    :param clients: a nova_preempt.cloud.clients.Clients
    :param decisions: a nova_preempt.db.Decisions
    :param events: a nova_preempt.handover.notifications.Notifications
    """
    decision, victim = end.decision, end.victim
    if status == ending.MIGRATED:
        if end.progress.may_be_locked:
            clients.nova.unlock(end.uuid)
        if victim.notice_s:
            clients.nova.clear_notice(end.uuid)
    stand_in = claim.stand_ins(decision).get(end.uuid)
    if stand_in is not None:
        clients.placement.delete_allocations(stand_in)
    now = timeutils.utcnow()
    lifetime_s = None
    if victim.launched_at is not None:
        lifetime_s = int((now - victim.launched_at).total_seconds())
    decisions.update_victim(decision.uuid, end.uuid, status, ended_at=now,
                            lifetime_s=lifetime_s)
    events.end(decision, victim, status)
