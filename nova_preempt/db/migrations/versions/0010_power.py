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
"""How often it was tried to boot a host, and who waits for it.

Revision ID: 0010
Revises: 0009
"""

from alembic import op
import sqlalchemy as sa

revision = '0010'
down_revision = '0009'
branch_labels = None
depends_on = None


def upgrade():
    op.add_column('host_power', sa.Column(
        'boots', sa.Integer, nullable=False, server_default='0'))
    op.create_table(
        'power_promises',
        sa.Column('request', sa.String(36), primary_key=True),
        sa.Column('host', sa.String(255), primary_key=True),
        sa.Column('servers', sa.Integer, nullable=False),
        sa.Column('room', sa.Integer, nullable=False),
        sa.Column('promised_at', sa.DateTime, nullable=False),
    )
    locks = sa.table('locks', sa.column('name', sa.String(20)))
    op.bulk_insert(locks, [{'name': 'promises'}])
