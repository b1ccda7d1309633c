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
"""What was asked of a server, as Nova has recorded it."""

from nova import objects

from nova_preempt.core.classes import records
from nova_preempt.core.times import microseconds

# By what an instance comes to run on a host, and since when, say these.
_EVENTS = ('compute__do_build_and_run_instance', 'compute_start_instance',
           'compute_unshelve_instance')


def record(instance):
    """The core.classes.records.Record of an Instance."""
    return records.Record(
        _us(instance.created_at), _us(instance.launched_at),
        _us(instance.deleted_at) if instance.deleted else None)


def read(context, instance):
    """[core.classes.records.Action] of an Instance.

    :param context: of its cell
    """
    return [_action(context, instance, item) for item
            in objects.InstanceActionList.get_by_instance_uuid(
                context, instance.uuid)
            if item.action in records.ACTIONS and item.start_time]


def _action(context, instance, item):
    by_owner = item.project_id == instance.project_id
    asked_us = _us(item.start_time)
    if item.action not in records.RUN:
        return records.Action(item.action, item.id, asked_us, by_owner,
                              failed=item.message == 'Error')
    placed_us, done_us, failed = _run(context, instance, item)
    return records.Action(item.action, item.id, asked_us, by_owner, placed_us,
                          done_us, failed)


def _run(context, instance, item):
    """When a host got it, when it ran there or failed, and whether it did."""
    events = objects.InstanceActionEventList.get_by_action(context, item.id)
    ours = [event for event in events if event.event in _EVENTS]
    placed_us = min((_us(event.start_time) for event in ours
                     if event.start_time), default=None)
    good = [_us(event.finish_time) for event in ours
            if event.finish_time and event.result == 'Success']
    # A host that has sent it on to another one counts as a success, too.
    if good and instance.launched_at is not None:
        return placed_us, max(good), False
    bad = [_us(event.finish_time) for event in events
           if event.finish_time and event.result == 'Error']
    if bad and item.message == 'Error':
        return placed_us, max(bad), True
    return placed_us, None, False


def _us(at):
    """Microseconds since the epoch, None for None."""
    return at and microseconds(at)
