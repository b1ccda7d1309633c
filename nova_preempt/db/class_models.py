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
"""The tables of what is known of servers of a class."""

import sqlalchemy as sa

from nova_preempt.db import models


class ClassServer(models.Base):
    """How long a server of a class has run, waited, and been on its way.

    As of its last event, see core.classes.clocks.Mark; from then on the
    clock of its state counts.
    """

    __tablename__ = 'class_servers'
    __table_args__ = (
        sa.Index('class_servers_cell_uuid_idx', 'cell_uuid'),
    )

    uuid = sa.Column(models.UUID, primary_key=True)
    cell_uuid = sa.Column(models.UUID, nullable=False)
    project_id = sa.Column(sa.String(255), nullable=False)
    class_name = sa.Column(sa.String(64), nullable=False)
    flavor = sa.Column(sa.String(255), nullable=False)
    from_volume = sa.Column(sa.Boolean, nullable=False)
    # A core.classes.clocks.Kind.
    kind = sa.Column(sa.Integer, nullable=False)
    # In microseconds; the last three since the epoch.
    running_us = sa.Column(sa.BigInteger, nullable=False)
    waiting_us = sa.Column(sa.BigInteger, nullable=False)
    binding_us = sa.Column(sa.BigInteger, nullable=False)
    admitted_us = sa.Column(sa.BigInteger, nullable=False)
    since_us = sa.Column(sa.BigInteger, nullable=False)
    last_us = sa.Column(sa.BigInteger, nullable=False)
    gaps = sa.Column(sa.Integer, nullable=False)
    # When Nova had changed it last, and when that was read.
    changed_at = sa.Column(sa.DateTime)
    read_at = sa.Column(sa.DateTime, nullable=False)


class ClassOverhead(models.Base):
    """How long it takes to get servers of a kind back, on average."""

    __tablename__ = 'class_overheads'

    flavor = sa.Column(sa.String(255), primary_key=True)
    from_volume = sa.Column(sa.Boolean, primary_key=True)
    mean_us = sa.Column(sa.BigInteger, nullable=False)


class ClassCell(models.Base):
    """When the servers of a class in a cell were looked at last."""

    __tablename__ = 'class_cells'

    cell_uuid = sa.Column(models.UUID, primary_key=True)
    # By the clock of the database.
    looked_at = sa.Column(sa.DateTime, nullable=False)
