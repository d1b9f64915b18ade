"""Kernels called by compiled code, by Python, and by both."""

import threading
from typing import Any

import numba
import numpy as np
import pytest

from streamgroup.kernels.compiling.kernel_decorators import is_intermediate, njit, register_jitable


def _twice(value: Any) -> Any:
    return 2 * value


def _is_intermediate(kernel: Any) -> list[bool]:
    return [is_intermediate(code) for code in kernel.overloads.values()]


def _calling(kernel: Any) -> Any:
    def call(value: Any) -> Any:
        return kernel(value) + 1

    return call


@pytest.mark.parametrize("decorate", [njit, numba.njit])
def test_a_kernel_in_compiled_code_is_no_machine_code_until_python_calls_it(decorate: Any) -> None:
    kernel = njit(_twice)
    assert decorate(_calling(kernel))(3) == 7
    assert _is_intermediate(kernel) == [True]
    assert kernel(3) == 6
    assert _is_intermediate(kernel) == [False]
    assert kernel(3) == 6
    # Of other types.
    assert decorate(_calling(kernel))(1.5) == 4.0
    assert kernel(1.5) == 3.0
    assert _is_intermediate(kernel) == [False, False]


def test_machine_code_that_there_is_becomes_a_part_of_callers() -> None:
    kernel = njit(_twice)
    assert kernel(3) == 6
    assert njit(_calling(kernel))(3) == 7
    assert _is_intermediate(kernel) == [False]


def test_options_are_numbas() -> None:
    @njit(forceinline=True, boundscheck=True)
    def second(values: Any) -> Any:
        return values[1]

    with pytest.raises(IndexError):
        second(np.zeros(1))
    with pytest.raises(IndexError):
        njit(_calling(second))(np.zeros(1))


def test_errors_and_memory_of_kernels_in_kernels() -> None:
    @njit
    def checked(value: Any) -> Any:
        if value < 0:
            raise ValueError("no number below 0, got", value)
        return np.full(3, value)

    @register_jitable
    def total(value: Any) -> Any:
        return checked(value).sum()

    outer = njit(_calling(njit(_calling(total))))
    assert outer(2) == 8
    with pytest.raises(ValueError, match=r"no number below 0, got.*-1"):
        outer(-1)
    assert total(2) == 6
    assert _is_intermediate(checked) == [False]


@pytest.mark.filterwarnings("ignore::numba.core.errors.NumbaExperimentalFeatureWarning")
def test_a_kernel_as_a_value_in_compiled_code() -> None:
    one, two = njit(_twice), njit(_calling(njit(_twice)))

    @njit
    def either(first: Any) -> Any:
        return (one if first else two)(3)

    assert (either(True), either(False)) == (6, 7)


def test_a_kernel_that_calls_itself() -> None:
    @njit
    def factorial(value: Any) -> Any:
        return 1 if value < 2 else value * factorial(value - 1)

    assert njit(_calling(factorial))(5) == 121
    assert factorial(5) == 120


def test_threads_that_compile_at_once() -> None:
    kernel = njit(_twice)
    kinds = [np.int8(1), np.int16(1), np.int32(1), np.int64(1), np.float32(1), np.float64(1)]
    found: dict[tuple[int, int], Any] = {}

    def work(place: int) -> None:
        for number, value in enumerate(kinds):
            found[place, number] = kernel(value) + 1 if place % 2 else njit(_calling(kernel))(value)

    threads = [threading.Thread(target=work, args=(place,)) for place in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == {(place, number): 3 for place in range(6) for number in range(len(kinds))}
