# SPDX-License-Identifier: Apache-2.0
"""Placement of many requests together.

All waiting requests are placed at once, so that the first does not claim what
another needs more: by minimum-cost flow as in ECSched (Y. Hu, H. Zhou, C. de
Laat and Z. Zhao, Euro-Par 2018, doi 10.1007/978-3-319-96983-1_26; FGCS 2020,
doi 10.1016/j.future.2019.08.025), or exactly by an integer program.

``batch_model`` has the data model, ``solver_choice.make()`` returns the
placer. Only modules that ``solver_choice`` loads import numpy and scipy.
"""
