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
"""What schedulers have admitted and Nova does not show yet.

Revision ID: 0006
Revises: 0005
"""

from alembic import op
import sqlalchemy as sa

revision = '0006'
down_revision = '0005'
branch_labels = None
depends_on = None


def upgrade():
    op.create_table(
        'quota_claims',
        sa.Column('id', sa.BigInteger().with_variant(sa.Integer, 'sqlite'),
                  primary_key=True, autoincrement=True),
        sa.Column('project_id', sa.String(255), nullable=False),
        sa.Column('server_uuid', sa.String(36), nullable=False),
        sa.Column('preemptible', sa.Boolean, nullable=False),
        sa.Column('vcpus', sa.Integer, nullable=False),
        sa.Column('memory_mb', sa.Integer, nullable=False),
        sa.Column('expires_at', sa.DateTime, nullable=False),
        sa.Index('quota_claims_project_id_idx', 'project_id'),
        sa.Index('quota_claims_expires_at_idx', 'expires_at'),
        sqlite_autoincrement=True,
    )
    locks = sa.table('locks', sa.column('name', sa.String(20)))
    op.bulk_insert(locks, [{'name': 'quotas'}])
