# SPDX-License-Identifier: Apache-2.0
"""Tables have the columns, types and defaults of their row schemas."""

import dataclasses
import datetime
import types
import typing
import unittest

import sqlalchemy as sa

from nova_preempt.core.reservation import reservation_model
from nova_preempt.db import models
from nova_preempt.db import row_schemas

NOW = datetime.datetime(2026, 11, 20, 12)


class TestModels(unittest.TestCase):

    def setUp(self):
        super().setUp()
        self.engine = sa.create_engine('sqlite://')
        self.addCleanup(self.engine.dispose)
        models.Base.metadata.create_all(self.engine)

    def test_defaults_agree_with_the_row_schema(self):
        with self.engine.begin() as connection:
            connection.execute(sa.insert(models.Reservation).values(
                uuid='r', project_id='p', quantity=1, duration_s=60,
                window_start=NOW, end_action='shelve', before_end_s=0,
                start_at=NOW, end_at=NOW, created_at=NOW, updated_at=NOW))
            row = connection.execute(sa.select(
                *models.Reservation.__table__.c)).one()
        self.assertEqual(
            reservation_model.Reservation('r', 'p', 1, 60, NOW, 'shelve', 0,
                                          start_at=NOW,
                                          end_at=NOW, created_at=NOW,
                                          updated_at=NOW),
            row_schemas.load(reservation_model.Reservation, row, hosts=()))

    def test_json_is_read_as_it_was_written(self):
        settings = row_schemas.HostSettings('h', None, {'b': [1], 'a': None})
        with self.engine.begin() as connection:
            connection.execute(sa.insert(models.ReservableHost).values(
                **row_schemas.values(settings)))
            self.assertEqual(
                [(settings.host, None, settings.extra)],
                connection.execute(sa.select(*row_schemas.columns(
                    models.ReservableHost, row_schemas.HostSettings))).all())
            # As text, so that every database has it.
            self.assertEqual('{"a": null, "b": [1]}', connection.execute(
                sa.text('SELECT extra FROM reservable_hosts')).scalar())

    def test_columns_may_be_null_where_a_field_may_be_none(self):
        for row, table, required in (
                (row_schemas.Decision, models.Decision,
                 {'created_at', 'updated_at'}),
                (row_schemas.HostPower, models.HostPower, set()),
                (row_schemas.EnergySample, models.PowerSample, set())):
            optional = {field.name for field in dataclasses.fields(row)
                        if types.NoneType in typing.get_args(field.type)}
            self.assertEqual(optional - required, {
                column.name for column in table.__table__.columns
                if column.nullable})


if __name__ == '__main__':
    unittest.main()
