# SPDX-License-Identifier: Apache-2.0
"""Functions in processes of their own, for which Nova is imported once.

Nova has one configuration in each process, and takes seconds to import.
"""

import contextlib
import importlib
import multiprocessing
import os
import pathlib
import sys
import tempfile
import traceback
from unittest import mock

#: Each process starts with these, of which none registers our options.
PRELOAD = ('nova.cmd.manage', 'nova_preempt.api.application_factory', __name__)


def run(function, *args, environment=None):
    """Return (exit status, standard output, standard error) of a function.

    :param function: of a module, for it is found by its name
    """
    context = _context()
    with tempfile.TemporaryDirectory() as folder:
        out, err = (pathlib.Path(folder, name) for name in ('out', 'err'))
        # Read when the first process starts.
        with mock.patch.dict(os.environ,
                             OS_NOVA_DISABLE_EVENTLET_PATCHING='true'):
            process = context.Process(target=_call, args=(
                function, args, environment or {}, out, err))
            process.start()
        process.join()
        return process.exitcode, out.read_text(), err.read_text()


def run_main(module, *argv, **kwargs):
    """Run the main() of a module; return its results."""
    return run(_main, module, argv, **kwargs)


def _context():
    # Where eventlet has patched this process a socket passes no file on, which
    # a server of forks would need: each process then imports Nova anew.
    if 'forkserver' not in multiprocessing.get_all_start_methods():
        return multiprocessing.get_context('spawn')
    context = multiprocessing.get_context('forkserver')
    context.set_forkserver_preload(list(PRELOAD))
    return context


def _call(function, args, environment, out, err):
    os.environ.update(environment)
    with open(out, 'w') as stdout, open(err, 'w') as stderr, \
            contextlib.redirect_stdout(stdout), \
            contextlib.redirect_stderr(stderr):
        try:
            code = function(*args)
        except SystemExit as exc:
            code = exc.code
        except Exception:  # noqa: BLE001 (as the interpreter does)
            traceback.print_exc()
            code = 1
    sys.exit(code)


def _main(module, argv):
    sys.argv = [module, *argv]
    return importlib.import_module(module).main()
