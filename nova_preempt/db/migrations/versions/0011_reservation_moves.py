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
"""What owners are told of reservations, and moves away from their hosts.

Revision ID: 0011
Revises: 0010
"""

from alembic import op
import sqlalchemy as sa

revision = '0011'
down_revision = '0010'
branch_labels = None
depends_on = None

_TABLES = ('reservations', 'reservation_hosts')


def upgrade():
    for table in _TABLES:
        # What was written before names servers of others: no default of that.
        op.add_column(table, sa.Column('public_reason', sa.Text))
    op.create_table(
        'reservation_moves',
        sa.Column('server_uuid', sa.String(36), primary_key=True),
        sa.Column('node', sa.String(255), nullable=False),
        sa.Column('asked_at', sa.DateTime, nullable=False),
        sa.Column('cold', sa.Boolean, nullable=False),
    )
