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
"""The notices of victims."""

import dataclasses
import datetime

from oslo_log import log as logging
from oslo_utils import timeutils

from nova_preempt.cloud import nova_api
from nova_preempt.cloud import parallel
from nova_preempt.db import decisions as db_decisions

LOG = logging.getLogger(__name__)


def give(ends, nova, decisions, events, monotonic):
    """Tell those that have a time of notice, all at once.

    :param ends: nova_preempt.handover.ends.Ends
    :param nova: a NovaAPI
    :param decisions: a nova_preempt.db.Decisions
    :param events: a nova_preempt.handover.notifications.Notifications
    """
    told = [end for end in ends if end.victim.notice_s]
    deadlines = [_note(end, decisions, events, monotonic) for end in told]
    parallel.call(lambda item: _tell(nova, *item),
                  list(zip(told, deadlines, strict=True)))


def _note(end, decisions, events, monotonic):
    decision, victim = end.decision, end.victim
    deadline = timeutils.utcnow() + datetime.timedelta(
        seconds=victim.notice_s)
    # The others are written down first: no guest ends before the time that
    # it is told.
    end.note(notice_until=monotonic() + victim.notice_s)
    decisions.update_victim(decision.uuid, victim.server_uuid,
                            db_decisions.NOTICED, deadline=deadline)
    events.notice(decision, dataclasses.replace(
        victim, deadline=deadline, status=db_decisions.NOTICED))
    return deadline


def _tell(nova, end, deadline):
    """Tell the guest; it ends all the same if that cannot be done."""
    try:
        nova.set_notice(end.uuid, end.victim.action, end.resort, deadline,
                        end.decision.operation, end.decision.uuid)
    except nova_api.NovaError as exc:
        LOG.warning('Victim %(uuid)s cannot see its notice: %(exc)s',
                    {'uuid': end.uuid, 'exc': exc})
