//! Which kinds of index columns get that leave it to their size.

use crate::index_kind::IndexKind;

/// What the choice goes by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ChoiceOptions {
    /// Rows from which on a column gets an index. So few are scanned in a millisecond or two, and never missed.
    pub least_rows: u64,
    /// Bytes of memory for the graphs of all columns that leave it to their size; if none, half the node's limit.
    pub room: Option<u64>,
}

impl Default for ChoiceOptions {
    fn default() -> Self {
        ChoiceOptions {
            least_rows: 10_000,
            room: None,
        }
    }
}

/// A column that leaves the kind of its index to its size.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Candidate {
    /// The kind that it has, or is on its way to.
    pub now: IndexKind,
    /// Living rows.
    pub rows: u64,
    /// Bytes of memory that a graph takes for a row.
    pub bytes_per_row: u64,
    /// Whether its vectors can be in postings.
    pub by_postings: bool,
}

impl Candidate {
    fn graph_bytes(&self) -> u64 {
        self.rows.saturating_mul(self.bytes_per_row)
    }

    fn is_flat(&self, least_rows: u64) -> bool {
        match self.now {
            IndexKind::Flat => self.rows < least_rows,
            _ => self.rows < least_rows / 2,
        }
    }
}

/// The kind that each column is to have, by rules that depend on nothing else:
///
/// 1. Without an index is a column of fewer than `least_rows` rows; one that had an index, of fewer than half as many.
/// 2. The others get graphs, from the smallest to the largest, for as long as their graphs together take no more than
///    `room` bytes; a column in postings goes back to a graph when they take no more than half of it. What cannot be in
///    postings gets a graph whatever it takes, and is counted first.
/// 3. The rest is in postings.
///
/// The halves keep a column that sways about a border from being moved to and fro.
#[must_use]
pub fn choose(columns: &[Candidate], least_rows: u64, room: u64) -> Vec<IndexKind> {
    let mut kinds = vec![IndexKind::Flat; columns.len()];
    let mut order: Vec<usize> = (0..columns.len())
        .filter(|at| !columns[*at].is_flat(least_rows))
        .collect();
    order.sort_by_key(|at| (columns[*at].by_postings, columns[*at].graph_bytes()));
    let mut taken = 0u64;
    for at in order {
        let column = &columns[at];
        let room = match column.now {
            IndexKind::SpFresh => room / 2,
            _ => room,
        };
        let together = taken.saturating_add(column.graph_bytes());
        if together <= room || !column.by_postings {
            kinds[at] = IndexKind::Hnsw;
            taken = together;
        } else {
            kinds[at] = IndexKind::SpFresh;
        }
    }
    kinds
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const LEAST: u64 = 100;
    const ROOM: u64 = 1_000;
    use IndexKind::{Flat, Hnsw, SpFresh};

    fn column(now: IndexKind, rows: u64) -> Candidate {
        Candidate {
            now,
            rows,
            bytes_per_row: 1,
            by_postings: true,
        }
    }

    #[test]
    fn one_column_goes_by_its_rows_and_by_where_it_is() {
        let table = [
            (
                Flat,
                [
                    (0, Flat),
                    (99, Flat),
                    (100, Hnsw),
                    (1_000, Hnsw),
                    (1_001, SpFresh),
                ],
            ),
            (
                Hnsw,
                [
                    (0, Flat),
                    (49, Flat),
                    (50, Hnsw),
                    (1_000, Hnsw),
                    (1_001, SpFresh),
                ],
            ),
            (
                SpFresh,
                [
                    (0, Flat),
                    (49, Flat),
                    (50, Hnsw),
                    (500, Hnsw),
                    (501, SpFresh),
                ],
            ),
        ];
        for (now, rows) in table {
            for (rows, expected) in rows {
                let got = choose(&[column(now, rows)], LEAST, ROOM);
                assert_eq!(got, [expected], "{now:?} {rows}");
            }
        }
    }

    #[test]
    fn the_largest_leave_first_and_the_graphs_of_others_count() {
        let columns = [500, 200, 400, 10].map(|rows| column(Hnsw, rows));
        assert_eq!(choose(&columns, LEAST, ROOM), [SpFresh, Hnsw, Hnsw, Flat]);
        // It would fit alone, and its half of the room is taken.
        let columns = [column(SpFresh, 300), column(Hnsw, 250)];
        assert_eq!(choose(&columns, LEAST, ROOM), [SpFresh, Hnsw]);
    }

    #[test]
    fn what_cannot_be_in_postings_is_in_a_graph() {
        let fixed = Candidate {
            by_postings: false,
            ..column(Hnsw, 900)
        };
        let columns = [column(Hnsw, 110), fixed, column(Hnsw, 100)];
        assert_eq!(choose(&columns, LEAST, ROOM), [SpFresh, Hnsw, Hnsw]);
        let columns = [Candidate {
            rows: u64::MAX,
            ..fixed
        }];
        assert_eq!(choose(&columns, LEAST, ROOM), [Hnsw]);
    }

    fn candidates() -> impl Strategy<Value = Vec<Candidate>> {
        let now = prop::sample::select(IndexKind::ALL.to_vec());
        let one = (now, 0..2_000u64, 1..4u64, prop::bool::weighted(0.8));
        let one = one.prop_map(|(now, rows, bytes_per_row, by_postings)| Candidate {
            now,
            rows,
            bytes_per_row,
            by_postings,
        });
        prop::collection::vec(one, 0..8)
    }

    proptest! {
        #[test]
        fn what_was_chosen_is_chosen_again(mut columns in candidates()) {
            let first = choose(&columns, LEAST, ROOM);
            for (column, kind) in columns.iter_mut().zip(&first) {
                column.now = *kind;
            }
            prop_assert_eq!(choose(&columns, LEAST, ROOM), first);
        }

        #[test]
        fn graphs_that_could_be_postings_stay_in_their_room(columns in candidates()) {
            let kinds = choose(&columns, LEAST, ROOM);
            let graphs = columns.iter().zip(&kinds).filter(|(_, kind)| **kind == Hnsw);
            let bytes: u64 = graphs.clone().map(|(column, _)| column.graph_bytes()).sum();
            let needed = graphs.clone().all(|(column, _)| !column.by_postings);
            prop_assert!(bytes <= ROOM || needed, "{} bytes", bytes);
            let postings = columns.iter().zip(&kinds).filter(|(_, kind)| **kind == SpFresh);
            prop_assert!(postings.clone().all(|(column, _)| column.by_postings));
        }
    }
}
