//! The extension module `tokbatch._native`: the one file that names PyO3.
//!
//! Buffers come in and go out by the buffer protocol; the lock of the interpreter is released meanwhile. Errors are given
//! back as values, (class, code, message, where, hint, row), which `engine/native.py` raises. A panic is one of them.

use std::os::raw::c_int;
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::path::PathBuf;
use std::sync::Arc;

use pyo3::buffer::{Element, PyBuffer};
use pyo3::exceptions::{PyBufferError, PyValueError};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::{PyDict, PyList, PyTuple};

use crate::columns::{GivenIds, IdColumn, ListOffsets, TextColumn};
use crate::encoding::Encoding;
use crate::engine::Engine;
use crate::error::{Class, Error, Result};
use crate::round_trip::Side;
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

/// A column that Python holds: its items (bytes of texts, or ids), and the offsets of its rows.
struct Held<T: Element> {
    items: PyBuffer<T>,
    list_offsets: HeldOffsets,
    rows: usize,
}

/// Offsets of the width that they have.
enum HeldOffsets {
    Narrow(PyBuffer<i32>),
    Wide(PyBuffer<i64>),
}

impl<T: Element> Held<T> {
    fn new(items: &Bound<'_, PyAny>, list_offsets: &Bound<'_, PyAny>, rows: usize) -> PyResult<Held<T>> {
        let list_offsets = match PyBuffer::get(list_offsets) {
            Ok(offsets) => HeldOffsets::Narrow(offsets),
            Err(_) => HeldOffsets::Wide(PyBuffer::get(list_offsets)?),
        };
        let held = Held { items: PyBuffer::get(items)?, list_offsets, rows };
        let (is_contiguous, count) = match &held.list_offsets {
            HeldOffsets::Narrow(offsets) => (offsets.is_c_contiguous(), offsets.item_count()),
            HeldOffsets::Wide(offsets) => (offsets.is_c_contiguous(), offsets.item_count()),
        };
        if !held.items.is_c_contiguous() || !is_contiguous {
            return Err(PyBufferError::new_err("a buffer that is not contiguous"));
        }
        if count <= rows {
            return Err(PyValueError::new_err("fewer offsets than rows"));
        }
        Ok(held)
    }

    fn offsets(&self) -> ListOffsets<'_> {
        match &self.list_offsets {
            HeldOffsets::Narrow(offsets) => ListOffsets::Narrow(&items_of(offsets)[..self.rows + 1]),
            HeldOffsets::Wide(offsets) => ListOffsets::Wide(&items_of(offsets)[..self.rows + 1]),
        }
    }
}

impl Held<u8> {
    fn column(&self) -> Result<TextColumn<'_>> {
        TextColumn::new(items_of(&self.items), self.offsets())
    }
}

impl Held<i32> {
    /// The column. Where the ids are not checked, a negative one is an error; else it stands for nobody's id.
    fn column(&self, are_checked: bool) -> Result<GivenIds<'_>> {
        let column = GivenIds::new(bytemuck::cast_slice(items_of(&self.items)), self.offsets())?;
        Ok(if are_checked { column } else { column.without_negative_ones() })
    }
}

/// The items of a buffer that is contiguous.
fn items_of<T: Element>(buffer: &PyBuffer<T>) -> &[T] {
    // What is empty may have no address.
    if buffer.item_count() == 0 {
        return &[];
    }
    // SAFETY: the buffer is contiguous (`Held::new` has looked), of this item type and length, and stays alive and unmoved
    // as long as it is borrowed. That nobody writes to it meanwhile is the contract of `TextColumn` in engine/columns.py;
    // Arrow's buffers are immutable.
    unsafe { std::slice::from_raw_parts(buffer.buf_ptr().cast::<T>(), buffer.item_count()) }
}

/// A column of ids, in memory of this module.
#[pyclass(frozen, module = "tokbatch._native")]
struct Ids {
    column: Option<IdColumn>,
    /// The offsets in 32 bits, where these do.
    narrow_offsets: Option<Vec<i32>>,
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
        Memory(Owner::Ids(slf))
    }

    /// The offsets of the rows as a buffer, and the format of its items: "i" (int32) where these do, else "q" (int64).
    fn list_offsets(slf: Py<Self>) -> (Memory, &'static str) {
        let format = if slf.get().narrow_offsets.is_some() { "i" } else { "q" };
        (Memory(Owner::Offsets(slf)), format)
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

/// Memory of this module that is one buffer.
#[pyclass(frozen, module = "tokbatch._native")]
struct Memory(Owner);

/// Whose memory it is.
enum Owner {
    Ids(Py<Ids>),
    Offsets(Py<Ids>),
    Bytes(Vec<u8>),
    Verdicts(Vec<i8>),
    Numbers(Vec<i64>),
    /// A document in a file of tables.
    Document(Arc<TableFile>, usize),
}

impl Owner {
    fn bytes(&self) -> &[u8] {
        match self {
            Owner::Ids(owner) => bytemuck::cast_slice(&owner.get().held().ids),
            Owner::Offsets(owner) => match &owner.get().narrow_offsets {
                Some(offsets) => bytemuck::cast_slice(offsets),
                None => bytemuck::cast_slice(&owner.get().held().list_offsets),
            },
            Owner::Bytes(bytes) => bytes,
            Owner::Verdicts(verdicts) => bytemuck::cast_slice(verdicts),
            Owner::Numbers(numbers) => bytemuck::cast_slice(numbers),
            Owner::Document(file, number) => file.document(*number).unwrap_or_default(),
        }
    }
}

#[pymethods]
impl Memory {
    /// Give the memory, read-only.
    ///
    /// SAFETY: called by the interpreter with a view to fill.
    unsafe fn __getbuffer__(slf: Bound<'_, Self>, view: *mut ffi::Py_buffer, flags: c_int) -> PyResult<()> {
        let bytes = slf.get().0.bytes();
        let (address, length) = (bytes.as_ptr().cast_mut().cast(), bytes.len() as isize);
        // SAFETY: the view keeps `slf` alive, which is frozen, and owns the memory or what owns it; none of it changes.
        let outcome = ffi::PyBuffer_FillInfo(view, slf.as_ptr(), address, length, 1, flags);
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
    fn document(&self, number: usize) -> Memory {
        Memory(Owner::Document(Arc::clone(&self.0), number))
    }

    /// Build an engine from the tables.
    fn engine(&self, py: Python<'_>, components: &[u8], options: &[u8]) -> PyResult<PyEngine> {
        guarded(py, || Engine::open(components, options, &self.0)).map(|engine| PyEngine(Arc::new(engine)))
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
    ) -> PyResult<(PyEngine, Memory)> {
        let documents: Vec<&[u8]> = documents.iter().map(|document| &document[..]).collect();
        let (engine, file) = guarded(py, || {
            let (engine, tables) = Engine::build_and_write(components, options, entries)?;
            Ok((engine, tables.finish(&key, &documents)))
        })?;
        Ok((PyEngine(Arc::new(engine)), Memory(Owner::Bytes(file))))
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
        let texts = Held::<u8>::new(data, list_offsets, rows)?;
        let (column, narrow_offsets) = guarded(py, || {
            let column = self.0.encode_batch(texts.column()?, add_special_tokens, keep_going)?;
            let narrow_offsets = column.narrow_offsets();
            Ok((column, narrow_offsets))
        })?;
        Ok(Ids { column: Some(column), narrow_offsets, engine: Arc::clone(&self.0) })
    }

    /// Give the number of ids of each text of a column.
    fn count_batch(
        &self,
        py: Python<'_>,
        data: &Bound<'_, PyAny>,
        list_offsets: &Bound<'_, PyAny>,
        rows: usize,
        add_special_tokens: bool,
    ) -> PyResult<Memory> {
        let texts = Held::<u8>::new(data, list_offsets, rows)?;
        guarded(py, || self.0.count_batch(texts.column()?, add_special_tokens))
            .map(|numbers| Memory(Owner::Numbers(numbers)))
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
        are_checked: bool,
        skip_special_tokens: bool,
    ) -> PyResult<(Memory, Memory)> {
        let ids = Held::<i32>::new(ids, list_offsets, rows)?;
        let (data, offsets) = guarded(py, || self.0.decode_batch(ids.column(are_checked)?, skip_special_tokens))?;
        Ok((Memory(Owner::Bytes(data)), Memory(Owner::Numbers(offsets))))
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
        are_checked: bool,
        add_special_tokens: bool,
    ) -> PyResult<([Memory; 4], [Bound<'py, PyDict>; 3])> {
        let texts = Held::<u8>::new(&texts.0, &texts.1, rows)?;
        let ids = Held::<i32>::new(&ids.0, &ids.1, rows)?;
        let found = guarded(py, || self.0.verify_batch(texts.column()?, ids.column(are_checked)?, add_special_tokens))?;
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
            Memory(Owner::Verdicts(found.verdicts)),
            Memory(Owner::Numbers(found.lstrip_chars)),
            Memory(Owner::Numbers(found.rstrip_chars)),
            Memory(Owner::Numbers(found.unk_tokens)),
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
    module.add_class::<Ids>()?;
    module.add_class::<Memory>()
}
