//! Which datasets and namespaces there are.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use parking_lot::{Mutex, RwLock};

use crate::dataset::Dataset;
use crate::error::{Error, Result};

/// The namespace of datasets whose name has no `/`.
pub const DEFAULT_NAMESPACE: &str = "default";

/// The datasets by name and number, and the namespaces. Changed only by applied log entries.
#[derive(Debug, Default)]
pub struct Catalog {
    inner: RwLock<Inner>,
    /// Held while an operation that depends on what exists (create, drop) goes through the log, so that two of
    /// them don't both find the name free. Holds the number that the next dataset gets.
    pub ordering: Mutex<u64>,
    /// The columns that full text is searched in, as configured; empty for all of strings.
    pub(crate) text_columns: Arc<[String]>,
}

#[derive(Debug, Default)]
struct Inner {
    /// Index of the last applied entry that changed the catalog.
    index: u64,
    by_name: BTreeMap<String, Arc<Dataset>>,
    by_number: HashMap<u64, Arc<Dataset>>,
    namespaces: BTreeSet<String>,
}

/// Datasets among which the nearest to a mistyped name is looked for.
const COMPARED: usize = 1000;

impl Catalog {
    /// A catalog as a checkpoint left it.
    pub fn restored(
        index: u64,
        next_dataset: u64,
        namespaces: Vec<String>,
        datasets: Vec<Arc<Dataset>>,
    ) -> Self {
        let by_name = datasets
            .iter()
            .map(|dataset| (dataset.name.clone(), Arc::clone(dataset)))
            .collect();
        let by_number = datasets
            .into_iter()
            .map(|dataset| (dataset.number, dataset))
            .collect();
        let inner = Inner {
            index,
            by_name,
            by_number,
            namespaces: namespaces.into_iter().collect(),
        };
        Catalog {
            inner: RwLock::new(inner),
            ordering: Mutex::new(next_dataset),
            text_columns: Arc::default(),
        }
    }

    /// The same, full text being searched in these columns; in all of strings, if there are none.
    pub(crate) fn with_text_columns(self, text_columns: Arc<[String]>) -> Self {
        Catalog {
            text_columns,
            ..self
        }
    }

    /// A dataset by name.
    ///
    /// # Errors
    /// If there is none.
    pub fn get(&self, name: &str) -> Result<Arc<Dataset>> {
        self.find(name).ok_or_else(|| self.unknown(name))
    }

    fn unknown(&self, name: &str) -> Error {
        // With more than that, looking for the nearest would take longer than most calls do.
        let known: Vec<String> = match self.inner.read().by_name.keys() {
            names if names.len() <= COMPARED => names.cloned().collect(),
            _ => Vec::new(),
        };
        match longbow_types::nearest(name, known.iter().map(String::as_str)) {
            Some(near) => Error::DatasetMistyped {
                name: name.to_owned(),
                near: near.to_owned(),
            },
            None => Error::DatasetNotFound(name.to_owned()),
        }
    }

    /// A dataset by name, if there is one.
    pub fn find(&self, name: &str) -> Option<Arc<Dataset>> {
        self.inner.read().by_name.get(name).cloned()
    }

    /// A dataset by number, if it was not dropped.
    pub fn by_number(&self, number: u64) -> Option<Arc<Dataset>> {
        self.inner.read().by_number.get(&number).cloned()
    }

    /// All datasets, by name.
    pub fn datasets(&self) -> Vec<Arc<Dataset>> {
        self.inner.read().by_name.values().cloned().collect()
    }

    /// How many datasets there are.
    pub(crate) fn count(&self) -> usize {
        self.inner.read().by_name.len()
    }

    /// Index of the last entry that changed the catalog.
    pub fn index(&self) -> u64 {
        self.inner.read().index
    }

    /// A moment of the catalog: the index of its last change, its namespaces and its datasets.
    pub fn snapshot(&self) -> (u64, Vec<String>, Vec<Arc<Dataset>>) {
        let inner = self.inner.read();
        let namespaces = inner.namespaces.iter().cloned().collect();
        (
            inner.index,
            namespaces,
            inner.by_name.values().cloned().collect(),
        )
    }

    /// The namespaces: those created and those that datasets name by their prefix.
    pub fn namespaces(&self) -> Vec<String> {
        let inner = self.inner.read();
        let mut all = inner.namespaces.clone();
        all.extend(
            inner
                .by_name
                .keys()
                .map(|name| namespace_of(name).to_owned()),
        );
        all.into_iter().collect()
    }

    /// How many datasets a namespace holds.
    ///
    /// # Errors
    /// If there is no such namespace.
    pub fn datasets_in(&self, namespace: &str) -> Result<usize> {
        if !self.namespaces().iter().any(|name| name == namespace) {
            return Err(Error::NamespaceNotFound(namespace.to_owned()));
        }
        Ok(self
            .inner
            .read()
            .by_name
            .keys()
            .filter(|name| namespace_of(name) == namespace)
            .count())
    }

    pub(crate) fn insert(&self, index: u64, dataset: Arc<Dataset>) {
        let mut inner = self.inner.write();
        inner.index = index;
        inner
            .by_name
            .insert(dataset.name.clone(), Arc::clone(&dataset));
        inner.by_number.insert(dataset.number, dataset);
    }

    pub(crate) fn remove(&self, index: u64, number: u64) -> Option<Arc<Dataset>> {
        let mut inner = self.inner.write();
        inner.index = index;
        let dataset = inner.by_number.remove(&number)?;
        inner.by_name.remove(&dataset.name);
        Some(dataset)
    }

    pub(crate) fn create_namespace(&self, index: u64, name: &str) {
        let mut inner = self.inner.write();
        inner.index = index;
        inner.namespaces.insert(name.to_owned());
    }

    pub(crate) fn delete_namespace(&self, index: u64, name: &str) -> bool {
        let mut inner = self.inner.write();
        inner.index = index;
        inner.namespaces.remove(name)
    }
}

/// The namespace that a dataset's name places it in: what stands before its first `/`.
pub fn namespace_of(dataset: &str) -> &str {
    dataset
        .split_once('/')
        .map_or(DEFAULT_NAMESPACE, |(namespace, _)| namespace)
}

/// Checks the name of a dataset or namespace.
///
/// # Errors
/// If it is empty, longer than 255 bytes, has control characters, begins with `{` or `/`, or holds `..`.
pub fn check_name(name: &str) -> Result<()> {
    let why = if name.is_empty() {
        "it is empty"
    } else if name.len() > 255 {
        "it is longer than 255 bytes"
    } else if name.chars().any(char::is_control) {
        "it holds a control character"
    } else if name.starts_with('{') {
        "it begins with '{', as a ticket does"
    } else if name.starts_with('/') || name.ends_with('/') || name.contains("..") {
        "it looks like a path"
    } else {
        return Ok(());
    };
    Err(Error::BadName {
        name: name.chars().take(64).collect(),
        why,
    })
}
