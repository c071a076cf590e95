//! Prepared statements by handle, with the parameters that are bound to each.

use std::collections::BTreeMap;

use arrow_array::RecordBatch;
use bytes::Bytes;
use parking_lot::Mutex;
use tonic::{Code, Status};

use crate::status::status;

/// Most statements that are kept; the oldest are forgotten beyond it, for clients go away without closing theirs.
const MOST: usize = 10_000;

/// The statements.
#[derive(Debug, Default)]
pub(crate) struct Prepared {
    inner: Mutex<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    next: u64,
    statements: BTreeMap<u64, Statement>,
}

/// One of them.
#[derive(Debug, Clone)]
pub(crate) struct Statement {
    /// Its text.
    pub text: String,
    /// The values of its parameters.
    pub parameters: Option<RecordBatch>,
}

impl Prepared {
    /// Keeps a statement, and gives its handle.
    pub fn keep(&self, text: &str) -> Bytes {
        let mut inner = self.inner.lock();
        inner.next += 1;
        let number = inner.next;
        let statement = Statement {
            text: text.to_owned(),
            parameters: None,
        };
        inner.statements.insert(number, statement);
        if inner.statements.len() > MOST {
            inner.statements.pop_first();
        }
        Bytes::copy_from_slice(&number.to_be_bytes())
    }

    /// A statement by its handle.
    ///
    /// # Errors
    /// NotFound, if it was closed or forgotten, or is of another node or start.
    pub fn get(&self, handle: &[u8]) -> Result<Statement, Status> {
        let number = number(handle)?;
        let inner = self.inner.lock();
        inner.statements.get(&number).cloned().ok_or_else(unknown)
    }

    /// Binds values to the parameters of a statement.
    ///
    /// # Errors
    /// As [`Prepared::get`].
    pub fn bind(&self, handle: &[u8], parameters: RecordBatch) -> Result<(), Status> {
        let number = number(handle)?;
        let mut inner = self.inner.lock();
        let statement = inner.statements.get_mut(&number).ok_or_else(unknown)?;
        statement.parameters = Some(parameters);
        Ok(())
    }

    /// Forgets a statement, if it is there.
    pub fn close(&self, handle: &[u8]) {
        if let Ok(number) = number(handle) {
            self.inner.lock().statements.remove(&number);
        }
    }
}

fn number(handle: &[u8]) -> Result<u64, Status> {
    handle
        .try_into()
        .map(u64::from_be_bytes)
        .map_err(|_| unknown())
}

fn unknown() -> Status {
    let text = "the prepared statement is not known here: it was closed, or the node started anew; prepare it again";
    status(Code::NotFound, "statement_not_found", text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_statement_is_there_until_it_is_closed_or_too_old() {
        let prepared = Prepared::default();
        let first = prepared.keep("SELECT 1");
        assert_eq!(prepared.get(&first).expect("kept").text, "SELECT 1");
        let second = prepared.keep("SELECT 2");
        prepared.close(&second);
        assert_eq!(
            prepared.get(&second).expect_err("closed").code(),
            Code::NotFound
        );
        for _ in 0..MOST {
            prepared.keep("SELECT 3");
        }
        assert!(prepared.get(&first).is_err());
        assert!(prepared.get(b"no handle").is_err());
    }
}
