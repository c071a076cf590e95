//! What a statement sees: the datasets as they were when it first named them, and tables of what the node tells of itself.

use std::collections::HashMap;
use std::sync::Arc;

use async_trait::async_trait;
use datafusion::catalog::{CatalogProvider, CatalogProviderList, SchemaProvider, TableProvider};
use datafusion::common::Result;
use datafusion::logical_expr::TableType;
use longbow_engine::Engine;
use parking_lot::Mutex;

use super::refuse::ours;
use super::system::{self, System};
use super::table::DatasetTable;

/// The one catalog.
pub const CATALOG: &str = "longbow";
/// The schema of the datasets.
pub const DATASETS: &str = "public";
/// The schema of what the node tells of itself.
pub const SYSTEM: &str = "longbow";

/// One statement's view of everything. Cloning shares it.
#[derive(Debug, Clone)]
pub(super) struct Moment {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    engine: Engine,
    system: Arc<System>,
    tables: Mutex<HashMap<String, Arc<DatasetTable>>>,
}

impl Moment {
    /// A moment that has seen nothing yet.
    pub fn new(engine: &Engine, system: &Arc<System>) -> Self {
        Moment {
            inner: Arc::new(Inner {
                engine: engine.clone(),
                system: Arc::clone(system),
                tables: Mutex::default(),
            }),
        }
    }

    /// A dataset as this moment has it; nothing if there is none.
    pub fn dataset(&self, name: &str) -> Option<Arc<DatasetTable>> {
        let mut tables = self.inner.tables.lock();
        if let Some(table) = tables.get(name) {
            return Some(Arc::clone(table));
        }
        let dataset = self.inner.engine.catalog().find(name)?;
        let table = Arc::new(DatasetTable::new(&self.inner.engine, dataset));
        tables.insert(name.to_owned(), Arc::clone(&table));
        Some(table)
    }
}

impl CatalogProviderList for Moment {
    fn register_catalog(
        &self,
        _name: String,
        _catalog: Arc<dyn CatalogProvider>,
    ) -> Option<Arc<dyn CatalogProvider>> {
        None
    }

    fn catalog_names(&self) -> Vec<String> {
        vec![CATALOG.to_owned()]
    }

    fn catalog(&self, name: &str) -> Option<Arc<dyn CatalogProvider>> {
        (name == CATALOG).then(|| Arc::new(Node(self.clone())) as _)
    }
}

#[derive(Debug)]
struct Node(Moment);

impl CatalogProvider for Node {
    fn schema_names(&self) -> Vec<String> {
        vec![SYSTEM.to_owned(), DATASETS.to_owned()]
    }

    fn schema(&self, name: &str) -> Option<Arc<dyn SchemaProvider>> {
        match name {
            DATASETS => Some(Arc::new(Datasets(self.0.clone()))),
            SYSTEM => Some(Arc::new(OfSystem(self.0.clone()))),
            _ => None,
        }
    }
}

#[derive(Debug)]
struct Datasets(Moment);

#[async_trait]
impl SchemaProvider for Datasets {
    fn table_names(&self) -> Vec<String> {
        let datasets = self.0.inner.engine.catalog().datasets();
        datasets
            .iter()
            .map(|dataset| dataset.name.clone())
            .collect()
    }

    async fn table(&self, name: &str) -> Result<Option<Arc<dyn TableProvider>>> {
        Ok(self.0.dataset(name).map(|table| table as _))
    }

    async fn table_type(&self, name: &str) -> Result<Option<TableType>> {
        Ok(self.table_exist(name).then_some(TableType::Base))
    }

    fn table_exist(&self, name: &str) -> bool {
        self.0.inner.engine.catalog().find(name).is_some()
    }
}

#[derive(Debug)]
struct OfSystem(Moment);

#[async_trait]
impl SchemaProvider for OfSystem {
    fn table_names(&self) -> Vec<String> {
        system::TABLES.map(str::to_owned).to_vec()
    }

    async fn table(&self, name: &str) -> Result<Option<Arc<dyn TableProvider>>> {
        let inner = &self.0.inner;
        match inner.system.table(&inner.engine, name) {
            None => Ok(None),
            Some(table) => {
                Ok(Some(table.map_err(|error| {
                    ours(longbow_engine::Error::from(error))
                })?))
            }
        }
    }

    async fn table_type(&self, name: &str) -> Result<Option<TableType>> {
        Ok(self.table_exist(name).then_some(TableType::View))
    }

    fn table_exist(&self, name: &str) -> bool {
        system::TABLES.contains(&name)
    }
}
