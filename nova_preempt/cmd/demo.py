# SPDX-License-Identifier: Apache-2.0
"""nova-preempt-demo: plays scenarios on a cloud in this process."""

import argparse
import contextlib
import importlib.resources
import json
import pathlib
import sys
import warnings

from nova_preempt.embedded import checked_yaml
from nova_preempt.embedded import scenario as scenarios

PROG = 'nova-preempt-demo'
DEFAULT = 'short'


def main(argv=None):
    """Return 0 if outcomes are as expected, 1 if not, 2 for a bad file."""
    try:
        args = _parse_args(argv)
    except SystemExit as exc:
        return exc.code
    if args.list:
        _list()
        return 0
    try:
        known = [(name, load(name)) for name in args.scenario or [DEFAULT]]
    except checked_yaml.BadFile as exc:
        _complain(exc)
        return 2
    out = sys.stdout
    with warnings.catch_warnings(), contextlib.redirect_stdout(sys.stderr):
        # Standard output is for the demo, not for output of Nova.
        warnings.simplefilter('ignore')
        return max([_run(name, scenario, args.json, out)
                    for name, scenario in known])


def _parse_args(argv):
    parser = argparse.ArgumentParser(
        prog=PROG, description='Play scenarios on a whole Nova, with '
        'Placement and the preempting scheduler, in this process.')
    parser.add_argument(
        '--scenario', metavar='NAME|FILE', action='append',
        help='name of a scenario in --list, or a YAML file; may be repeated '
             f'(default: {DEFAULT})')
    parser.add_argument('--json', action='store_true',
                        help='print one JSON document for each scenario '
                             'instead of text')
    parser.add_argument('--list', action='store_true',
                        help='print the included scenarios')
    return parser.parse_args(argv)


def _shipped():
    """Return {name: file} of the scenarios that come with this package."""
    folder = importlib.resources.files(scenarios.__package__) / 'scenarios'
    return {pathlib.PurePath(path.name).stem: path
            for path in sorted(folder.iterdir(), key=lambda path: path.name)
            if path.name.endswith('.yaml')}


def _list():
    known = _shipped()
    for name, path in known.items():
        description = scenarios.parse(path.read_bytes(), name).description
        print(f'{name.ljust(max(map(len, known)))}  {description}')


def load(name):
    """Return the Scenario of a name or file.

    :raises checked_yaml.BadFile: the file is missing or invalid
    """
    known = _shipped()
    path = known.get(name) or pathlib.Path(name)
    if name not in known and name == path.stem and not path.exists():
        raise checked_yaml.BadFile(f'unknown scenario {name}; the included '
                                   f'scenarios are: {", ".join(known)}')
    try:
        content = path.read_bytes()
    except (OSError, ValueError) as exc:
        why = getattr(exc, 'strerror', None) or exc
        raise checked_yaml.BadFile(f'{name}: cannot be read: {why}') from None
    return scenarios.parse(content, name)


def _run(name, scenario, as_json, out):
    # Imported here: they load all of Nova, which takes seconds.
    from nova_preempt.embedded import embedded_cloud
    from nova_preempt.embedded import scenario_report

    def tell(lines):
        if not as_json:
            print('\n'.join(lines), file=out, flush=True)

    tell(scenario_report.title(name, scenario))
    try:
        outcomes, wrong = _play(scenario, tell)
    except embedded_cloud.CloudError as exc:
        _complain(exc)
        return 1
    if as_json:
        print(json.dumps(scenario_report.as_json(outcomes), indent=2),
              file=out)
    for expectation, result in zip(scenario.expect, outcomes, strict=False):
        wrong += [f'{result.request.name}: {text}' for text in
                  scenario_report.differences(expectation, result)]
    for text in wrong:
        _complain(text)
    return 1 if wrong else 0


def _play(scenario, tell):
    """Return the outcomes, and violations of invariants as sentences."""
    from nova_preempt.embedded import decision_invariants
    from nova_preempt.embedded import scenario_player
    from nova_preempt.embedded import scenario_report as report

    outcomes = []
    wrong = []
    with scenario_player.ScenarioPlayer(scenario) as player:
        hosts = player.hosts()
        tell(report.hosts('Hosts before', hosts))
        for request in scenario.requests:
            tell(report.request(scenario, request))
            result = player.play(request, hosts)
            tell(report.outcome(scenario, result, hosts))
            before, hosts = hosts, player.hosts()
            wrong += [f'{request.name}: {text}'
                      for text in decision_invariants.broken(
                          scenario.needed(request), result, before, hosts)]
            outcomes.append(result)
        tell(report.hosts('Hosts after', hosts))
    return outcomes, wrong


def _complain(problem):
    print(f'{PROG}: {" ".join(str(problem).split())}', file=sys.stderr)


if __name__ == '__main__':
    sys.exit(main())
