# SPDX-License-Identifier: Apache-2.0
"""Tables of waiting requests; their columns are fields of core classes."""

import functools
import json

import sqlalchemy as sa

from nova_preempt.core.backlog import backlog_model
from nova_preempt.core.backlog import boot_host_choice
from nova_preempt.core.backlog import kept_host_turns
from nova_preempt.db import models
from nova_preempt.db import row_schemas


class _Alternatives(models.Json):
    """Alternative flavors, without hosts, which each pass computes."""

    cache_ok = True

    def process_bind_param(self, value, dialect):
        return json.dumps([row_schemas.values(item, 'hosts', 'own_hosts')
                           for item in value])

    def process_result_value(self, value, dialect):
        return _alternatives(value)


@functools.lru_cache(maxsize=1024)
def _alternatives(text):
    """Parse alternatives; requests with equal ones share the objects."""
    return tuple(
        backlog_model.Alternative(**{
            **item, **{name: tuple(item.get(name, ()))
                       for name in ('required', 'forbidden')}})
        for item in json.loads(text))


class _Priorities(models.Json):
    """SlaPriorities, or None."""

    cache_ok = True

    def load_dialect_impl(self, dialect):
        return dialect.type_descriptor(sa.Text())

    def process_bind_param(self, value, dialect):
        return value and json.dumps(row_schemas.values(value))

    def process_result_value(self, value, dialect):
        return value and backlog_model.SlaPriorities(**json.loads(value))


class _Set(models.Json):
    """A frozenset of texts."""

    cache_ok = True

    def process_bind_param(self, value, dialect):
        return json.dumps(sorted(value))

    def process_result_value(self, value, dialect):
        return frozenset(json.loads(value))


def _of_request(**options):
    """Return a column that refers to a request, deleted with the request."""
    return sa.Column('request_uuid', models.UUID, sa.ForeignKey(
        'backlog_requests.uuid', ondelete='CASCADE'), nullable=False,
        **options)


BacklogRequest = models.mapped(
    'backlog_requests', backlog_model.Request, ['uuid'],
    # Encrypted secrets of the body; NULL without secrets or once closed.
    sa.Column('sealed', models.JSON_TEXT),
    indexes={
        # Few closed requests still have a trust.
        'backlog_requests_state_idx': ['state', 'trust_id'],
        'backlog_requests_project_id_idx': ['project_id', 'state'],
        'backlog_requests_created_at_idx': ['created_at', 'serial', 'uuid'],
        'backlog_requests_trust_id_idx': ['trust_id']},
    without=['boots', 'servers'],
    uuid=models.UUID, trust_id=sa.String(64), compute_version=sa.String(10),
    alternatives=_Alternatives(), serial=sa.BigInteger(),
    class_name=sa.String(64), priorities=_Priorities(), ladder=sa.String(64),
    longest_wait_s=sa.BigInteger(), state=sa.String(20), reason=sa.Text(),
    estimate_s=sa.BigInteger())

BacklogBegun = models.mapped(
    'backlog_begun', row_schemas.PendingSubmission, ['uuid'],
    # Whether the engine searches for the trust to delete it.
    sa.Column('given_up', sa.Boolean, nullable=False, default=False))

BacklogBoot = models.mapped(
    'backlog_boots', backlog_model.SentBoot, ['number'],
    _of_request(primary_key=True),
    indexes={'backlog_boots_asked_at_idx': ['asked_at']},
    tag=sa.String(60), state=sa.String(20))

BacklogServer = models.mapped(
    'backlog_servers', backlog_model.OwnServer, ['uuid'], _of_request(),
    indexes={'backlog_servers_request_uuid_idx': ['request_uuid']},
    uuid=models.UUID, state=sa.String(20))

BacklogChange = models.mapped(
    'backlog_changes', backlog_model.StateChange, [],
    sa.Column('id', models.BIG_ID, primary_key=True, autoincrement=True),
    _of_request(),
    indexes={'backlog_changes_request_uuid_idx': ['request_uuid'],
             'backlog_changes_at_idx': ['at', 'state']},
    state=sa.String(20), reason=sa.Text())

# No foreign key: rows are short-lived, and nothing refers to them.
BacklogChosenHosts = models.mapped(
    'backlog_chosen_hosts', boot_host_choice.ChosenHosts, [],
    # SHA-256 of the secret, in hexadecimal digits.
    sa.Column('digest', sa.String(64), primary_key=True),
    request_uuid=models.UUID)

BacklogTurn = models.mapped(
    'backlog_turns', kept_host_turns.ProjectTurn, [],
    sa.Column('project_id', sa.String(255), primary_key=True), hosts=_Set())
