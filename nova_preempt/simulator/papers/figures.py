# SPDX-License-Identifier: Apache-2.0
"""Compares our figures with published figures, as text and plots."""

from collections.abc import Iterator, Sequence
import dataclasses
import textwrap
from typing import Any, TypeGuard

_WIDTH = 78


@dataclasses.dataclass(frozen=True)
class Figure:
    """A figure of a paper and our figure.

    :param published: a number or words; None if not published or lost
    :param ours: of the same kind
    :param reason: why they differ, or another remark
    :param source: of the published figure: a section or table of the paper,
        its abstract, the logs of its authors, or "computed" by a rule of the
        text; '' if nothing is published
    :param is_time: whether ours is a measured time, which varies between runs
    """

    name: str
    published: float | str | None
    ours: float | str
    reason: str = ''
    source: str = ''
    is_time: bool = False

    @property
    def deviation(self) -> float | None:
        """Return the relative deviation of ours, None if not comparable."""
        if not _is_number(self.published) or not _is_number(self.ours):
            return None
        if not self.published:
            return None if self.ours else 0.0
        return (self.ours - self.published) / self.published

    def as_dict(self) -> dict[str, Any]:
        """Return the figure for JSON."""
        return {**dataclasses.asdict(self), 'deviation': self.deviation}


@dataclasses.dataclass(frozen=True)
class Series:
    """A data series of a panel.

    :param style: "line", "step", "points" or "bar"
    """

    label: str
    x: Sequence[Any]
    y: Sequence[float]
    style: str = 'line'


@dataclasses.dataclass(frozen=True)
class Panel:
    """A set of axes and its data series."""

    title: str
    x_label: str
    y_label: str
    series: Sequence[Series]
    from_zero: bool = True


@dataclasses.dataclass(frozen=True)
class Plot:
    """A picture of one or more panels, one below the other."""

    name: str
    panels: Sequence[Panel]


@dataclasses.dataclass(frozen=True)
class Evaluation:
    """The reproduced evaluation of a paper.

    :param paper: reference
    :param scale: of the run, in words
    :param stand_in: replacement of data that is not public, '' if none
    """

    paper: str
    scale: str
    stand_in: str
    figures: Sequence[Figure]
    plots: Sequence[Plot] = ()

    def as_dict(self) -> dict[str, Any]:
        """Return the evaluation for JSON, without the plots."""
        return {'paper': self.paper, 'scale': self.scale,
                'stand_in': self.stand_in,
                'figures': [each.as_dict() for each in self.figures]}


def lines(evaluation: Evaluation) -> Iterator[str]:
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
        # Successive equal reasons are printed once, after the last figure.
        if reason not in reasons[number + 1:number + 2]:
            yield from textwrap.wrap(reason, _WIDTH, initial_indent='    ',
                                     subsequent_indent='    ')


def text(value: float | str | None) -> str:
    """Return a figure as it is printed."""
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
    """Return the mean, 0 for no values."""
    return sum(values) / len(values) if values else 0.0


def quantile(values: Sequence[float], share: float) -> float:
    """Return a quantile, 0 for no values."""
    ordered = sorted(values)
    if not ordered:
        return 0.0
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def cdf(label: str, values: Sequence[float]) -> Series:
    """Return the cumulative distribution of values."""
    ordered = sorted(values)
    return Series(label, ordered, [
        number / len(ordered) for number in range(1, len(ordered) + 1)],
        'step')
