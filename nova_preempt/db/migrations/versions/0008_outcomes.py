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

"""What a victim was asked for, and what became of the server.

Revision ID: 0008
Revises: 0007
"""

from alembic import op
import sqlalchemy as sa

revision = '0008'
down_revision = '0007'
branch_labels = None
depends_on = None


def upgrade():
    with op.batch_alter_table('victims') as batch:
        batch.add_column(sa.Column('last_resort', sa.String(20),
                                   nullable=False, server_default=''))
        batch.add_column(sa.Column('asked', sa.String(20), nullable=False,
                                   server_default=''))
    # NULL: nobody has looked yet. What is there already is not looked at.
    with op.batch_alter_table('decisions') as batch:
        batch.add_column(sa.Column('outcome', sa.String(20)))
    decisions = sa.table('decisions', sa.column('outcome', sa.String(20)))
    op.execute(decisions.update().values(outcome=''))
    op.create_index('decisions_outcome_idx', 'decisions', ['outcome'])
