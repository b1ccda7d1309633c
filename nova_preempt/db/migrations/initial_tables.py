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
"""The tables as the first migration makes them."""

import sqlalchemy as sa
from sqlalchemy.dialects import mysql

METADATA = sa.MetaData()
UUID = sa.String(36)
BIG_ID = sa.BigInteger().with_variant(sa.Integer, 'sqlite')
DOUBLE = sa.Float(precision=53)
JSON = sa.Text().with_variant(mysql.MEDIUMTEXT(), 'mysql', 'mariadb')

sa.Table(
    'backlog_begun', METADATA,
    sa.Column('uuid', UUID, primary_key=True),
    sa.Column('project_id', sa.String(255), nullable=False),
    sa.Column('user_id', sa.String(255), nullable=False),
    sa.Column('begun_at', sa.DateTime, nullable=False),
    sa.Column('expires_at', sa.DateTime, nullable=False),
    sa.Column('given_up', sa.Boolean, nullable=False))
sa.Table(
    'backlog_chosen_hosts', METADATA,
    sa.Column('digest', sa.String(64), primary_key=True),
    sa.Column('request_uuid', UUID, nullable=False),
    sa.Column('number', sa.Integer, nullable=False),
    sa.Column('project_id', sa.String(255), nullable=False),
    sa.Column('user_id', sa.String(255), nullable=False),
    sa.Column('flavor_id', sa.String(255), nullable=False),
    sa.Column('count', sa.Integer, nullable=False),
    sa.Column('hosts', JSON, nullable=False),
    sa.Column('expires_at', sa.DateTime, nullable=False),
    sa.Column('used', sa.Boolean, nullable=False))
sa.Table(
    'backlog_turns', METADATA,
    sa.Column('project_id', sa.String(255), primary_key=True),
    sa.Column('since', sa.DateTime, nullable=False),
    sa.Column('nearer_at', sa.DateTime, nullable=False),
    sa.Column('hosts', JSON, nullable=False),
    sa.Column('far', JSON, nullable=False),
    sa.Column('place', sa.Integer, nullable=False))
sa.Table(
    'backlog_requests', METADATA,
    sa.Column('uuid', UUID, primary_key=True),
    sa.Column('project_id', sa.String(255), nullable=False),
    sa.Column('user_id', sa.String(255), nullable=False),
    sa.Column('trust_id', sa.String(64), nullable=False),
    sa.Column('trust_until', sa.DateTime),
    sa.Column('name', sa.String(255), nullable=False),
    sa.Column('body', JSON, nullable=False),
    sa.Column('sealed', JSON),
    sa.Column('compute_version', sa.String(10), nullable=False),
    sa.Column('count', sa.Integer, nullable=False),
    sa.Column('least_count', sa.Integer, nullable=False),
    sa.Column('alternatives', JSON, nullable=False),
    sa.Column('created_at', sa.DateTime, nullable=False),
    sa.Column('updated_at', sa.DateTime, nullable=False),
    sa.Column('serial', sa.BigInteger, nullable=False),
    sa.Column('class_name', sa.String(64), nullable=False),
    sa.Column('priorities', sa.Text),
    sa.Column('ladder', sa.String(64), nullable=False),
    sa.Column('apart', sa.Boolean, nullable=False),
    sa.Column('not_before', sa.DateTime),
    sa.Column('not_after', sa.DateTime),
    sa.Column('longest_wait_s', sa.BigInteger),
    sa.Column('comes_back', sa.Boolean, nullable=False),
    sa.Column('back_until', sa.DateTime),
    sa.Column('most_returns', sa.Integer),
    sa.Column('state', sa.String(20), nullable=False),
    sa.Column('reason', sa.Text, nullable=False),
    sa.Column('waits_for', JSON, nullable=False),
    sa.Column('position', sa.Integer),
    sa.Column('estimate_s', sa.BigInteger),
    sa.Column('ends_servers', sa.Boolean, nullable=False),
    sa.Column('waits_since', sa.DateTime),
    sa.Column('returns', sa.Integer, nullable=False),
    sa.Column('tries', sa.Integer, nullable=False),
    sa.Column('next_try_at', sa.DateTime),
    sa.Index('backlog_requests_created_at_idx', 'created_at', 'serial',
             'uuid'),
    sa.Index('backlog_requests_project_id_idx', 'project_id', 'state'),
    sa.Index('backlog_requests_state_idx', 'state', 'trust_id'),
    sa.Index('backlog_requests_trust_id_idx', 'trust_id'))
sa.Table(
    'calendar_changes', METADATA,
    sa.Column('generation', sa.BigInteger, primary_key=True,
              autoincrement=False),
    sa.Column('stamp', UUID, nullable=False),
    sa.Column('reservations', JSON, nullable=False),
    sa.Column('hosts', JSON, nullable=False))
sa.Table(
    'class_cells', METADATA,
    sa.Column('cell_uuid', UUID, primary_key=True),
    sa.Column('looked_at', sa.DateTime, nullable=False))
sa.Table(
    'class_overheads', METADATA,
    sa.Column('flavor', sa.String(255), primary_key=True),
    sa.Column('from_volume', sa.Boolean, primary_key=True),
    sa.Column('mean_us', sa.BigInteger, nullable=False))
sa.Table(
    'class_servers', METADATA,
    sa.Column('uuid', UUID, primary_key=True),
    sa.Column('cell_uuid', UUID, nullable=False),
    sa.Column('project_id', sa.String(255), nullable=False),
    sa.Column('class_name', sa.String(64), nullable=False),
    sa.Column('flavor', sa.String(255), nullable=False),
    sa.Column('from_volume', sa.Boolean, nullable=False),
    sa.Column('kind', sa.Integer, nullable=False),
    sa.Column('running_us', sa.BigInteger, nullable=False),
    sa.Column('waiting_us', sa.BigInteger, nullable=False),
    sa.Column('binding_us', sa.BigInteger, nullable=False),
    sa.Column('admitted_us', sa.BigInteger, nullable=False),
    sa.Column('since_us', sa.BigInteger, nullable=False),
    sa.Column('last_us', sa.BigInteger, nullable=False),
    sa.Column('gaps', sa.Integer, nullable=False),
    sa.Column('changed_at', sa.DateTime),
    sa.Column('read_at', sa.DateTime, nullable=False),
    sa.Index('class_servers_cell_uuid_idx', 'cell_uuid'))
sa.Table(
    'counters', METADATA,
    sa.Column('name', sa.String(20), primary_key=True),
    sa.Column('value', sa.BigInteger, nullable=False))
sa.Table(
    'decisions', METADATA,
    sa.Column('uuid', UUID, primary_key=True),
    sa.Column('created_at', sa.DateTime, nullable=False),
    sa.Column('updated_at', sa.DateTime, nullable=False),
    sa.Column('owner', sa.String(300), nullable=False),
    sa.Column('status', sa.String(20), nullable=False),
    sa.Column('reason', sa.Text, nullable=False),
    sa.Column('request_id', sa.String(255), nullable=False),
    sa.Column('operation', sa.String(20), nullable=False),
    sa.Column('server_uuid', UUID, nullable=False),
    sa.Column('project_id', sa.String(255), nullable=False),
    sa.Column('user_id', sa.String(255), nullable=False),
    sa.Column('host', sa.String(255), nullable=False),
    sa.Column('provider_uuid', UUID, nullable=False),
    sa.Column('cost_us', sa.BigInteger, nullable=False),
    sa.Column('record', JSON, nullable=False),
    sa.Column('outcome', sa.String(20)),
    sa.Index('decisions_created_at_idx', 'created_at', 'uuid'),
    sa.Index('decisions_outcome_idx', 'outcome'),
    sa.Index('decisions_project_id_idx', 'project_id'),
    sa.Index('decisions_request_id_idx', 'request_id'),
    sa.Index('decisions_server_uuid_idx', 'server_uuid'),
    sa.Index('decisions_status_idx', 'status'))
sa.Table(
    'hidden_properties', METADATA,
    sa.Column('name', sa.String(255), primary_key=True))
sa.Table(
    'host_power', METADATA,
    sa.Column('host', sa.String(255), primary_key=True),
    sa.Column('state', sa.String(20), nullable=False),
    sa.Column('since', sa.DateTime, nullable=False),
    sa.Column('reason', sa.Text, nullable=False),
    sa.Column('idle_intervals', sa.Integer, nullable=False),
    sa.Column('noted_at', sa.DateTime),
    sa.Column('boot_s', DOUBLE),
    sa.Column('boots', sa.Integer, nullable=False),
    sa.Index('host_power_state_idx', 'state'))
sa.Table(
    'locks', METADATA,
    sa.Column('name', sa.String(20), primary_key=True))
sa.Table(
    'owners', METADATA,
    sa.Column('name', sa.String(300), primary_key=True),
    sa.Column('started_at', sa.DateTime, nullable=False),
    sa.Column('expires_at', sa.DateTime, nullable=False))
sa.Table(
    'pauses', METADATA,
    sa.Column('what', sa.String(20), primary_key=True),
    sa.Column('since', sa.DateTime, nullable=False),
    sa.Column('reason', sa.Text, nullable=False),
    sa.Column('user_id', sa.String(255), nullable=False),
    sa.Column('project_id', sa.String(255), nullable=False),
    sa.Column('request_id', sa.String(255), nullable=False))
sa.Table(
    'power_figures', METADATA,
    sa.Column('host', sa.String(255), primary_key=True),
    sa.Column('flops', DOUBLE),
    sa.Column('watts', DOUBLE),
    sa.Column('idle_watts', DOUBLE),
    sa.Column('measured_at', sa.DateTime, nullable=False),
    sa.Column('source', sa.String(255), nullable=False))
sa.Table(
    'power_promises', METADATA,
    sa.Column('request', UUID, primary_key=True),
    sa.Column('host', sa.String(255), primary_key=True),
    sa.Column('servers', sa.Integer, nullable=False),
    sa.Column('room', sa.Integer, nullable=False),
    sa.Column('promised_at', sa.DateTime, nullable=False))
sa.Table(
    'power_readings', METADATA,
    sa.Column('host', sa.String(255), primary_key=True),
    sa.Column('watts', DOUBLE, nullable=False),
    sa.Column('measured_at', sa.DateTime, nullable=False),
    sa.Column('source', sa.String(255), nullable=False))
sa.Table(
    'power_samples', METADATA,
    sa.Column('sampled_at', sa.DateTime, primary_key=True),
    sa.Column('watts', DOUBLE),
    sa.Column('watts_saved', DOUBLE, nullable=False),
    sa.Column('hosts_on', sa.Integer, nullable=False),
    sa.Column('hosts_busy', sa.Integer, nullable=False),
    sa.Column('hosts_asleep', sa.Integer, nullable=False),
    sa.Column('cores_total', sa.Integer, nullable=False),
    sa.Column('cores_off', sa.Integer, nullable=False),
    sa.Column('cores_used', sa.Integer, nullable=False))
sa.Table(
    'preemptible_servers', METADATA,
    sa.Column('uuid', UUID, primary_key=True),
    sa.Column('created_at', sa.DateTime, nullable=False))
sa.Table(
    'quota_claims', METADATA,
    sa.Column('id', BIG_ID, primary_key=True, autoincrement=True),
    sa.Column('project_id', sa.String(255), nullable=False),
    sa.Column('server_uuid', UUID, nullable=False),
    sa.Column('preemptible', sa.Boolean, nullable=False),
    sa.Column('vcpus', sa.Integer, nullable=False),
    sa.Column('memory_mb', sa.Integer, nullable=False),
    sa.Column('expires_at', sa.DateTime, nullable=False),
    sa.Index('quota_claims_expires_at_idx', 'expires_at'),
    sa.Index('quota_claims_project_id_idx', 'project_id'),
    sqlite_autoincrement=True)
sa.Table(
    'reservable_hosts', METADATA,
    sa.Column('host', sa.String(255), primary_key=True),
    sa.Column('reservable', sa.Boolean),
    sa.Column('extra', JSON, nullable=False))
sa.Table(
    'reservation_limits', METADATA,
    sa.Column('project_id', sa.String(255), primary_key=True),
    sa.Column('limits', sa.Text, nullable=False))
sa.Table(
    'reservation_moves', METADATA,
    sa.Column('server_uuid', UUID, primary_key=True),
    sa.Column('node', sa.String(255), nullable=False),
    sa.Column('asked_at', sa.DateTime, nullable=False),
    sa.Column('cold', sa.Boolean, nullable=False))
sa.Table(
    'reservations', METADATA,
    sa.Column('uuid', UUID, primary_key=True),
    sa.Column('name', sa.String(255), nullable=False),
    sa.Column('created_at', sa.DateTime, nullable=False),
    sa.Column('updated_at', sa.DateTime, nullable=False),
    sa.Column('project_id', sa.String(255), nullable=False),
    sa.Column('user_id', sa.String(255), nullable=False),
    sa.Column('status', sa.String(20), nullable=False),
    sa.Column('reason', sa.Text, nullable=False),
    sa.Column('public_reason', sa.Text),
    sa.Column('host_properties', JSON, nullable=False),
    sa.Column('quantity', sa.Integer, nullable=False),
    sa.Column('duration_s', sa.BigInteger, nullable=False),
    sa.Column('window_start', sa.DateTime, nullable=False),
    sa.Column('window_end', sa.DateTime),
    sa.Column('start_at', sa.DateTime, nullable=False),
    sa.Column('end_at', sa.DateTime, nullable=False),
    sa.Column('end_action', sa.String(20), nullable=False),
    sa.Column('before_end_s', sa.Integer, nullable=False),
    sa.Column('ready_at', sa.DateTime),
    sa.Column('noticed_at', sa.DateTime),
    sa.Column('released_at', sa.DateTime),
    sa.Index('reservations_created_at_idx', 'created_at', 'uuid'),
    sa.Index('reservations_project_id_idx', 'project_id'),
    sa.Index('reservations_status_idx', 'status'))
sa.Table(
    'wakes', METADATA,
    sa.Column('id', sa.Integer, primary_key=True),
    sa.Column('server_uuid', UUID, nullable=False),
    sa.Column('waited_at', sa.DateTime, nullable=False),
    sa.Column('cores', sa.Integer, nullable=False),
    sa.Column('boot_s', DOUBLE, nullable=False),
    sa.Column('duration_s', DOUBLE),
    sa.Index('wakes_server_uuid_idx', 'server_uuid'),
    sa.Index('wakes_waited_at_idx', 'waited_at'))
sa.Table(
    'backlog_boots', METADATA,
    sa.Column('request_uuid', UUID, sa.ForeignKey('backlog_requests.uuid',
              ondelete='CASCADE'), primary_key=True),
    sa.Column('number', sa.Integer, primary_key=True, autoincrement=False),
    sa.Column('tag', sa.String(60), nullable=False),
    sa.Column('flavor_id', sa.String(255), nullable=False),
    sa.Column('count', sa.Integer, nullable=False),
    sa.Column('asked_at', sa.DateTime, nullable=False),
    sa.Column('state', sa.String(20), nullable=False),
    sa.Index('backlog_boots_asked_at_idx', 'asked_at'))
sa.Table(
    'backlog_changes', METADATA,
    sa.Column('id', BIG_ID, primary_key=True, autoincrement=True),
    sa.Column('request_uuid', UUID, sa.ForeignKey('backlog_requests.uuid',
              ondelete='CASCADE'), nullable=False),
    sa.Column('at', sa.DateTime, nullable=False),
    sa.Column('state', sa.String(20), nullable=False),
    sa.Column('reason', sa.Text, nullable=False),
    sa.Index('backlog_changes_at_idx', 'at', 'state'),
    sa.Index('backlog_changes_request_uuid_idx', 'request_uuid'))
sa.Table(
    'backlog_servers', METADATA,
    sa.Column('uuid', UUID, primary_key=True),
    sa.Column('request_uuid', UUID, sa.ForeignKey('backlog_requests.uuid',
              ondelete='CASCADE'), nullable=False),
    sa.Column('boot', sa.Integer, nullable=False),
    sa.Column('state', sa.String(20), nullable=False),
    sa.Column('since', sa.DateTime, nullable=False),
    sa.Index('backlog_servers_request_uuid_idx', 'request_uuid'))
sa.Table(
    'reservation_hosts', METADATA,
    sa.Column('reservation_uuid', UUID, sa.ForeignKey('reservations.uuid',
              ondelete='CASCADE'), primary_key=True),
    sa.Column('host', sa.String(255), primary_key=True),
    sa.Column('start_at', sa.DateTime, nullable=False),
    sa.Column('end_at', sa.DateTime, nullable=False),
    sa.Column('status', sa.String(20), nullable=False),
    sa.Column('reason', sa.Text, nullable=False),
    sa.Column('public_reason', sa.Text),
    sa.Index('reservation_hosts_host_idx', 'host', 'start_at'))
sa.Table(
    'victims', METADATA,
    sa.Column('decision_uuid', UUID, sa.ForeignKey('decisions.uuid',
              ondelete='CASCADE'), primary_key=True),
    sa.Column('server_uuid', UUID, primary_key=True),
    sa.Column('status', sa.String(20), nullable=False),
    sa.Column('project_id', sa.String(255), nullable=False),
    sa.Column('user_id', sa.String(255), nullable=False),
    sa.Column('flavor', sa.String(255), nullable=False),
    sa.Column('cost_us', sa.BigInteger, nullable=False),
    sa.Column('allocations', JSON, nullable=False),
    sa.Column('consumer_project_id', sa.String(255), nullable=False),
    sa.Column('consumer_user_id', sa.String(255), nullable=False),
    sa.Column('launched_at', sa.DateTime),
    sa.Column('action', sa.String(20), nullable=False),
    sa.Column('notice_s', sa.Integer, nullable=False),
    sa.Column('deadline', sa.DateTime),
    sa.Column('ended_at', sa.DateTime),
    sa.Column('lifetime_s', sa.Integer),
    sa.Column('restore', sa.Boolean, nullable=False),
    sa.Column('tries', sa.Integer, nullable=False),
    sa.Column('next_try_at', sa.DateTime),
    sa.Column('last_resort', sa.String(20), nullable=False),
    sa.Column('asked', sa.String(20), nullable=False),
    sa.Index('victims_ended_at_idx', 'ended_at'),
    sa.Index('victims_project_id_idx', 'project_id'),
    sa.Index('victims_server_uuid_idx', 'server_uuid'),
    sa.Index('victims_status_idx', 'status'))
