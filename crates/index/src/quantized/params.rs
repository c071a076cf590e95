use crate::error::{Error, Result};

/// How a quantised graph is built. What is asked of a search, `ef`, comes with the search.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QuantizedParams {
    /// Nodes that are visited to find a new node's neighbours, 1 to 65,536. More of them build a better graph, slower.
    pub ef_construction: usize,
    /// From which the rotation is drawn.
    pub seed: u64,
    /// Whether edges have codes. Without them a row takes a third of the memory or less, and a search estimates the
    /// neighbours of a node by the signs of their own codes, which are all over the memory, or compares all where codes are short.
    pub edge_codes: bool,
}

impl Default for QuantizedParams {
    fn default() -> Self {
        QuantizedParams {
            ef_construction: 160,
            seed: 42,
            edge_codes: true,
        }
    }
}

impl QuantizedParams {
    pub(super) fn check(&self) -> Result<()> {
        let (min, max) = (1, 65_536);
        if (min..=max).contains(&self.ef_construction) {
            return Ok(());
        }
        Err(Error::Parameter {
            name: "ef_construction",
            got: self.ef_construction,
            min,
            max,
        })
    }
}
