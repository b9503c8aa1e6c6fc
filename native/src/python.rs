//! The extension module `tokbatch._native`: the one file that names PyO3.
//!
//! Buffers come in and go out by the buffer protocol; the lock of the interpreter is released meanwhile. Errors are given
//! back as values, (class, code, message, where, hint, row), which `engine/native.py` raises. A panic is one of them.

use std::os::raw::c_int;
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::sync::Arc;

use pyo3::buffer::PyBuffer;
use pyo3::exceptions::{PyBufferError, PyValueError};
use pyo3::ffi;
use pyo3::prelude::*;

use crate::columns::{IdColumn, TextColumn};
use crate::engine::Engine;
use crate::error::{Class, Error, Result};

type Described = (&'static str, &'static str, String, String, String, Option<usize>);

fn described(error: Error) -> Described {
    (error.class.name(), error.code, error.message, error.place, error.hint, error.row)
}

pyo3::create_exception!(_native, NativeError, pyo3::exceptions::PyException, "Carries the description of an error.");

/// Do the work without the lock of the interpreter, and turn errors and panics into `NativeError`.
fn guarded<T: Send>(py: Python<'_>, work: impl FnOnce() -> Result<T> + Send) -> PyResult<T> {
    let outcome = py.detach(|| catch_unwind(AssertUnwindSafe(work)));
    let error = match outcome {
        Ok(Ok(value)) => return Ok(value),
        Ok(Err(error)) => error,
        Err(panic) => {
            let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
            let text = text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_default();
            Error::new(Class::Other, format!("a fault in the native engine: {text}")).coded("native-fault")
        }
    };
    Err(NativeError::new_err(described(error)))
}

/// A column of texts that Python holds, as slices.
struct HeldTexts {
    data: PyBuffer<u8>,
    list_offsets: PyBuffer<i64>,
    rows: usize,
}

impl HeldTexts {
    fn new(data: &Bound<'_, PyAny>, list_offsets: &Bound<'_, PyAny>, rows: usize) -> PyResult<HeldTexts> {
        let held = HeldTexts { data: PyBuffer::get(data)?, list_offsets: PyBuffer::get(list_offsets)?, rows };
        if !held.data.is_c_contiguous() || !held.list_offsets.is_c_contiguous() {
            return Err(PyBufferError::new_err("a buffer that is not contiguous"));
        }
        if held.list_offsets.item_count() <= rows {
            return Err(PyValueError::new_err("fewer offsets than rows"));
        }
        Ok(held)
    }

    fn column(&self) -> Result<TextColumn<'_>> {
        let bytes = self.data.buf_ptr().cast::<u8>();
        let offsets = self.list_offsets.buf_ptr().cast::<i64>();
        // SAFETY: the buffers are contiguous, of these item types and lengths, and stay alive and unmoved as long as
        // `self` holds them. That nobody writes to them meanwhile is the contract of `TextColumn` in engine/columns.py;
        // Arrow's buffers are immutable. An empty buffer may have no address.
        let (data, offsets) = unsafe {
            let data = if self.data.len_bytes() == 0 { &[][..] } else { slice(bytes, self.data.len_bytes()) };
            (data, slice(offsets, self.rows + 1))
        };
        TextColumn::new(data, offsets)
    }
}

/// SAFETY: as `std::slice::from_raw_parts`.
unsafe fn slice<'a, T>(first: *const T, length: usize) -> &'a [T] {
    std::slice::from_raw_parts(first, length)
}

/// A column of ids, in memory of this module.
#[pyclass(frozen, module = "tokbatch._native")]
struct Ids {
    column: Option<IdColumn>,
    engine: Arc<Engine>,
}

impl Drop for Ids {
    fn drop(&mut self) {
        if let Some(column) = self.column.take() {
            self.engine.recycle(column);
        }
    }
}

impl Ids {
    fn held(&self) -> &IdColumn {
        self.column.as_ref().expect("only drop takes it")
    }
}

#[pymethods]
impl Ids {
    /// The ids (int32) as a buffer.
    fn ids(slf: Py<Self>) -> Memory {
        Memory { owner: slf, is_offsets: false }
    }

    /// The offsets of the rows (int64) as a buffer.
    fn list_offsets(slf: Py<Self>) -> Memory {
        Memory { owner: slf, is_offsets: true }
    }

    /// (row, description) of the rows that failed.
    fn failures(&self) -> Vec<(usize, Described)> {
        self.held().failures.iter().map(|(row, error)| (*row, described(error.clone()))).collect()
    }

    /// The rows that truncation cut.
    fn truncated_rows(&self) -> Vec<i64> {
        self.held().truncated_rows.clone()
    }
}

/// One buffer of a column of ids.
#[pyclass(frozen, module = "tokbatch._native")]
struct Memory {
    owner: Py<Ids>,
    is_offsets: bool,
}

#[pymethods]
impl Memory {
    /// Give the memory, read-only.
    ///
    /// SAFETY: called by the interpreter with a view to fill.
    unsafe fn __getbuffer__(slf: Bound<'_, Self>, view: *mut ffi::Py_buffer, flags: c_int) -> PyResult<()> {
        let memory = slf.get();
        let column = memory.owner.get().held();
        let (address, length) = if memory.is_offsets {
            (column.list_offsets.as_ptr().cast::<u8>(), column.list_offsets.len() * 8)
        } else {
            (column.ids.as_ptr().cast::<u8>(), column.ids.len() * 4)
        };
        // SAFETY: the column does not change while `Ids` lives, which `memory` keeps alive, which the view keeps alive.
        let outcome = ffi::PyBuffer_FillInfo(view, slf.as_ptr(), address.cast_mut().cast(), length as isize, 1, flags);
        if outcome == 0 {
            Ok(())
        } else {
            Err(PyErr::fetch(slf.py()))
        }
    }
}

/// The engine, for engine/native.py.
#[pyclass(frozen, name = "Engine", module = "tokbatch._native")]
struct PyEngine(Arc<Engine>);

#[pymethods]
impl PyEngine {
    #[new]
    fn new(py: Python<'_>, message: &[u8]) -> PyResult<PyEngine> {
        guarded(py, || Engine::build(message)).map(|engine| PyEngine(Arc::new(engine)))
    }

    /// Give the ids of a column of texts.
    fn encode_batch(
        &self,
        py: Python<'_>,
        data: &Bound<'_, PyAny>,
        list_offsets: &Bound<'_, PyAny>,
        rows: usize,
        add_special_tokens: bool,
    ) -> PyResult<Ids> {
        let texts = HeldTexts::new(data, list_offsets, rows)?;
        let column = guarded(py, || Ok(self.0.encode_batch(texts.column()?, add_special_tokens)))?;
        Ok(Ids { column: Some(column), engine: Arc::clone(&self.0) })
    }
}

/// The native engine of tokbatch.
#[pymodule]
fn _native(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("NativeError", module.py().get_type::<NativeError>())?;
    module.add("WIRE_VERSION", crate::spec::WIRE_VERSION)?;
    module.add("VERSION", env!("CARGO_PKG_VERSION"))?;
    module.add("IS_OPTIMIZED", !cfg!(debug_assertions))?;
    module.add_class::<PyEngine>()?;
    module.add_class::<Ids>()?;
    module.add_class::<Memory>()
}
