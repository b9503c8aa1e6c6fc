//! Tables that an engine works with: in memory of its own, or in a file that all processes share.
//!
//! What is large when an engine is built is arrays of numbers (`Table`). They can be written to a file as they lie in
//! memory, one behind the other (`TableWriter`), and taken from there in the same order (`TableReader`) without a copy:
//! the file is mapped. What can be written and taken says how by `Stored`. Where the build of something is costly, it goes
//! through `Tables`, which builds it, builds and writes it, or takes it from the file.
//!
//! How the file looks, and how it is checked, is in `table_file.rs`. When there is one, and where, Python decides
//! (`engine/table_cache.py`).

use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

use bytemuck::Pod;

use crate::error::Result;
use crate::patterns::tree::CodePointSet;
use crate::table_file::{damaged, TableFile, TableWriter};

/// An array that does not change.
pub struct Table<T: 'static> {
    first: *const T,
    length: usize,
    /// Whose memory it is; never looked at.
    _owner: Owner<T>,
}

enum Owner<T> {
    Memory { _items: Vec<T> },
    File { _file: Arc<TableFile> },
}

// SAFETY: a table gives out nothing but `&[T]`, and what it owns is a vector of `T` or a file that is only read.
unsafe impl<T: Send + Sync> Send for Table<T> {}
// SAFETY: as above.
unsafe impl<T: Send + Sync> Sync for Table<T> {}

impl<T> From<Vec<T>> for Table<T> {
    fn from(items: Vec<T>) -> Table<T> {
        // The memory of a vector does not move with the vector.
        Table { first: items.as_ptr(), length: items.len(), _owner: Owner::Memory { _items: items } }
    }
}

impl<T: Pod> Table<T> {
    /// A part of a file, in bytes; None where it is not in the file, or not made of whole and aligned items.
    pub fn in_file(file: &Arc<TableFile>, start: usize, end: usize) -> Option<Table<T>> {
        let items: &[T] = bytemuck::try_cast_slice(file.bytes().get(start..end)?).ok()?;
        Some(Table { first: items.as_ptr(), length: items.len(), _owner: Owner::File { _file: Arc::clone(file) } })
    }
}

impl<T> Deref for Table<T> {
    type Target = [T];

    #[inline(always)]
    fn deref(&self) -> &[T] {
        // SAFETY: `first` and `length` are those of a slice of `T` in memory that `_owner` keeps: a vector that nobody
        // can reach to change it, or a mapped file (see `TableFile` for why its bytes stay). A look at which of the two it
        // is, at each access, would cost the loops over merges: that is what this is for.
        unsafe { std::slice::from_raw_parts(self.first, self.length) }
    }
}

impl<T> Default for Table<T> {
    fn default() -> Table<T> {
        Table::from(vec![])
    }
}

impl<T: fmt::Debug> fmt::Debug for Table<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

/// What can be written to a file of tables and taken from it.
pub trait Stored: Sized {
    /// Append it.
    fn put(&self, tables: &mut TableWriter);

    /// Take what `put` has appended. An error where it is not that.
    fn take(tables: &mut TableReader) -> Result<Self>;
}

/// Gives the tables of a file, in the order in which they were written.
pub struct TableReader {
    file: Arc<TableFile>,
    next: usize,
}

impl TableReader {
    /// Begin with the first table.
    pub fn new(file: &Arc<TableFile>) -> TableReader {
        TableReader { file: Arc::clone(file), next: 0 }
    }

    /// The next table.
    pub fn table<T: Pod>(&mut self) -> Result<Table<T>> {
        let (start, end) = self.file.section(self.next).ok_or_else(|| damaged("it ends too early"))?;
        self.next += 1;
        Table::in_file(&self.file, start, end).ok_or_else(|| damaged("a table is of another kind"))
    }

    /// The next table, whose length is known.
    pub fn exactly<T: Pod, const N: usize>(&mut self) -> Result<[T; N]> {
        let table = self.table()?;
        table[..].try_into().map_err(|_| damaged("a table is of another length"))
    }

    /// Make sure that all tables were taken.
    pub fn end(&self) -> Result<()> {
        self.file.section(self.next).map_or(Ok(()), |_| Err(damaged("it has more tables")))
    }
}

/// What becomes of what is costly to build.
pub enum Tables<'a> {
    /// It is built.
    Built,
    /// It is built, and written.
    Written(&'a mut TableWriter),
    /// It is taken from a file in which another run has written it.
    Taken(&'a mut TableReader),
}

impl Tables<'_> {
    /// Build it, or take it.
    pub fn make<T: Stored>(&mut self, build: impl FnOnce() -> Result<T>) -> Result<T> {
        match self {
            Tables::Built => build(),
            Tables::Written(tables) => build().inspect(|built| built.put(tables)),
            Tables::Taken(tables) => T::take(tables),
        }
    }
}

impl<T: Pod> Stored for Table<T> {
    fn put(&self, tables: &mut TableWriter) {
        tables.table(self);
    }

    fn take(tables: &mut TableReader) -> Result<Table<T>> {
        tables.table()
    }
}

/// Numbers, alone or a fixed number of them, are tables too.
macro_rules! stored_numbers {
    ($($number:ty),*) => { $(
        impl Stored for $number {
            fn put(&self, tables: &mut TableWriter) {
                tables.table(&[*self]);
            }

            fn take(tables: &mut TableReader) -> Result<$number> {
                Ok(tables.exactly::<$number, 1>()?[0])
            }
        }

        impl<const N: usize> Stored for [$number; N] {
            fn put(&self, tables: &mut TableWriter) {
                tables.table(self);
            }

            fn take(tables: &mut TableReader) -> Result<[$number; N]> {
                tables.exactly()
            }
        }
    )* };
}

stored_numbers!(u8, u16, u32, u64, f64);

impl Stored for bool {
    fn put(&self, tables: &mut TableWriter) {
        u8::from(*self).put(tables);
    }

    fn take(tables: &mut TableReader) -> Result<bool> {
        match u8::take(tables)? {
            0 => Ok(false),
            1 => Ok(true),
            other => Err(damaged(&format!("{other} is neither yes nor no"))),
        }
    }
}

impl Stored for usize {
    fn put(&self, tables: &mut TableWriter) {
        (*self as u64).put(tables);
    }

    fn take(tables: &mut TableReader) -> Result<usize> {
        usize::try_from(u64::take(tables)?).map_err(|_| damaged("a number is too large"))
    }
}

impl Stored for String {
    fn put(&self, tables: &mut TableWriter) {
        tables.table(self.as_bytes());
    }

    fn take(tables: &mut TableReader) -> Result<String> {
        String::from_utf8(tables.table::<u8>()?.to_vec()).map_err(|_| damaged("a text is not UTF-8"))
    }
}

impl<T: Stored> Stored for Option<T> {
    fn put(&self, tables: &mut TableWriter) {
        self.is_some().put(tables);
        if let Some(value) = self {
            value.put(tables);
        }
    }

    fn take(tables: &mut TableReader) -> Result<Option<T>> {
        bool::take(tables)?.then(|| T::take(tables)).transpose()
    }
}

impl<T: Stored> Stored for Vec<T> {
    fn put(&self, tables: &mut TableWriter) {
        self.len().put(tables);
        self.iter().for_each(|item| item.put(tables));
    }

    fn take(tables: &mut TableReader) -> Result<Vec<T>> {
        (0..usize::take(tables)?).map(|_| T::take(tables)).collect()
    }
}

impl<T: Stored> Stored for Box<T> {
    fn put(&self, tables: &mut TableWriter) {
        (**self).put(tables);
    }

    fn take(tables: &mut TableReader) -> Result<Box<T>> {
        T::take(tables).map(Box::new)
    }
}

impl Stored for CodePointSet {
    fn put(&self, tables: &mut TableWriter) {
        tables.table(&self.0);
    }

    fn take(tables: &mut TableReader) -> Result<CodePointSet> {
        Ok(CodePointSet(tables.table()?.to_vec()))
    }
}

impl<A: Stored, B: Stored> Stored for (A, B) {
    fn put(&self, tables: &mut TableWriter) {
        self.0.put(tables);
        self.1.put(tables);
    }

    fn take(tables: &mut TableReader) -> Result<(A, B)> {
        Ok((A::take(tables)?, B::take(tables)?))
    }
}

/// `Stored` for a struct: all of its fields, in order.
#[macro_export]
macro_rules! stored_struct {
    ($name:ident { $($field:ident),* $(,)? }) => {
        impl $crate::tables::Stored for $name {
            fn put(&self, tables: &mut $crate::table_file::TableWriter) {
                // A field that is forgotten does not compile.
                let $name { $($field),* } = self;
                $( $crate::tables::Stored::put($field, tables); )*
            }

            fn take(tables: &mut $crate::tables::TableReader) -> $crate::error::Result<$name> {
                Ok($name { $($field: $crate::tables::Stored::take(tables)?),* })
            }
        }
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, Default)]
    struct Some3 {
        words: Table<u32>,
        name: Option<String>,
        pairs: Vec<(u64, bool)>,
    }
    stored_struct!(Some3 { words, name, pairs });

    #[test]
    fn what_was_put_is_taken() {
        let given = Some3 { words: vec![1, 2, 3].into(), name: Some("é".into()), pairs: vec![(7, true), (8, false)] };
        let mut writer = TableWriter::default();
        given.put(&mut writer);
        let file = TableFile::of_bytes(writer.finish(&[7; 32], &[]), &[7; 32]).expect("as it was written");
        let mut reader = TableReader::new(&file);
        assert!(reader.end().is_err());
        let taken = Some3::take(&mut reader).expect("the same");
        assert_eq!(format!("{given:?}"), format!("{taken:?}"));
        assert!(reader.end().is_ok());
        assert!(u8::take(&mut reader).is_err());
        drop(file);
        drop(reader);
        assert_eq!(taken.words[..], [1, 2, 3]);
    }

    #[test]
    fn tables_of_another_kind_are_noticed() {
        let mut writer = TableWriter::default();
        vec![1u8, 2, 3].put(&mut writer);
        let file = TableFile::of_bytes(writer.finish(&[0; 32], &[]), &[0; 32]).expect("as it was written");
        let error = <[u32; 3]>::take(&mut TableReader::new(&file)).expect_err("other numbers");
        assert_eq!(error.code, "tables-damaged");
        assert!(<Table<u64>>::take(&mut TableReader::new(&file)).is_ok());
        assert!(String::take(&mut TableReader::new(&file)).is_ok());
    }

    #[test]
    fn a_table_is_what_its_vector_was() {
        let empty = Table::<u16>::default();
        assert!(empty.is_empty());
        let table: Table<u16> = (0..1000).collect::<Vec<u16>>().into();
        let moved = std::thread::spawn(move || table).join().expect("no panic");
        assert_eq!((moved.len(), moved[999]), (1000, 999));
    }
}
