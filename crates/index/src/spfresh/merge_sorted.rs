use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// The first `most` of what some streams hold together, each of which is in order: a heap has the head of each.
pub(super) fn merge_sorted<T: Ord + Copy>(streams: &[Vec<T>], most: usize) -> Vec<T> {
    if let [only] = streams {
        return only[..most.min(only.len())].to_vec();
    }
    let head = |stream: usize, at: usize| {
        let item = streams[stream].get(at)?;
        Some(Reverse((*item, stream, at)))
    };
    let mut heads: BinaryHeap<_> = (0..streams.len())
        .filter_map(|stream| head(stream, 0))
        .collect();
    let mut merged = Vec::with_capacity(most.min(streams.iter().map(Vec::len).sum()));
    while merged.len() < most
        && let Some(Reverse((item, stream, at))) = heads.pop()
    {
        merged.push(item);
        heads.extend(head(stream, at + 1));
    }
    merged
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::spfresh::near::Found;
    use crate::top_k::Neighbor;

    #[test]
    fn equal_distances_are_in_order_of_their_rows_and_infinite_ones_last() {
        let found = |row, distance| Found {
            distance,
            row,
            error: 0.0,
        };
        let streams = [
            vec![found(4, 1.0), found(1, 2.0), found(0, f32::INFINITY)],
            vec![],
            vec![found(3, 1.0), found(9, 1.0), found(2, f32::NAN)],
        ];
        let rows = |most| -> Vec<u64> {
            let merged = merge_sorted(&streams, most);
            merged.iter().map(|found| found.row).collect()
        };
        assert_eq!(rows(100), [3, 4, 9, 1, 0, 2]);
        assert_eq!(rows(2), [3, 4]);
        assert!(rows(0).is_empty() && merge_sorted::<u64>(&[], 3).is_empty());
    }

    proptest! {
        #[test]
        fn merging_is_sorting(
            pairs in prop::collection::vec(
                prop::collection::vec((0u64..40, -2i8..3), 0..30), 0..9),
            most in 0usize..60,
        ) {
            let streams: Vec<Vec<Neighbor>> = pairs.iter().map(|pairs| {
                let neighbor = |(row, distance): &(u64, i8)| Neighbor {
                    row: *row,
                    distance: f32::from(*distance),
                };
                let mut stream: Vec<Neighbor> = pairs.iter().map(neighbor).collect();
                stream.sort_unstable();
                stream
            }).collect();
            let mut sorted = streams.concat();
            sorted.sort_unstable();
            sorted.truncate(most);
            prop_assert_eq!(merge_sorted(&streams, most), sorted);
        }
    }
}
