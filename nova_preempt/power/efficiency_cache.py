# SPDX-License-Identifier: Apache-2.0
"""Caches hosts' speed and power draw, refreshed in the background.

Reading the cache never waits, and returns what was read last. Call start()
before the work begins.
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

#: How often figures are read: only measurements and operators change them.
REFRESH_S = 30

_KEYS = ('flops', 'watts', 'idle_watts')

_SCHEMA = {
    'type': 'object',
    'additionalProperties': {
        'type': 'object', 'additionalProperties': False,
        'properties': {key: {} for key in _KEYS}},
}


class EfficiencyCache:
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
        self._read_file = None     # (path, mtime, size, inode) of the file
        self._complaints = {}
        self._stop = threading.Event()
        self._starting = threading.Lock()
        self._thread = None
        # The thread ends with the cache.
        weakref.finalize(self, self._stop.set)

    # -- reading the cache -------------------------------------------------

    def get(self, host):
        """Return a host's efficiency_ranking.Figures, None without any."""
        return self._figures.get(host)

    def watts_now(self, host):
        """Return a host's draw by a recent reading, None without one."""
        return self._readings.get(host)

    def efficiencies(self):
        """Return {host: FLOPS per watt} where known."""
        return {host: item.flops_per_watt for host, item
                in self._figures.items() if item.flops_per_watt is not None}

    def all(self):
        """Return {host: efficiency_ranking.Figures} of all known hosts."""
        return dict(self._figures)

    # -- the thread --------------------------------------------------------

    def start(self):
        """Start refreshing in the background.

        Calling it again costs next to nothing, and restarts the thread after a
        fork.
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
        """Stop refreshing for good; the figures are kept."""
        self._stop.set()

    def refresh(self):
        """Read file and database now; keep the old figures on failure."""
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
            # NOTE: logged once, not every time.
            if self._complaints.get(what) != str(exc):
                LOG.error('Cannot read %s; its last data is used: %s',
                          what, exc)
            self._complaints[what] = str(exc)
        except Exception:
            LOG.exception('Cannot read %s; its last data is used.', what)
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
        # NOTE: afterwards, so that after an error it is read again.
        self._read_file = state

    def _connect(self):
        if self._db is None:
            self._db = self._get_database()
        return self._db

    def _refresh_readings(self):
        # NOTE: reset first, as old readings do not count.
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
    """Return {host: efficiency_ranking.Figures} of [energy]figures_file.

    :raises HostsFileError: naming the file and all faults in it, by host, key
        and value
    """
    wrong = []
    found = {}
    for host, content in hosts_file.load_yaml(path, _SCHEMA).items():
        values = {key: _number(value) for key, value in content.items()}
        figures = efficiency_ranking.Figures(**values)
        wrong += [f'host {host}: {key}: {content[key]!r} {what}' for key, what
                  in efficiency_ranking.invalid_figures(figures).items()]
        found[host] = figures
    if wrong:
        raise power_errors.HostsFileError(f'{path}: '
                                          + '; '.join(sorted(wrong)))
    return found


def of(conf):
    """Return an EfficiencyCache for the configuration."""
    return EfficiencyCache(conf.energy, lambda: db.Database(conf))


def _run(reference, stop):
    while not stop.is_set():
        cache = reference()
        if cache is None:
            return
        cache.refresh()
        # NOTE: so that the cache can be freed while this waits.
        del cache
        stop.wait(REFRESH_S)


def _merge(written, measured):
    """Return written figures, completed by measured ones."""
    if measured is None:
        return written
    return efficiency_ranking.Figures(*(
        getattr(measured, name) if getattr(written, name) is None
        else getattr(written, name) for name in _KEYS))


def _sane(value):
    """Return a value that a host can have, else None."""
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
