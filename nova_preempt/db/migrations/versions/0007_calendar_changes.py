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
"""What has changed in the calendar, so that only that is read again.

Revision ID: 0007
Revises: 0006
"""

from alembic import op
from oslo_utils import uuidutils
import sqlalchemy as sa
from sqlalchemy.dialects import mysql

revision = '0007'
down_revision = '0006'
branch_labels = None
depends_on = None

JSON_TEXT = sa.Text().with_variant(mysql.MEDIUMTEXT(), 'mysql', 'mariadb')


def upgrade():
    log = op.create_table(
        'calendar_changes',
        sa.Column('generation', sa.BigInteger, primary_key=True,
                  autoincrement=False),
        sa.Column('stamp', sa.String(36), nullable=False),
        sa.Column('reservations', JSON_TEXT, nullable=False),
        sa.Column('hosts', JSON_TEXT, nullable=False),
    )
    counters = sa.table('counters', sa.column('name', sa.String(20)),
                        sa.column('value', sa.BigInteger))
    # Where the log begins: what is read now can be gone on from.
    op.execute(sa.insert(log).from_select(
        ['generation', 'stamp', 'reservations', 'hosts'],
        sa.select(counters.c.value,
                  sa.literal(uuidutils.generate_uuid(dashed=False)),
                  sa.literal('[]'), sa.literal('[]'))
        .where(counters.c.name == 'calendar')))
