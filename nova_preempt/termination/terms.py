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

# What a server must be, in Nova's vm_states, for an action to be possible.
_STATES = {
    'delete': None,
    'shelve': frozenset((
        'active', 'stopped', 'paused', 'suspended', 'shelved')),
    'stop': frozenset(('active', 'stopped', 'error')),
}

# What a stopped server still takes.
DISK = 'DISK_GB'


@dataclasses.dataclass(frozen=True)
class Terms:
    """How one server ends."""

    action: str        # delete, shelve or stop
    notice_s: int
    restore: bool      # comes back once there is room


def get_terms(server, options):
    """The Terms of a nova_preempt.scheduler.view.Server.

    :param options: [preemption] of the configuration
    """
    allowed = [action for action in options.actions if action != 'migrate']
    action = server.action
    if action not in allowed:
        action = allowed[0] if allowed else 'delete'
    notice_s = options.notice_s if server.notice_s is None else (
        server.notice_s)
    notice_s = min(max(notice_s, options.minimum_notice_s),
                   options.maximum_notice_s)
    return Terms(action, notice_s, server.restore and action == 'shelve')


def is_possible(server, options):
    """Whether the server is in a state in which it can end on its terms."""
    states = _STATES[get_terms(server, options).action]
    return states is None or server.vm_state in states


def leaving_action(server, options):
    """The action after which nothing of a server is left on its host.

    That of its terms, unless it would keep its disk there or is not possible
    now.
    """
    action = get_terms(server, options).action
    if action == 'stop' or not is_possible(server, options):
        action = ('shelve' if server.vm_state in _STATES['shelve']
                  else 'delete')
    return action


def freed(resources, action):
    """What of a server's resources its end frees, {class: amount}."""
    if action != 'stop':
        return resources
    return {name: amount for name, amount in resources.items()
            if name != DISK}
