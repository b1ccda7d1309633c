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
"""What the operator has settled of who ends, as the core wants it."""

import stevedore

from nova_preempt import exceptions
from nova_preempt.core import model
from nova_preempt.core.scheduling import policy
from nova_preempt.handover import eviction_policy


class Policies:
    """The policy, as it is now.

    :param options: [preemption] of the configuration
    :param decisions: a nova_preempt.db.Decisions
    :param notice_limit_s: the longest notice that anybody can wait for, None
        for any
    :param promised: a nova_preempt.classes.promised.Promised, None where
        nothing is promised to anybody
    """

    def __init__(self, options, decisions, notice_limit_s=None,
                 promised=None):
        self._promised = promised
        self._options = options
        self._decisions = decisions
        self._notice_limit_s = notice_limit_s
        self._cost = load_cost(options.cost)
        self._cost_options = model.CostOptions(options.billing_period_s,
                                               options.repeat_cost_s)
        self._preemptions = {}    # server uuid: how often it gave way before

    def current(self):
        """A core.scheduling.policy.Policy.

        Ask once a decision, not once a server: options are slow to read.
        """
        options = self._options
        return policy.Policy(
            eviction_policy.get_rules(options), tuple(options.actions),
            self._cost, self._cost_options,
            eviction_policy.notice_rule(options, self._notice_limit_s),
            self._preemptions, always=options.consider == 'always',
            shortlist=options.shortlist_size, classes=(
                None if self._promised is None else self._promised.promises()),
            exact=self._promised is None or self._promised.exact)

    def refresh(self):
        """Learn who has given way before."""
        if self._options.repeat_cost_s:
            # Good enough from the background: nobody comes back so fast.
            self._preemptions = self._decisions.count_preemptions()


def load_cost(name):
    """The cost function of this name, see nova_preempt.core.costs.

    :raises InvalidConfiguration: there is none
    """
    manager = stevedore.ExtensionManager('nova_preempt.cost')
    if name not in manager.names():
        raise exceptions.InvalidConfiguration(
            f'[preemption]cost is {name!r}; known are: '
            + ', '.join(sorted(manager.names())))
    return manager[name].plugin
