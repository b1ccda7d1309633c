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
"""How victims end, and whether they come back.

Revision ID: 0002
Revises: 0001
"""

from alembic import op
import sqlalchemy as sa

revision = '0002'
down_revision = '0001'
branch_labels = None
depends_on = None


def upgrade():
    with op.batch_alter_table('victims') as batch:
        batch.add_column(sa.Column('launched_at', sa.DateTime))
        batch.add_column(sa.Column('action', sa.String(20), nullable=False,
                                   server_default='delete'))
        batch.add_column(sa.Column('notice_s', sa.Integer, nullable=False,
                                   server_default='0'))
        batch.add_column(sa.Column('deadline', sa.DateTime))
        batch.add_column(sa.Column('ended_at', sa.DateTime))
        batch.add_column(sa.Column('lifetime_s', sa.Integer))
        batch.add_column(sa.Column('restore', sa.Boolean, nullable=False,
                                   server_default=sa.false()))
        batch.add_column(sa.Column('tries', sa.Integer, nullable=False,
                                   server_default='0'))
        batch.add_column(sa.Column('next_try_at', sa.DateTime))
        batch.create_index('victims_status_idx', ['status'])
        batch.create_index('victims_project_id_idx', ['project_id'])
    op.create_index('decisions_created_at_idx', 'decisions',
                    ['created_at', 'uuid'])
    op.create_index('decisions_project_id_idx', 'decisions', ['project_id'])
