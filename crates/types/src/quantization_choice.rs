//! The values of the option `quantization`.

/// What the graph of a vector column holds where the column's field does not say.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum QuantizationChoice {
    /// What suits the column.
    Auto,
    /// `RaBitQ` codes, where they can be.
    Rabitq,
    /// Codes of the vectors alone, where they can be.
    Sq8,
    /// The vectors.
    None,
}
