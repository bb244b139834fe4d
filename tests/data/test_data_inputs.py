"""Principal components: only the leading eigenvectors of a large covariance, the same as from all of them."""

from __future__ import annotations

import pytest
import torch

from wrssl.data.inputs import COMPONENTS, MANY, Projection, leading, raw_rows

SIZE = MANY + 76


def covariance(rows: int, columns: int) -> torch.Tensor:
    x = torch.randn(rows, columns, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    x *= torch.linspace(3, 0.1, columns, dtype=torch.float64)
    return x.T @ x / rows


@pytest.mark.parametrize("columns", [60, SIZE])
def test_leading_are_those_of_the_full_decomposition(columns):
    matrix = covariance(3000, columns)
    found, expected = leading(matrix), torch.linalg.eigh(matrix)[1].flip(1)[:, :COMPONENTS]
    sign = (found * expected).sum(0).sign()
    torch.testing.assert_close(found * sign, expected, rtol=0, atol=1e-9)


@pytest.mark.parametrize("rows", [0, 1, 20])
def test_few_distinct_examples_leave_directions_to_choose_but_they_are_orthonormal(rows):
    matrix = covariance(rows, SIZE) if rows else torch.zeros(SIZE, SIZE, dtype=torch.float64)
    found = leading(matrix)
    torch.testing.assert_close(found.T @ found, torch.eye(COMPONENTS, dtype=torch.float64), rtol=0, atol=1e-9)
    # what they explain is all that there is
    kept = (found.T @ matrix @ found).diagonal().sum()
    torch.testing.assert_close(kept, matrix.trace(), rtol=1e-10, atol=1e-12)


def test_twice_the_same():
    matrix = covariance(2000, SIZE)
    assert torch.equal(leading(matrix), leading(matrix))


def test_photographs():
    pool = torch.randint(0, 256, (300, 3, 32, 32), generator=torch.Generator().manual_seed(2)).to(torch.uint8)
    projection = Projection.of(pool, torch.arange(300))
    x = raw_rows(pool).double()
    x -= x.mean(0)
    values = torch.linalg.svdvals(x)[:COMPONENTS] ** 2 / len(x)
    components = projection(pool).double()
    torch.testing.assert_close(components.var(0, correction=0), values, rtol=1e-4, atol=0)
    assert components.shape == (300, COMPONENTS)


def test_a_projection_goes_through_its_state_bit_for_bit():
    pool = torch.randint(0, 256, (200, 1, 9, 9), generator=torch.Generator().manual_seed(3)).to(torch.uint8)
    projection = Projection.of(pool, torch.arange(0, 200, 2))
    state = projection.state_dict()
    assert {name: value.is_contiguous() for name, value in state.items()} == {"mean": True, "directions": True}
    again = Projection.from_state({**{name: value.clone() for name, value in state.items()}, "other": torch.zeros(1)})
    assert torch.equal(again(pool), projection(pool))
    assert again.directions.stride() == projection.directions.stride()
