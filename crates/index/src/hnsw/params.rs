use crate::error::{Error, Result};

/// How a graph is built. What is asked of a search, `ef`, comes with the search.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HnswParams {
    /// Links that a new node gets on each level, 2 to 256; it may come to hold `2 * m` on the lowest. More links
    /// find more and cost more memory: 8 `m` bytes a row.
    pub m: usize,
    /// Candidates from which a new node's links are chosen, 1 to 65,536. More of them build a better graph, slower.
    pub ef_construction: usize,
    /// From which, with a row, the level of its node is drawn.
    pub seed: u64,
}

impl Default for HnswParams {
    fn default() -> Self {
        HnswParams {
            m: 16,
            ef_construction: 200,
            seed: 42,
        }
    }
}

impl HnswParams {
    pub(crate) fn check(&self) -> Result<()> {
        let check = |name, got, min, max| {
            if (min..=max).contains(&got) {
                Ok(())
            } else {
                Err(Error::Parameter {
                    name,
                    got,
                    min,
                    max,
                })
            }
        };
        check("m", self.m, 2, 256)?;
        check("ef_construction", self.ef_construction, 1, 65_536)
    }
}
