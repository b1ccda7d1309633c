# SPDX-License-Identifier: Apache-2.0

"""Fake records of servers, as Nova's objects have them."""

import types


class Instance(types.SimpleNamespace):
    """Stands for an Instance with some loaded fields."""

    def __contains__(self, name):
        return hasattr(self, name)


def instance(uuid, vm_state='active', task_state=None, host='h', **values):
    return Instance(**{
        'uuid': uuid, 'vm_state': vm_state, 'task_state': task_state,
        'host': host, 'node': host, 'project_id': 'p', 'deleted': False,
        'locked': False, **values})
