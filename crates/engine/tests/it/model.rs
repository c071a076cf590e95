//! What a dataset should hold, kept in the plainest way.

use std::collections::{BTreeMap, HashMap};

use crate::rows::{Extra, Row, Shape, Test};

/// One entry of the log, as a client thinks of it.
#[derive(Debug, Clone)]
pub enum Op {
    /// The dataset comes to be, with these columns beside the first four.
    Create(Vec<Extra>),
    /// Columns are added.
    Grow(Vec<Extra>),
    /// A batch.
    Put(Vec<Row>),
    /// Rows go by key.
    DeleteKeys(Vec<u32>),
    /// Rows go by a condition.
    DeleteWhere(Test),
    /// The dataset goes.
    Drop,
}

/// A dataset.
#[derive(Debug, Clone, Default)]
pub struct Model {
    /// Whether there is such a dataset.
    pub exists: bool,
    /// The added columns, in order.
    pub extras: Vec<Extra>,
    /// Rows by when they were put.
    rows: BTreeMap<u64, Row>,
    places: HashMap<u32, u64>,
    next: u64,
}

impl Model {
    /// Does what the operation says.
    pub fn apply(&mut self, op: &Op) {
        match op {
            Op::Create(extras) => {
                *self = Model {
                    exists: true,
                    extras: extras.clone(),
                    ..Model::default()
                }
            }
            Op::Grow(extras) => self.extras.extend(extras),
            Op::Put(rows) => rows.iter().for_each(|row| self.put(row.clone())),
            Op::DeleteKeys(keys) => keys.iter().for_each(|key| self.delete(*key)),
            Op::DeleteWhere(test) => {
                let passing = self.rows().filter(|row| row.passes(test));
                let keys = passing.map(|row| row.key).collect::<Vec<_>>();
                keys.into_iter().for_each(|key| self.delete(key));
            }
            Op::Drop => *self = Model::default(),
        }
    }

    /// The living rows, in the order of the puts.
    pub fn rows(&self) -> impl DoubleEndedIterator<Item = &Row> {
        self.rows.values()
    }

    /// How many rows live.
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// The row of a key.
    pub fn get(&self, key: u32) -> Option<&Row> {
        self.rows.get(self.places.get(&key)?)
    }

    /// The columns of `extras` that the dataset does not have yet.
    pub fn missing(&self, extras: &[Extra]) -> Vec<Extra> {
        let new = extras.iter().filter(|extra| !self.extras.contains(extra));
        new.copied().collect()
    }

    /// The distances of the `k` nearest rows among those that pass, nearest first.
    pub fn nearest(
        &self,
        shape: &Shape,
        second: bool,
        query: &[f32],
        k: usize,
        test: Option<&Test>,
    ) -> Vec<f32> {
        let passing = self
            .rows()
            .filter(|row| test.is_none_or(|test| row.passes(test)));
        let distances = passing.filter_map(|row| self.distance(shape, second, query, row));
        let mut distances = distances.collect::<Vec<_>>();
        distances.sort_by(f32::total_cmp);
        distances.truncate(k);
        distances
    }

    /// The distance of a row from a query; none if it has no vector in that column.
    pub fn distance(&self, shape: &Shape, second: bool, query: &[f32], row: &Row) -> Option<f32> {
        if !second {
            return Some(shape.distance(query, &shape.vector(row.version)));
        }
        row.extras[Extra::Second as usize]?;
        Some(shape.distance(query, &shape.second(row.version)))
    }

    fn put(&mut self, row: Row) {
        self.delete(row.key);
        self.places.insert(row.key, self.next);
        self.rows.insert(self.next, row);
        self.next += 1;
    }

    fn delete(&mut self, key: u32) {
        if let Some(place) = self.places.remove(&key) {
            self.rows.remove(&place);
        }
    }
}
