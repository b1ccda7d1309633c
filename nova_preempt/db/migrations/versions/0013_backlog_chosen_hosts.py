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
"""Hosts that were chosen for requests that waited.

Revision ID: 0013
Revises: 0012
"""

from alembic import op
import sqlalchemy as sa
from sqlalchemy.dialects import mysql

revision = '0013'
down_revision = '0012'
branch_labels = None
depends_on = None


def upgrade():
    op.create_table(
        'backlog_chosen_hosts',
        sa.Column('digest', sa.String(64), primary_key=True),
        sa.Column('request_uuid', sa.String(36), nullable=False),
        sa.Column('number', sa.Integer, nullable=False),
        sa.Column('project_id', sa.String(255), nullable=False),
        sa.Column('user_id', sa.String(255), nullable=False),
        sa.Column('flavor_id', sa.String(255), nullable=False),
        sa.Column('count', sa.Integer, nullable=False),
        sa.Column('hosts', sa.Text().with_variant(
            mysql.MEDIUMTEXT(), 'mysql', 'mariadb'), nullable=False),
        sa.Column('expires_at', sa.DateTime, nullable=False),
        sa.Column('used', sa.Boolean, nullable=False),
    )
