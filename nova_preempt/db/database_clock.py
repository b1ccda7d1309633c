# SPDX-License-Identifier: Apache-2.0
"""SQL functions of the database's clock.

Leases depend on the age of rows. Clocks of hosts differ; the database's clock
is common to all of them.
"""

import sqlalchemy as sa
from sqlalchemy.ext import compiler
from sqlalchemy.sql import functions


class SecondsFromNow(functions.GenericFunction):
    """The time a number of seconds from now, naive and in UTC.

    In whole seconds on MySQL, whose DATETIME columns have no fraction.
    """

    name = 'nova_preempt_after'
    type = sa.DateTime()
    inherit_cache = True


def now():
    """Return the SQL expression of the current time, naive and in UTC."""
    return SecondsFromNow(0)


@compiler.compiles(SecondsFromNow, 'sqlite')
def _sqlite(element, builder, **kwargs):
    # SQLAlchemy's own format, so that texts compare like times.
    seconds = builder.process(element.clauses, **kwargs)
    return ("(strftime('%Y-%m-%d %H:%M:%f', 'now', "
            f"({seconds}) || ' seconds') || '000')")


@compiler.compiles(SecondsFromNow, 'mysql', 'mariadb')
def _mysql(element, builder, **kwargs):
    seconds = builder.process(element.clauses, **kwargs)
    return f'(UTC_TIMESTAMP() + INTERVAL ({seconds}) SECOND)'


@compiler.compiles(SecondsFromNow, 'postgresql')
def _postgresql(element, builder, **kwargs):
    seconds = builder.process(element.clauses, **kwargs)
    return ("(timezone('utc', clock_timestamp()) "
            f"+ ({seconds}) * interval '1 second')")
