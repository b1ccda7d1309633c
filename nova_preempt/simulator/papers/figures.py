# SPDX-License-Identifier: Apache-2.0
"""Reproduced figures beside published ones, and plots."""

from collections.abc import Iterator, Sequence
import dataclasses
import textwrap
from typing import Any, TypeGuard

from nova_preempt.pictures.drawing import FigureSeries
from nova_preempt.pictures.drawing import Plot

_WIDTH = 78


@dataclasses.dataclass(frozen=True)
class Figure:
    """A published figure beside the reproduced one.

    :param published: a number, or in words; None if it was not published,
        or what was is not to be had
    :param ours: of the same kind
    :param reason: why they differ, or what else is to be known
    :param source: where the published one is: a section or table of the
        paper, its abstract, the logs of its authors, or "computed" where we
        follow a rule of the text; '' if nothing is published
    :param is_time: whether ours is measured, so that no two runs have the
        same
    """

    name: str
    published: float | str | None
    ours: float | str
    reason: str = ''
    source: str = ''
    is_time: bool = False

    @property
    def deviation(self) -> float | None:
        """Return by which part ours is larger; None if nobody can tell."""
        if not _is_number(self.published) or not _is_number(self.ours):
            return None
        if not self.published:
            return None if self.ours else 0.0
        return (self.ours - self.published) / self.published

    def as_dict(self) -> dict[str, Any]:
        """Return it as JSON has it."""
        return {**dataclasses.asdict(self), 'deviation': self.deviation}


@dataclasses.dataclass(frozen=True)
class PaperEvaluation:
    """The reproduced figures of a paper.

    :param paper: who, where and when
    :param scale: at which it was run, in words
    :param stand_in: what stands in for data that is not public, '' if none is
    """

    paper: str
    scale: str
    stand_in: str
    figures: Sequence[Figure]
    plots: Sequence[Plot] = ()

    def as_dict(self) -> dict[str, Any]:
        """Return it as JSON has it, but for the plots."""
        return {'paper': self.paper, 'scale': self.scale,
                'stand_in': self.stand_in,
                'figures': [each.as_dict() for each in self.figures]}


def lines(evaluation: PaperEvaluation) -> Iterator[str]:
    """Yield the lines of a report."""
    yield from textwrap.wrap(evaluation.paper, _WIDTH)
    yield from textwrap.wrap(f'Scale: {evaluation.scale}', _WIDTH)
    if evaluation.stand_in:
        yield from textwrap.wrap(f'Data: {evaluation.stand_in}', _WIDTH)
    yield ''
    cells = [('', 'published', 'ours', 'deviation', 'source')]
    cells += [(each.name, text(each.published), text(each.ours),
               _percent(each.deviation), each.source)
              for each in evaluation.figures]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    reasons = ('', *(each.reason for each in evaluation.figures))
    for number, (row, reason) in enumerate(zip(cells, reasons, strict=True)):
        yield '  '.join((row[0].ljust(widths[0]), *(
            cell.rjust(width) for cell, width in zip(
                row[1:-1], widths[1:-1], strict=True)), row[-1])).rstrip()
        # The same reason of several is said once, after the last of them.
        if reason not in reasons[number + 1:number + 2]:
            yield from textwrap.wrap(reason, _WIDTH, initial_indent='    ',
                                     subsequent_indent='    ')


def text(value: float | str | None) -> str:
    """Return the printed form of a figure."""
    if value is None:
        return '-'
    if isinstance(value, str):
        return value
    if isinstance(value, int):
        return str(value)
    return f'{value:.4g}' if abs(value) < 1000 else f'{value:.0f}'


def _percent(deviation: float | None) -> str:
    return '' if deviation is None else f'{100 * deviation:+.2f} %'


def _is_number(value: object) -> TypeGuard[float]:
    return isinstance(value, int | float)


def mean(values: Sequence[float]) -> float:
    """Return the mean, 0 of none."""
    return sum(values) / len(values) if values else 0.0


def quantile(values: Sequence[float], share: float) -> float:
    """Return the value that so many are not above, 0 of none."""
    ordered = sorted(values)
    if not ordered:
        return 0.0
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def cdf(label: str, values: Sequence[float]) -> FigureSeries:
    """Return which share of values is not above each."""
    ordered = sorted(values)
    return FigureSeries(label, ordered, [
        number / len(ordered) for number in range(1, len(ordered) + 1)],
        'step')
