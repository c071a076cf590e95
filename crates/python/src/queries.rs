//! Query vectors, from Python's buffers.

use numpy::{PyArrayDescrMethods, PyUntypedArray, PyUntypedArrayMethods};
use pyo3::buffer::PyBuffer;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;

use crate::errors::invalid;
use crate::nearest::load_numpy;

/// Query vectors as a caller gave them.
#[derive(Debug)]
pub struct Queries {
    /// One or more vectors of one length.
    pub vectors: Vec<Vec<f32>>,
    /// Whether they came as several, if only as a list of one.
    pub many: bool,
}

impl Queries {
    /// Checks that these are an array of numpy's, of float32 as this machine has it, and no more than that: what is derived from an array may mean
    /// something else by its numbers, as one with a mask does.
    ///
    /// # Errors
    /// TypeError if they are not.
    pub fn check_array(given: &Bound<'_, PyAny>) -> PyResult<()> {
        let py = given.py();
        load_numpy(py)?;
        let array = given.cast_exact::<PyUntypedArray>();
        match array.is_ok_and(|array| array.dtype().is_equiv_to(&numpy::dtype::<f32>(py))) {
            true => Ok(()),
            false => Err(PyTypeError::new_err("no array of float32")),
        }
    }

    /// Reads a buffer of float32: one vector, or a matrix with a row for each. Its numbers are copied once, so that the
    /// search may go on without Python's lock.
    ///
    /// # Errors
    /// If it is no such buffer.
    pub fn read(given: &Bound<'_, PyAny>) -> PyResult<Queries> {
        let buffer = PyBuffer::<f32>::get(given)?;
        let flat = || buffer.to_vec(given.py());
        match *buffer.shape() {
            [_] => Ok(Queries {
                vectors: vec![flat()?],
                many: false,
            }),
            [rows, dim] if dim > 0 => {
                let flat = flat()?;
                let mut vectors = Vec::with_capacity(rows);
                vectors.extend(flat.chunks_exact(dim).map(<[f32]>::to_vec));
                Ok(Queries {
                    vectors,
                    many: true,
                })
            }
            _ => {
                let text = format!(
                    "query vectors of shape {:?}; expected one vector, or rows of vectors",
                    buffer.shape()
                );
                Err(invalid("invalid_vector", &text))
            }
        }
    }
}
