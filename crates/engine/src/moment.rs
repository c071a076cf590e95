//! One moment of a dataset, for searches that are to see the same rows.

use std::ops::ControlFlow;
use std::sync::Arc;

use crate::column_index::AllReached;
use crate::dataset::Dataset;
use crate::engine::Engine;
use crate::error::{Error, Result};
use crate::reply::SearchReply;
use crate::search_request::SearchRequest;
use crate::text::TextReached;
use crate::view::View;

/// One moment of a dataset. As long as it is held, rows that die stay in the indexes, and their memory is not used for
/// others.
#[derive(Debug)]
pub struct Moment {
    pub(crate) dataset: Arc<Dataset>,
    /// How far the indexes are, by column.
    pub(crate) reached: AllReached,
    pub(crate) text: TextReached,
    pub(crate) view: Arc<View>,
}

impl Moment {
    /// The dataset as it is now: it has every write that was acknowledged before.
    pub fn of(dataset: Arc<Dataset>) -> Self {
        // Before the view, so that a row which an index left out as dead is dead in the view too.
        let (reached, text) = (dataset.reached(), dataset.text_reached());
        let view = dataset.view();
        Moment {
            dataset,
            reached,
            text,
            view,
        }
    }

    /// The dataset's name.
    pub fn name(&self) -> &str {
        &self.dataset.name
    }

    /// Its rows.
    pub fn view(&self) -> &Arc<View> {
        &self.view
    }
}

impl Engine {
    /// Searches a dataset as of a moment.
    ///
    /// # Errors
    /// If a column or a filter is wrong, or the time limit passes.
    pub fn search_at(&self, moment: &Moment, request: &SearchRequest) -> Result<SearchReply> {
        let mut whole = None;
        self.search_at_in_pieces(moment, request, usize::MAX, |reply| {
            whole = Some(reply);
            ControlFlow::Break(())
        })?;
        whole.ok_or(Error::NoQueryVector)
    }
}
