# SPDX-License-Identifier: Apache-2.0
"""The time, as the database knows it.

Who is alive is told by how long ago something was written. The hosts that
write and read have clocks of their own; the database has one, for all.
"""

import sqlalchemy as sa
from sqlalchemy.ext import compiler
from sqlalchemy.sql import functions


class after(functions.GenericFunction):  # noqa: N801 (as SQL functions are)
    """So many seconds from now, naive and in UTC.

    By the second where the database's columns know nothing finer.
    """

    name = 'nova_preempt_after'
    type = sa.DateTime()
    inherit_cache = True


def now():
    """Now, naive and in UTC."""
    return after(0)


@compiler.compiles(after, 'sqlite')
def _sqlite(element, builder, **kwargs):
    # As SQLAlchemy writes it, so that the texts compare as the times do.
    seconds = builder.process(element.clauses, **kwargs)
    return ("(strftime('%Y-%m-%d %H:%M:%f', 'now', "
            f"({seconds}) || ' seconds') || '000')")


@compiler.compiles(after, 'mysql', 'mariadb')
def _mysql(element, builder, **kwargs):
    seconds = builder.process(element.clauses, **kwargs)
    return f'(UTC_TIMESTAMP() + INTERVAL ({seconds}) SECOND)'


@compiler.compiles(after, 'postgresql')
def _postgresql(element, builder, **kwargs):
    seconds = builder.process(element.clauses, **kwargs)
    return ("(timezone('utc', clock_timestamp()) "
            f"+ ({seconds}) * interval '1 second')")
