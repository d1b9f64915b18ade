"""`njit` and `register_jitable` for kernels: as numba's, but compiled in less time.

numba makes machine code of each function together with all that it calls, with entrances from Python and from C. A
kernel that compiled code calls needs none of that, as it becomes a part of its caller's machine code. So it is kept as
LLVM's intermediate code alone. One that Python calls is compiled as numba does.
"""

from collections.abc import Callable
from typing import Any, TypeVar, overload

from numba import extending
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import CompilerBase, DefaultPassBuilder
from numba.core.compiler_lock import global_compiler_lock
from numba.core.compiler_machinery import register_pass
from numba.core.environment import lookup_environment
from numba.core.registry import CPUDispatcher
from numba.core.sigutils import normalize_signature
from numba.core.targetconfig import ConfigStack
from numba.core.typed_passes import NativeLowering

__all__ = ["AS_KERNEL", "is_intermediate", "njit", "register_jitable"]

_Function = TypeVar("_Function", bound=Callable[..., Any])


def _for_compiled_code() -> bool:
    """Return whether what is compiled now is called by what this thread is compiling: numba stacks their options."""
    return len(ConfigStack()) > 1


class _IntermediateCode(JITCodeLibrary):
    """The code of a kernel for its callers."""

    def _finalize_final_module(self) -> None:
        """Do as numba, but make no machine code."""
        self._finalize_dynamic_globals()
        self._verify_declare_only_symbols()
        self._finalized = True


class _Handle(list[Any]):
    """Its `append`, which nothing calls, stands for intermediate code: numba knows code by a builtin function."""


def is_intermediate(code: Any) -> bool:
    """Return whether what numba compiled is intermediate code."""
    return isinstance(code.entry_point.__self__, _Handle)


@register_pass(mutates_CFG=True, analysis_only=False)
class _KernelLowering(NativeLowering):
    _name = "kernel_lowering"

    def run_pass(self, state: Any) -> bool:
        context = state.targetctx
        if not _for_compiled_code():
            super().run_pass(state)
            # numba did this for the kernels in it when it made their machine code.
            for variable in state["library"]._final_module.global_variables:
                environment = lookup_environment(variable.name)
                if environment is not None:
                    context.codegen().set_env(variable.name, environment)
            return True
        made = state["library"] = _IntermediateCode(context.codegen(), state.func_id.func_qualname)
        state.flags.no_cpython_wrapper = state.flags.no_cfunc_wrapper = state.flags.no_compile = True
        super().run_pass(state)
        handle = _Handle().append
        context.insert_user_function(handle, state.cr.fndesc, [made])
        state.cr = state.cr._replace(cfunc=handle)
        return True


class _KernelCompiler(CompilerBase):
    def define_pipelines(self) -> list[Any]:
        passes = DefaultPassBuilder.define_nopython_pipeline(self.state)
        passes.passes = [(_KernelLowering if one is NativeLowering else one, why) for one, why in passes.passes]
        return [passes]


# Options of numba's functions that compile what compiled code calls, as `overload_method`.
AS_KERNEL: Any = {"pipeline_class": _KernelCompiler}


class _Kernel(CPUDispatcher):
    """A kernel, which Python may call, too: then what callers made of it is compiled once more."""

    def __init__(self, py_func: Any, locals: Any = None, targetoptions: Any = None) -> None:
        super().__init__(py_func, locals or {}, targetoptions or {}, **AS_KERNEL)

    def add_overload(self, code: Any) -> None:
        if is_intermediate(code):
            self.overloads[tuple(code.signature.args)] = code
        else:
            super().add_overload(code)

    def compile(self, sig: Any) -> Any:
        with global_compiler_lock:
            if not len(ConfigStack()):
                kinds, _ = normalize_signature(sig)
                found: Any = self.overloads.get(tuple(kinds))
                if found is not None and is_intermediate(found):
                    del self.overloads[tuple(kinds)]
            return super().compile(sig)


@overload
def njit(function: _Function, *, cache: bool = False, **options: Any) -> _Function: ...
@overload
def njit(*, cache: bool = False, **options: Any) -> Callable[[_Function], _Function]: ...
def njit(function: Any = None, *, cache: bool = False, **options: Any) -> Any:
    """Decorate a kernel; `cache` and the options are numba's."""
    if function is None:
        return lambda found: njit(found, cache=cache, **options)
    kernel = _Kernel(function, targetoptions={"boundscheck": None, **options, "nopython": True})
    if cache:
        kernel.enable_caching()
    return kernel


@overload
def register_jitable(function: _Function, **options: Any) -> _Function: ...
@overload
def register_jitable(**options: Any) -> Callable[[_Function], _Function]: ...
def register_jitable(function: Any = None, **options: Any) -> Any:
    """Decorate a function that Python interprets and that becomes a part of compiled code; the options are numba's."""
    decorate = extending.register_jitable(**options, **AS_KERNEL)
    return decorate if function is None else decorate(function)
