//! The extension module `tokbatch._native`: the one file that names PyO3.
//!
//! Buffers come in and go out by the buffer protocol; the lock of the interpreter is released meanwhile. Errors are given
//! back as values, (class, code, message, where, hint, row), which `engine/native.py` raises. A panic is one of them.

use std::os::raw::c_int;
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::path::PathBuf;
use std::sync::Arc;

use pyo3::buffer::PyBuffer;
use pyo3::exceptions::{PyBufferError, PyValueError};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::{PyDict, PyList, PyTuple};

use crate::columns::{IdColumn, TextColumn};
use crate::encoding::Encoding;
use crate::engine::Engine;
use crate::error::{Class, Error, Result};
use crate::round_trip::{GivenIds, Side};
use crate::table_file::{Key, TableFile, SOURCES};

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

/// A column of ids that Python holds, as slices.
struct HeldIds {
    ids: PyBuffer<i32>,
    list_offsets: PyBuffer<i64>,
    rows: usize,
}

impl HeldIds {
    fn new(ids: &Bound<'_, PyAny>, list_offsets: &Bound<'_, PyAny>, rows: usize) -> PyResult<HeldIds> {
        let held = HeldIds { ids: PyBuffer::get(ids)?, list_offsets: PyBuffer::get(list_offsets)?, rows };
        if !held.ids.is_c_contiguous() || !held.list_offsets.is_c_contiguous() {
            return Err(PyBufferError::new_err("a buffer that is not contiguous"));
        }
        if held.list_offsets.item_count() <= rows {
            return Err(PyValueError::new_err("fewer offsets than rows"));
        }
        Ok(held)
    }

    fn column(&self) -> Result<GivenIds<'_>> {
        let ids = self.ids.buf_ptr().cast::<u32>();
        let offsets = self.list_offsets.buf_ptr().cast::<i64>();
        // SAFETY: as in `HeldTexts::column`; an i32 and a u32 are four bytes of any value.
        let (ids, offsets) = unsafe {
            let ids = if self.ids.item_count() == 0 { &[][..] } else { slice(ids, self.ids.item_count()) };
            (ids, slice(offsets, self.rows + 1))
        };
        GivenIds::new(ids, offsets)
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

/// Memory of this module that is one buffer.
#[pyclass(frozen, module = "tokbatch._native")]
enum Block {
    Bytes(Vec<u8>),
    Verdicts(Vec<i8>),
    Numbers(Vec<i64>),
}

#[pymethods]
impl Block {
    /// Give the memory, read-only.
    ///
    /// SAFETY: called by the interpreter with a view to fill.
    unsafe fn __getbuffer__(slf: Bound<'_, Self>, view: *mut ffi::Py_buffer, flags: c_int) -> PyResult<()> {
        let (address, length) = match slf.get() {
            Block::Bytes(bytes) => (bytes.as_ptr(), bytes.len()),
            Block::Verdicts(verdicts) => (verdicts.as_ptr().cast(), verdicts.len()),
            Block::Numbers(numbers) => (numbers.as_ptr().cast(), numbers.len() * 8),
        };
        // SAFETY: the block is frozen, and the view keeps it alive.
        let outcome = ffi::PyBuffer_FillInfo(view, slf.as_ptr(), address.cast_mut().cast(), length as isize, 1, flags);
        if outcome == 0 {
            Ok(())
        } else {
            Err(PyErr::fetch(slf.py()))
        }
    }
}

/// An `Encoding` for engine/native.py: its fields in order, `overflowing` as a list of the same.
fn encoding_fields<'py>(py: Python<'py>, encoding: &Encoding) -> PyResult<Bound<'py, PyTuple>> {
    let numbers = |mask: &[u8]| PyList::new(py, mask.iter().map(|&bit| u32::from(bit)));
    let overflowing = PyList::empty(py);
    for piece in &encoding.overflowing {
        overflowing.append(encoding_fields(py, piece)?)?;
    }
    let ranges = PyDict::new(py);
    for (sequence_id, range) in &encoding.sequence_ranges {
        ranges.set_item(sequence_id, range)?;
    }
    let fields = [
        PyList::new(py, &encoding.ids)?.into_any(),
        PyList::new(py, &encoding.tokens)?.into_any(),
        PyList::new(py, &encoding.offsets)?.into_any(),
        PyList::new(py, &encoding.type_ids)?.into_any(),
        numbers(&encoding.special_tokens_mask)?.into_any(),
        numbers(&encoding.attention_mask)?.into_any(),
        PyList::new(py, &encoding.word_ids)?.into_any(),
        overflowing.into_any(),
        ranges.into_any(),
    ];
    PyTuple::new(py, fields)
}

fn side_name(side: Side) -> &'static str {
    match side {
        Side::Left => "lstrip",
        Side::Right => "rstrip",
    }
}

/// A file of tables, open and checked, for engine/native.py.
#[pyclass(frozen, name = "Tables", module = "tokbatch._native")]
struct PyTables(Arc<TableFile>);

#[pymethods]
impl PyTables {
    /// Open a file that was made for a key of 32 bytes.
    #[new]
    fn new(py: Python<'_>, path: PathBuf, key: Key) -> PyResult<PyTables> {
        guarded(py, || TableFile::open(&path, &key)).map(PyTables)
    }

    /// Give a document as a buffer.
    fn document(&self, number: usize) -> Document {
        Document { file: Arc::clone(&self.0), number }
    }

    /// Build an engine from the tables.
    fn engine(&self, py: Python<'_>, components: &[u8], options: &[u8]) -> PyResult<PyEngine> {
        guarded(py, || Engine::open(components, options, &self.0)).map(|engine| PyEngine(Arc::new(engine)))
    }
}

/// A document in a file of tables.
#[pyclass(frozen, module = "tokbatch._native")]
struct Document {
    file: Arc<TableFile>,
    number: usize,
}

#[pymethods]
impl Document {
    /// Give the memory, read-only.
    ///
    /// SAFETY: called by the interpreter with a view to fill.
    unsafe fn __getbuffer__(slf: Bound<'_, Self>, view: *mut ffi::Py_buffer, flags: c_int) -> PyResult<()> {
        let document = slf.get();
        let bytes = document.file.document(document.number).unwrap_or_default();
        let (address, length) = (bytes.as_ptr(), bytes.len());
        // SAFETY: the document is frozen and holds the file, and the view keeps it alive.
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
    fn new(py: Python<'_>, components: &[u8], options: &[u8], entries: &[u8]) -> PyResult<PyEngine> {
        guarded(py, || Engine::build(components, options, entries)).map(|engine| PyEngine(Arc::new(engine)))
    }

    /// Build, and give also the file of tables as bytes: for a key of 32 bytes, with documents of the caller's.
    #[staticmethod]
    fn with_tables(
        py: Python<'_>,
        components: &[u8],
        options: &[u8],
        entries: &[u8],
        key: Key,
        documents: Vec<PyBackedBytes>,
    ) -> PyResult<(PyEngine, Block)> {
        let documents: Vec<&[u8]> = documents.iter().map(|document| &document[..]).collect();
        let (engine, file) = guarded(py, || {
            let (engine, tables) = Engine::build_and_write(components, options, entries)?;
            Ok((engine, tables.finish(&key, &documents)))
        })?;
        Ok((PyEngine(Arc::new(engine)), Block::Bytes(file)))
    }

    /// Give the ids of a column of texts.
    fn encode_batch(
        &self,
        py: Python<'_>,
        data: &Bound<'_, PyAny>,
        list_offsets: &Bound<'_, PyAny>,
        rows: usize,
        add_special_tokens: bool,
        keep_going: bool,
    ) -> PyResult<Ids> {
        let texts = HeldTexts::new(data, list_offsets, rows)?;
        let column = guarded(py, || self.0.encode_batch(texts.column()?, add_special_tokens, keep_going))?;
        Ok(Ids { column: Some(column), engine: Arc::clone(&self.0) })
    }

    /// Give the number of ids of each text of a column.
    fn count_batch(
        &self,
        py: Python<'_>,
        data: &Bound<'_, PyAny>,
        list_offsets: &Bound<'_, PyAny>,
        rows: usize,
        add_special_tokens: bool,
    ) -> PyResult<Block> {
        let texts = HeldTexts::new(data, list_offsets, rows)?;
        guarded(py, || self.0.count_batch(texts.column()?, add_special_tokens)).map(Block::Numbers)
    }

    /// Encode one text, or a pair: see `encoding_fields`.
    fn encode<'py>(
        &self,
        py: Python<'py>,
        text: &str,
        pair: Option<&str>,
        add_special_tokens: bool,
    ) -> PyResult<Bound<'py, PyTuple>> {
        let encoding = guarded(py, || self.0.encode(text, pair, add_special_tokens))?;
        encoding_fields(py, &encoding)
    }

    /// Give the text of ids.
    fn decode(&self, py: Python<'_>, ids: Vec<u32>, skip_special_tokens: bool) -> PyResult<String> {
        guarded(py, || self.0.decode(&ids, skip_special_tokens))
    }

    /// Give the texts of a column of ids: data and offsets.
    fn decode_batch(
        &self,
        py: Python<'_>,
        ids: &Bound<'_, PyAny>,
        list_offsets: &Bound<'_, PyAny>,
        rows: usize,
        skip_special_tokens: bool,
    ) -> PyResult<(Block, Block)> {
        let ids = HeldIds::new(ids, list_offsets, rows)?;
        let (data, offsets) = guarded(py, || self.0.decode_batch(ids.column()?, skip_special_tokens))?;
        Ok((Block::Bytes(data), Block::Numbers(offsets)))
    }

    /// Hold ids (data, offsets) against texts (data, offsets). Gives verdicts, characters absorbed left and right,
    /// unknown tokens; and what was absorbed: counts, documents, documents by whitespace.
    #[allow(clippy::type_complexity)]
    fn verify_batch<'py>(
        &self,
        py: Python<'py>,
        texts: (Bound<'py, PyAny>, Bound<'py, PyAny>),
        ids: (Bound<'py, PyAny>, Bound<'py, PyAny>),
        rows: usize,
        add_special_tokens: bool,
    ) -> PyResult<([Block; 4], [Bound<'py, PyDict>; 3])> {
        let texts = HeldTexts::new(&texts.0, &texts.1, rows)?;
        let ids = HeldIds::new(&ids.0, &ids.1, rows)?;
        let found = guarded(py, || self.0.verify_batch(texts.column()?, ids.column()?, add_special_tokens))?;
        let absorbed = [PyDict::new(py), PyDict::new(py), PyDict::new(py)];
        for ((side, id, character), count) in &found.absorbed.counts {
            absorbed[0].set_item((side_name(*side), self.0.added_content(*id), character), count)?;
        }
        for ((side, id), count) in &found.absorbed.documents {
            absorbed[1].set_item((side_name(*side), self.0.added_content(*id)), count)?;
        }
        for ((side, character), count) in &found.absorbed.documents_by_whitespace {
            absorbed[2].set_item((side_name(*side), character), count)?;
        }
        let blocks = [
            Block::Verdicts(found.verdicts),
            Block::Numbers(found.lstrip_chars),
            Block::Numbers(found.rstrip_chars),
            Block::Numbers(found.unk_tokens),
        ];
        Ok((blocks, absorbed))
    }

    /// Give the stages of a text: name, pieces, ids.
    #[allow(clippy::type_complexity)]
    fn trace(
        &self,
        py: Python<'_>,
        text: &str,
        add_special_tokens: bool,
    ) -> PyResult<Vec<(&'static str, Vec<String>, Vec<Option<u32>>)>> {
        let stages = guarded(py, || self.0.trace(text, add_special_tokens))?;
        Ok(stages.into_iter().map(|stage| (stage.name, stage.pieces, stage.ids)).collect())
    }

    /// Give vocab_size, max_id, special_ids, unk_id, byte_token_ids and single_template.
    #[allow(clippy::type_complexity)]
    fn facts(&self, py: Python<'_>) -> PyResult<(usize, u32, Vec<u32>, Option<u32>, Vec<u32>, Vec<Option<u32>>)> {
        let facts = guarded(py, || self.0.facts())?;
        let ids = (facts.special_ids, facts.unk_id, facts.byte_token_ids);
        Ok((facts.vocab_size, facts.max_id, ids.0, ids.1, ids.2, facts.single_template))
    }

    /// Give the id of a token.
    fn token_to_id(&self, py: Python<'_>, token: &str) -> PyResult<Option<u32>> {
        guarded(py, || Ok(self.0.token_to_id(token)))
    }

    /// Give the token of an id.
    fn id_to_token(&self, py: Python<'_>, id: u32) -> PyResult<Option<String>> {
        guarded(py, || Ok(self.0.id_to_token(id)))
    }
}

/// For tests only: see `limits.rs`.
#[pyfunction]
#[pyo3(signature = (longest = None, has_fault = false))]
fn set_for_test(longest: Option<usize>, has_fault: bool) {
    crate::limits::set_for_test(longest, has_fault);
}

/// The native engine of tokbatch.
#[pymodule]
fn _native(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("NativeError", module.py().get_type::<NativeError>())?;
    module.add("WIRE_VERSION", crate::spec::WIRE_VERSION)?;
    module.add("VERSION", env!("CARGO_PKG_VERSION"))?;
    module.add("SOURCES", SOURCES)?;
    module.add("IS_OPTIMIZED", !cfg!(debug_assertions))?;
    module.add_function(wrap_pyfunction!(set_for_test, module)?)?;
    module.add_class::<PyEngine>()?;
    module.add_class::<PyTables>()?;
    module.add_class::<Document>()?;
    module.add_class::<Ids>()?;
    module.add_class::<Block>()?;
    module.add_class::<Memory>()
}
