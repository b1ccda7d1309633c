# SPDX-License-Identifier: Apache-2.0
"""Tests of benchmarks, which are scripts beside the package."""

import sys

from tests import benches

if str(benches.BENCH) not in sys.path:
    sys.path.append(str(benches.BENCH))
