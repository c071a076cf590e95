//! How the indexes of vector columns are built.

use longbow_index::{HnswParams, QuantizedParams, SpFreshParams};

use crate::block_files::BlockFiles;
use crate::index_choice::ChoiceOptions;
use crate::index_policy::IndexPolicy;
use crate::quantization::Quantization;

/// How graphs are built.
#[derive(Debug, Clone)]
pub struct GraphOptions {
    /// What a column gets whose field says nothing, if it can be.
    pub kind: IndexPolicy,
    /// What columns go by that leave it to their size.
    pub choice: ChoiceOptions,
    /// What a column gets whose field says nothing, if it can be; if none, what suits the column.
    pub quantization: Option<Quantization>,
    /// Parameters of graphs with vectors.
    pub hnsw: HnswParams,
    /// Parameters of graphs with codes.
    pub rabitq: QuantizedParams,
    /// Parameters of indexes in files.
    pub spfresh: SpFreshParams,
    /// Where these files are.
    pub blocks: BlockFiles,
}

impl GraphOptions {
    /// The same for one dataset.
    pub(crate) fn of_dataset(&self, number: u64) -> Self {
        GraphOptions {
            blocks: self.blocks.of_dataset(number),
            ..self.clone()
        }
    }

    /// Parameters of a graph with codes of this kind.
    #[must_use]
    pub fn codes(&self, kind: Quantization) -> QuantizedParams {
        QuantizedParams {
            edge_codes: kind == Quantization::Rabitq,
            ..self.rabitq
        }
    }
}
