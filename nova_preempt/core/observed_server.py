# SPDX-License-Identifier: Apache-2.0

"""A server as read from Nova."""

from collections.abc import Mapping
import dataclasses
import datetime

from nova_preempt.core.model import Resources

#: Task states of a server that is being deleted.
DELETING = frozenset(("deleting", "soft-deleting"))


@dataclasses.dataclass(frozen=True, slots=True)
class ObservedServer:
    """A server as read from Nova; times are naive, in UTC.

    Fields that were not read have their defaults. ``ended_at``: when it was
    deleted, None while it exists. ``locked_by``: "owner", "admin", or '' if it
    is not locked. ``flavor``: the flavor's name. ``fault``: why it is in
    vm_state error. ``status``: its status in Nova's API. ``read_us``: when it
    was read, by the clock of the reader.
    """

    uuid: str
    vm_state: str
    task_state: str | None = None
    host: str | None = None
    node: str | None = None
    project_id: str = ""
    created_at: datetime.datetime | None = None
    updated_at: datetime.datetime | None = None
    launched_at: datetime.datetime | None = None
    ended_at: datetime.datetime | None = None
    deleted: bool = False
    locked_by: str = ""
    flavor: str = ""
    extra_specs: Mapping[str, str] = dataclasses.field(default_factory=dict)
    resources: Resources = dataclasses.field(default_factory=dict)
    from_volume: bool = False
    tags: tuple[str, ...] = ()
    fault: str = ""
    status: str = ""
    locked_reason: str | None = None
    read_us: int = dataclasses.field(default=0, compare=False)

    @property
    def is_deleting(self) -> bool:
        """Return whether it is being deleted, even if it can be restored."""
        return self.task_state in DELETING

    @property
    def is_deleted(self) -> bool:
        """Return whether it was deleted, or is being deleted.

        The flag of Nova's instance mapping is not enough: it remains set after
        a failed deletion.
        """
        return (
            self.deleted or self.vm_state in ("soft-delete", "deleted")
            or self.is_deleting)
