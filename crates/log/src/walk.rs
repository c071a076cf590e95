//! The walk over the frames of one segment, for whoever recovers, looks over or cuts a log.

use crate::ahead::Steps;
use crate::frame::Header;
use crate::reader::Step;
use crate::{Flaw, Result};
use bytes::Bytes;
use std::ops::ControlFlow;

/// A frame that is sound and in its place.
pub(crate) struct Walked {
    pub(crate) header: Header,
    pub(crate) payload: Bytes,
    /// What the frame behind it names as the checksum before it, where that is known.
    pub(crate) link: Option<u32>,
    /// Where it begins and ends, in bytes.
    pub(crate) offset: u64,
    pub(crate) end: u64,
}

/// Walks over the sound frames from the place of `steps`, a segment that was entered, and tells `each`; `next`, the index
/// that should come next, goes along. `follows` is the first index of the segment behind it. Answers what is wrong at the
/// place of `steps`, if anything is.
pub(crate) fn walk(
    steps: &mut Steps<'_>,
    next: &mut u64,
    follows: Option<u64>,
    each: &mut dyn FnMut(Walked) -> Result<ControlFlow<()>>,
) -> Result<Option<Flaw>> {
    loop {
        let offset = steps.offset;
        let (header, payload) = match steps.step()? {
            // Behind the last frame of a segment there may be zeros, or what earlier lives of the file left. That no
            // frame was lost there is checked where the next segment names the last one.
            Step::End | Step::Bad(_) if follows == Some(*next) => return Ok(None),
            // Frames behind the zeros that end the log are from writes that a power loss tore, or the zeros are damage.
            Step::End => return Ok(steps.reader()?.highest_claim()?.map(|_| Flaw::Header)),
            Step::Bad(flaw) => return Ok(Some(flaw)),
            Step::Frame { header, payload } => (header, payload),
        };
        let expected = next.saturating_sub(u64::from(header.mark));
        if header.index != expected {
            steps.offset = offset;
            let found = header.index;
            return Ok(Some(Flaw::Index { found }));
        }
        *next += u64::from(!header.mark);
        let walked = Walked {
            header,
            payload,
            link: steps.link,
            offset,
            end: steps.offset,
        };
        if each(walked)?.is_break() {
            return Ok(None);
        }
    }
}
