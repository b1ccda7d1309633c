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
"""Tables of the requests that wait."""

import sqlalchemy as sa

from nova_preempt.db import models


class BacklogRequest(models.Base):
    """A request for servers that starts when there is room."""

    __tablename__ = 'backlog_requests'
    __table_args__ = (
        # Of the closed ones few have a trust still.
        sa.Index('backlog_requests_state_idx', 'state', 'trust_id'),
        sa.Index('backlog_requests_project_id_idx', 'project_id', 'state'),
        sa.Index('backlog_requests_created_at_idx', 'created_at', 'serial',
                 'uuid'),
        sa.Index('backlog_requests_trust_id_idx', 'trust_id'),
    )

    uuid = sa.Column(models.UUID, primary_key=True)
    project_id = sa.Column(sa.String(255), nullable=False)
    user_id = sa.Column(sa.String(255), nullable=False)
    # In whose name it is started; '' once the trust was deleted.
    trust_id = sa.Column(sa.String(64), nullable=False, default='')
    # When it expires; NULL: so late that it does not matter.
    trust_until = sa.Column(sa.DateTime)
    name = sa.Column(sa.String(255), nullable=False, default='')
    # JSON: the body of POST /servers, with stars for its secrets.
    body = sa.Column(models.JSON_TEXT, nullable=False)
    # These, encrypted; NULL where it has none, or is closed.
    sealed = sa.Column(models.JSON_TEXT)
    compute_version = sa.Column(sa.String(10), nullable=False)
    count = sa.Column(sa.Integer, nullable=False)
    least_count = sa.Column(sa.Integer, nullable=False)
    # JSON: [{flavor_id, name, resources, preemptible}].
    alternatives = sa.Column(models.JSON_TEXT, nullable=False)
    created_at = sa.Column(sa.DateTime, nullable=False)
    updated_at = sa.Column(sa.DateTime, nullable=False)
    # The id of its first change: those of one second are told apart by it.
    serial = sa.Column(sa.BigInteger, nullable=False, default=0)
    class_name = sa.Column(sa.String(64), nullable=False, default='')
    # JSON: {time, reputation, cores, redundancy}; NULL where it has none.
    priorities = sa.Column(sa.Text)
    ladder = sa.Column(sa.String(64), nullable=False, default='')
    apart = sa.Column(sa.Boolean, nullable=False, default=False)
    not_before = sa.Column(sa.DateTime)
    not_after = sa.Column(sa.DateTime)
    longest_wait_s = sa.Column(sa.BigInteger)
    comes_back = sa.Column(sa.Boolean, nullable=False, default=False)
    back_until = sa.Column(sa.DateTime)
    most_returns = sa.Column(sa.Integer)
    state = sa.Column(sa.String(20), nullable=False)
    reason = sa.Column(sa.Text, nullable=False, default='')
    # JSON: what the last pass has found.
    waits_for = sa.Column(models.JSON_TEXT, nullable=False, default='{}')
    position = sa.Column(sa.Integer)
    estimate_s = sa.Column(sa.BigInteger)
    ends_servers = sa.Column(sa.Boolean, nullable=False, default=False)
    waits_since = sa.Column(sa.DateTime)
    returns = sa.Column(sa.Integer, nullable=False, default=0)
    tries = sa.Column(sa.Integer, nullable=False, default=0)
    next_try_at = sa.Column(sa.DateTime)


class BacklogBegun(models.Base):
    """A request for which a trust is made that is not written down yet."""

    __tablename__ = 'backlog_begun'

    uuid = sa.Column(models.UUID, primary_key=True)
    project_id = sa.Column(sa.String(255), nullable=False)
    user_id = sa.Column(sa.String(255), nullable=False)
    begun_at = sa.Column(sa.DateTime, nullable=False)
    # By this the trust is known.
    expires_at = sa.Column(sa.DateTime, nullable=False)
    # Whether the engine looks for its trust, to delete it.
    given_up = sa.Column(sa.Boolean, nullable=False, default=False)


class BacklogBoot(models.Base):
    """One POST /servers for a request, written before Nova is asked."""

    __tablename__ = 'backlog_boots'
    __table_args__ = (
        sa.Index('backlog_boots_asked_at_idx', 'asked_at'),
    )

    request_uuid = sa.Column(
        models.UUID, sa.ForeignKey('backlog_requests.uuid',
                                   ondelete='CASCADE'), primary_key=True)
    number = sa.Column(sa.Integer, primary_key=True, autoincrement=False)
    tag = sa.Column(sa.String(60), nullable=False)
    flavor_id = sa.Column(sa.String(255), nullable=False)
    count = sa.Column(sa.Integer, nullable=False)
    asked_at = sa.Column(sa.DateTime, nullable=False)
    state = sa.Column(sa.String(20), nullable=False)


class BacklogServer(models.Base):
    """A server that was booted for a request."""

    __tablename__ = 'backlog_servers'
    __table_args__ = (
        sa.Index('backlog_servers_request_uuid_idx', 'request_uuid'),
    )

    uuid = sa.Column(models.UUID, primary_key=True)
    request_uuid = sa.Column(
        models.UUID, sa.ForeignKey('backlog_requests.uuid',
                                   ondelete='CASCADE'), nullable=False)
    boot = sa.Column(sa.Integer, nullable=False)
    state = sa.Column(sa.String(20), nullable=False)
    since = sa.Column(sa.DateTime, nullable=False)


class BacklogChange(models.Base):
    """What has become of a request when, and why."""

    __tablename__ = 'backlog_changes'
    __table_args__ = (
        sa.Index('backlog_changes_request_uuid_idx', 'request_uuid'),
        sa.Index('backlog_changes_at_idx', 'at', 'state'),
    )

    id = sa.Column(sa.BigInteger().with_variant(sa.Integer, 'sqlite'),
                   primary_key=True, autoincrement=True)
    request_uuid = sa.Column(
        models.UUID, sa.ForeignKey('backlog_requests.uuid',
                                   ondelete='CASCADE'), nullable=False)
    at = sa.Column(sa.DateTime, nullable=False)
    state = sa.Column(sa.String(20), nullable=False)
    reason = sa.Column(sa.Text, nullable=False, default='')


class BacklogChosenHosts(models.Base):
    """Where the servers of a boot are to start, until they are on their way.

    Nothing refers to it and it soon goes, so it has no foreign key.
    """

    __tablename__ = 'backlog_chosen_hosts'

    # SHA-256 of the secret, in hexadecimal digits.
    digest = sa.Column(sa.String(64), primary_key=True)
    request_uuid = sa.Column(models.UUID, nullable=False)
    number = sa.Column(sa.Integer, nullable=False)
    project_id = sa.Column(sa.String(255), nullable=False)
    user_id = sa.Column(sa.String(255), nullable=False)
    flavor_id = sa.Column(sa.String(255), nullable=False)
    count = sa.Column(sa.Integer, nullable=False)
    # JSON: {host: how many}.
    hosts = sa.Column(models.JSON_TEXT, nullable=False)
    expires_at = sa.Column(sa.DateTime, nullable=False)
    used = sa.Column(sa.Boolean, nullable=False, default=False)


class BacklogTurn(models.Base):
    """The last time that hosts were kept for a project, see core."""

    __tablename__ = 'backlog_turns'

    project_id = sa.Column(sa.String(255), primary_key=True)
    since = sa.Column(sa.DateTime, nullable=False)
    nearer_at = sa.Column(sa.DateTime, nullable=False)
    # JSON: [host], and {uuid of a request: number}.
    hosts = sa.Column(models.JSON_TEXT, nullable=False)
    far = sa.Column(models.JSON_TEXT, nullable=False)
    place = sa.Column(sa.Integer, nullable=False, default=0)
