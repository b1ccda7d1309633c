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
from nova_preempt.core import ending
from nova_preempt.core import terms
from nova_preempt.db import decisions


@dataclasses.dataclass
class End:
    """The end of one victim."""

    decision: decisions.Decision
    victim: decisions.Victim
    terms: ending.Terms
    progress: ending.Progress

    @property
    def uuid(self):
        return self.victim.server_uuid

    @property
    def resort(self):
        """The action where it is not migrated."""
        return self.terms.action

    def note(self, **values):
        self.progress = dataclasses.replace(self.progress, **values)


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
                victim.action, options.actions),
            for_good=for_good, timeout_s=options.termination_timeout_s,
            migrate_timeout_s=options.migrate_timeout_s),
        ending.Progress(now + victim.notice_s))
