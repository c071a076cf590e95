//! Vectors read from a file, in the type that they have there.

use std::path::Path;

use bytes::Bytes;
use longbow_disk::{Disk, RealDisk};
use longbow_index::Space;
use longbow_kernels::{Kernels, Metric, Scalar};

use super::error::Error;
use super::{idx, npy, parquet, vecs};

/// Rows of equal dimension. Those of a `.npy` or idx file stay in the mapped file.
#[derive(Debug, Clone)]
pub struct Vectors {
    /// The type of the elements.
    pub scalar: Scalar,
    /// Elements of a row.
    pub dim: usize,
    bytes: Bytes,
}

impl Vectors {
    /// Reads a file, its format told by its name; of a `.parquet` file the column, if one is named. Elements are checked
    /// to be finite.
    pub fn read(path: &Path, column: Option<&str>) -> Result<Vectors, Error> {
        let wrong = |reason: String| Error::File {
            path: path.to_path_buf(),
            reason,
        };
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let of_parquet = |file| Ok(parquet::vectors(file, column)?.into());
        let decode: &dyn Fn(Bytes) -> Result<Vectors, String> = if name.ends_with(".npy") {
            &of_npy
        } else if name.ends_with(".parquet") {
            &of_parquet
        } else if name.ends_with(".fvecs") {
            &of_fvecs
        } else if name.contains("-ubyte") {
            &of_idx
        } else {
            let path = path.to_path_buf();
            return Err(Error::Format { path });
        };
        let vectors = decode(RealDisk.map(path)?).map_err(wrong)?;
        if vectors.dim == 0 || vectors.rows() == 0 {
            return Err(wrong("holds no vectors".to_owned()));
        }
        if !Kernels::get().all_finite(vectors.scalar, &vectors.bytes) {
            return Err(wrong(
                "holds an infinite element, or one that is no number".to_owned(),
            ));
        }
        Ok(vectors)
    }

    /// What they are, compared by a metric.
    pub fn space(&self, metric: Metric) -> Space {
        Space {
            scalar: self.scalar,
            metric,
            dim: self.dim,
        }
    }

    /// Whether no element is farther from zero.
    pub fn are_within(&self, most: f32) -> bool {
        Kernels::get().all_within(self.scalar, &self.bytes, most)
    }

    /// How many there are.
    pub fn rows(&self) -> usize {
        self.bytes.len() / self.row_bytes()
    }

    /// Bytes of one.
    pub fn row_bytes(&self) -> usize {
        self.dim * self.scalar.size()
    }

    /// One of them, as it is stored.
    pub fn row(&self, number: usize) -> &[u8] {
        &self.bytes[number * self.row_bytes()..][..self.row_bytes()]
    }

    /// One of them, as floats.
    pub fn floats(&self, number: usize) -> Vec<f32> {
        let mut floats = vec![0.0; self.dim];
        Kernels::get().decode(self.scalar, self.row(number), &mut floats);
        floats
    }

    /// All of them, one after the other.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Only the first `rows`.
    pub fn limited(mut self, rows: usize) -> Vectors {
        self.bytes.truncate(rows.saturating_mul(self.row_bytes()));
        self
    }
}

impl From<parquet::Elements> for Vectors {
    fn from(elements: parquet::Elements) -> Self {
        Vectors {
            scalar: elements.scalar,
            dim: elements.dim,
            bytes: Bytes::from(elements.bytes),
        }
    }
}

fn of_npy(file: Bytes) -> Result<Vectors, String> {
    let array = npy::read(&file)?;
    let scalar = match array.element.as_str() {
        "f4" => Scalar::F32,
        "f2" => Scalar::F16,
        "i1" => Scalar::I8,
        "u1" => Scalar::U8,
        other => return Err(format!("has elements {other}, expected f4, f2, i1 or u1")),
    };
    Ok(Vectors {
        scalar,
        dim: array.columns,
        bytes: file.slice(array.offset..),
    })
}

fn of_fvecs(file: Bytes) -> Result<Vectors, String> {
    let (dim, elements) = vecs::read(&file)?;
    Ok(Vectors {
        scalar: Scalar::F32,
        dim,
        bytes: Bytes::from(elements),
    })
}

fn of_idx(file: Bytes) -> Result<Vectors, String> {
    let array = idx::read(&file)?;
    Ok(Vectors {
        scalar: Scalar::U8,
        dim: array.columns,
        bytes: file.slice(array.offset..),
    })
}

#[cfg(test)]
pub mod tests {
    use super::*;

    /// Vectors of floats, for tests.
    pub fn vectors(dim: usize, floats: &[f32]) -> Vectors {
        let bytes: Vec<u8> = floats.iter().flat_map(|x| x.to_le_bytes()).collect();
        Vectors {
            scalar: Scalar::F32,
            dim,
            bytes: Bytes::from(bytes),
        }
    }

    fn written(name: &str, bytes: &[u8]) -> Result<Vectors, Error> {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join(name);
        RealDisk.write_atomic(&path, bytes).expect("room");
        Vectors::read(&path, None)
    }

    #[test]
    fn each_format_gives_its_type() {
        let npy =
            written("a.npy", &npy::tests::file("|i1", "(2, 2)", &[1, 2, 3, 255])).expect("npy");
        assert_eq!((npy.scalar, npy.rows()), (Scalar::I8, 2));
        assert_eq!(npy.floats(1), [3.0, -1.0]);
        let one = 1.0f32.to_bits().cast_signed();
        let fvecs = written(
            "a.fvecs",
            &vecs::tests::file(&[&[0, one], &[one, 0], &[0, 0]]),
        )
        .expect("fvecs");
        assert_eq!((fvecs.scalar, fvecs.rows()), (Scalar::F32, 3));
        assert_eq!(fvecs.floats(1), [1.0, 0.0]);
        let idx = written(
            "t10k-images-idx3-ubyte",
            &idx::tests::file(&[2, 1, 2], &[1, 2, 3, 255]),
        )
        .expect("idx");
        assert_eq!((idx.scalar, idx.rows()), (Scalar::U8, 2));
        assert_eq!(idx.limited(1).rows(), 1);
    }

    #[test]
    fn what_cannot_be_used_is_refused() {
        let told = |name, bytes: &[u8]| written(name, bytes).expect_err("wrong").to_string();
        assert!(told("a.csv", &[]).contains(".npy"));
        assert!(told("a.parquet", &[]).contains("cannot be read"));
        assert!(told("a.npy", &npy::tests::file("<i4", "(1, 1)", &[0; 4])).contains("i4"));
        assert!(told("a.npy", &npy::tests::file("<f4", "(0, 4)", &[])).contains("no vectors"));
        assert!(told("a.npy", &npy::tests::file("<f4", "(4, 0)", &[])).contains("no vectors"));
        let nan = f32::NAN.to_le_bytes();
        assert!(told("a.npy", &npy::tests::file("<f4", "(1, 1)", &nan)).contains("no number"));
    }
}
