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
"""How far the end of a victim is."""

import dataclasses

from nova_preempt.core import actions as core_actions
from nova_preempt.core import eligibility
from nova_preempt.core import ending
from nova_preempt.core import terms
from nova_preempt.db import decisions
from nova_preempt.handover import eviction_policy


@dataclasses.dataclass
class End:
    """The end of one victim.

    :ivar seen: the ending.Seen that the next step goes by, None if it is gone
    """

    decision: decisions.Decision
    victim: decisions.Victim
    terms: ending.Terms
    progress: ending.Progress
    seen: ending.Seen | None = None

    @property
    def uuid(self):
        return self.victim.server_uuid

    @property
    def resort(self):
        """The action where it is not migrated."""
        return self.terms.action

    @property
    def is_gone(self):
        return ending.is_gone(self.seen, self.terms)

    def note(self, **values):
        self.progress = dataclasses.replace(self.progress, **values)

    def note_seen(self, now):
        """Remember since when it is as it was just seen."""
        self._note_since('gone_at', self.is_gone, now)
        self._note_since('offloaded_at', self.seen is not None
                         and ending.is_held(self.seen), now)

    def _note_since(self, name, is_so, now):
        if is_so != (getattr(self.progress, name) is not None):
            self.note(**{name: now if is_so else None})


@dataclasses.dataclass(frozen=True)
class Ended:
    """What became of the victims.

    :ivar stuck: the uuids of victims whose space is not free
        [preemption]termination_timeout_s after their notice
    :ivar unwanted: {uuid of a decision: why nobody needs the space any more};
        of their victims no more were asked to end
    :ivar refusals: {uuid of a victim, or of a decision: why it comes to
        nothing}; no more victims were asked to end
    """

    stuck: set = dataclasses.field(default_factory=set)
    unwanted: dict = dataclasses.field(default_factory=dict)
    refusals: dict = dataclasses.field(default_factory=dict)


def begin(decision, victim, options, now):
    """The End of a victim to which nothing has been done yet.

    :param options: [preemption] of the configuration
    :param now: the monotonic time
    """
    for_good = decision.operation in ending.FOR_GOOD
    return End(
        decision, victim,
        ending.Terms(
            decision.host,
            victim.last_resort or core_actions.last_resort(
                victim.action, options.actions),
            tuple(options.actions),
            migrate=not for_good and terms.is_migrated_first(
                victim.action, options.actions,
                one_time=victim.server_uuid in decision.record.get(
                    'one_time', ())),
            for_good=for_good, timeout_s=options.termination_timeout_s,
            migrate_timeout_s=options.migrate_timeout_s,
            # No lock of its owner lengthens a maximum run time.
            rules=eligibility.Rules() if for_good
            else eviction_policy.get_rules(options),
            pinned=decision.record.get('pinned', True)),
        ending.Progress(now + victim.notice_s))
