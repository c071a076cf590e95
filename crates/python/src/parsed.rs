//! Searches that were read of late: who searches behind a filter sends the same words with each vector.

use std::collections::HashMap;

use longbow_engine::SearchRequest;
use longbow_query::{Result, SearchObject};
use parking_lot::Mutex;

use crate::queries::Queries;

/// Searches that are remembered.
const MOST: usize = 256;
/// Bytes of a longer one are not.
const LONGEST: usize = 4 << 10;

/// What was sent, and whether with several vectors.
type Sent = (Vec<u8>, bool);

/// What searches say, without their vectors.
#[derive(Debug, Default)]
pub(crate) struct Parsed {
    known: Mutex<HashMap<Sent, (String, SearchRequest)>>,
}

impl Parsed {
    /// The dataset and the request of a search, with its vectors.
    ///
    /// # Errors
    /// If it is none.
    pub fn request(&self, search: &[u8], queries: Queries) -> Result<(String, SearchRequest)> {
        let Queries { vectors, many } = queries;
        let sent = (search.to_vec(), many);
        let known = self.known.lock().get(&sent).cloned();
        if let Some((dataset, mut request)) = known {
            request.vectors = vectors;
            return Ok((dataset, request));
        }
        let search = SearchObject::parse(search)?.with_queries(vectors, many);
        let (dataset, mut request) = search.into_request()?;
        // A filter without a key is another at another moment.
        let is_lasting = request.filter.as_ref().is_none_or(|of| of.key().is_some());
        if sent.0.len() <= LONGEST && is_lasting && !request.vectors.is_empty() {
            let vectors = std::mem::take(&mut request.vectors);
            let mut known = self.known.lock();
            if known.len() >= MOST {
                known.clear();
            }
            known.insert(sent, (dataset.clone(), request.clone()));
            request.vectors = vectors;
        }
        Ok((dataset, request))
    }
}
