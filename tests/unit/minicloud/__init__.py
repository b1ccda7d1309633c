# SPDX-License-Identifier: Apache-2.0
"""Adds tools/minicloud to the path, as it is not installed."""

import pathlib
import sys

TOOLS = str(pathlib.Path(__file__).resolve().parents[3] / 'tools')
if TOOLS not in sys.path:
    sys.path.append(TOOLS)
