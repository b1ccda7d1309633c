# SPDX-License-Identifier: Apache-2.0
"""YAML files as people write them.

PyYAML reads YAML 1.1: there ``on: touch x`` has the key True, the MAC address
52:54:00:12:34:56 is a number to base 60, and 1.2e12 is a string. This is the
core schema of YAML 1.2.
"""

import re

import yaml

from nova_preempt.core import credential_masking

_TAG = 'tag:yaml.org,2002:'

# What PyYAML quotes of its own: marks, and its words for what it has found.
_ITS_OWN = re.compile(r"""'(?:[:,\]}-]|<[a-z ]+>)'""")


class _Loader(yaml.SafeLoader):
    yaml_implicit_resolvers = {}


_FLOAT = (r'[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?'
          r'|[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)')

for _tag, _pattern, _first in (
        ('null', '~|null|Null|NULL|', ['~', 'n', 'N', '']),
        ('bool', 'true|True|TRUE|false|False|FALSE', list('tTfF')),
        ('int', '[-+]?(0|[1-9][0-9]*)', list('-+0123456789')),
        ('float', _FLOAT, list('-+.0123456789')),
        ('merge', '<<', ['<'])):
    _Loader.add_implicit_resolver(_TAG + _tag, re.compile(f'(?:{_pattern})$'),
                                  _first)


def load(stream):
    """The content of a YAML document.

    :raises yaml.YAMLError: it is none
    """
    try:
        return yaml.load(stream, _Loader)
    except (yaml.YAMLError, UnicodeDecodeError):
        raise
    except (ArithmeticError, AttributeError, LookupError, RecursionError,
            TypeError, ValueError):
        # Of a value that is none of its tag, or nested too deeply; some quote
        # the value.
        raise yaml.YAMLError from None


def why(exc):
    """What is wrong and where, without what is there: it may be a password.

    :param exc: a yaml.YAMLError
    """
    mark = getattr(exc, 'problem_mark', None)
    place = (f'line {mark.line + 1}, column {mark.column + 1}: ' if mark
             else '')
    problem = getattr(exc, 'problem', None) or 'it cannot be read'
    if re.search('[\'"]', _ITS_OWN.sub('', problem)):
        problem = re.sub('[\'"].*[\'"]', credential_masking.MASK, problem,
                         flags=re.DOTALL)
    return f'{place}no YAML: {problem}'
