use std::fmt;

/// How the nearness of two vectors is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Metric {
    /// Euclidean distance; smaller is nearer.
    Euclidean,
    /// Cosine of the angle; a vector of zeros has cosine 0 with everything.
    Cosine,
    /// Inner product; larger is nearer. Not a metric in the mathematical sense.
    Dot,
}

impl Metric {
    /// All metrics, in order of their codes in files.
    pub const ALL: [Metric; 3] = [Metric::Euclidean, Metric::Cosine, Metric::Dot];
}

impl fmt::Display for Metric {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Metric::Euclidean => "euclidean",
            Metric::Cosine => "cosine",
            Metric::Dot => "dot_product",
        })
    }
}
