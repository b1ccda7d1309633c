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
"""Energy: power states, figures and readings of hosts, and what was saved.

Revision ID: 0005
Revises: 0004
"""

from alembic import op
import sqlalchemy as sa

revision = '0005'
down_revision = '0004'
branch_labels = None
depends_on = None

DOUBLE = sa.Float(precision=53)


def upgrade():
    op.create_table(
        'host_power',
        sa.Column('host', sa.String(255), primary_key=True),
        sa.Column('state', sa.String(20), nullable=False),
        sa.Column('since', sa.DateTime, nullable=False),
        sa.Column('reason', sa.Text, nullable=False),
        sa.Column('idle_intervals', sa.Integer, nullable=False),
        sa.Column('noted_at', sa.DateTime),
        sa.Column('boot_s', DOUBLE),
        sa.Index('host_power_state_idx', 'state'),
    )
    op.create_table(
        'power_figures',
        sa.Column('host', sa.String(255), primary_key=True),
        sa.Column('flops', DOUBLE),
        sa.Column('watts', DOUBLE),
        sa.Column('idle_watts', DOUBLE),
        sa.Column('measured_at', sa.DateTime, nullable=False),
        sa.Column('source', sa.String(255), nullable=False),
    )
    op.create_table(
        'power_readings',
        sa.Column('host', sa.String(255), primary_key=True),
        sa.Column('watts', DOUBLE, nullable=False),
        sa.Column('measured_at', sa.DateTime, nullable=False),
        sa.Column('source', sa.String(255), nullable=False),
    )
    op.create_table(
        'power_samples',
        sa.Column('sampled_at', sa.DateTime, primary_key=True),
        sa.Column('watts', DOUBLE),
        sa.Column('watts_saved', DOUBLE, nullable=False),
        sa.Column('hosts_on', sa.Integer, nullable=False),
        sa.Column('hosts_busy', sa.Integer, nullable=False),
        sa.Column('hosts_asleep', sa.Integer, nullable=False),
        sa.Column('cores_total', sa.Integer, nullable=False),
        sa.Column('cores_off', sa.Integer, nullable=False),
        sa.Column('cores_used', sa.Integer, nullable=False),
    )
    op.create_table(
        'wakes',
        sa.Column('id', sa.Integer, primary_key=True),
        sa.Column('server_uuid', sa.String(36), nullable=False),
        sa.Column('waited_at', sa.DateTime, nullable=False),
        sa.Column('cores', sa.Integer, nullable=False),
        sa.Column('boot_s', DOUBLE, nullable=False),
        sa.Column('duration_s', DOUBLE),
        sa.Index('wakes_waited_at_idx', 'waited_at'),
        sa.Index('wakes_server_uuid_idx', 'server_uuid'),
    )
