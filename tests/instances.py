# Licensed under the Apache License, Version 2.0 (the "License"); you may
# not use this file except in compliance with the License. You may obtain
# a copy of the License at
#
#      http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the
# License for the specific language governing permissions and limitations
# under the License.

"""Fake records of servers, as Nova's objects have them."""

import types


class Instance(types.SimpleNamespace):
    """As much of an Instance as was loaded."""

    def __contains__(self, name):
        return hasattr(self, name)


def instance(uuid, vm_state='active', task_state=None, host='h', **values):
    return Instance(**{
        'uuid': uuid, 'vm_state': vm_state, 'task_state': task_state,
        'host': host, 'node': host, 'project_id': 'p', 'deleted': False,
        'locked': False, **values})
