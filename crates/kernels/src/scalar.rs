use std::fmt;

/// Element type of a stored vector.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Scalar {
    /// IEEE 754 binary32, four bytes.
    F32,
    /// IEEE 754 binary16, two bytes.
    F16,
    /// Signed integer, one byte.
    I8,
    /// Unsigned integer, one byte.
    U8,
}

impl Scalar {
    /// All element types, in order of their codes in files.
    pub const ALL: [Scalar; 4] = [Scalar::F32, Scalar::F16, Scalar::I8, Scalar::U8];

    /// Bytes of one element.
    #[must_use]
    pub const fn size(self) -> usize {
        match self {
            Scalar::F32 => 4,
            Scalar::F16 => 2,
            Scalar::I8 | Scalar::U8 => 1,
        }
    }
}

impl fmt::Display for Scalar {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Scalar::F32 => "float32",
            Scalar::F16 => "float16",
            Scalar::I8 => "int8",
            Scalar::U8 => "uint8",
        })
    }
}
