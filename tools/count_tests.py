# SPDX-License-Identifier: Apache-2.0

"""Sum up the last runs of stestr as one line: "N passed, N failed".

Usage: count_tests.py REPOSITORY...

Names the ten slowest tests before. Exits with 1 if a test failed or did not
end, and if a repository holds no result of any test, which counts as one
failure.
"""

import collections
import sys

from stestr.repository import abstract
from stestr.repository import util
import subunit
import testtools

PASSED = ('success', 'xfail')
SLOWEST = 10


def read(repository):
    """Return the tests of the last run in a repository, as dicts."""
    tests = []
    result = testtools.StreamToDict(tests.append)
    stream = util.get_repo_open(
        repo_url=repository).get_latest_run().get_subunit_stream()
    result.startTestRun()
    # NOTE: ignores text that tests print into the stream.
    subunit.ByteStreamToStreamResult(stream, 'stdout').run(result)
    result.stopTestRun()
    return tests


def show_slowest(tests):
    """Print the tests that took longest, in seconds."""
    times = sorted(((stop - start).total_seconds(), test['id'])
                   for test in tests for start, stop in [test['timestamps']]
                   if start and stop)
    for seconds, name in times[:-SLOWEST - 1:-1]:
        print(f'{seconds:7.1f} s  {name}')


def main(repositories):
    """Print the sum and return the exit status."""
    total = collections.Counter()
    known = []
    for repository in repositories:
        try:
            tests = read(repository)
        except (abstract.RepositoryNotFound, KeyError):
            tests = []
        known += tests
        statuses = collections.Counter(test['status'] for test in tests)
        if not statuses:
            print(f'{repository}: no test has run')
            statuses = {'none': 1}
        total.update(statuses)
    show_slowest(known)
    skipped = total.pop('skip', 0)
    passed = sum(total.pop(status, 0) for status in PASSED)
    failed = sum(total.values())
    skips = f', {skipped} skipped' if skipped else ''
    print(f'{passed} passed, {failed} failed{skips}')
    return 1 if failed or not passed else 0


if __name__ == '__main__':
    sys.exit(main(sys.argv[1:]))
