# SPDX-License-Identifier: Apache-2.0

import unittest

from nova_preempt.api import backlog_schemas
from nova_preempt.api import backlog_statistics_handlers
from nova_preempt.api import energy_schemas
from nova_preempt.api import pause_handlers
from nova_preempt.api import reservation_schemas
from nova_preempt.api import schemas
from nova_preempt.sdk.v1 import backlog
from nova_preempt.sdk.v1 import energy
from nova_preempt.sdk.v1 import preemption
from nova_preempt.sdk.v1 import reservation

#: What the API answers for each resource, and what a list takes.
RESOURCES = (
    (preemption.Preemption, schemas.PREEMPTION, schemas.LIST_QUERY),
    (preemption.Explanation, schemas.EXPLAIN_ANSWER, None),
    (preemption.PlacementChance, schemas.CHANCES_ANSWER,
     schemas.CHANCES_QUERY),
    (preemption.Statistics, schemas.STATISTICS_ANSWER,
     schemas.PERIOD_QUERY),
    (preemption.Pause, pause_handlers.PAUSE_ANSWER, None),
    (reservation.Reservation, reservation_schemas.RESERVATION,
     reservation_schemas.LIST_QUERY),
    (reservation.Preview, reservation_schemas.PREVIEW_ANSWER, None),
    (reservation.Host, reservation_schemas.HOST,
     reservation_schemas.HOSTS_QUERY),
    (reservation.Property, reservation_schemas.PROPERTY, None),
    (reservation.ReservationLimits,
     reservation_schemas.LIMITS_ANSWER, None),
    (backlog.BacklogRequest, backlog_schemas.REQUEST,
     backlog_schemas.LIST_QUERY),
    (backlog.BacklogStatistics, backlog_statistics_handlers.STATISTICS_ANSWER,
     backlog_statistics_handlers.STATISTICS_QUERY),
    (backlog.BacklogReport, backlog_statistics_handlers.REPORT_ANSWER,
     backlog_statistics_handlers.REPORT_QUERY),
    (energy.Energy, energy_schemas.ENERGY_ANSWER, None),
    (energy.EnergyReport, energy_schemas.REPORT_ANSWER, None),
    (energy.EnergyHost, energy_schemas.HOSTS_ANSWER, None),
    (energy.EnergyFigures, energy_schemas.FIGURES_ANSWER, None),
)


def members(schema):
    """Return the members of the resource in an answer."""
    schema, = ([schema] if len(schema['properties']) > 1
               else schema['properties'].values())
    return set(schema.get('items', schema)['properties'])


class TestResources(unittest.TestCase):

    def test_attributes_agree_with_answers_of_the_api(self):
        for resource, answer, _ in RESOURCES:
            known = set(resource._body_mapping())
            self.assertEqual(set(), members(answer) - known, resource)
            # All resources have these.
            self.assertEqual(set(), known - members(answer) - {'id', 'name'},
                             resource)

    def test_parameters_of_lists_agree_with_the_api(self):
        for resource, _, query in RESOURCES:
            if query:
                self.assertEqual(set(query['properties']),
                                 set(resource._query_mapping._mapping))
