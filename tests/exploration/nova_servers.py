# SPDX-License-Identifier: Apache-2.0
"""Servers, hosts and migrations of the Nova in memory."""

import dataclasses
import datetime

from keystoneauth1 import exceptions as ks_exc
from nova import exception
from oslo_db import exception as db_exc
import oslo_messaging as messaging

from tests.exploration import requests

#: What the conductor may be answered instead of hosts.
FAILURES = (exception.NovaException, messaging.MessagingTimeout,
            db_exc.DBError, ks_exc.ClientException)


class _Loaded:
    """Tells, as Nova's objects do, which attributes are loaded."""

    def __contains__(self, name):
        return hasattr(self, name)

    def obj_attr_is_set(self, name):
        return hasattr(self, name)


@dataclasses.dataclass
class Action:
    """An instance action.

    :ivar message: 'Error' if it has failed
    """

    action: str
    project_id: str | None
    message: str | None = None


@dataclasses.dataclass(eq=False)
class Server(_Loaded):
    """A server; the attributes are those of nova.objects.Instance.

    :ivar is_preemptible: whether its flavor says so
    :ivar guest: the host on which it uses space, '' for none
    :ivar cell: the name of its cell, None while it is a build request
    :ivar is_mapped: whether it has an instance mapping
    :ivar fault: the message of its latest fault, '' for none
    :ivar is_left_off: whether a failed shelve has left its guest switched off
    """

    uuid: str
    project_id: str
    user_id: str
    flavor: object
    created_at: datetime.datetime
    vm_state: str = 'building'
    task_state: str | None = 'scheduling'
    host: str | None = None
    node: str | None = None
    cell: str | None = None
    updated_at: datetime.datetime | None = None
    launched_at: datetime.datetime | None = None
    terminated_at: datetime.datetime | None = None
    deleted_at: datetime.datetime | None = None
    deleted: bool = False
    locked: bool = False
    locked_by: str | None = None
    locked_reason: str | None = None
    metadata: dict = dataclasses.field(default_factory=dict)
    hidden: bool = False
    image_ref: str = 'image'
    _context: object = None
    numa_topology: object = None
    pci_requests: object = None
    resources: object = None
    tags: tuple = ()
    guest: str = ''
    fault: str = ''
    is_left_off: bool = False
    is_requested: bool = True
    is_mapped: bool = True
    is_marked_deleted: bool = False
    actions: list = dataclasses.field(default_factory=list)
    spec: object = None
    old_flavor: object = None
    old_vm_state: str = 'active'

    @property
    def is_preemptible(self):
        return requests.is_preemptible(self.flavor)

    @property
    def amounts(self):
        return requests.amounts(self.flavor)


#: How often a compute service reports, how soon after its start, and after how
#: long without a report it counts as down, in seconds, as Nova's defaults say.
REPORT_S, FIRST_REPORT_S, DOWN_S = 10, 5, 60


@dataclasses.dataclass(eq=False)
class Host:
    """A host, its node, and its compute service.

    :ivar clock: returns the time in seconds
    :ivar has_system: whether its operating system runs
    :ivar is_failing: whether its compute service does not run even so
    """

    uuid: str
    name: str
    cell: str
    amounts: dict
    clock: object = float
    disabled: bool = False
    disabled_reason: str | None = None
    forced_down: bool = False
    has_system: bool = True
    is_failing: bool = False
    _began_s: float = -FIRST_REPORT_S
    _reported_s: float = 0.0

    @property
    def runs(self):
        """Whether its compute service runs, even if Nova thinks not."""
        return self.has_system and not self.is_failing

    @property
    def reported_s(self):
        """Time of the last report of its compute service."""
        age_s = self.clock() - self._began_s - FIRST_REPORT_S
        if not self.runs or age_s < 0:
            return self._reported_s
        return self.clock() - age_s % REPORT_S

    @property
    def is_up(self):
        """Whether Nova considers its compute service up."""
        return not self.forced_down and (
            self.clock() - self.reported_s <= DOWN_S)

    def change(self, **values):
        """Set has_system or is_failing, which may start or stop its service.
        """
        before, self._reported_s = self.runs, self.reported_s
        for name, value in values.items():
            setattr(self, name, value)
        if self.runs and not before:
            self._began_s = self.clock()


@dataclasses.dataclass
class Migration:
    uuid: str
    server: str
    source: str
    target: str = ''
    status: str = 'preparing'
    is_held: bool = False         # whether it has the old host's allocation
