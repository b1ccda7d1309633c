# SPDX-License-Identifier: Apache-2.0
"""The tool is no package of ours: it is found beside the tests."""

import pathlib
import sys

TOOLS = str(pathlib.Path(__file__).resolve().parents[3] / 'tools')
if TOOLS not in sys.path:
    sys.path.append(TOOLS)
