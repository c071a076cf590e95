/// How much of what is around the start passes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Share {
    /// Next to nothing: what passes lies elsewhere.
    Nothing,
    /// So few that they are seldom two edges from each other.
    Few,
    Some,
    Many,
    More,
    /// So many that looking behind those that do not pass would cost more than going through them.
    Most,
}

impl Share {
    pub(super) fn of(passed: usize, looked: usize) -> Share {
        // How many are looked at for ten that pass.
        match looked.saturating_mul(10).checked_div(passed) {
            None => Share::Nothing,
            Some(0..25) => Share::Most,
            Some(25..40) => Share::More,
            Some(40..120) => Share::Many,
            Some(120..320) => Share::Some,
            Some(320..2560) => Share::Few,
            Some(_) => Share::Nothing,
        }
    }

    /// How many more a walk holds for about the recall of one without a filter: measured on sets of images and of texts.
    pub(super) fn wider(self, ef: usize) -> usize {
        match self {
            Share::More | Share::Most => 0,
            Share::Many => ef / 2,
            Share::Some | Share::Few => ef,
            Share::Nothing => ef.saturating_mul(7),
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
        let more = shares.map(|(passed, looked)| Share::of(passed, looked).wider(10));
        assert_eq!(more, [70, 70, 70, 10, 10, 5, 0]);
    }
}
