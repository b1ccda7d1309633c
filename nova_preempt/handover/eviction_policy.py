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

import dataclasses

from nova_preempt.core import actions as core_actions
from nova_preempt.core import eligibility
from nova_preempt.core import notice

MIGRATE = core_actions.MIGRATE


@dataclasses.dataclass(frozen=True)
class Terms:
    """How one server ends."""

    action: str        # delete, shelve or stop
    notice_s: int
    restore: bool      # comes back once there is room
    migrate: bool = False    # its flavor asks to be moved instead, if it can


def get_terms(server, options):
    """The Terms of a nova_preempt.cloud.servers.Server.

    :param options: [preemption] of the configuration
    """
    migrate = _asked_action(server, options.actions) == MIGRATE
    action = get_action(server, options.actions)
    return Terms(action, notice_rule(options).length_s(server.notice_s),
                 server.restore and action == 'shelve', migrate)


def notice_rule(options, limit_s=None):
    """How long the notice of servers is, a core.notice.NoticeRule.

    :param options: [preemption] of the configuration
    :param limit_s: the longest that anybody can wait for, None for any
    """
    longest_s = options.maximum_notice_s
    return notice.NoticeRule(
        options.notice_s, options.minimum_notice_s,
        longest_s if limit_s is None else min(longest_s, limit_s))


def get_action(server, actions):
    """The action of the Terms of a server: delete, shelve or stop.

    :param actions: [preemption]actions; a decision asks this of all servers,
        and the configuration is slow to read
    """
    return core_actions.choose(server.action, actions, pinned=server.pinned)


def _asked_action(server, actions):
    return (server.action if server.action in actions
            else core_actions.default(actions))


def is_migrated_first(action, options):
    """Whether a victim is live-migrated where that is possible.

    Its own flavor asks for it, or the operator wants it of all.

    :param action: of a db.Victim
    """
    return action == MIGRATE or options.actions[:1] == [MIGRATE]


def last_resort(action, actions):
    """What happens to a victim that cannot be, or is not to be, migrated.

    :param action: of a db.Victim
    :param actions: [preemption]actions
    """
    return core_actions.last_resort(action, actions)


def get_rules(options):
    """The eligibility.Rules of the operator.

    :param options: [preemption] of the configuration
    """
    return eligibility.Rules(options.honored_locks, options.minimum_runtime_s)


def why_not(server, options):
    """Why a server cannot end now, '' if it can.

    How long it has run is not asked: some ends do not depend on it.
    """
    return get_rules(options).why_not(
        server, get_action(server, options.actions))


def vacating_action(server, options):
    """The action after which nothing of a server is left on its host.

    That of its terms, unless it would keep its disk there or is not possible
    now.
    """
    return core_actions.leaving(get_action(server, options.actions),
                                server.vm_state)


def lead_s(notice_s, options):
    """How long before its host must be empty a server gets its notice.

    :param notice_s: the length of the notice, in seconds
    :param options: [preemption] of the configuration
    """
    return notice.lead_s(
        notice_s, options.termination_timeout_s,
        options.migrate_timeout_s if MIGRATE in options.actions else 0)
