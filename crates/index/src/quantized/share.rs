/// How much of what is around the start passes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Share {
    /// Next to nothing: what passes lies elsewhere.
    Nothing,
    /// So few that they are seldom two edges from each other.
    Few,
    Some,
    Many,
}

impl Share {
    /// `None` if most pass.
    pub(super) fn of(passed: usize, looked: usize) -> Option<Share> {
        let one_in = looked.checked_div(passed).unwrap_or(usize::MAX);
        match one_in {
            0..4 => None,
            4..12 => Some(Share::Many),
            12..32 => Some(Share::Some),
            32..256 => Some(Share::Few),
            _ => Some(Share::Nothing),
        }
    }

    /// How many more a walk holds for about the recall of one without a filter: measured on sets of images and of texts.
    pub(super) fn wider(self, ef: usize) -> usize {
        match self {
            Share::Many => ef / 2,
            Share::Some | Share::Few => ef,
            Share::Nothing => ef.saturating_mul(5),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_less_passes_the_more_is_held() {
        let shares = [
            (0, 0),
            (0, 500),
            (1, 500),
            (2, 500),
            (20, 500),
            (100, 500),
            (200, 500),
        ];
        let more =
            shares.map(|(passed, looked)| Share::of(passed, looked).map(|share| share.wider(10)));
        let expected = [50, 50, 50, 10, 10, 5].map(Some);
        assert_eq!(more[..6], expected);
        assert_eq!(more[6], None);
    }
}
