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
"""Requests for the tests of the backlog."""

import datetime

from nova_preempt.core.backlog import dispatch
from nova_preempt.core.backlog import model
from nova_preempt.core.backlog import passes

NOW = datetime.datetime(2026, 1, 1, 12)


def ago(seconds):
    return NOW - datetime.timedelta(seconds=seconds)


def alternative(name='small', preemptible=False, run_s=None, **resources):
    return model.Alternative(name, name, resources or {'VCPU': 1},
                             preemptible, run_s)


def request(uuid='r1', *alternatives, **changes):
    values = {
        'uuid': uuid, 'project_id': 'p1', 'user_id': 'u1', 'trust_id': 't1',
        'body': {'server': {}}, 'compute_version': '2.90', 'count': 1,
        'alternatives': alternatives or (alternative(),),
        'created_at': NOW, 'updated_at': NOW}
    values.update(changes)
    values.setdefault('least_count', values['count'])
    return model.Request(**values)


def servers(*states):
    return tuple(model.OwnServer(f's{number}', 1, state, NOW)
                 for number, state in enumerate(states))


def decide(ranked, rooms, now, options, pace=None, ladders=None, planner=None,
           on_their_way=(), unseen=(), turns=None, **cloud):
    """Make a pass over requests in this order, see dispatch.decide()."""
    return dispatch.decide(
        ranked, passes.Cloud(list(rooms), pace=pace, ladders=ladders,
                             planner=planner, **cloud),
        now, options, on_their_way, unseen, turns)
