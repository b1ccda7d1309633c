# SPDX-License-Identifier: Apache-2.0
"""Cache of hosts' speed and draw, renewed in the background.

Whoever asks never waits: the answer is what was read last. Make a FigureCache,
call start() where the work begins, and ask it whenever you like.
"""

import datetime
import math
import os
import threading
import weakref

from oslo_db import exception as db_exc
from oslo_log import log as logging
from oslo_utils import timeutils

from nova_preempt import db
from nova_preempt.core.energy import efficiency_ranking
from nova_preempt.db import energy_store
from nova_preempt.power import hosts_file
from nova_preempt.power import power_errors

LOG = logging.getLogger(__name__)

#: How often the figures are read: they change when somebody measures.
REFRESH_S = 30

_KEYS = ('flops', 'watts', 'idle_watts')

_SCHEMA = {
    'type': 'object',
    'additionalProperties': {
        'type': 'object', 'additionalProperties': False,
        'properties': {key: {} for key in _KEYS}},
}


class FigureCache:
    """Figures of hosts, by node name.

    :param options: [energy] of the configuration
    :param get_database: returns a nova_preempt.db.Database; called once, in
        the background
    :param utcnow: returns now, naive and in UTC
    """

    def __init__(self, options, get_database, utcnow=timeutils.utcnow):
        self._options = options
        self._utcnow = utcnow
        self._get_database = get_database
        self._db = None
        self._figures = {}
        self._measured = {}
        self._written = {}
        self._readings = {}
        self._read_file = None     # which state of the file that was
        self._complaints = {}
        self._stop = threading.Event()
        self._starting = threading.Lock()
        self._thread = None
        # The thread lives no longer than who asks.
        weakref.finalize(self, self._stop.set)

    # -- for whoever asks --------------------------------------------------

    def get(self, host):
        """Its efficiency_ranking.Figures, None if nothing is known of it."""
        return self._figures.get(host)

    def watts_now(self, host):
        """What it draws by the last reading; None if it is not known, or
        longer ago than readings count.
        """
        return self._readings.get(host)

    def efficiencies(self):
        """{host: FLOPS per watt} of those that are known."""
        return {host: item.flops_per_watt for host, item
                in self._figures.items() if item.flops_per_watt is not None}

    def all(self):
        """{host: efficiency_ranking.Figures} of all that are known."""
        return dict(self._figures)

    # -- the thread --------------------------------------------------------

    def start(self):
        """Have it read in the background from now on.

        Calling it again costs next to nothing, and after a fork starts the
        thread that the fork has left behind.
        """
        if self._thread is not None and self._thread.is_alive():
            return
        with self._starting:
            if self._thread is not None and self._thread.is_alive():
                return
            self._thread = threading.Thread(
                target=_run, name='nova-preempt-power-table', daemon=True,
                args=(weakref.ref(self), self._stop))
            self._thread.start()

    def stop(self):
        """For good; what was read last stays."""
        self._stop.set()

    def refresh(self):
        """Read file and database now; where that fails the old stays."""
        self._try('[energy]figures_file', self._refresh_file)
        self._try('the figures in the database', self._refresh_database)
        self._try('the readings in the database', self._refresh_readings)
        figures = dict(self._measured)
        for host, written in self._written.items():
            figures[host] = _merge(written, figures.get(host))
        self._figures = figures

    def _try(self, what, read):
        try:
            read()
        except (power_errors.HostsFileError, OSError, db_exc.DBError,
                db_exc.CantStartEngineError) as exc:
            # Once, not every time.
            if self._complaints.get(what) != str(exc):
                LOG.error('Cannot read %s, going on with what is known: %s',
                          what, exc)
            self._complaints[what] = str(exc)
        except Exception:
            LOG.exception('Cannot read %s, going on with what is known.', what)
        else:
            if self._complaints.pop(what, None) is not None:
                LOG.info('Can read %s again.', what)

    def _refresh_file(self):
        path = self._options.figures_file
        before, self._read_file = self._read_file, None
        if not path:
            self._written = {}
            return
        status = os.stat(path)
        state = (path, status.st_mtime_ns, status.st_size, status.st_ino)
        if state != before:
            self._written = load_file(path)
        # Only now: after an error it is read again.
        self._read_file = state

    def _connect(self):
        if self._db is None:
            self._db = self._get_database()
        return self._db

    def _refresh_readings(self):
        # What cannot be read anew gets old, and then it is no reading.
        self._readings = {}
        if not self._options.rank_by_readings:
            return
        self._readings = {
            host: watts for host, item in energy_store.get_readings(
                self._connect(), self._utcnow() - datetime.timedelta(
                    seconds=efficiency_ranking.MAX_AGE_S)).items()
            if (watts := _sane(item.watts))}

    def _refresh_database(self):
        self._measured = {
            host: efficiency_ranking.Figures(
                _sane(item.flops), _sane(item.watts), _sane(item.idle_watts))
            for host, item in
            energy_store.get_figures(self._connect()).items()}


def load_file(path):
    """Read [energy]figures_file: {host: efficiency_ranking.Figures}.

    :raises HostsFileError: naming the file and all that is wrong in it, by
        host, key and value
    """
    wrong = []
    found = {}
    for host, content in hosts_file.load_yaml(path, _SCHEMA).items():
        values = {key: _number(value) for key, value in content.items()}
        figures = efficiency_ranking.Figures(**values)
        wrong += [f'host {host}: {key}: {content[key]!r} {what}' for key, what
                  in efficiency_ranking.what_is_wrong(figures).items()]
        found[host] = figures
    if wrong:
        raise power_errors.HostsFileError(f'{path}: '
                                          + '; '.join(sorted(wrong)))
    return found


def of(conf):
    """A FigureCache of what the configuration names."""
    return FigureCache(conf.energy, lambda: db.Database(conf))


def _run(reference, stop):
    while not stop.is_set():
        cache = reference()
        if cache is None:
            return
        cache.refresh()
        # While it waits nothing keeps the cache.
        del cache
        stop.wait(REFRESH_S)


def _merge(written, measured):
    """What is written by hand, and what was measured where nothing is."""
    if measured is None:
        return written
    return efficiency_ranking.Figures(*(
        getattr(measured, name) if getattr(written, name) is None
        else getattr(written, name) for name in _KEYS))


def _sane(value):
    """None for what no host delivers or draws."""
    if value is None or not math.isfinite(value) or value < 0:
        return None
    return value


def _number(value):
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return math.nan
    try:
        return float(value)
    except OverflowError:
        return math.inf
